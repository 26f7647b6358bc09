// SPDX-License-Identifier: MIT
/*
 * Checks the data that a source reports, and builds the topology object from this data. Also
 * answers queries about the topology, and matches GPU selectors.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/core/hash.h"
#include "lib/topo/topology.h"

/*
 * Describes an index of an SM. If @of_tpc is true, the index must be the same for all SMs of a
 * TPC.
 */
static const struct sm_field {
	const char *name;
	size_t offset;
	int max;
	bool required;
	bool of_tpc;
} sm_fields[] = {
#define FIELD(name, member, max, required, of_tpc) \
	{ name, offsetof(struct topo_sm, member), max, required, of_tpc }
	FIELD("GPC", gpc, GPUPART_MAX_GPCS - 1, true, true),
	FIELD("local TPC", local_tpc, 31, false, true),
	FIELD("local SM", local_sm, GPUPART_MAX_SMS_PER_TPC - 1, false, false),
	FIELD("TPC", tpc, GPUPART_MAX_TPCS - 1, true, true),
	FIELD("virtual GPC", vgpc, TOPO_MAX_VGPCS - 1, false, true),
	FIELD("TPC in the virtual GPC", tpc_in_vgpc, GPUPART_MAX_TPCS - 1, false, true),
	FIELD("uGPU", ugpu, GPUPART_MAX_GPCS - 1, false, true),
	FIELD("CPC", cpc, 31, false, true),
	FIELD("virtual TPC", virtual_tpc, GPUPART_MAX_TPCS - 1, false, true),
	FIELD("measured bit", measured_bit, GPUPART_MAX_TMD_BITS - 1, false, true),
#undef FIELD
};

#define NR_SM_FIELDS (sizeof(sm_fields) / sizeof(sm_fields[0]))

static int sm_value(const struct topo_sm *sm, const struct sm_field *field)
{
	return *(const int *)((const char *)sm + field->offset);
}

static int check_ranges(struct gpupart *gp, const struct topo_sm *sm, unsigned int smid)
{
	unsigned int i;

	for (i = 0; i < NR_SM_FIELDS; i++) {
		const struct sm_field *field = &sm_fields[i];
		int value = sm_value(sm, field);

		if (value < -1 || value > field->max)
			return ctx_fail(gp, -EINVAL, "SM %u: %s %d is out of range (0-%d)", smid,
					field->name, value, field->max);
		if (value < 0 && field->required)
			return ctx_fail(gp, -EINVAL, "SM %u has no %s", smid, field->name);
	}
	return 0;
}

/* Adds SM @smid to its TPC. Sets @first to the first SM of this TPC. */
static int add_sm(struct gpupart *gp, struct gpupart_topology *topo, unsigned int smid,
		  const struct topo_sm *first)
{
	const struct topo_sm *sm = &topo->sms[smid];
	struct gpupart_tpc *tpc = &topo->tpcs[sm->tpc];
	unsigned int i;

	for (i = 0; i < NR_SM_FIELDS; i++) {
		const struct sm_field *field = &sm_fields[i];

		if (field->of_tpc && sm_value(sm, field) != sm_value(first, field))
			return ctx_fail(gp, -EINVAL,
					"SMs %u and %u are both in TPC %d, but the first has %s %d and the second has %d",
					(unsigned int)(first - topo->sms), smid, sm->tpc,
					field->name, sm_value(first, field), sm_value(sm, field));
	}
	if (tpc->nr_sms == GPUPART_MAX_SMS_PER_TPC)
		return ctx_fail(gp, -EINVAL, "SM %u: TPC %d has more than %d SMs", smid, sm->tpc,
				GPUPART_MAX_SMS_PER_TPC);
	for (i = 0; i < tpc->nr_sms; i++)
		if (sm->local_sm >= 0 && topo->sms[tpc->sms[i]].local_sm == sm->local_sm)
			return ctx_fail(gp, -EINVAL, "SMs %u and %u are both local SM %d of TPC %d",
					tpc->sms[i], smid, sm->local_sm, sm->tpc);
	tpc->gpc = sm->gpc;
	tpc->tpc_in_gpc = -1;
	tpc->vgpc = sm->vgpc;
	tpc->tpc_in_vgpc = sm->tpc_in_vgpc;
	tpc->cpc = sm->cpc;
	tpc->ugpu = sm->ugpu;
	tpc->measured_bit = sm->measured_bit;
	tpc->sms[tpc->nr_sms++] = smid;
	return 0;
}

/* Returns an SM of the TPC. Error messages about the TPC contain this SM. */
static const struct topo_sm *tpc_sm(const struct gpupart_topology *topo, unsigned int tpc)
{
	return &topo->sms[topo->tpcs[tpc].sms[0]];
}

static int build_tpcs(struct gpupart *gp, struct gpupart_topology *topo, struct topo_blame *blame)
{
	const struct topo_sm *first[GPUPART_MAX_TPCS] = { 0 };
	unsigned int smid, tpc;
	int err;

	for (smid = 0; smid < topo->nr_sms; smid++) {
		const struct topo_sm *sm = &topo->sms[smid];

		blame->sm = smid;
		err = check_ranges(gp, sm, smid);
		if (err)
			return err;
		if (!first[sm->tpc])
			first[sm->tpc] = sm;
		err = add_sm(gp, topo, smid, first[sm->tpc]);
		if (err)
			return err;
		if ((unsigned int)sm->tpc >= topo->nr_tpcs)
			topo->nr_tpcs = sm->tpc + 1;
		if (sm->vgpc >= 0 && (unsigned int)sm->vgpc >= topo->end_vgpc)
			topo->end_vgpc = sm->vgpc + 1;
		if (sm->ugpu >= 0 && (unsigned int)sm->ugpu >= topo->nr_ugpus)
			topo->nr_ugpus = sm->ugpu + 1;
	}
	for (tpc = 0; tpc < topo->nr_tpcs; tpc++) {
		if (first[tpc])
			continue;
		blame->sm = first[topo->nr_tpcs - 1] - topo->sms;
		return ctx_fail(gp, -EINVAL,
				"SM %d belongs to TPC %u, but TPC %u has no SM",
				blame->sm,
				topo->nr_tpcs - 1, tpc);
	}
	return 0;
}

/*
 * If two TPCs have the same place, both rows are wrong. For example, an idle GPU older than
 * Hopper reports only zeros, so all TPCs would have the same place.
 */
static int check_two(struct gpupart *gp, const struct gpupart_topology *topo, unsigned int first,
		     unsigned int tpc)
{
	const struct topo_sm *a = tpc_sm(topo, first), *sm = tpc_sm(topo, tpc);
	const char *noun = NULL, *of;
	int index, unit, smid = sm - topo->sms;

	if (sm->local_tpc >= 0 && a->gpc == sm->gpc && a->local_tpc == sm->local_tpc) {
		noun = "local TPC";
		index = sm->local_tpc;
		of = "GPC";
		unit = sm->gpc;
	} else if (sm->vgpc >= 0 && sm->tpc_in_vgpc >= 0 && a->vgpc == sm->vgpc &&
		   a->tpc_in_vgpc == sm->tpc_in_vgpc) {
		noun = "TPC";
		index = sm->tpc_in_vgpc;
		of = "virtual GPC";
		unit = sm->vgpc;
	}
	if (noun)
		return ctx_fail(gp, -EINVAL,
				"TPCs %u and %u (SM %d) are both %s %d of %s %d: this is not a valid order of SMs, or the GPU was asleep",
				first, tpc, smid, noun, index, of, unit);
	if (sm->measured_bit >= 0 && a->measured_bit == sm->measured_bit)
		return ctx_fail(gp, -EINVAL,
				"TPCs %u and %u (SM %d) cannot both have the measured bit %d",
				first, tpc, smid, sm->measured_bit);
	return 0;
}

static int check_places(struct gpupart *gp, struct gpupart_topology *topo, struct topo_blame *blame)
{
	unsigned int tpc, first;
	int err = 0;

	for (tpc = 0; !err && tpc < topo->nr_tpcs; tpc++) {
		blame->sm = tpc_sm(topo, tpc) - topo->sms;
		for (first = 0; !err && first < tpc; first++)
			err = check_two(gp, topo, first, tpc);
	}
	return err;
}

static int build_gpcs(struct gpupart *gp, struct gpupart_topology *topo, struct topo_blame *blame)
{
	bool ranked[GPUPART_MAX_GPCS];
	unsigned int gpc, tpc, other;

	memset(ranked, true, sizeof(ranked));
	for (gpc = 0; gpc < GPUPART_MAX_GPCS; gpc++) {
		topo->gpcs[gpc].gpc_phys = -1;
		topo->gpcs[gpc].ugpu = -1;
	}
	for (tpc = 0; tpc < topo->nr_tpcs; tpc++) {
		const struct topo_sm *sm = tpc_sm(topo, tpc);
		struct gpupart_gpc *of = &topo->gpcs[sm->gpc];

		blame->sm = sm - topo->sms;
		if (!gpupart_tpcset_empty(&of->tpcs) && of->ugpu != sm->ugpu)
			return ctx_fail(gp, -EINVAL,
					"SM %d: GPC %d cannot be in uGPU %d and in uGPU %d",
					blame->sm, sm->gpc, of->ugpu, sm->ugpu);
		of->ugpu = sm->ugpu;
		gpupart_tpcset_add(&of->tpcs, tpc);
		ranked[sm->gpc] &= sm->local_tpc >= 0;
		if ((unsigned int)sm->gpc >= topo->nr_gpcs)
			topo->nr_gpcs = sm->gpc + 1;
	}
	for (gpc = 0; gpc < topo->nr_gpcs; gpc++) {
		if (!gpupart_tpcset_empty(&topo->gpcs[gpc].tpcs))
			continue;
		tpc = gpupart_tpcset_next(&topo->gpcs[topo->nr_gpcs - 1].tpcs, 0);
		blame->sm = tpc_sm(topo, tpc) - topo->sms;
		return ctx_fail(gp, -EINVAL,
				"SM %d belongs to GPC %u, but GPC %u has no SM",
				blame->sm,
				topo->nr_gpcs - 1, gpc);
	}
	for (tpc = 0; tpc < topo->nr_tpcs; tpc++) {
		const struct topo_sm *sm = tpc_sm(topo, tpc);

		if (!ranked[sm->gpc])
			continue;
		topo->tpcs[tpc].tpc_in_gpc = 0;
		for (other = 0; other < topo->nr_tpcs; other++)
			if (tpc_sm(topo, other)->gpc == sm->gpc &&
			    tpc_sm(topo, other)->local_tpc < sm->local_tpc)
				topo->tpcs[tpc].tpc_in_gpc++;
	}
	return 0;
}

/* If the design maxima are known, checks that the topology does not exceed them. */
static int check_maxima(struct gpupart *gp, const struct gpupart_topology *topo,
			struct topo_blame *blame)
{
	unsigned int max_gpcs = topo->info.max_gpcs, max_tpcs = topo->info.max_tpcs_per_gpc;
	unsigned int tpc, nr;

	for (tpc = 0; tpc < topo->nr_tpcs; tpc++) {
		const struct topo_sm *sm = tpc_sm(topo, tpc);

		blame->sm = sm - topo->sms;
		if (max_gpcs && (unsigned int)sm->gpc >= max_gpcs)
			return ctx_fail(gp, -EINVAL,
					"SM %d: GPC %d cannot exist on a chip with at most %u GPCs",
					blame->sm, sm->gpc, max_gpcs);
		nr = gpupart_tpcset_count(&topo->gpcs[sm->gpc].tpcs);
		if (max_tpcs && nr > max_tpcs)
			return ctx_fail(gp, -EINVAL,
					"SM %d: GPC %d has %u TPCs, but the chip has at most %u TPCs per GPC",
					blame->sm, sm->gpc, nr, max_tpcs);
		if (max_gpcs && max_tpcs && sm->vgpc >= 0 && (unsigned int)sm->vgpc < max_gpcs &&
		    sm->tpc_in_vgpc >= 0 && (unsigned int)sm->tpc_in_vgpc >= max_tpcs)
			return ctx_fail(gp, -EINVAL,
					"SM %d: TPC %d of virtual GPC %d cannot exist on a chip with at most %u TPCs per GPC",
					blame->sm, sm->tpc_in_vgpc, sm->vgpc, max_tpcs);
	}
	blame->sm = -1;
	return 0;
}

static int take_gpc_map(struct gpupart *gp, struct gpupart_topology *topo, struct topo_blame *blame)
{
	unsigned int max_gpcs = topo->info.max_gpcs ? topo->info.max_gpcs : GPUPART_MAX_GPCS;
	unsigned int i, other;

	for (i = 0; i < topo->nr_gpc_map; i++) {
		const struct topo_gpc *row = &topo->gpc_map[i];
		struct gpupart_gpc *gpc;
		unsigned int nr;

		blame->gpc_row = i;
		if (row->gpc_phys < 0 || (unsigned int)row->gpc_phys >= max_gpcs)
			return ctx_fail(gp, -EINVAL, "physical GPC %d is out of range (0-%u)",
					row->gpc_phys, max_gpcs - 1);
		if (row->gpc < -1 || row->gpc >= (int)topo->nr_gpcs)
			return ctx_fail(gp, -EINVAL,
					"physical GPC %d cannot be GPC %d: the SM order has GPCs 0-%u",
					row->gpc_phys, row->gpc, topo->nr_gpcs - 1);
		for (other = 0; other < i; other++) {
			if (topo->gpc_map[other].gpc_phys == row->gpc_phys)
				return ctx_fail(gp, -EINVAL, "physical GPC %d is reported twice",
						row->gpc_phys);
			if (row->gpc >= 0 && topo->gpc_map[other].gpc == row->gpc)
				return ctx_fail(gp, -EINVAL,
						"physical GPCs %d and %d cannot both be GPC %d",
						topo->gpc_map[other].gpc_phys, row->gpc_phys,
						row->gpc);
		}
		if (row->gpc < 0)
			continue;
		gpc = &topo->gpcs[row->gpc];
		nr = gpupart_tpcset_count(&gpc->tpcs);
		if (row->present_tpcs && (unsigned int)__builtin_popcount(row->present_tpcs) != nr)
			return ctx_fail(gp, -EINVAL,
					"GPC %d has %u TPCs in the SM order but physical GPC %d has %d (present TPCs 0x%x)",
					row->gpc, nr, row->gpc_phys,
					__builtin_popcount(row->present_tpcs), row->present_tpcs);
		gpc->gpc_phys = row->gpc_phys;
		gpc->present_tpcs = row->present_tpcs;
	}
	blame->gpc_row = -1;
	return 0;
}

int topo_build_blame(struct gpupart *gp, const struct gpupart_gpu_info *info,
		     const struct topo_sm *sms, unsigned int nr_sms, const struct topo_gpc *gpc_map,
		     unsigned int nr_gpc_map, struct gpupart_topology **topo,
		     struct topo_blame *blame)
{
	struct gpupart_topology *t;
	int err;

	*blame = (struct topo_blame){ .sm = -1, .gpc_row = -1 };
	if (!nr_sms || nr_sms > TOPO_MAX_SMS)
		return ctx_fail(gp, -EINVAL,
				"the SM order has %u SMs, which is out of range (1-%d)", nr_sms,
				TOPO_MAX_SMS);
	if (nr_gpc_map > GPUPART_MAX_GPCS)
		return ctx_fail(gp, -EINVAL,
				"the GPC map has %u GPCs, which is out of range (0-%d)", nr_gpc_map,
				GPUPART_MAX_GPCS);
	t = calloc(1, sizeof(*t));
	if (!t)
		return ctx_fail(gp, -ENOMEM, "no memory for a topology of %u SMs", nr_sms);
	t->info = *info;
	t->nr_sms = nr_sms;
	memcpy(t->sms, sms, nr_sms * sizeof(*sms));
	t->nr_gpc_map = nr_gpc_map;
	if (nr_gpc_map)
		memcpy(t->gpc_map, gpc_map, nr_gpc_map * sizeof(*gpc_map));

	err = build_tpcs(gp, t, blame);
	if (!err)
		err = check_places(gp, t, blame);
	if (!err)
		err = build_gpcs(gp, t, blame);
	if (!err)
		err = check_maxima(gp, t, blame);
	if (!err)
		err = take_gpc_map(gp, t, blame);
	if (err) {
		gpupart_topology_close(t);
		return err;
	}
	*topo = t;
	return 0;
}

int topo_build(struct gpupart *gp, const struct gpupart_gpu_info *info, const struct topo_sm *sms,
	       unsigned int nr_sms, const struct topo_gpc *gpc_map, unsigned int nr_gpc_map,
	       struct gpupart_topology **topo)
{
	struct topo_blame blame;

	return topo_build_blame(gp, info, sms, nr_sms, gpc_map, nr_gpc_map, topo, &blame);
}

void gpupart_topology_close(struct gpupart_topology *topo)
{
	if (!topo)
		return;
	free(topo->registers);
	free(topo);
}

const struct gpupart_gpu_info *gpupart_topology_info(const struct gpupart_topology *topo)
{
	return &topo->info;
}

unsigned int gpupart_topology_nr_tpcs(const struct gpupart_topology *topo)
{
	return topo->nr_tpcs;
}

unsigned int gpupart_topology_nr_gpcs(const struct gpupart_topology *topo)
{
	return topo->nr_gpcs;
}

unsigned int gpupart_topology_nr_sms(const struct gpupart_topology *topo)
{
	return topo->nr_sms;
}

unsigned int gpupart_topology_nr_ugpus(const struct gpupart_topology *topo)
{
	return topo->nr_ugpus;
}

unsigned int gpupart_topology_end_vgpc(const struct gpupart_topology *topo)
{
	return topo->end_vgpc;
}

const struct gpupart_tpc *gpupart_topology_tpc(const struct gpupart_topology *topo,
					       unsigned int tpc)
{
	return tpc < topo->nr_tpcs ? &topo->tpcs[tpc] : NULL;
}

const struct gpupart_gpc *gpupart_topology_gpc(const struct gpupart_topology *topo,
					       unsigned int gpc)
{
	return gpc < topo->nr_gpcs ? &topo->gpcs[gpc] : NULL;
}

int gpupart_topology_sm_tpc(const struct gpupart_topology *topo, unsigned int smid)
{
	return smid < topo->nr_sms ? topo->sms[smid].tpc : -1;
}

struct gpupart_tpcset gpupart_topology_all(const struct gpupart_topology *topo)
{
	return gpupart_tpcset_first(topo->nr_tpcs);
}

/*
 * Returns the TPCs whose member at @offset in struct gpupart_tpc has the value @value. If @value is
 * -1, the result is empty.
 */
static struct gpupart_tpcset tpcs_with(const struct gpupart_topology *topo, size_t offset,
				       unsigned int value)
{
	struct gpupart_tpcset set = { 0 };

	for (unsigned int tpc = 0; value <= INT_MAX && tpc < topo->nr_tpcs; tpc++)
		if (*(const int *)((const char *)&topo->tpcs[tpc] + offset) == (int)value)
			gpupart_tpcset_add(&set, tpc);
	return set;
}

struct gpupart_tpcset gpupart_topology_ugpu(const struct gpupart_topology *topo, unsigned int ugpu)
{
	return tpcs_with(topo, offsetof(struct gpupart_tpc, ugpu), ugpu);
}

struct gpupart_tpcset gpupart_topology_vgpc(const struct gpupart_topology *topo, unsigned int vgpc)
{
	return tpcs_with(topo, offsetof(struct gpupart_tpc, vgpc), vgpc);
}

unsigned int topo_sms_in(const struct gpupart_topology *topo, const struct gpupart_tpcset *set)
{
	unsigned int nr = 0;

	for (int tpc = gpupart_tpcset_next(set, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(set, tpc + 1))
		nr += topo->tpcs[tpc].nr_sms;
	return nr;
}

/*
 * Hash the bytes one by one, beginning with the lowest byte, so that the hash is the same on
 * every machine.
 */
static uint64_t hash_int(uint64_t hash, int value)
{
	unsigned char bytes[4] = { value, value >> 8, value >> 16, value >> 24 };

	return hash_bytes(hash, bytes, sizeof(bytes));
}

unsigned int gpupart_topology_compute_class(const struct gpupart_topology *topo)
{
	return topo->compute_class;
}

uint64_t gpupart_topology_hash(const struct gpupart_topology *topo)
{
	uint64_t hash = hash_int(HASH_INIT, topo->nr_tpcs);
	unsigned int tpc, i;

	for (tpc = 0; tpc < topo->nr_tpcs; tpc++) {
		const struct gpupart_tpc *t = &topo->tpcs[tpc];

		hash = hash_int(hash, t->gpc);
		hash = hash_int(hash, t->tpc_in_gpc);
		hash = hash_int(hash, t->vgpc);
		hash = hash_int(hash, t->tpc_in_vgpc);
		hash = hash_int(hash, t->ugpu);
		hash = hash_int(hash, t->nr_sms);
		for (i = 0; i < t->nr_sms; i++)
			hash = hash_int(hash, t->sms[i]);
	}
	return hash;
}

/* Returns whether @text matches @form. An x in @form matches any hexadecimal digit. */
static bool has_form(const char *text, const char *form)
{
	while (*form && (*form == 'x' ? isxdigit((unsigned char)*text) : *text == *form))
		form++, text++;
	return !*form && !*text;
}

/* Parses an address [DOMAIN:]BUS:DEVICE[.FUNCTION] in the forms of lspci, sysfs and nvidia-smi. */
static bool read_pci(const char *text, uint32_t address[4])
{
	int end = 0;

	/* sscanf() would also accept signs, blanks and "0x". */
	if (text[strspn(text, "0123456789abcdefABCDEF:.")])
		return false;
	memset(address, 0, 4 * sizeof(address[0]));
	if (sscanf(text, "%8x:%8x:%8x%n.%1x%n", &address[0], &address[1], &address[2], &end,
		   &address[3], &end) < 3) {
		address[0] = 0;
		if (sscanf(text, "%8x:%8x%n.%1x%n", &address[1], &address[2], &end, &address[3],
			   &end) < 2)
			return false;
	}
	return !text[end];
}

/* Accepts the address of a PCI GPU in the form with all digits. Rejects all shorter forms. */
static bool pci_address(const char *text, char address_text[20])
{
	size_t domain = strspn(text, "0123456789abcdefABCDEF");
	uint32_t address[4];

	if (domain < 4 || !has_form(text + domain, ":xx:xx.x") || !read_pci(text, address) ||
	    address[2] > 0x1f || address[3] > 7)
		return false;
	snprintf(address_text, 20, "%04x:%02x:%02x.%x", address[0], address[1], address[2],
		 address[3]);
	return true;
}

/*
 * Parses the address of an integrated GPU in the form that the kernel writes. The form consists of
 * the address of the GPU's registers, a dot and a name.
 */
static bool platform_address(const char *text, char address_text[20])
{
	size_t digits = strspn(text, "0123456789abcdef");
	size_t name = digits && text[digits] == '.' ?
		      strspn(text + digits + 1, "abcdefghijklmnopqrstuvwxyz0123456789-") : 0;

	if (!name || text[digits + 1 + name] || digits + 1 + name >= 20)
		return false;
	memcpy(address_text, text, digits + 1 + name + 1);
	return true;
}

/* A text cannot match both forms. */
bool topo_address_read(const char *text, char address[20])
{
	return pci_address(text, address) || platform_address(text, address);
}

bool topo_is_uuid(const char *text)
{
	return has_form(text, "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
}

static const char *without_prefix(const char *uuid)
{
	return strncasecmp(uuid, "GPU-", 4) ? uuid : uuid + 4;
}

bool topo_selects(const char *selector, const struct gpupart_gpu_info *info, unsigned int index)
{
	uint32_t wanted[4], has[4];
	size_t digits = strspn(selector, "0123456789");

	if (digits && !selector[digits]) {
		char number[16];

		while (*selector == '0' && selector[1])
			selector++;
		snprintf(number, sizeof(number), "%u", index);
		return !strcmp(selector, number);
	}
	if (read_pci(selector, wanted))
		return read_pci(info->pci, has) && !memcmp(wanted, has, sizeof(has));
	if (info->pci[0] && !strcmp(selector, info->pci))
		return true;
	return info->uuid[0] && !strcasecmp(without_prefix(selector), without_prefix(info->uuid));
}

/* The value -1 means "unknown" and agrees with every other value. */
static bool indices_agree(int a, int b)
{
	return a < 0 || b < 0 || a == b;
}

static bool tpcs_agree(const struct gpupart_tpc *a, const struct gpupart_tpc *b)
{
	return indices_agree(a->gpc, b->gpc) && indices_agree(a->vgpc, b->vgpc) &&
	       indices_agree(a->tpc_in_vgpc, b->tpc_in_vgpc) && indices_agree(a->cpc, b->cpc) &&
	       indices_agree(a->ugpu, b->ugpu) && a->nr_sms == b->nr_sms &&
	       !memcmp(a->sms, b->sms, a->nr_sms * sizeof(a->sms[0]));
}

bool gpupart_topology_agree(const struct gpupart_topology *a, const struct gpupart_topology *b)
{
	unsigned int i;

	if (a->nr_tpcs != b->nr_tpcs || a->nr_gpcs != b->nr_gpcs || a->nr_sms != b->nr_sms)
		return false;
	for (i = 0; i < a->nr_tpcs; i++)
		if (!tpcs_agree(&a->tpcs[i], &b->tpcs[i]))
			return false;
	for (i = 0; i < a->nr_gpcs; i++)
		if (!indices_agree(a->gpcs[i].gpc_phys, b->gpcs[i].gpc_phys) ||
		    !indices_agree(a->gpcs[i].ugpu, b->gpcs[i].ugpu) ||
		    (a->gpcs[i].present_tpcs && b->gpcs[i].present_tpcs &&
		     a->gpcs[i].present_tpcs != b->gpcs[i].present_tpcs))
			return false;
	return true;
}

void topo_take_vgpcs(struct gpupart_topology *topo, const struct gpupart_topology *other)
{
	unsigned int i;

	if (topo->end_vgpc || !gpupart_topology_agree(topo, other))
		return;
	for (i = 0; i < topo->nr_tpcs; i++) {
		topo->tpcs[i].vgpc = other->tpcs[i].vgpc;
		topo->tpcs[i].tpc_in_vgpc = other->tpcs[i].tpc_in_vgpc;
	}
	for (i = 0; i < topo->nr_sms; i++) {
		topo->sms[i].vgpc = other->sms[i].vgpc;
		topo->sms[i].tpc_in_vgpc = other->sms[i].tpc_in_vgpc;
	}
	topo->end_vgpc = other->end_vgpc;
}

unsigned int topo_sms_per_tpc(const struct gpupart_topology *topo)
{
	unsigned int fewest = GPUPART_MAX_SMS_PER_TPC;

	for (unsigned int tpc = 0; tpc < topo->nr_tpcs; tpc++)
		if (topo->tpcs[tpc].nr_sms < fewest)
			fewest = topo->tpcs[tpc].nr_sms;
	return fewest;
}
