#!/bin/sh
# SPDX-License-Identifier: MIT
# The device plugin in random operations (OPERATIONS of them, 500) of a kubelet that tests/kubernetes/peer.py plays, among
# them kills of both: no two live containers have a TPC in common, and none has another than it got.
. "$(dirname "$0")/../cli/tap.subr"
. tests/kubernetes/node.subr
missing=$(node_missing)
[ -z "$missing" ] || { skip "$missing"; tap_done; }
captures=$BUILD/share/gpupart/captures
export BUILD
trap 'rm -rf "$tmp"' EXIT
node_run "$captures/h200-e.capture:$captures/h200-c.capture" "$python" -u tests/kubernetes/operations.py "$tmp" "${OPERATIONS:-500}" "${SEED:-1}"
