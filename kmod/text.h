/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Formats pages into a buffer. */
#ifndef GPUPART_KMOD_TEXT_H
#define GPUPART_KMOD_TEXT_H

#include "topo.h"

/*
 * A page that is being written. If @overflow is true, the page did not fit and must not be shown.
 */
struct text {
	char *buf;
	size_t size, len;
	bool overflow;
};

__printf(2, 3) void gp_text_add(struct text *text, const char *fmt, ...);

void gp_text_fault(struct text *text, const struct topo_fault *fault);

/*
 * The parts of a topology page. If a part has a fault, the page shows the reason instead of the
 * part. If the fault is not -EOPNOTSUPP, the page also ends with "complete no".
 */
struct text_topology {
	const char *name, *bus_name;
	const struct gpu_id *id;
	const struct gpu_floorsweep *fs;
	struct gpu_memory memory;
	u64 local_memory;
	struct topo_fault memory_fault, local_memory_fault;
};

/*
 * Reads the size of the memory and the L2 slices of @topology's chip. If a value cannot be read,
 * stores the fault.
 */
void gp_text_topology_memory(struct text_topology *topology, struct topo_reader *reader);
void gp_text_topology(struct text *text, const struct text_topology *topology);

/* Writes the page of a refused chip. The page has the id of the chip and the reason. */
void gp_text_refused(struct text *text, const struct gpu_id *id);

/* Writes the row of the chip. For each cell, writes the offset, the tag and the source. */
void gp_text_chip(struct text *text, const struct gpu_id *id);

/*
 * Writes the engines with their runlists, and then the copy engines. Faults are shown in the same
 * way as on the topology page.
 */
struct text_engines {
	const struct chip *chip;
	const struct gpu_engines *engines;
	struct gpu_copy copy;
	struct topo_fault copy_fault;
};

void gp_text_engines_copy(struct text_engines *page, struct topo_reader *reader);
void gp_text_engines(struct text *text, const struct text_engines *engines);

/*
 * The first function writes the head of the page of runlists. The second function writes one
 * runlist.
 */
void gp_text_runlists_head(struct text *text, const struct chip *chip);
void gp_text_runlist(struct text *text, const struct gpu_runlist *runlist,
		     const struct topo_fault *fault);

/* These functions write files. The text is exactly the same as in the files of nvdebug. */
void gp_text_device_info(struct text *text, const struct chip *chip,
			 const struct gpu_engines *engines);
void gp_text_copy_topology(struct text *text, const struct gpu_copy *copy);

#endif
