# SPDX-License-Identifier: MIT
# Files that are installed unchanged: captures, scenarios, examples, manual pages. Sorted.

CAPTURE_SRC := \
	tests/data/gh100-h200-a/capture.txt \
	tests/data/gh100-h200-b/capture.txt \
	tests/data/gh100-h200-c/capture.txt \
	tests/data/gh100-h200-d/capture.txt \
	tests/data/gh100-h200-e/capture.txt \
	tests/data/gh100-h200-f/capture.txt \
	tests/data/gh100-h200-g/capture.txt

SCENARIO_SRC := \
	share/scenarios/chain-curve.yaml \
	share/scenarios/copies.yaml \
	share/scenarios/cpu-or-gpu-bound.yaml \
	share/scenarios/events.yaml \
	share/scenarios/figure-10.yaml \
	share/scenarios/figure-11.yaml \
	share/scenarios/figure-12.yaml \
	share/scenarios/figure-13.yaml \
	share/scenarios/figure-14.yaml \
	share/scenarios/figure-3.yaml \
	share/scenarios/figure-4.yaml \
	share/scenarios/graph.yaml \
	share/scenarios/million.yaml \
	share/scenarios/priorities.yaml \
	share/scenarios/processes.yaml \
	share/scenarios/qos-burst.yaml \
	share/scenarios/qos-lend.yaml \
	share/scenarios/qos-neighbour.yaml \
	share/scenarios/qos-steady.yaml \
	share/scenarios/shape.yaml \
	share/scenarios/speed-up.yaml \
	share/scenarios/table-3.yaml \
	share/scenarios/together.yaml \
	share/scenarios/turing-puzzle.yaml

EXAMPLE_SRC := \
	share/examples/config.example \
	share/examples/peers.py \
	share/examples/plan.yaml \
	share/examples/qos.yaml \
	share/examples/scenario.yaml

ENGINE_SRC := \
	share/examples/engine/README.md \
	share/examples/engine/engine.py \
	share/examples/engine/model.py \
	share/examples/engine/policy.py \
	share/examples/engine/run.py

MAN_SRC := \
	Documentation/man/gpupart-device-launches.7 \
	Documentation/man/gpupart-device-plugin.8 \
	Documentation/man/gpupart.1 \
	Documentation/man/gpupart.4 \
	Documentation/man/gpupart.7

MAN_EXAMPLE_SRC := \
	Documentation/man/examples/gpupart_attach.c \
	Documentation/man/examples/gpupart_counters.c \
	Documentation/man/examples/gpupart_job.c \
	Documentation/man/examples/gpupart_memory.c \
	Documentation/man/examples/gpupart_open.c \
	Documentation/man/examples/gpupart_plan.c \
	Documentation/man/examples/gpupart_process_list.c \
	Documentation/man/examples/gpupart_process_set.c \
	Documentation/man/examples/gpupart_progress.c \
	Documentation/man/examples/gpupart_remote.c \
	Documentation/man/examples/gpupart_set_parse.c \
	Documentation/man/examples/gpupart_sm_count.c \
	Documentation/man/examples/gpupart_topology.c \
	Documentation/man/examples/gpupart_tpcset.c \
	Documentation/man/examples/gpupart_verify.c
