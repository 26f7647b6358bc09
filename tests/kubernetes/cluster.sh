#!/bin/sh
# SPDX-License-Identifier: MIT
# The device plugin under a real cluster of one node: Debian's etcd and containerd, and the
# kubelet, apiserver and scheduler that scripts/kubernetes-daemons builds. PODS pods (200) of
# mixed sizes on two simulated GPUs, while kubelet and the plugin are killed. KEEP=FOLDER stores
# the logs and the record.
user_cache=${XDG_CACHE_HOME:-$HOME/.cache}	# tap.subr gives tests a separate cache
. "$(dirname "$0")/../cli/tap.subr"
. tests/kubernetes/node.subr
missing=$(node_missing)
for tool in etcd containerd runc openssl; do
	[ -n "$missing" ] || command -v $tool >/dev/null || missing="no $tool here"
done
[ -n "$missing" ] || daemons=$(XDG_CACHE_HOME=$user_cache scripts/kubernetes-daemons) || missing="the daemons cannot be built here"
[ -z "$missing" ] || { skip "$missing"; tap_done; }
captures=$BUILD/share/gpupart/captures
export BUILD
cp lib/confine/probe.ptx "$tmp"
trap '[ -z "${KEEP-}" ] || cp -r "$tmp"/*.log "$tmp"/*.json "$KEEP"; rm -rf "$tmp"' EXIT
node_run "$captures/h200-e.capture:$captures/h200-c.capture" "$python" -u tests/kubernetes/cluster.py "$tmp" "$daemons" "${PODS:-200}" "${SEED:-1}"
