#!/bin/sh
# SPDX-License-Identifier: MIT
# The device plugin with a kubelet that tests/kubernetes/peer.py imitates: allocations, refusals,
# restarts and kills of either side, bytes that are not gRPC.
. "$(dirname "$0")/../cli/tap.subr"
. tests/kubernetes/node.subr
missing=$(node_missing)
[ -z "$missing" ] || { skip "$missing"; tap_done; }
"${CC:-cc}" -o "$tmp/census" tests/cli/census.c -ldl || exit 1
cp lib/confine/probe.ptx "$tmp"
captures=$BUILD/share/gpupart/captures
export BUILD
trap 'rm -rf "$tmp"' EXIT
node_run "$captures/h200-e.capture:$captures/h200-c.capture" "$python" -u tests/kubernetes/protocol.py "$tmp"
