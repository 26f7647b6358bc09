// SPDX-License-Identifier: MIT
/*
 * Contains the table that describes the format of captures. Also contains the functions that write
 * captures.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/core/hash.h"
#include "lib/topo/capture.h"

#define STRING_OF(macro) #macro
#define STRING(macro)	 STRING_OF(macro)
#define MEMBER(type, member) \
	.offset = offsetof(struct type, member), .size = sizeof(((struct type *)0)->member)
#define INDEX(type, member) \
	.form = FORM_DECIMAL, .none = "-", .none_is = -1, .max = INT_MAX, MEMBER(type, member)

/*
 * The writer always writes the keys that are not optional. If a value is unknown, it writes the
 * value "unknown" or omits the key. A reader rejects unknown keys, so all keys that were added to
 * the format later are optional.
 */
static const struct value keys[] = {
	{ "name", FORM_TEXT, MEMBER(capture_gpu, info.name) },
	{ "pci", FORM_PCI, MEMBER(capture_gpu, info.pci),
	  .wrong = "is not an address such as 0000:0d:00.0 or 17000000.gpu, or unknown" },
	{ "uuid", FORM_UUID, MEMBER(capture_gpu, info.uuid),
	  .wrong = "is not GPU- and 8-4-4-4-12 hexadecimal digits, or unknown" },
	{ "driver", FORM_TEXT, MEMBER(capture_gpu, info.driver) },
	{ "chip-id", FORM_HEX, MEMBER(capture_gpu, info.chip_id), .none = UNKNOWN, .min = 1,
	  .max = TOPO_MAX_CHIP_ID, .wrong = "is not 0x1-" STRING(TOPO_MAX_CHIP_ID) " or unknown" },
	{ "compute-class", FORM_HEX, MEMBER(capture_gpu, compute_class), .none = UNKNOWN, .min = 1,
	  .max = 0xffff, .wrong = "is not 0x1-0xffff or unknown", .optional = true },
	{ "mig", FORM_MIG, MEMBER(capture_gpu, info.mig), .wrong = "is not on, off or unknown" },
	{ "max-gpcs", FORM_DECIMAL, MEMBER(capture_gpu, info.max_gpcs), .none = UNKNOWN, .min = 1,
	  .max = GPUPART_MAX_GPCS, .wrong = "is not 1-" STRING(GPUPART_MAX_GPCS) " or unknown" },
	{ "max-tpcs-per-gpc", FORM_DECIMAL, MEMBER(capture_gpu, info.max_tpcs_per_gpc),
	  .none = UNKNOWN, .min = 1, .max = GPUPART_MAX_TPCS,
	  .wrong = "is not 1-" STRING(GPUPART_MAX_TPCS) " or unknown" },
	{ "simulated", FORM_YES, MEMBER(capture_gpu, info.simulated),
	  .wrong = "is not yes or no" },
	{ "origin", FORM_TEXT, MEMBER(capture_gpu, info.origin) },
};

static const struct value sm_order[] = {
	{ .form = FORM_ROW },
	{ INDEX(topo_sm, gpc) }, { INDEX(topo_sm, local_tpc) }, { INDEX(topo_sm, local_sm) },
	{ INDEX(topo_sm, tpc) }, { INDEX(topo_sm, vgpc) }, { INDEX(topo_sm, tpc_in_vgpc) },
	{ INDEX(topo_sm, ugpu) }, { INDEX(topo_sm, cpc) }, { INDEX(topo_sm, virtual_tpc) },
};

static const struct value gpc_map[] = {
	{ "physical GPC", INDEX(topo_gpc, gpc_phys), .wrong = "is not a number" },
	{ "present TPCs", FORM_HEX, MEMBER(topo_gpc, present_tpcs), .none = "-", .min = 1,
	  .max = UINT32_MAX, .wrong = "are not a mask such as 0x1ff or \"-\"" },
	{ "GPC", INDEX(topo_gpc, gpc), .wrong = "is not a number or \"-\"" },
};

static const struct value registers[] = {
	{ "register offset", FORM_HEX, MEMBER(topo_register, offset), .max = UINT32_MAX,
	  .multiple_of = 4, .digits = 6, .wrong = "is not a multiple of 4 such as 0x22430" },
	{ "register value", FORM_HEX, MEMBER(topo_register, value), .max = UINT32_MAX,
	  .digits = 8, .wrong = "is not a 32-bit value such as 0x00000008" },
};

static const struct value measured_bits[] = {
	{ .form = FORM_ROW },
	{ "bit", FORM_DECIMAL, MEMBER(topo_sm, measured_bit), .max = GPUPART_MAX_TMD_BITS - 1,
	  .wrong = "is not a number below " STRING(GPUPART_MAX_TMD_BITS) },
};

const struct section capture_sections[NR_SECTIONS] = {
#define VALUES(values) values, sizeof(values) / sizeof(values[0])
	[IN_GPU] = { "gpu", VALUES(keys), .row_size = sizeof(struct capture_gpu) },
	[IN_RM] = { "rm", VALUES(sm_order),
		    "sm gpc local_tpc local_sm tpc vgpc tpc_in_vgpc ugpu cpc virtual_tpc",
		    offsetof(struct gpupart_topology, text_rm), sizeof(struct topo_sm),
		    TOPO_MAX_SMS, "SMs" },
	[IN_GPC_MAP] = { "gpc-map", VALUES(gpc_map), "gpc_phys present_tpcs gpc",
			 offsetof(struct gpupart_topology, text_gpc_map), sizeof(struct topo_gpc),
			 GPUPART_MAX_GPCS, "GPCs" },
	[IN_REGISTERS] = { "registers", VALUES(registers), "offset value",
			   offsetof(struct gpupart_topology, text_registers),
			   sizeof(struct topo_register) },
	[IN_BITS] = { "measured-bits", VALUES(measured_bits), "sm bit",
		      offsetof(struct gpupart_topology, text_bits), sizeof(struct topo_sm),
		      TOPO_MAX_SMS, .sparse = true },
#undef VALUES
};

/*
 * The output of the writer. The first pass only counts bytes, so @text is NULL in the first
 * pass.
 */
struct out {
	char *text;
	size_t len, at;
};

#define put(out, ...) topo_append((out)->text, (out)->len, &(out)->at, __VA_ARGS__)

/* Returns whether the reader would accept @text unchanged. */
static bool is_value(const char *text)
{
	size_t len = strlen(text), i;

	for (i = 0; i < len; i++)
		if (text[i] < 0x20 || text[i] >= 0x7f)
			return false;
	return !len || (text[0] != ' ' && text[len - 1] != ' ');
}

static int write_value(struct gpupart *gp, struct out *out, const struct value *v, const void *row,
		       unsigned int nr)
{
	const char *field = (const char *)row + v->offset;
	uint32_t number;

	switch (v->form) {
	case FORM_TEXT:
	case FORM_PCI:
	case FORM_UUID:
		if (!is_value(field))
			return ctx_fail(gp, -EINVAL,
					"the GPU's %s cannot be written into a capture: it is not one line of plain ASCII text",
					v->name);
		put(out, "%s", field[0] ? field : UNKNOWN);
		break;
	case FORM_MIG:
		put(out, "%s", *(int *)field < 0 ? UNKNOWN : *(int *)field ? "on" : "off");
		break;
	case FORM_YES:
		put(out, "%s", *(bool *)field ? "yes" : "no");
		break;
	case FORM_ROW:
		put(out, "%u", nr);
		break;
	case FORM_DECIMAL:
	case FORM_HEX:
		memcpy(&number, field, sizeof(number));
		if (v->none && number == (uint32_t)v->none_is)
			put(out, "%s", v->none);
		else if (v->form == FORM_HEX)
			put(out, "0x%0*x", v->digits, number);
		else
			put(out, "%u", number);
	}
	return 0;
}

static int write_gpu(struct gpupart *gp, struct out *out, const struct capture_gpu *gpu)
{
	int err = 0;

	put(out, "\n[%s]\n", capture_sections[IN_GPU].name);
	for (unsigned int i = 0; !err && i < capture_sections[IN_GPU].nr_values; i++) {
		if (keys[i].optional && !gpu->compute_class)
			continue;
		put(out, "%s = ", keys[i].name);
		err = write_value(gp, out, &keys[i], gpu, 0);
		put(out, "\n");
	}
	return err;
}

static int write_header(struct gpupart *gp, struct out *out, const struct gpupart_topology *topo,
			const struct section *section)
{
	const char *source = (const char *)topo + section->source;

	if (!source[0])
		source = topo->info.source[0] ? topo->info.source : UNKNOWN;
	if (!is_value(source))
		return ctx_fail(gp, -EINVAL,
				"the source of [%s] cannot be written into a capture: it is not one line of plain ASCII text",
				section->name);
	put(out, "\n[%s]\nsource = %s\ncolumns = %s\n", section->name, source, section->columns);
	return 0;
}

/* A section without rows is not written. */
static int write_section(struct gpupart *gp, struct out *out, const struct gpupart_topology *topo,
			 const struct section *section, const void *rows, unsigned int nr)
{
	bool begun = false;
	int err = 0;

	for (unsigned int i = 0; i < nr; i++) {
		const void *row = (const char *)rows + i * section->row_size;

		if (section->sparse && ((const struct topo_sm *)row)->measured_bit < 0)
			continue;
		if (!begun)
			err = write_header(gp, out, topo, section);
		begun = true;
		for (unsigned int c = 0; !err && c < section->nr_values; c++) {
			put(out, c ? "\t" : "");
			err = write_value(gp, out, &section->values[c], row, i);
		}
		if (err)
			return err;
		put(out, "\n");
	}
	return 0;
}

static int write_all(struct gpupart *gp, struct out *out, const struct gpupart_topology *topo,
		     const struct capture_gpu *gpu)
{
	const struct {
		const void *at;
		unsigned int nr;
	} rows[NR_SECTIONS] = {
		[IN_RM] = { topo->sms, topo->nr_sms },
		[IN_GPC_MAP] = { topo->gpc_map, topo->nr_gpc_map },
		[IN_REGISTERS] = { topo->registers, topo->nr_registers },
		[IN_BITS] = { topo->sms, topo->nr_sms },
	};
	int err;

	put(out, FIRST_LINE "\n");
	err = write_gpu(gp, out, gpu);
	for (int i = IN_RM; !err && i < NR_SECTIONS; i++)
		err = write_section(gp, out, topo, &capture_sections[i], rows[i].at, rows[i].nr);
	put(out, "\n");
	return err;
}

int gpupart_topology_capture(struct gpupart *gp, const struct gpupart_topology *topo,
			     const char *captured_by, char **text)
{
	struct capture_gpu gpu = { topo->info, topo->compute_class };
	struct out out = { 0 };
	int err;

	if (captured_by &&
	    (strlen(captured_by) >= sizeof(gpu.info.origin) || !is_value(captured_by)))
		return ctx_fail(gp, -EINVAL,
				"'captured_by' must be one line of plain ASCII text with at most %zu bytes",
				sizeof(gpu.info.origin) - 1);
	if (captured_by)
		snprintf(gpu.info.origin, sizeof(gpu.info.origin), "%s", captured_by);
	err = write_all(gp, &out, topo, &gpu);
	if (err)
		return err;
	out = (struct out){ .len = out.at + CHECKSUM_LEN + 1 };
	out.text = malloc(out.len);
	if (!out.text)
		return ctx_fail(gp, -ENOMEM, "no memory for a capture");
	write_all(gp, &out, topo, &gpu);
	put(&out, CHECKSUM_KEY "%016llx\n",
	    (unsigned long long)hash_bytes(HASH_INIT, out.text, out.at));
	*text = out.text;
	return 0;
}
