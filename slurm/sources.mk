# SPDX-License-Identifier: MIT
# Sources of the Slurm plugin. Files that are in no list are not built, and `make lint` names
# them. One sorted list for each folder.

SPANK_SRC := \
	slurm/allocate.c \
	slurm/environment.c \
	slurm/mps.c \
	slurm/node_file.c \
	slurm/node_gpu.c \
	slurm/node_lock.c \
	slurm/options.c \
	slurm/orphans.c \
	slurm/plugin.c \
	cli/mps/mps_daemon.c \
	cli/util/process.c \
	cli/util/tunables_value.c
