#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart run as the parent of its program: parent.py; and runs inside runs.
. "$(dirname "$0")/tap.subr"
if ! python3 -c 'import pty' 2>/dev/null; then
	skip "no python3"
	tap_done
fi
exec python3 tests/cli/parent.py "$gpupart" -i tests/data/gh100-h200-e/capture.txt -t 0
