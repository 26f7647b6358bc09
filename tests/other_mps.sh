#!/bin/sh
# SPDX-License-Identifier: MIT
# A fake nvidia-cuda-mps-control for tests, which put it on PATH by that name. $FAKE_MPS is a
# folder. The files log, env and marker record the calls. The content of the file fails is printed
# as the reason of a failure; clients makes clients to wait for; servers is the list of servers; a
# command that begins with the content of hangs gets no answer; refuses makes all commands fail;
# stumbles makes one fail.
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
if [ -e "$FAKE_MPS/hangs" ]; then
	case $word in "$(cat "$FAKE_MPS/hangs")"*) sleep 60 ;; esac
fi
case $(cat "/proc/$(cat "$pid" 2>/dev/null)/stat" 2>/dev/null) in
*\(nvidia-cuda-mps*\)\ [RSD]*) ;;
*) echo 'Cannot find the daemon'; exit 1 ;;
esac
case $word in
quit)
	echo quit >>"$FAKE_MPS/log"
	: >"$dir/quit" ;;
get_server_list)
	cat "$FAKE_MPS/servers" 2>/dev/null
	! rm "$FAKE_MPS/stumbles" 2>/dev/null || exit 1 ;;
terminate_client\ *)
	# The command, and whether that process still lives.
	state=$(sed -n 's/^State:.\([A-Z]\).*/\1/p' "/proc/${word##* }/status" 2>/dev/null)
	case $state in [RSD]) state=lives ;; *) state=gone ;; esac
	echo "$word $state" >>"$FAKE_MPS/log"
	[ ! -e "$FAKE_MPS/refuses" ] || exit 1 ;;
esac
exit 0
