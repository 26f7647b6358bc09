// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Formats the pages of /proc/gpuN. In all masks, a set bit means that the unit is present. */
#include "text.h"
#include "regs.h"

void gp_text_add(struct text *text, const char *fmt, ...)
{
	va_list ap;
	int len;

	if (text->overflow)
		return;
	va_start(ap, fmt);
	len = vsnprintf(text->buf + text->len, text->size - text->len, fmt, ap);
	va_end(ap);
	if (len < 0 || (size_t)len >= text->size - text->len)
		text->overflow = true;
	else
		text->len += len;
}

void gp_text_fault(struct text *text, const struct topo_fault *fault)
{
	char sentence[TOPO_FAULT_LEN];

	gp_topo_fault_text(fault, sentence, sizeof(sentence));
	gp_text_add(text, "%s", sentence);
}

static const char *tag_of(const struct chip *chip, enum chip_column column)
{
	return gp_chip_tag_name(chip->cells[column].tag);
}

/* For a value of 0, "%#*x" prints different text in the kernel and in user space. */
static void add_hex(struct text *text, int width, u32 value)
{
	char number[16];

	snprintf(number, sizeof(number), "0x%x", value);
	gp_text_add(text, "%*s", width, number);
}

static void add_index(struct text *text, u8 index)
{
	if (index == TOPO_UNKNOWN)
		gp_text_add(text, "%5s", "?");
	else
		gp_text_add(text, "%5u", index);
}

static void add_gpcs(struct text *text, const struct gpu_floorsweep *fs)
{
	unsigned int gpc_phys, gpc;

	gp_text_add(text, "\n# set bit of `present` = TPC that is there, by fuse index\n");
	gp_text_add(text, " phys  gpc ugpu tpcs    present%s\n",
		    fs->has_cpcs ? "  floorswept-cpcs" : "");
	for (gpc_phys = 0; gpc_phys < fs->max_gpcs; gpc_phys++) {
		u8 logical = TOPO_UNKNOWN, ugpu = TOPO_UNKNOWN;

		if (!(fs->present_gpcs & 1u << gpc_phys)) {
			gp_text_add(text, "%5u    -    -    0 floorswept\n", gpc_phys);
			continue;
		}
		for (gpc = 0; fs->has_map && gpc < fs->nr_gpcs; gpc++) {
			if (fs->gpc_phys[gpc] != gpc_phys)
				continue;
			logical = gpc;
			ugpu = fs->ugpu[gpc];
		}
		gp_text_add(text, "%5u", gpc_phys);
		add_index(text, logical);
		add_index(text, ugpu);
		gp_text_add(text, "%5u ", popcount32(fs->present_tpcs[gpc_phys]));
		add_hex(text, 10, fs->present_tpcs[gpc_phys]);
		if (fs->has_cpcs)
			gp_text_add(text, "%17u", fs->floorswept_cpcs[gpc_phys]);
		gp_text_add(text, "\n");
	}
}

static void add_order(struct text *text, const struct gpu_floorsweep *fs)
{
	unsigned int tpc;

	switch (fs->order) {
	case TOPO_ORDER_READ:
		gp_text_add(text, "order       read [%s]\n", tag_of(fs->chip, CHIP_CWD));
		break;
	case TOPO_ORDER_COMPUTED:
		gp_text_add(text, "order       computed [%s], not read: %s\n",
			    tag_of(fs->chip, CHIP_ORDER), fs->order_why);
		break;
	default:
		gp_text_add(text, "order       unknown: %s\n", fs->order_why);
		return;
	}
	if (fs->disagree[0])
		gp_text_add(text, "disagree    the work distributor and the fuses: %s\n",
			    fs->disagree);
	gp_text_add(text, "\n# GPC.TPC of each global TPC\n");
	for (tpc = 0; tpc < fs->nr_ordered; tpc++) {
		if (tpc % 8 == 0)
			gp_text_add(text, "%5u:", tpc);
		gp_text_add(text, "%*u.%u%s", fs->tpcs[tpc].tpc_in_gpc < 10 ? 4 : 3,
			    fs->tpcs[tpc].gpc,
			    fs->tpcs[tpc].tpc_in_gpc,
			    tpc % 8 == 7 || tpc + 1 == fs->nr_ordered ? "\n" : "");
	}
}

static void add_chip(struct text *text, const struct gpu_id *id)
{
	gp_text_add(text, "chip        %s 0x%x %s revision %x%x\n", id->chip->name, id->chip_id,
		    id->chip->family, NV_PMC_BOOT_42_MAJOR(id->boot_42),
		    NV_PMC_BOOT_42_MINOR(id->boot_42));
	if (id->chip->note)
		gp_text_add(text, "note        %s\n", id->chip->note);
}

/* Returns the fault of a read. The read returned @err. */
static struct topo_fault fault_of(struct topo_reader *reader, int err)
{
	struct topo_fault fault = reader->fault;

	fault.err = err;
	return fault;
}

void gp_text_topology_memory(struct text_topology *topology, struct topo_reader *reader)
{
	const struct chip *chip = topology->id->chip;
	int err = gp_topo_read_memory(chip, reader, &topology->memory);

	topology->memory_fault = fault_of(reader, err);
	err = gp_topo_read_local_memory(chip, reader, &topology->local_memory);
	topology->local_memory_fault = fault_of(reader, err);
}

static bool is_fault(const struct topo_fault *fault)
{
	return fault->err && fault->err != -EOPNOTSUPP;
}

/* Begins a line. If there is a fault, ends the line with the fault and returns false. */
static bool add_known(struct text *text, const char *what, const struct topo_fault *fault)
{
	gp_text_add(text, "%s%s", what, fault->err ? "unknown: " : "");
	if (!fault->err)
		return true;
	gp_text_fault(text, fault);
	gp_text_add(text, "\n");
	return false;
}

static void add_partitions_and_memory(struct text *text, const struct text_topology *topology)
{
	const struct gpu_memory *memory = &topology->memory;
	const struct chip *chip = topology->id->chip;

	if (add_known(text, "partitions  ", &topology->memory_fault)) {
		gp_text_add(text, "%u of %u FBPs present 0x%x [%s]", memory->nr_fbps,
			    memory->max_fbps, memory->present_fbps, tag_of(chip, CHIP_FUSE_FBP));
		if (memory->nr_ltcs >= 0)
			gp_text_add(text, ", %d of %u LTCs of %u slices [%s]", memory->nr_ltcs,
				    memory->max_fbps * memory->ltcs_per_fbp, memory->slices_per_ltc,
				    tag_of(chip, CHIP_FUSE_LTC));
		gp_text_add(text, "\n");
	}
	if (add_known(text, "memory      ", &topology->local_memory_fault))
		gp_text_add(text, "%llu MiB [%s]\n",
			    (unsigned long long)(topology->local_memory >> 20),
			    tag_of(chip, CHIP_MEMORY));
}

void gp_text_topology(struct text *text, const struct text_topology *topology)
{
	const struct gpu_floorsweep *fs = topology->fs;
	const struct chip *chip = fs->chip;
	bool complete = fs->complete && !is_fault(&topology->memory_fault) &&
			!is_fault(&topology->local_memory_fault);

	gp_text_add(text, "gpu         %s %s\n", topology->name, topology->bus_name);
	add_chip(text, topology->id);
	gp_text_add(text, "maxima      %u GPCs of %u TPCs [%s]\n", fs->max_gpcs,
		    fs->max_tpcs_per_gpc,
		    tag_of(chip, CHIP_MAXIMA));
	gp_text_add(text, "present     %u GPCs [%s], %u TPCs [%s]", fs->nr_gpcs,
		    tag_of(chip, CHIP_FUSE_GPC), fs->nr_tpcs, tag_of(chip, CHIP_FUSE_TPC));
	if (fs->sms_per_tpc)
		gp_text_add(text, ", %u SMs [%s]", fs->nr_tpcs * fs->sms_per_tpc,
			    tag_of(chip, CHIP_SMS_PER_TPC));
	gp_text_add(text, "\n");
	if (fs->has_map)
		gp_text_add(text, "gpc-map     [%s]\n", tag_of(chip, CHIP_GPC_MAP));
	else
		gp_text_add(text, "gpc-map     unknown: %s\n", fs->map_why);
	add_partitions_and_memory(text, topology);
	add_order(text, fs);
	add_gpcs(text, fs);
	gp_text_add(text, "\ncomplete    %s\n", complete ? "yes" : "no");
}

void gp_text_refused(struct text *text, const struct gpu_id *id)
{
	gp_text_add(text, "chip        0x%x: %s (boot_0 0x%x, boot_42 0x%x)\n", id->chip_id,
		    id->why,
		    id->boot_0, id->boot_42);
}

void gp_text_chip(struct text *text, const struct gpu_id *id)
{
	unsigned int column;

	add_chip(text, id);
	gp_text_add(text, "boot_0      0x%x\nboot_42     0x%x\n\n", id->boot_0, id->boot_42);
	gp_text_add(text, "%-12s %-9s %-9s %s\n", "what", "at", "tag", "source");
	for (column = 0; column < CHIP_COLUMNS; column++) {
		const struct chip_cell *cell = gp_chip_cell(id->chip, column);

		gp_text_add(text, "%-12s ", gp_chip_column_name(column));
		if (cell && cell->at)
			gp_text_add(text, "0x%-7x ", cell->at);
		else
			gp_text_add(text, "%-9s ", "-");
		gp_text_add(text, "%-9s %s\n", gp_chip_tag_name(cell ? cell->tag : CHIP_ABSENT),
			    cell ? cell->source : "none, or not published");
	}
}

static void add_number(struct text *text, int width, int number)
{
	if (number < 0)
		gp_text_add(text, " %*s", width, "-");
	else
		gp_text_add(text, " %*d", width, number);
}

void gp_text_engines_copy(struct text_engines *page, struct topo_reader *reader)
{
	page->copy_fault = fault_of(reader, gp_topo_read_copy(page->chip, reader, &page->copy));
}

void gp_text_engines(struct text *text, const struct text_engines *page)
{
	const struct gpu_engines *engines = page->engines;
	bool many_dies = page->chip->cells[CHIP_ENGINES].nr > 1;
	unsigned int i, lce, pce;

	gp_text_add(text, "# %u engines [%s]\n", engines->nr, tag_of(page->chip, CHIP_ENGINES));
	gp_text_add(text, "%stype inst  pri-base   runlist  rl-eng reset fault  intr name\n",
		    many_dies ? "die " : "");
	for (i = 0; i < engines->nr; i++) {
		const struct gpu_engine *e = &engines->engines[i];
		const char *name = gp_topo_engine_name(e->type);

		if (many_dies)
			gp_text_add(text, "%3u ", e->die);
		gp_text_add(text, "%4u %4u ", e->type, e->instance);
		add_hex(text, 9, e->pri_base);
		gp_text_add(text, " ");
		if (e->runlist_pri_base)
			add_hex(text, 9, e->runlist_pri_base);
		else
			add_number(text, 8, e->runlist);
		add_number(text, 7, e->rleng);
		add_number(text, 5, e->reset);
		add_number(text, 5, e->fault);
		add_number(text, 5, e->intr);
		gp_text_add(text, " %s\n", name ? name : "?");
	}
	if (is_fault(&page->copy_fault)) {
		add_known(text, "\ncopy engines ", &page->copy_fault);
	} else if (!page->copy_fault.err) {
		gp_text_add(text,
			    "\n# copy engines: which physical ones serve each logical one [%s]\n",
			    tag_of(page->chip, CHIP_PCE));
		for (lce = 0; lce < TOPO_UNKNOWN; lce++) {
			bool any = false;

			for (pce = 0; pce < 32; pce++) {
				if (page->copy.pce_lce[pce] != lce)
					continue;
				if (!any)
					gp_text_add(text, "LCE%02u PCE ", lce);
				gp_text_add(text, any ? ",%u" : "%u", pce);
				any = true;
			}
			if (any)
				gp_text_add(text, "\n");
		}
		for (lce = 0; lce < page->copy.nr_grces; lce++)
			if (page->copy.grce_lce[lce] != TOPO_UNKNOWN)
				gp_text_add(text, "GRCE%u shares LCE%02u\n", lce,
					    page->copy.grce_lce[lce]);
	}
	gp_text_add(text, "\ncomplete    %s\n", is_fault(&page->copy_fault) ? "no" : "yes");
}

void gp_text_runlists_head(struct text *text, const struct chip *chip)
{
	gp_text_add(text,
		    "# what is on each engine at this moment [%s]\n"
		    " runlist   id channels    chram idle sched type inst engine context  tsg next channel\n",
		    tag_of(chip, CHIP_RUNLISTS));
}

void gp_text_runlist(struct text *text, const struct gpu_runlist *runlist,
		     const struct topo_fault *fault)
{
	static const char *const contexts[] = {
		[GPUPART_CONTEXT_NONE] = "none", [GPUPART_CONTEXT_VALID] = "valid",
		[GPUPART_CONTEXT_SAVE] = "save", [GPUPART_CONTEXT_LOAD] = "load",
		[GPUPART_CONTEXT_SWITCH] = "switch",
	};
	unsigned int i;

	if (fault->err) {
		gp_text_add(text, "%#8x unreadable: ", runlist->base);
		gp_text_fault(text, fault);
		gp_text_add(text, "\n");
		return;
	}
	for (i = 0; i < runlist->nr; i++) {
		const struct gpu_runlist_engine *e = &runlist->engines[i];

		gp_text_add(text, "%#8x %4u %8u %#8x %-4s %-5s %4u %4u %6u %-7s", runlist->base,
			    runlist->id, runlist->nr_channels, runlist->chram,
			    !runlist->idle ? "no" : runlist->engines_idle ? "yes" : "list",
			    runlist->disabled ? "off" : "on", e->type, e->instance, e->rleng,
			    contexts[e->context]);
		add_number(text, 4, e->tsg);
		add_number(text, 4, e->next_tsg);
		add_number(text, 7, e->channel);
		gp_text_add(text, "%s%s\n", e->busy ? " busy" : "", e->faulted ? " faulted" : "");
	}
}

/* ---------------------------------------------------------- nvdebug's forms */

static void add_type(struct text *text, const struct chip *chip, unsigned int type)
{
	const char *name = gp_topo_engine_name(type);
	bool tagged = chip->cells[CHIP_ENGINES].kind == CHIP_ENGINES_TAGGED;

	/*
	 * nvdebug has names for the types below 27. For a type without a name, nvdebug shows a
	 * number.
	 */
	if (type >= 27)
		name = tagged ? "Unknown Historical" : "Unknown, introduced post-Lovelace";
	gp_text_add(text, tagged ? "| Engine Type:      %2u (" : "| Engine Type:     %3u (", type);
	if (name)
		gp_text_add(text, "%s)\n", name);
	else
		gp_text_add(text, "Unknown Engine ID#%u)\n", type);
}

void gp_text_device_info(struct text *text, const struct chip *chip,
			 const struct gpu_engines *engines)
{
	bool tagged = chip->cells[CHIP_ENGINES].kind == CHIP_ENGINES_TAGGED;
	unsigned int i;

	for (i = 0; i < engines->nr_rows; i++) {
		u32 row = engines->rows[i];
		struct gpu_engine e;

		/*
		 * Parse each word like the first word of an engine. If a word does not contain a
		 * field, the field stays -1.
		 */
		gp_topo_engine_row(chip, 0, tagged ? row : 0, &e);
		if (!tagged)
			gp_topo_engine_row(chip, engines->row_index[i], row, &e);
		if (tagged && NV_PTOP_DEVICE_INFO_ENTRY(row) == NV_PTOP_DEVICE_INFO_ENTRY_DATA) {
			if (!NV_PTOP_DEVICE_INFO_DATA_NOT_ENUM2(row))
				gp_text_add(text, "| BAR0 Base 0x%.8x\n|           instance %u\n",
					    e.pri_base, e.instance);
			if (e.fault >= 0)
				gp_text_add(text, "| Fault ID:        %3d\n", e.fault);
		} else if (tagged && e.type == 0xffff) {
			if (e.engine_id >= 0)
				gp_text_add(text, "| Host's Engine ID: %2d\n", e.engine_id);
			if (e.runlist >= 0)
				gp_text_add(text, "| Runlist ID:       %2d\n", e.runlist);
			if (e.intr >= 0)
				gp_text_add(text, "| Interrupt ID:     %2d\n", e.intr);
			if (e.reset >= 0)
				gp_text_add(text, "| Reset ID:         %2d\n", e.reset);
		} else if (tagged) {
			add_type(text, chip, e.type);
		} else if (engines->row_index[i] == 0) {
			add_type(text, chip, e.type);
			gp_text_add(text, "|           instance %u\n| Fault ID:       %4d\n",
				    e.instance, e.fault);
		} else if (engines->row_index[i] == 1) {
			gp_text_add(text, "| BAR0 Base 0x%.8x\n", e.pri_base);
			gp_text_add(text, "| Reset ID:        %3d\n", e.reset);
			gp_text_add(text, "| Is Engine:         %1u\n",
				    NV_PTOP_DEVICE_INFO2_1_IS_ENGINE(row));
		} else if (engines->row_index[i] == 2) {
			gp_text_add(text, "| Runlist Eng. ID:   %1d\n| RL Base:  0x%.8x\n", e.rleng,
				    e.runlist_pri_base);
		}
		if (!NV_PTOP_DEVICE_INFO_CHAIN(row))
			gp_text_add(text, "+---------------------+\n");
	}
}

void gp_text_copy_topology(struct text *text, const struct gpu_copy *copy)
{
	unsigned int lce, pce;

	/*
	 * Writes a line for each logical copy engine. If several physical engines serve the logical
	 * engine, shows the last physical engine. Logical engines 0 and 1 are the GRCEs.
	 */
	for (lce = 0; lce < 32; lce++) {
		u8 serving = TOPO_UNKNOWN, shared = TOPO_UNKNOWN;

		for (pce = 0; pce < 32; pce++)
			if (copy->pce_lce[pce] == lce)
				serving = pce;
		if (serving == TOPO_UNKNOWN && lce < 2 && lce < copy->nr_grces)
			shared = copy->grce_lce[lce];
		if (serving == TOPO_UNKNOWN && shared == TOPO_UNKNOWN)
			continue;
		gp_text_add(text, lce < 2 ? "GRCE%u -> " : "LCE%02u -> ", lce);
		if (serving != TOPO_UNKNOWN)
			gp_text_add(text, "PCE%02u\n", serving);
		else
			gp_text_add(text, shared < 2 ? "GRCE%u\n" : "LCE%02u\n", shared);
	}
}
