# SPDX-License-Identifier: MIT
# Sources of the simulated GPU: the driver, the management library, the scheduling pipeline. Files
# that are in no list are not built, and `make lint` names them. One sorted list for each folder.

SIM_SRC := \
	sim/cuda/capture.c \
	sim/cuda/context.c \
	sim/cuda/dispatch_kernel.c \
	sim/cuda/driver.c \
	sim/cuda/engine.c \
	sim/cuda/entry_points.c \
	sim/cuda/event.c \
	sim/cuda/fault.c \
	sim/cuda/gpu.c \
	sim/cuda/graph.c \
	sim/cuda/graph_exec.c \
	sim/cuda/graph_memory.c \
	sim/cuda/graph_node.c \
	sim/cuda/graph_update.c \
	sim/cuda/green.c \
	sim/cuda/hook_table.c \
	sim/cuda/kernels.c \
	sim/cuda/launch.c \
	sim/cuda/memory.c \
	sim/cuda/module.c \
	sim/cuda/occupancy.c \
	sim/cuda/physical.c \
	sim/cuda/pool.c \
	sim/cuda/registered.c \
	sim/cuda/release.c \
	sim/cuda/stream.c \
	sim/cuda/tmd_build.c \
	sim/cuda/tmd_decode.c \
	sim/cuda/vram.c

SIM_NVML_SRC := \
	sim/nvml/device.c \
	sim/nvml/kernel.c \
	sim/nvml/processes.c \
	sim/nvml/state.c \
	sim/nvml/usage_file.c

PIPE_SRC := \
	sim/pipe/balance.c \
	sim/pipe/check.c \
	sim/pipe/chips.c \
	sim/pipe/cmdbuf.c \
	sim/pipe/copy.c \
	sim/pipe/cpu.c \
	sim/pipe/deadlock.c \
	sim/pipe/external_feed.c \
	sim/pipe/frontend.c \
	sim/pipe/graph.c \
	sim/pipe/host.c \
	sim/pipe/map.c \
	sim/pipe/memory.c \
	sim/pipe/queue.c \
	sim/pipe/rank.c \
	sim/pipe/run.c \
	sim/pipe/slices.c \
	sim/pipe/sm.c \
	sim/pipe/tmu.c \
	sim/pipe/wdu.c
