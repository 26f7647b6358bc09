/* SPDX-License-Identifier: MIT */
/* Opens a connection to NVIDIA's resource manager (RM), finds RM's GPUs and issues controls. */
#ifndef GPUPART_LIB_TOPO_RM_CLIENT_H
#define GPUPART_LIB_TOPO_RM_CLIENT_H

#include "lib/topo/rm_layout.h"

struct rm_gpu {
	uint32_t device_instance, subdevice_instance;
	uint32_t domain, bus, slot;
};

struct rm_conn {
	struct gpupart *gp;
	int ctl;
	uint32_t client, device, subdevice;	/* handles; 0: none */
	unsigned int nr_nodes;
	int nodes[RM_MAX_GPUS];
	unsigned int nr_gpus;
	struct rm_gpu gpus[RM_MAX_GPUS];	/* sorted by PCI address */
	char driver[32];
	/*
	 * The first problem that made a GPU unavailable. An error message reports this problem if
	 * no GPU can be used.
	 */
	int trouble_err;
	char trouble[224];
	/* RM's answer to the query for the order of SMs. */
	uint16_t sm_order[sizeof(struct rm_sm_order_9) / 2];
	const struct sm_order_form *form;
	unsigned int nr_sms, nr_tpcs;
	struct topo_sm sms[SM_ORDER_MAX_SMS];
	struct rm_fs_info fs_info;
};

/* The meaning of one status value of RM. */
struct rm_status {
	int64_t status;
	int err;
	bool about_size;	/* params_size was wrong; driver 580 reports 0x1f in this case */
	const char *name, *help;
};

struct rm_text {
	char text[96];
};

/*
 * Returns the meaning of @status. The result is never NULL, because there is an entry for
 * unknown statuses.
 */
const struct rm_status *rm_status_find(int64_t status);
struct rm_text rm_status_text(int64_t status);

/* Records a problem that makes a GPU unavailable. Keeps only the first problem. */
__attribute__((format(printf, 3, 4)))
void rm_trouble(struct rm_conn *s, int err, const char *fmt, ...);

/*
 * Reads a small text file into @text. The text is terminated with 0. If the file is longer than
 * @text, the rest of the file is ignored. Returns the length of the text, or 0 if the file cannot
 * be read.
 */
size_t rm_read_text(const char *path, char *text, size_t len);

/* Returns the driver's version for error messages. */
const char *rm_driver(const struct rm_conn *s);

/*
 * These functions return 0, a positive status of RM, or -errno if the ioctl failed. RM chooses the
 * handle of an object that rm_alloc() creates.
 */
int64_t rm_control(struct rm_conn *s, uint32_t object, uint32_t cmd, void *params, uint32_t size);
int64_t rm_alloc(struct rm_conn *s, uint32_t parent, uint32_t class_id, void *params,
		 uint32_t size, uint32_t *object);

/* Frees the device object and the subdevice object that were allocated most recently. */
void rm_gpu_put(struct rm_conn *s);

/* Opens the device nodes and a client, and finds the GPUs. */
int rm_conn_open(struct gpupart *gp, struct rm_conn **conn);

#endif
