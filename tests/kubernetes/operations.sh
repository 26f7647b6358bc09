#!/bin/sh
# SPDX-License-Identifier: MIT
# The device plugin in random operations (OPERATIONS of them, 500) of a kubelet that
# tests/kubernetes/peer.py imitates, including kills of both: no two living containers share a
# TPC, and each keeps the TPCs that it got.
. "$(dirname "$0")/../cli/tap.subr"
. tests/kubernetes/node.subr
missing=$(node_missing)
[ -z "$missing" ] || { skip "$missing"; tap_done; }
captures=$BUILD/share/gpupart/captures
export BUILD
trap 'rm -rf "$tmp"' EXIT
node_run "$captures/h200-e.capture:$captures/h200-c.capture" "$python" -u tests/kubernetes/operations.py "$tmp" "${OPERATIONS:-500}" "${SEED:-1}"
