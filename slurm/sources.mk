# SPDX-License-Identifier: MIT
# Sources of Slurm's plugin.
# A file that is in no list is not built; `make lint` names it. One list a folder, sorted.

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
