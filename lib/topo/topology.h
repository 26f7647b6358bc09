/* SPDX-License-Identifier: MIT */
/*
 * The topology object behind gpupart_topology_*(), and the functions with which a source fills
 * it in.
 */
#ifndef GPUPART_LIB_TOPO_TOPOLOGY_H
#define GPUPART_LIB_TOPO_TOPOLOGY_H

#include "lib/core/ctx.h"

#define TOPO_MAX_SMS	(GPUPART_MAX_TPCS * GPUPART_MAX_SMS_PER_TPC)
#define TOPO_MAX_VGPCS	64
#define TOPO_MAX_CHIP_ID 0x3ff	/* six bits of architecture above four of implementation */

/*
 * One SM, as RM control 0x2080121B reports it; -1: not reported. The index of the row is %smid.
 */
struct topo_sm {
	int gpc;		/* logical number */
	int local_tpc;		/* NVIDIA's number in the GPC, which may have gaps; not the
				 * same as tpc_in_gpc */
	int local_sm;
	int tpc;		/* global number, without gaps */
	int vgpc;
	int tpc_in_vgpc;	/* NVIDIA: migratable TPC id */
	int ugpu;
	int cpc;
	int virtual_tpc;
	int measured_bit;	/* only in captures; otherwise -1 */
};

struct topo_gpc {
	int gpc;		/* logical number; -1: unknown */
	int gpc_phys;
	uint32_t present_tpcs;	/* a set bit is a present TPC; the bit is the physical number */
};

struct topo_register {
	uint32_t offset, value;
};

struct gpupart_topology {
	struct gpupart_gpu_info info;
	unsigned int nr_tpcs, nr_gpcs, nr_sms, nr_ugpus, end_vgpc;
	unsigned int compute_class;	/* from the driver's list; 0: the driver does not
					 * list it */
	struct gpupart_tpc tpcs[GPUPART_MAX_TPCS];
	struct gpupart_gpc gpcs[GPUPART_MAX_GPCS];
	struct topo_sm sms[TOPO_MAX_SMS];	/* as the source reported them */
	unsigned int nr_gpc_map;
	struct topo_gpc gpc_map[GPUPART_MAX_GPCS];	/* as the source reported it */
	unsigned int nr_registers;
	struct topo_register *registers;	/* registers of a capture; allocated with
						 * malloc() */
	char text_rm[160], text_gpc_map[160], text_registers[160], text_bits[160];
				/* the origin of each part, as in a capture's sections */
};

/*
 * Builds the object from the data that a source reported: @sms (with @nr_sms rows), @gpc_map
 * (with @nr_gpc_map rows) and @info. Checks that TPC numbers have no gaps, that the indices of
 * a TPC's SMs agree, and that no index is out of range. If a check fails, returns -EINVAL, and
 * the error sentence contains the SM and the value.
 */
GPUPART_PRIVATE
int topo_build(struct gpupart *gp, const struct gpupart_gpu_info *info,
	       const struct topo_sm *sms, unsigned int nr_sms,
	       const struct topo_gpc *gpc_map, unsigned int nr_gpc_map,
	       struct gpupart_topology **topo);

/*
 * The row that topo_build_blame() rejected: the number of an SM, or of a row of the GPC map.
 * -1: the error is in no such row.
 */
struct topo_blame {
	int sm, gpc_row;
};

/* Like topo_build(), for a source that can report the position of a row. */
GPUPART_PRIVATE
int topo_build_blame(struct gpupart *gp, const struct gpupart_gpu_info *info,
		     const struct topo_sm *sms, unsigned int nr_sms,
		     const struct topo_gpc *gpc_map, unsigned int nr_gpc_map,
		     struct gpupart_topology **topo, struct topo_blame *blame);

/*
 * Copies the virtual GPCs from @other if @topo has none and the two topologies agree in
 * everything else.
 */
GPUPART_PRIVATE
void topo_take_vgpcs(struct gpupart_topology *topo, const struct gpupart_topology *other);

/* Returns the number of SMs in @set, a set of TPCs of @topo. */
GPUPART_PRIVATE
unsigned int topo_sms_in(const struct gpupart_topology *topo, const struct gpupart_tpcset *set);

/*
 * Returns the number of SMs of a TPC that a cluster can rely on: the smallest number that any
 * TPC has.
 */
GPUPART_PRIVATE
unsigned int topo_sms_per_tpc(const struct gpupart_topology *topo);

/* The sources. Each function opens one GPU. @gpu: a selector as in gpupart.h, or NULL. */
int topo_kernel_open(struct gpupart *gp, const char *gpu, struct gpupart_topology **topo);
int topo_kernel_list(struct gpupart *gp, struct gpupart_gpu_info *list, unsigned int max);
GPUPART_PRIVATE
int topo_rm_open(struct gpupart *gp, const char *gpu, struct gpupart_topology **topo);
GPUPART_PRIVATE
int topo_rm_list(struct gpupart *gp, struct gpupart_gpu_info *list, unsigned int max);
/*
 * These functions read registers of the GPU that @gpu selects, through NVIDIA's driver. The
 * driver allows this only to root; other users get -EACCES, and then *@value is the driver's
 * status. The caller closes *conn with topo_rm_regs_close().
 */
struct rm_conn;
GPUPART_PRIVATE
int topo_rm_regs_open(struct gpupart *gp, const char *gpu, struct gpupart_gpu_info *info,
		      struct rm_conn **conn);
GPUPART_PRIVATE
int topo_rm_reg(struct rm_conn *conn, uint32_t offset, uint32_t *value);
GPUPART_PRIVATE
void topo_rm_regs_close(struct rm_conn *conn);
/* Lists the processes that have an object of @class on that GPU. Returns 0 or -EIO. */
struct rm_gpu_pids;
GPUPART_PRIVATE
int topo_rm_pids(struct rm_conn *conn, uint32_t class, struct rm_gpu_pids *pids);
/* Stores the path of a file. If the path is too long, only its end is stored. */
void topo_source_set(struct gpupart_gpu_info *info, const char *path);
int topo_file_open(struct gpupart *gp, const char *path, const char *gpu,
		   struct gpupart_topology **topo);
/*
 * Like topo_file_open(), but reads the capture from memory. @path is used only in error
 * sentences.
 */
int topo_file_parse(struct gpupart *gp, const char *path, const char *text, size_t len,
		    struct gpupart_topology **topo);
/*
 * Finds the installed file of "sample:NAME". Returns 0 and the path of the file, or -ENOENT
 * with a list of the names.
 */
int topo_file_sample(struct gpupart *gp, const char *name, char *path, size_t len);

/*
 * Returns whether @selector selects this GPU, whose index is @index. A selector is an index in
 * PCI order, a PCI address in any usual form, or a UUID with or without "GPU-".
 */
GPUPART_PRIVATE
bool topo_selects(const char *selector, const struct gpupart_gpu_info *info, unsigned int index);

/*
 * Appends to the text in @text, a buffer of @len bytes; @text may be NULL. *at is the length of
 * the text without the terminating 0. It is also increased when the buffer is too short.
 */
GPUPART_PRIVATE
__attribute__((format(printf, 4, 5)))
void topo_append(char *text, size_t len, size_t *at, const char *fmt, ...);

/* Returns whether the text is "GPU-", then 8-4-4-4-12 hexadecimal digits, and nothing more. */
GPUPART_PRIVATE
bool topo_is_uuid(const char *text);

/*
 * Converts a GPU's address to the form that the library writes. For a GPU on PCI, @text is the
 * full DOMAIN:BUS:DEVICE.FUNCTION with 4 to 8 domain digits, in upper or lower case, and the
 * result looks like "0000:0d:00.0". For an integrated GPU, both are the kernel's name of its
 * platform device, such as "17000000.gpu". Returns false if @text has neither form.
 */
GPUPART_PRIVATE
bool topo_address_read(const char *text, char address[20]);

#endif
