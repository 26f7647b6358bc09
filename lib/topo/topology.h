/* SPDX-License-Identifier: MIT */
/*
 * Declares the topology object of gpupart_topology_*(), and the functions with which a source fills
 * in this object.
 */
#ifndef GPUPART_LIB_TOPO_TOPOLOGY_H
#define GPUPART_LIB_TOPO_TOPOLOGY_H

#include "lib/core/ctx.h"

#define TOPO_MAX_SMS	(GPUPART_MAX_TPCS * GPUPART_MAX_SMS_PER_TPC)
#define TOPO_MAX_VGPCS	64
#define TOPO_MAX_CHIP_ID 0x3ff	/* six bits of architecture above four bits of implementation */

/*
 * One SM, in the form that RM control 0x2080121B reports. If a value was not reported, it is -1.
 * The index of the row is %smid.
 */
struct topo_sm {
	int gpc;		/* logical number */
	int local_tpc;		/* NVIDIA's number of the TPC in its GPC; unlike tpc_in_gpc, these
				 * numbers may have gaps */
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
	uint32_t present_tpcs;	/* bit n is set if the TPC with physical number n is present */
};

struct topo_register {
	uint32_t offset, value;
};

struct gpupart_topology {
	struct gpupart_gpu_info info;
	unsigned int nr_tpcs, nr_gpcs, nr_sms, nr_ugpus, end_vgpc;
	unsigned int compute_class;	/* the compute class in the driver's list; 0: the list has
					 * no compute class */
	struct gpupart_tpc tpcs[GPUPART_MAX_TPCS];
	struct gpupart_gpc gpcs[GPUPART_MAX_GPCS];
	struct topo_sm sms[TOPO_MAX_SMS];	/* the SMs as the source reported them */
	unsigned int nr_gpc_map;
	struct topo_gpc gpc_map[GPUPART_MAX_GPCS];	/* the map of GPCs that the source
							 * reported */
	unsigned int nr_registers;
	struct topo_register *registers;	/* registers of a capture; allocated with
						 * malloc() */
	char text_rm[160], text_gpc_map[160], text_registers[160], text_bits[160];
				/* the source of each part, as in a capture's sections */
};

/*
 * Builds the object from the data that a source reported. The array @sms has @nr_sms rows, and
 * @gpc_map has @nr_gpc_map rows. The function checks that TPC numbers have no gaps and that each
 * index is in its range. It also checks that the indices of a TPC's SMs agree. If a check fails,
 * returns -EINVAL with the SM and the value in the error message.
 */
GPUPART_PRIVATE
int topo_build(struct gpupart *gp, const struct gpupart_gpu_info *info,
	       const struct topo_sm *sms, unsigned int nr_sms,
	       const struct topo_gpc *gpc_map, unsigned int nr_gpc_map,
	       struct gpupart_topology **topo);

/*
 * The row that topo_build_blame() rejected. Each member is the number of an SM or of a row of the
 * GPC map. If the error is not in a row of this kind, the member is -1.
 */
struct topo_blame {
	int sm, gpc_row;
};

/*
 * Does the same as topo_build(), and also reports the rejected row. It is for sources that know the
 * positions of rows.
 */
GPUPART_PRIVATE
int topo_build_blame(struct gpupart *gp, const struct gpupart_gpu_info *info,
		     const struct topo_sm *sms, unsigned int nr_sms,
		     const struct topo_gpc *gpc_map, unsigned int nr_gpc_map,
		     struct gpupart_topology **topo, struct topo_blame *blame);

/*
 * If @topo has no virtual GPCs and the two topologies agree in everything else, copies the
 * virtual GPCs of @other to @topo.
 */
GPUPART_PRIVATE
void topo_take_vgpcs(struct gpupart_topology *topo, const struct gpupart_topology *other);

/* Returns the number of SMs in @set, a set of TPCs of @topo. */
GPUPART_PRIVATE
unsigned int topo_sms_in(const struct gpupart_topology *topo, const struct gpupart_tpcset *set);

/* Returns the number of SMs of the smallest TPC. In each TPC, a cluster can use this many SMs. */
GPUPART_PRIVATE
unsigned int topo_sms_per_tpc(const struct gpupart_topology *topo);

/*
 * Each of these functions opens one GPU of one source. The argument @gpu is a selector, which
 * gpupart.h describes, or NULL.
 */
int topo_kernel_open(struct gpupart *gp, const char *gpu, struct gpupart_topology **topo);
int topo_kernel_list(struct gpupart *gp, struct gpupart_gpu_info *list, unsigned int max);
GPUPART_PRIVATE
int topo_rm_open(struct gpupart *gp, const char *gpu, struct gpupart_topology **topo);
GPUPART_PRIVATE
int topo_rm_list(struct gpupart *gp, struct gpupart_gpu_info *list, unsigned int max);
/*
 * These functions use NVIDIA's driver to read registers of the GPU that @gpu selects. The driver
 * reads registers only for root. Other users get -EACCES and, in *@value, the driver's status. The
 * caller closes *conn with rm_conn_close().
 */
struct rm_conn;
GPUPART_PRIVATE
int topo_rm_regs_open(struct gpupart *gp, const char *gpu, struct gpupart_gpu_info *info,
		      struct rm_conn **conn);
GPUPART_PRIVATE
int topo_rm_reg(struct rm_conn *conn, uint32_t offset, uint32_t *value);
GPUPART_PRIVATE
void rm_conn_close(struct rm_conn *conn);
/* Lists the processes that have an object of @class on that GPU. Returns 0 or -EIO. */
struct rm_gpu_pids;
GPUPART_PRIVATE
int topo_rm_pids(struct rm_conn *conn, uint32_t class, struct rm_gpu_pids *pids);
/* Stores the path of a file. If the path is too long, stores only the end of the path. */
void topo_source_set(struct gpupart_gpu_info *info, const char *path);
int topo_file_open(struct gpupart *gp, const char *path, struct gpupart_topology **topo);
/*
 * Does the same as topo_file_open(), but reads the capture from memory. The function uses @path
 * only in error messages.
 */
int topo_file_parse(struct gpupart *gp, const char *path, const char *text, size_t len,
		    struct gpupart_topology **topo);
/*
 * Finds the installed file of "sample:NAME". Returns 0 and the path of this file. If there is no
 * such sample, returns -ENOENT, and the error message lists the names of the samples.
 */
int topo_file_sample(struct gpupart *gp, const char *name, char *path, size_t len);

/*
 * Returns true if @selector selects this GPU, which has the index @index. A selector is an index in
 * PCI order, a PCI address in any usual form, or a UUID. The prefix "GPU-" of a UUID is optional.
 */
GPUPART_PRIVATE
bool topo_selects(const char *selector, const struct gpupart_gpu_info *info, unsigned int index);

/*
 * Appends to the text in the buffer @text, which has @len bytes. The buffer may be NULL. The length
 * of the text without the terminating 0 is in *at. Even if the buffer is too short, the function
 * adds the whole appended length to *at.
 */
GPUPART_PRIVATE
__attribute__((format(printf, 4, 5)))
void topo_append(char *text, size_t len, size_t *at, const char *fmt, ...);

/* Returns true if the text consists of "GPU-" and 8-4-4-4-12 hexadecimal digits. */
GPUPART_PRIVATE
bool topo_is_uuid(const char *text);

/*
 * Converts a GPU's address to the form that the library writes. For a GPU on PCI, @text is the full
 * DOMAIN:BUS:DEVICE.FUNCTION with 4 to 8 domain digits, in upper or lower case. The result looks
 * like "0000:0d:00.0". For an integrated GPU, @text and the result are the kernel's name of the
 * GPU's platform device, such as "17000000.gpu". If @text does not have one of these two forms,
 * returns false.
 */
GPUPART_PRIVATE
bool topo_address_read(const char *text, char address[20]);

#endif
