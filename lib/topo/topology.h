/* SPDX-License-Identifier: MIT */
/* The topology object behind gpupart_topology_*() and how a source fills it. */
#ifndef GPUPART_LIB_TOPO_TOPOLOGY_H
#define GPUPART_LIB_TOPO_TOPOLOGY_H

#include "lib/core/ctx.h"

#define TOPO_MAX_SMS	(GPUPART_MAX_TPCS * GPUPART_MAX_SMS_PER_TPC)
#define TOPO_MAX_VGPCS	64
#define TOPO_MAX_CHIP_ID 0x3ff	/* six bits of architecture above four of implementation */

/* One SM as RM control 0x2080121B tells of it; -1 where a driver does not. Row index is %smid. */
struct topo_sm {
	int gpc;		/* logical */
	int local_tpc;		/* NVIDIA's in-GPC id: may have holes, is not tpc_in_gpc */
	int local_sm;
	int tpc;		/* global, dense */
	int vgpc;
	int tpc_in_vgpc;	/* NVIDIA: migratable TPC id */
	int ugpu;
	int cpc;
	int virtual_tpc;
	int measured_bit;	/* captures only; -1 elsewhere */
};

struct topo_gpc {
	int gpc;		/* logical, -1 unknown */
	int gpc_phys;
	uint32_t present_tpcs;	/* set bit = present, physical */
};

struct topo_register {
	uint32_t offset, value;
};

struct gpupart_topology {
	struct gpupart_gpu_info info;
	unsigned int nr_tpcs, nr_gpcs, nr_sms, nr_ugpus, end_vgpc;
	unsigned int compute_class;	/* as the driver lists it; 0: it does not */
	struct gpupart_tpc tpcs[GPUPART_MAX_TPCS];
	struct gpupart_gpc gpcs[GPUPART_MAX_GPCS];
	struct topo_sm sms[TOPO_MAX_SMS];	/* as the source told them */
	unsigned int nr_gpc_map;
	struct topo_gpc gpc_map[GPUPART_MAX_GPCS];	/* as told */
	unsigned int nr_registers;
	struct topo_register *registers;	/* of a capture; malloc'ed */
	char text_rm[160], text_gpc_map[160], text_registers[160], text_bits[160];
				/* where each part came from, as a capture's sections say */
};

/*
 * Makes the object from what a source told: @sms (nr_sms rows), @gpc_map, @info.
 * Checks that TPCs are dense, that an SM's indices agree with its TPC's others,
 * that no index is out of range: -EINVAL with the SM and the value.
 */
GPUPART_PRIVATE
int topo_build(struct gpupart *gp, const struct gpupart_gpu_info *info,
	       const struct topo_sm *sms, unsigned int nr_sms,
	       const struct topo_gpc *gpc_map, unsigned int nr_gpc_map,
	       struct gpupart_topology **topo);

/* Which row topo_build_blame() refused: an SM, or a row of the GPC map; -1 neither. */
struct topo_blame {
	int sm, gpc_row;
};

/* The same for a source that can say where a row stood. */
GPUPART_PRIVATE
int topo_build_blame(struct gpupart *gp, const struct gpupart_gpu_info *info,
		     const struct topo_sm *sms, unsigned int nr_sms,
		     const struct topo_gpc *gpc_map, unsigned int nr_gpc_map,
		     struct gpupart_topology **topo, struct topo_blame *blame);

/* Takes virtual GPCs from @other where @topo has none and they agree in all else. */
GPUPART_PRIVATE
void topo_take_vgpcs(struct gpupart_topology *topo, const struct gpupart_topology *other);

/* How many SMs @set, of TPCs of @topo, has. */
GPUPART_PRIVATE
unsigned int topo_sms_in(const struct gpupart_topology *topo, const struct gpupart_tpcset *set);

/* SMs of a TPC that a cluster can count on: the fewest that any TPC has. */
GPUPART_PRIVATE
unsigned int topo_sms_per_tpc(const struct gpupart_topology *topo);

/* The sources. Each opens one GPU; @gpu is a selector as in gpupart.h or NULL. */
int topo_kernel_open(struct gpupart *gp, const char *gpu, struct gpupart_topology **topo);
int topo_kernel_list(struct gpupart *gp, struct gpupart_gpu_info *list, unsigned int max);
GPUPART_PRIVATE
int topo_rm_open(struct gpupart *gp, const char *gpu, struct gpupart_topology **topo);
GPUPART_PRIVATE
int topo_rm_list(struct gpupart *gp, struct gpupart_gpu_info *list, unsigned int max);
/*
 * Registers of the GPU that @gpu selects, read by NVIDIA's driver for root: -EACCES for others.
 * The driver's status is in *@value then. The conn is closed by topo_rm_regs_close().
 */
struct rm_conn;
GPUPART_PRIVATE
int topo_rm_regs_open(struct gpupart *gp, const char *gpu, struct gpupart_gpu_info *info,
		      struct rm_conn **conn);
GPUPART_PRIVATE
int topo_rm_reg(struct rm_conn *conn, uint32_t offset, uint32_t *value);
GPUPART_PRIVATE
void topo_rm_regs_close(struct rm_conn *conn);
/* The processes that have an object of @class on that GPU: 0, or -EIO. */
struct rm_gpu_pids;
GPUPART_PRIVATE
int topo_rm_pids(struct rm_conn *conn, uint32_t class, struct rm_gpu_pids *pids);
/* A file's: its path, or the end of that. */
void topo_source_set(struct gpupart_gpu_info *info, const char *path);
int topo_file_open(struct gpupart *gp, const char *path, const char *gpu,
		   struct gpupart_topology **topo);
/* The same from memory; @path is for the sentences. */
int topo_file_parse(struct gpupart *gp, const char *path, const char *text, size_t len,
		    struct gpupart_topology **topo);
/* Finds where "sample:NAME" is installed: 0 and its path, or -ENOENT with the names there are. */
int topo_file_sample(struct gpupart *gp, const char *name, char *path, size_t len);

/*
 * Whether @selector (an index in PCI order, a PCI address in any usual form, a
 * UUID with or without "GPU-") means this GPU, which is the @index'th.
 */
GPUPART_PRIVATE
bool topo_selects(const char *selector, const struct gpupart_gpu_info *info, unsigned int index);

/*
 * Appends to @text, which has @len bytes and NULL of none: *at, bytes without the 0 at the end,
 * goes on counting where it is too short.
 */
GPUPART_PRIVATE
__attribute__((format(printf, 4, 5)))
void topo_append(char *text, size_t len, size_t *at, const char *fmt, ...);

/* "GPU-" and 8-4-4-4-12 hexadecimal digits, and nothing after. */
GPUPART_PRIVATE
bool topo_is_uuid(const char *text);

/*
 * A GPU's address, made what the library writes. On PCI: DOMAIN:BUS:DEVICE.FUNCTION in full,
 * in any case and with a domain of 4 to 8 digits: "0000:0d:00.0". Of an integrated GPU: the
 * kernel's name of its platform device, "17000000.gpu". False: @text is neither.
 */
GPUPART_PRIVATE
bool topo_address_read(const char *text, char address[20]);

#endif
