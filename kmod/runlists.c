// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Row + reads -> runlists: the TSG on each engine, and the state of channels. Every value
 * is of the moment it was read, so a caller must not keep it.
 */
#include "text.h"
#include "regs.h"

u32 topo_next_runlist(const struct gpu_engines *engines, u32 after)
{
	u32 next = 0, base;
	unsigned int i;

	for (i = 0; i < engines->nr; i++) {
		base = engines->engines[i].runlist_pri_base;
		if (base > after && (!next || base < next))
			next = base;
	}
	return next;
}

static int read_engine(struct topo_reader *reader, u32 base, const struct gpu_engine *engine,
		       struct gpu_runlist_engine *e)
{
	u32 at = base + NV_RUNLIST_ENGINE_STATUS0(engine->rleng), status, channel;
	int err = topo_rd32(reader, at, &status);

	if (!err)
		err = topo_rd32(reader, base + NV_RUNLIST_ENGINE_STATUS_CHANNEL(engine->rleng),
				&channel);
	if (err)
		return err;
	e->type = engine->type;
	e->instance = engine->instance;
	e->rleng = engine->rleng;
	e->tsg = NV_RUNLIST_ENGINE_STATUS0_TSGID(status);
	e->next_tsg = -1;
	switch (NV_RUNLIST_ENGINE_STATUS0_CTX_STATUS(status)) {
	case 0:
		e->context = GPUPART_CONTEXT_NONE;
		e->tsg = -1;
		break;
	case 1:
		e->context = GPUPART_CONTEXT_VALID;
		break;
	case 5:
		e->context = GPUPART_CONTEXT_SAVE;
		break;
	case 6:
		e->context = GPUPART_CONTEXT_LOAD;
		e->tsg = -1;
		e->next_tsg = NV_RUNLIST_ENGINE_STATUS0_NEXT_TSGID(status);
		break;
	case 7:
		e->context = GPUPART_CONTEXT_SWITCH;
		e->next_tsg = NV_RUNLIST_ENGINE_STATUS0_NEXT_TSGID(status);
		break;
	default:
		return topo_nonsense(reader, at, status);
	}
	e->faulted = NV_RUNLIST_ENGINE_STATUS0_FAULTED(status);
	e->busy = NV_RUNLIST_ENGINE_STATUS0_BUSY(status);
	e->channel = NV_RUNLIST_ENGINE_STATUS_CHANNEL_VALID(channel) ?
		     (int)NV_RUNLIST_ENGINE_STATUS_CHANNEL_ID(channel) : -1;
	return 0;
}

/* The part that says where a runlist's channels are: what is outside of BAR0 is refused. */
static int read_config(struct topo_reader *reader, struct gpu_runlist *runlist)
{
	u32 base = runlist->base, config;
	int err;

	if (base > NV_BAR0_SIZE - NV_RUNLIST_SIZE)
		return topo_nonsense(reader, base, base);
	err = topo_rd32(reader, base + NV_RUNLIST_CHANNEL_CONFIG, &config);
	if (err)
		return err;
	runlist->nr_channels = NV_RUNLIST_CHANNEL_CONFIG_NUM_CHANNELS(config);
	runlist->chram = NV_RUNLIST_CHANNEL_CONFIG_CHRAM(config);
	if (!runlist->chram || runlist->chram > NV_BAR0_SIZE - 4 * runlist->nr_channels)
		return topo_nonsense(reader, base + NV_RUNLIST_CHANNEL_CONFIG, config);
	return 0;
}

int topo_read_runlist(struct topo_reader *reader, const struct gpu_engines *engines, u32 base,
		      struct gpu_runlist *runlist)
{
	u32 doorbell, disable, info;
	unsigned int i;
	int err;

	memset(runlist, 0, sizeof(*runlist));
	runlist->base = base;
	err = read_config(reader, runlist);
	if (!err)
		err = topo_rd32(reader, base + NV_RUNLIST_DOORBELL_CONFIG, &doorbell);
	if (!err)
		err = topo_rd32(reader, base + NV_RUNLIST_SCHED_DISABLE, &disable);
	if (!err)
		err = topo_rd32(reader, base + NV_RUNLIST_INFO, &info);
	if (err)
		return err;
	runlist->id = NV_RUNLIST_DOORBELL_CONFIG_ID(doorbell);
	runlist->disabled = NV_RUNLIST_SCHED_DISABLE_RUNLIST(disable);
	runlist->engines_idle = NV_RUNLIST_INFO_ENG_IDLE(info);
	runlist->idle = NV_RUNLIST_INFO_RUNLIST_IDLE(info);
	for (i = 0; i < engines->nr; i++) {
		const struct gpu_engine *engine = &engines->engines[i];

		if (engine->runlist_pri_base != base || engine->rleng < 0 ||
		    runlist->nr == TOPO_MAX_RUNLIST_ENGINES)
			continue;
		err = read_engine(reader, base, engine, &runlist->engines[runlist->nr++]);
		if (err)
			return err;
	}
	return 0;
}

int topo_read_channels(struct topo_reader *reader, u32 base, unsigned int first,
		       u32 words[TOPO_CHANNELS_AT_ONCE])
{
	struct gpu_runlist runlist = { .base = base };
	int err = read_config(reader, &runlist);
	unsigned int i;

	for (i = 0; !err && i < TOPO_CHANNELS_AT_ONCE && first + i < runlist.nr_channels; i++)
		err = topo_rd32(reader, runlist.chram + 4 * (first + i), &words[i]);
	return err ? err : (int)i;
}

/* -------------------------------------------------------------------- text */

static void add_number(struct text *text, int width, int number)
{
	if (number < 0)
		text_add(text, " %*s", width, "-");
	else
		text_add(text, " %*d", width, number);
}

void text_runlists_head(struct text *text, const struct chip *chip)
{
	text_add(text, "# what is on each engine at this moment [%s]\n",
		 chip_tag_name(chip->cells[CHIP_RUNLISTS].tag));
	text_add(text,
		 " runlist   id channels    chram idle sched type inst engine context  tsg next channel\n");
}

void text_runlist(struct text *text, const struct gpu_runlist *runlist)
{
	static const char *const contexts[] = {
		[GPUPART_CONTEXT_NONE] = "none", [GPUPART_CONTEXT_VALID] = "valid",
		[GPUPART_CONTEXT_SAVE] = "save", [GPUPART_CONTEXT_LOAD] = "load",
		[GPUPART_CONTEXT_SWITCH] = "switch",
	};
	unsigned int i;

	for (i = 0; i < runlist->nr; i++) {
		const struct gpu_runlist_engine *e = &runlist->engines[i];

		text_add(text, "%#8x %4u %8u %#8x %-4s %-5s %4u %4u %6u %-7s", runlist->base,
			 runlist->id, runlist->nr_channels, runlist->chram,
			 !runlist->idle ? "no" : runlist->engines_idle ? "yes" : "list",
			 runlist->disabled ? "off" : "on", e->type, e->instance, e->rleng,
			 contexts[e->context]);
		add_number(text, 4, e->tsg);
		add_number(text, 4, e->next_tsg);
		add_number(text, 7, e->channel);
		text_add(text, "%s%s\n", e->busy ? " busy" : "", e->faulted ? " faulted" : "");
	}
}
