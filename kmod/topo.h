/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Reads the parts of a GPU. The row of the chip says which registers are read. The functions read
 * through the caller's struct topo_reader, and keep no state themselves. In all results, a set bit
 * means that the unit is present. Only read.c inverts fuse bits.
 */
#ifndef GPUPART_KMOD_TOPO_H
#define GPUPART_KMOD_TOPO_H

#include "chip.h"
#include <linux/gpupart.h>

#define TOPO_UNKNOWN		0xff	/* the value of an unknown u8 index */
#define TOPO_MAX_ENGINES	256
#define TOPO_MAX_ROWS		1024

/* A register that could not be read. If err is 0, the chip has no such register. */
struct topo_fault {
	/* -EIO: the value is a refusal; -ERANGE: the value is impossible; other: error of rd32 */
	int err;
	u32 offset, value;
};

/*
 * rd32() reads a register, or gives a value that was read at most a second ago. If no read is
 * possible, it returns -errno. Otherwise it returns 0.
 */
struct topo_reader {
	int (*rd32)(struct topo_reader *reader, u32 offset, u32 *value);
	/*
	 * Keeps a value. If @lasts is true, keeps the value for ever. Keeps a refusal for a second.
	 * This pointer may be NULL.
	 */
	void (*keep)(struct topo_reader *reader, u32 offset, u32 value, bool lasts);
	bool live;		/* the registers change all the time, so only refusals are kept */
	struct topo_fault fault;	/* fault of the last read that failed */
};

/*
 * If the value is valid, returns NULL. Otherwise the GPU has refused the read, and this function
 * returns the reason as a constant string.
 */
const char *gp_topo_bad_read(u32 value);

/* Returns whether the refusal is permanent. */
bool gp_topo_bad_for_good(u32 value);

/*
 * Returns the reason for a read that was not possible. The error @err is the errno of rd32. If
 * there is nothing to read, this error is -EOPNOTSUPP.
 */
const char *gp_topo_unreadable(int err);

/* Writes a text such as "0x820c1c reads 0xbadf5040: no such address". */
#define TOPO_FAULT_LEN 96
void gp_topo_fault_text(const struct topo_fault *fault, char *text, size_t len);

/* Keeps the value of a register that does not change. */
void gp_topo_keep(struct topo_reader *reader, u32 offset, u32 value);

/*
 * Reads a register and checks the value. After an error, fills in reader->fault and returns -errno.
 * Otherwise returns 0.
 */
int gp_topo_rd32(struct topo_reader *reader, u32 offset, u32 *value);

/* Rejects an impossible value. Fills in reader->fault and returns -ERANGE. */
int gp_topo_nonsense(struct topo_reader *reader, u32 offset, u32 value);

/* Reads a design maximum, which must be from 1 to @limit. */
int gp_topo_read_maximum(struct topo_reader *reader, u32 offset, u32 limit, u32 *value);

/*
 * Finds out which of @nr units are present. Reads fuse number @index and, on Kepler, the software
 * mask.
 */
int gp_topo_read_present(struct topo_reader *reader, const struct chip_cell *fuse,
			 unsigned int index, unsigned int nr, u32 *present);

static inline u32 topo_mask(unsigned int bits)
{
	return bits >= 32 ? 0xffffffff : (1u << bits) - 1;
}

struct gpu_id {
	u32 boot_0, boot_42;
	u32 chip_id;
	const struct chip *chip;	/* NULL: the chip is refused, see @why */
	const char *why;
};

/*
 * Identifies the chip. If the chip is not known, sets @id->chip to NULL and returns 0. If the id
 * cannot be read, returns an error such as -EIO.
 */
int gp_topo_identify(struct topo_reader *reader, struct gpu_id *id);

enum topo_order {
	TOPO_ORDER_UNKNOWN,
	TOPO_ORDER_READ,	/* read from the work distributor */
	TOPO_ORDER_COMPUTED,	/* computed with the published rule */
};

struct gpu_tpc {
	u8 gpc;			/* logical number */
	u8 tpc_in_gpc;
};

struct gpu_floorsweep {
	const struct chip *chip;
	u32 max_gpcs, max_tpcs_per_gpc;
	u32 present_gpcs;			/* bit is gpc_phys */
	u32 present_tpcs[GPUPART_MAX_GPCS];	/* [gpc_phys], bit is tpc_phys */
	u8 floorswept_cpcs[GPUPART_MAX_GPCS];	/* [gpc_phys], number of floorswept CPCs */
	bool has_cpcs;
	unsigned int nr_gpcs, nr_tpcs;		/* present according to the fuses */
	unsigned int sms_per_tpc;		/* 0: unknown */

	bool has_map;
	u8 gpc_phys[GPUPART_MAX_GPCS];		/* [gpc] */
	u8 ugpu[GPUPART_MAX_GPCS];		/* [gpc], or TOPO_UNKNOWN */
	char map_why[96];			/* the reason why there is no map */

	enum topo_order order;
	unsigned int nr_ordered;
	struct gpu_tpc tpcs[GPUPART_MAX_TPCS];	/* [tpc] */
	char order_why[128];			/* the reason why the order was not read */
	/* difference between the work distributor's table and the fuses, or "" */
	char disagree[128];

	bool complete;				/* all registers were read and accepted */
	/* the table with the order is not loaded now */
	bool unloaded;
};

int gp_topo_read(const struct chip *chip, struct topo_reader *reader, struct gpu_floorsweep *fs);

/*
 * Reads the order of the TPCs. If this fails, stores the reason in fs->order_why and returns an
 * error. Otherwise returns 0.
 */
int gp_topo_order_read(struct topo_reader *reader, const struct chip_cell *cell,
		       struct gpu_floorsweep *fs);

/* If the chip's row has a rule, computes the order. */
void gp_topo_order_compute(struct topo_reader *reader, struct gpu_floorsweep *fs);

struct gpu_engine {
	u16 type;
	u8 instance;
	u8 die;
	s16 engine_id, runlist, intr, reset, fault, rleng;	/* -1: unknown */
	u32 pri_base;
	u32 runlist_pri_base;					/* 0: unknown */
};

struct gpu_engines {
	unsigned int nr, nr_rows;
	struct gpu_engine engines[TOPO_MAX_ENGINES];
	u32 rows[TOPO_MAX_ROWS];		/* the table without its empty rows */
	u8 row_index[TOPO_MAX_ROWS];		/* index of the row in its chain */
};

/*
 * Reads the table of engines. If the chip has no table, or if the form of the table is not known,
 * returns -EOPNOTSUPP.
 */
int gp_topo_read_engines(const struct chip *chip, struct topo_reader *reader,
			 struct gpu_engines *engines);
const char *gp_topo_engine_name(unsigned int type);
/* Parses one row of the chip's table into @engine. */
void gp_topo_engine_row(const struct chip *chip, unsigned int index, u32 row,
			struct gpu_engine *engine);

#define TOPO_MAX_RUNLIST_ENGINES 3	/* NV_RUNLIST_ENGINE_STATUS0__SIZE_1 */
#define TOPO_CHANNELS_AT_ONCE	64

/* The state of one engine. A missing number is -1. */
struct gpu_runlist_engine {
	u16 type;
	u8 instance, rleng;
	enum gpupart_context context;
	/* the present TSG, and the TSG that is being loaded */
	s16 tsg, next_tsg;
	s16 channel;
	bool busy, faulted;
};

struct gpu_runlist {
	/* offsets in BAR0: of the runlist's registers and of the channels' words */
	u32 base, chram;
	u32 nr_channels;
	u16 id;			/* the runlist id in a work-submit token */
	bool idle, engines_idle, disabled;
	unsigned int nr;
	struct gpu_runlist_engine engines[TOPO_MAX_RUNLIST_ENGINES];
};

/*
 * Compares the bases of all runlists that are above @after. Returns the lowest of these bases. If
 * there is none, returns 0.
 */
u32 gp_topo_next_runlist(const struct gpu_engines *engines, u32 after);
/* Reads a runlist. The chip must have CHIP_RUNLISTS, and BAR0 must be mapped up to NV_BAR0_SIZE. */
int gp_topo_read_runlist(struct topo_reader *reader, const struct gpu_engines *engines, u32 base,
			 struct gpu_runlist *runlist);
/*
 * Reads the words of channels, beginning with channel @first. Returns the number of channels that
 * were read. After the last channel, returns 0.
 */
int gp_topo_read_channels(struct topo_reader *reader, u32 base, unsigned int first,
			  u32 words[TOPO_CHANNELS_AT_ONCE]);

struct gpu_copy {
	u32 present_pces;
	unsigned int nr_grces;
	u8 pce_lce[32];			/* [pce]; TOPO_UNKNOWN: absent or not connected */
	/* [grce]: the LCE that the GRCE shares, or TOPO_UNKNOWN */
	u8 grce_lce[4];
};

int gp_topo_read_copy(const struct chip *chip, struct topo_reader *reader, struct gpu_copy *copy);

struct gpu_memory {
	unsigned int max_fbps, ltcs_per_fbp, slices_per_ltc;
	u32 present_fbps;		/* bit is the physical FBP */
	unsigned int nr_fbps;
	int nr_ltcs;			/* -1: unknown */
};

int gp_topo_read_memory(const struct chip *chip, struct topo_reader *reader,
			struct gpu_memory *memory);
/* Reads the size of the local memory in bytes. */
int gp_topo_read_local_memory(const struct chip *chip, struct topo_reader *reader, u64 *bytes);

/* Reads the timer, in nanoseconds. */
int gp_topo_read_timer(const struct chip *chip, struct topo_reader *reader, u64 *ns);

#endif
