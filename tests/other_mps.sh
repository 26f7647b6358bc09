#!/bin/sh
# SPDX-License-Identifier: MIT
# Stands for nvidia-cuda-mps-control in tests, which put it on PATH by that name. $FAKE_MPS is a
# folder: what was done is in its files log, env and marker; its files fails, hangs and clients
# say what is logged as it fails, that it answers nobody, and that there are clients to wait for.
dir=$CUDA_MPS_PIPE_DIRECTORY
pid=$dir/nvidia-cuda-mps-control.pid
case $1 in
-d)
	echo start >>"$FAKE_MPS/log"
	env >"$FAKE_MPS/env"
	cp "$dir/gpupart.started" "$FAKE_MPS/marker" 2>/dev/null
	if [ -e "$FAKE_MPS/fails" ]; then
		cat "$FAKE_MPS/fails" >>"$CUDA_MPS_LOG_DIRECTORY/control.log"
		echo 'said, not logged'
		exit 3
	fi
	"$0" serve &
	exit 0 ;;
serve)
	sleep 0.1
	rm -f "$dir/quit"
	echo $$ >"$pid"
	: >"$dir/control"
	while [ -d "$dir" ] && { [ ! -e "$dir/quit" ] || [ -e "$FAKE_MPS/clients" ]; }; do
		sleep 0.05
	done
	rm -f "$dir/quit" "$dir/control" "$pid"
	exit 0 ;;
esac
read -r word
[ ! -e "$FAKE_MPS/hangs" ] || sleep 60
case $(cat "/proc/$(cat "$pid" 2>/dev/null)/stat" 2>/dev/null) in
*\(nvidia-cuda-mps*\)\ [RSD]*) ;;
*) echo 'Cannot find the daemon'; exit 1 ;;
esac
if [ "$word" = quit ]; then
	echo quit >>"$FAKE_MPS/log"
	: >"$dir/quit"
fi
exit 0
