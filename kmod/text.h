/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Formats pages into a buffer. */
#ifndef GPUPART_KMOD_TEXT_H
#define GPUPART_KMOD_TEXT_H

#include "topo.h"

/* A page that is being written. @overflow: it did not fit, and must not be shown. */
struct text {
	char *buf;
	size_t size, len;
	bool overflow;
};

__printf(2, 3) void gp_text_add(struct text *text, const char *fmt, ...);

void gp_text_fault(struct text *text, const struct topo_fault *fault);

/*
 * The parts of a topology page. The page has the reason in the place of a part with a fault, and
 * then ends with "complete no" unless the fault is -EOPNOTSUPP.
 */
struct text_topology {
	const char *name, *bus_name;
	const struct gpu_id *id;
	const struct gpu_floorsweep *fs;
	struct gpu_memory memory;
	u64 local_memory;
	struct topo_fault memory_fault, local_memory_fault;
};

/* Reads the memory of @topology's chip, or fills in its faults. */
void gp_text_topology_memory(struct text_topology *topology, struct topo_reader *reader);
void gp_text_topology(struct text *text, const struct text_topology *topology);

/* A chip that is refused, with its id and the reason. */
void gp_text_refused(struct text *text, const struct gpu_id *id);

/* The chip's row: the place, tag and source of each cell. */
void gp_text_chip(struct text *text, const struct gpu_id *id);

/* Engines with their runlists, then copy engines. A fault is handled as above. */
struct text_engines {
	const struct chip *chip;
	const struct gpu_engines *engines;
	struct gpu_copy copy;
	struct topo_fault copy_fault;
};

void gp_text_engines_copy(struct text_engines *page, struct topo_reader *reader);
void gp_text_engines(struct text *text, const struct text_engines *engines);

/* The page of runlists: first its head, then each runlist. */
void gp_text_runlists_head(struct text *text, const struct chip *chip);
void gp_text_runlist(struct text *text, const struct gpu_runlist *runlist,
		     const struct topo_fault *fault);

/* Files with the exact text of nvdebug's. */
void gp_text_device_info(struct text *text, const struct chip *chip,
			 const struct gpu_engines *engines);
void gp_text_copy_topology(struct text *text, const struct gpu_copy *copy);

#endif
