// SPDX-License-Identifier: MIT
/* Creates a simulated GPU for each capture. Selects and sorts the GPUs that the process sees. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/core/hash.h"
#include "lib/topo/topology.h"
#include "sim/cuda/sim.h"

struct sim_gpu *sim_gpus[SIM_MAX_GPUS];
unsigned int sim_nr_gpus;

struct sim_gpu *gpu_get(CUdevice device)
{
	return device >= 0 && (unsigned int)device < sim_nr_gpus ? sim_gpus[device] : NULL;
}

/* ------------------------------------------------------------- layout of a GPU */

/* Returns a number below @end that depends only on @seed and @n. */
static unsigned int number_of(uint64_t seed, unsigned int n, unsigned int end)
{
	return hash_bytes(hash_bytes(HASH_INIT, &seed, sizeof(seed)), &n, sizeof(n)) % end;
}

/*
 * The setting `order` replaces the measured mask bits of TPCs by other mask bits. "number": the
 * bit is the number of the TPC; "permuted:SEED": the same bits in another order; "holes:SEED":
 * any bits of the mask; "interleaved": the first TPC of each GPC, then the second TPC of each
 * GPC, and so on. If the word is not known or if there are too few bits, returns false.
 */
static bool gpu_order_bits(struct sim_gpu *gpu, const struct gpupart_topology *topo,
			   const char *order)
{
	unsigned int nr_gpcs = gpupart_topology_nr_gpcs(topo), seed = 0, tpc, other, i, end = 0;
	uint8_t bits[SIM_TMD_BITS], was;
	int len = 0;

	if (!strcmp(order, "interleaved")) {
		for (tpc = 0; tpc < gpu->nr_tpcs; tpc++) {
			const struct gpupart_tpc *t = gpupart_topology_tpc(topo, tpc);

			other = t->tpc_in_gpc * nr_gpcs + t->gpc;
			if (t->gpc < 0 || other >= tmd_nr_bits())
				return false;
			gpu->tpc_bit[tpc] = other;
		}
		return true;
	}
	if (sscanf(order, "permuted:%u%n", &seed, &len) == 1 && !order[len])
		end = gpu->nr_tpcs;
	else if (sscanf(order, "holes:%u%n", &seed, &len) == 1 && !order[len])
		end = tmd_nr_bits();
	else if (!strcmp(order, "number"))
		end = gpu->nr_tpcs;
	if (!end || gpu->nr_tpcs > tmd_nr_bits())
		return false;
	for (i = 0; i < end; i++)
		bits[i] = i;
	for (i = *order == 'n' ? 0 : end - 1; i > 0; i--) {
		other = number_of(seed, i, i + 1);
		was = bits[i];
		bits[i] = bits[other];
		bits[other] = was;
	}
	memcpy(gpu->tpc_bit, bits, gpu->nr_tpcs);
	return true;
}

static void bits_add(uint64_t bits[SIM_MASK_WORDS], unsigned int bit)
{
	bits[bit / 64] |= 1ull << bit % 64;
}

/*
 * As measured on H200 boards, the mask bits with number max_gpcs * max_tpcs_per_gpc and higher
 * belong to no GPC.
 */
static void gpu_set_singles(struct sim_gpu *gpu, const struct gpupart_topology *topo)
{
	unsigned int first = gpu->info.max_gpcs * gpu->info.max_tpcs_per_gpc, i;

	for (i = 0; i < gpu->nr_tpcs; i++) {
		if (gpupart_topology_tpc(topo, i)->vgpc >= (int)gpu->info.max_gpcs && first)
			bits_add(gpu->singles, gpu->tpc_bit[i]);
		if (gpu->green_bits <= gpu->tpc_bit[i])
			gpu->green_bits = (gpu->tpc_bit[i] / 32 + 1) * 32;
	}
	for (i = first; first && !sim_faults()->order && i < SIM_TMD_BITS; i++)
		bits_add(gpu->singles, i);
}

/*
 * The simulated GPU has the mask bits that were measured for the capture. If the capture has no
 * measured bits, the GPU cannot be simulated.
 */
static bool gpu_set_bits(struct sim_gpu *gpu, const struct gpupart_topology *topo)
{
	const struct sim_faults *faults = sim_faults();
	unsigned int nr_bits = tmd_nr_bits(), tpc;
	int owner[SIM_TMD_BITS], bit;

	memset(owner, 0xff, sizeof(owner));
	for (tpc = 0; tpc < gpu->nr_tpcs && !faults->order; tpc++) {
		bit = gpupart_topology_tpc(topo, tpc)->measured_bit;
		if (bit < 0) {
			sim_print(
				"%s: TPC %u has no measured bit: this capture cannot be simulated",
				gpu->path, tpc);
			return false;
		}
		if ((unsigned int)bit >= nr_bits) {
			sim_print("%s: TPC %u has a measured bit above %u: "
				"this capture cannot be simulated", gpu->path, tpc, nr_bits - 1);
			return false;
		}
		if (owner[bit] >= 0) {
			sim_print("%s: TPCs %d and %u have the same measured bit %d", gpu->path,
				owner[bit], tpc, bit);
			return false;
		}
		owner[bit] = tpc;
		gpu->tpc_bit[tpc] = bit;
	}
	if (faults->order && !gpu_order_bits(gpu, topo, faults->order)) {
		sim_print("GPUPART_SIM_FAULTS: order=%s: must give each of the %u TPCs a "
			"different one of the %u bits",
			faults->order, gpu->nr_tpcs, nr_bits);
		return false;
	}
	if ((unsigned int)faults->move_field[0] >= SIM_TMD_BYTES ||
	    (unsigned int)faults->move_field[1] >= SIM_TMD_BYTES) {
		sim_print("GPUPART_SIM_FAULTS: move-field=%d:%d: a TMD has bytes 0-%d",
			faults->move_field[0], faults->move_field[1], SIM_TMD_BYTES - 1);
		return false;
	}
	if (faults->move_bit[0] >= 0) {
		if ((unsigned int)faults->move_bit[0] >= gpu->nr_tpcs ||
		    (unsigned int)faults->move_bit[1] >= nr_bits) {
			sim_print("GPUPART_SIM_FAULTS: move-bit=%d:%d: "
				"%s has TPCs 0-%u and bits 0-%u",
				faults->move_bit[0], faults->move_bit[1], gpu->path,
				gpu->nr_tpcs - 1, nr_bits - 1);
			return false;
		}
		gpu->tpc_bit[faults->move_bit[0]] = faults->move_bit[1];
	}
	gpu_set_singles(gpu, topo);
	return true;
}

/*
 * If the virtual GPCs are not known, the load balancer uses the TPCs in the order of their
 * numbers.
 */
static void gpu_set_sms(struct sim_gpu *gpu, const struct gpupart_topology *topo)
{
	struct pipe_map *map = &gpu->hw.map;
	const struct gpupart_tpc *tpc;
	unsigned int i, nth;

	gpu->clusters = tmd_nr_bits() > 64;	/* older TMDs have no field for a cluster */
	for (i = 0; i < gpu->nr_tpcs; i++) {
		tpc = gpupart_topology_tpc(topo, i);
		if (tpc->vgpc < 0 || tpc->vgpc >= SIM_MAX_VGPCS)
			gpu->clusters = false;
	}
	gpu->hw.chip = *sim_chip();
	if (!gpu->clusters)
		gpu->hw.chip.order = PIPE_ORDER_TPC;
	map->nr_sms = gpu->nr_sms;
	map->nr_tpcs = gpu->nr_tpcs;
	map->nr_gpcs = GPUPART_MAX_GPCS;
	map->nr_vgpcs = SIM_MAX_VGPCS;
	for (i = 0; i < gpu->nr_tpcs; i++) {
		tpc = gpupart_topology_tpc(topo, i);
		for (nth = 0; nth < tpc->nr_sms; nth++)
			map->sms[tpc->sms[nth]] = (struct pipe_place){
				.tpc = i, .gpc = tpc->gpc < 0 ? 0 : tpc->gpc,
				.vgpc = gpu->clusters ? tpc->vgpc : 0,
				.ugpu = tpc->ugpu == 1, .sm_in_tpc = nth,
			};
	}
}

static void gpu_free(struct sim_gpu *gpu)
{
	if (!gpu)
		return;
	pipe_fed_close(gpu->fed);
	gpupart_topology_close(gpu->topo);
	free(gpu);
}

static struct sim_gpu *gpu_open(const char *path)
{
	struct gpupart_topology *topo = NULL;
	struct gpupart *gp = NULL;
	struct sim_gpu *gpu;

	gpu = calloc(1, sizeof(*gpu));
	if (!gpu || gpupart_open(&gp))
		goto free_gpu;
	if (topo_file_open(gp, path, &topo)) {
		sim_print("%s", gpupart_error(gp));
		goto free_gpu;
	}
	/* Store the absolute path, because the program may change its directory later. */
	if (!realpath(path, gpu->path))
		snprintf(gpu->path, sizeof(gpu->path), "%s", path);
	gpu->topo = topo;
	topo_source_set(&topo->info, gpu->path);
	gpu->hash = gpupart_topology_hash(topo);
	gpu->info = *gpupart_topology_info(topo);
	gpu->nr_tpcs = gpupart_topology_nr_tpcs(topo);
	gpu->nr_sms = gpupart_topology_nr_sms(topo);
	gpu->memory = sim_faults()->memory;
	if (!gpu_set_bits(gpu, topo))
		goto free_gpu;
	gpu_set_sms(gpu, topo);	/* the array has an element for each TPC with a mask bit */
	if (!engine_open(gpu))
		goto free_gpu;
	gpupart_close(gp);
	return gpu;

free_gpu:
	if (gp)
		gpupart_close(gp);
	gpu_free(gpu);
	return NULL;
}

/* ------------------------------------------------------------------- identity */

static bool parse_uuid(const char *text, struct cu_uuid *uuid)
{
	unsigned int nr = 0, byte;
	int len;

	if (strncmp(text, "GPU-", 4))
		return false;
	for (text += 4; *text && nr < 16; text += 2) {
		if (*text == '-')
			text++;
		if (sscanf(text, "%2x%n", &byte, &len) != 1 || len != 2)
			return false;
		uuid->bytes[nr++] = byte;
	}
	return nr == 16 && !*text;
}

static bool address_taken(const char *pci, unsigned int nr)
{
	while (nr--)
		if (!strcmp(pci, sim_gpus[nr]->info.pci))
			return true;
	return false;
}

static bool uuid_taken(const char *uuid, unsigned int nr)
{
	while (nr--)
		if (!strcmp(uuid, sim_gpus[nr]->info.uuid))
			return true;
	return false;
}

/*
 * If the capture has no address and UUID, or if an earlier GPU has the same address and UUID,
 * the GPU gets a new address and UUID.
 */
static void gpu_identify(struct sim_gpu *gpu, unsigned int index)
{
	bool uuid = parse_uuid(gpu->info.uuid, &gpu->uuid) && !uuid_taken(gpu->info.uuid, index);
	unsigned int i, bus;
	uint64_t hash = gpu->hash;

	for (bus = index + 1; !gpu->info.pci[0] || address_taken(gpu->info.pci, index); bus++)
		snprintf(gpu->info.pci, sizeof(gpu->info.pci), "0000:%02x:00.0", bus & 0xff);
	if (uuid)
		return;
	for (i = 0; i < 16; i++) {
		hash = hash_bytes(hash, &index, sizeof(index));
		gpu->uuid.bytes[i] = hash >> 32;
	}
	strcpy(gpu->info.uuid, "GPU-");
	for (i = 0; i < 16; i++)
		snprintf(gpu->info.uuid + strlen(gpu->info.uuid), 4, "%s%02x",
			 i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", gpu->uuid.bytes[i]);
}

static int find_visible(struct sim_gpu *const *all, unsigned int nr_all, const char *text,
			size_t len)
{
	unsigned int i;
	char *end;

	if (*text >= '0' && *text <= '9') {
		i = strtoul(text, &end, 10);
		return end == text + len && i < nr_all ? (int)i : -1;
	}
	for (i = 0; i < nr_all; i++)
		if (len > 4 && !strncasecmp(all[i]->info.uuid, text, len))
			return i;
	return -1;
}

/*
 * The list has the same form as in NVIDIA's driver. It contains indices and UUIDs, and a prefix
 * of a UUID is enough. The list ends at the first invalid entry. A duplicate entry hides all
 * GPUs.
 */
static void gpu_filter(void)
{
	const char *text = getenv("CUDA_VISIBLE_DEVICES");
	struct sim_gpu *all[SIM_MAX_GPUS];
	unsigned int nr_all = sim_nr_gpus, seen = 0;
	size_t len;
	int found;

	if (!text)
		return;
	memcpy(all, sim_gpus, sizeof(all));
	sim_nr_gpus = 0;
	for (; *text; text += len + (text[len] == ',')) {
		len = strcspn(text, ",");
		found = find_visible(all, nr_all, text, len);
		if (found < 0)
			return;
		if (seen >> found & 1) {
			sim_nr_gpus = 0;
			return;
		}
		seen |= 1u << found;
		sim_gpus[sim_nr_gpus++] = all[found];
	}
}

static int by_address(const void *a, const void *b)
{
	const struct sim_gpu *const *x = a, *const *y = b;

	return strcasecmp((*x)->info.pci, (*y)->info.pci);
}

CUresult gpu_open_all(void)
{
	const char *text = getenv("GPUPART_SIM");
	char *list, *path, *rest = NULL;
	struct sim_gpu *gpu;

	if (!text || !*text) {
		sim_print("GPUPART_SIM is empty: must name a capture");
		return CUDA_ERROR_NO_DEVICE;
	}
	list = strdup(text);
	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (path = strtok_r(list, ":", &rest); path; path = strtok_r(NULL, ":", &rest)) {
		gpu = sim_nr_gpus < SIM_MAX_GPUS ? gpu_open(path) : NULL;
		if (!gpu)
			goto free_gpus;
		gpu_identify(gpu, sim_nr_gpus);
		sim_gpus[sim_nr_gpus++] = gpu;
	}
	free(list);
	return CUDA_SUCCESS;

free_gpus:
	while (sim_nr_gpus)
		gpu_free(sim_gpus[--sim_nr_gpus]);
	free(list);
	return CUDA_ERROR_NO_DEVICE;
}

void gpu_sort_by_address(void)
{
	qsort(sim_gpus, sim_nr_gpus, sizeof(sim_gpus[0]), by_address);
}

CUresult gpu_setup(void)
{
	const char *order = getenv("CUDA_DEVICE_ORDER");
	CUresult error = gpu_open_all();

	if (error)
		return error;
	if (order && !strcmp(order, "PCI_BUS_ID"))
		gpu_sort_by_address();
	gpu_filter();
	return sim_nr_gpus ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}
