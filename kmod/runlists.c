// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Reads the TSG on each engine, and the state of the channels. The values can change at any time,
 * so a caller must not keep these values.
 */
#include "topo.h"
#include "regs.h"

u32 gp_topo_next_runlist(const struct gpu_engines *engines, u32 after)
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
	static const u8 contexts[8] = {
		[1] = GPUPART_CONTEXT_VALID, [5] = GPUPART_CONTEXT_SAVE,
		[6] = GPUPART_CONTEXT_LOAD, [7] = GPUPART_CONTEXT_SWITCH,
	};
	u32 at = base + NV_RUNLIST_ENGINE_STATUS0(engine->rleng), status, channel, context;
	int err = gp_topo_rd32(reader, at, &status);

	if (!err)
		err = gp_topo_rd32(reader, base + NV_RUNLIST_ENGINE_STATUS_CHANNEL(engine->rleng),
				   &channel);
	if (err)
		return err;
	context = NV_RUNLIST_ENGINE_STATUS0_CTX_STATUS(status);
	if (context && !contexts[context])
		return gp_topo_nonsense(reader, at, status);
	e->type = engine->type;
	e->instance = engine->instance;
	e->rleng = engine->rleng;
	e->context = contexts[context];
	e->tsg = e->context == GPUPART_CONTEXT_NONE || e->context == GPUPART_CONTEXT_LOAD ? -1 :
		 (int)NV_RUNLIST_ENGINE_STATUS0_TSGID(status);
	e->next_tsg = e->context == GPUPART_CONTEXT_LOAD || e->context == GPUPART_CONTEXT_SWITCH ?
		      (int)NV_RUNLIST_ENGINE_STATUS0_NEXT_TSGID(status) : -1;
	e->faulted = NV_RUNLIST_ENGINE_STATUS0_FAULTED(status);
	e->busy = NV_RUNLIST_ENGINE_STATUS0_BUSY(status);
	e->channel = NV_RUNLIST_ENGINE_STATUS_CHANNEL_VALID(channel) ?
		     (int)NV_RUNLIST_ENGINE_STATUS_CHANNEL_ID(channel) : -1;
	return 0;
}

/* Reads the offset of a runlist's channels, and rejects an offset outside BAR0. */
static int read_config(struct topo_reader *reader, struct gpu_runlist *runlist)
{
	u32 base = runlist->base, config;
	int err;

	if (base > NV_BAR0_SIZE - NV_RUNLIST_SIZE)
		return gp_topo_nonsense(reader, base, base);
	err = gp_topo_rd32(reader, base + NV_RUNLIST_CHANNEL_CONFIG, &config);
	if (err)
		return err;
	runlist->nr_channels = NV_RUNLIST_CHANNEL_CONFIG_NUM_CHANNELS(config);
	runlist->chram = NV_RUNLIST_CHANNEL_CONFIG_CHRAM(config);
	if (!runlist->chram || runlist->chram > NV_BAR0_SIZE - 4 * runlist->nr_channels)
		return gp_topo_nonsense(reader, base + NV_RUNLIST_CHANNEL_CONFIG, config);
	return 0;
}

int gp_topo_read_runlist(struct topo_reader *reader, const struct gpu_engines *engines, u32 base,
			 struct gpu_runlist *runlist)
{
	u32 doorbell, disable, info;
	unsigned int i;
	int err;

	memset(runlist, 0, sizeof(*runlist));
	runlist->base = base;
	err = read_config(reader, runlist);
	if (!err)
		err = gp_topo_rd32(reader, base + NV_RUNLIST_DOORBELL_CONFIG, &doorbell);
	if (!err)
		err = gp_topo_rd32(reader, base + NV_RUNLIST_SCHED_DISABLE, &disable);
	if (!err)
		err = gp_topo_rd32(reader, base + NV_RUNLIST_INFO, &info);
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

int gp_topo_read_channels(struct topo_reader *reader, u32 base, unsigned int first,
			  u32 words[TOPO_CHANNELS_AT_ONCE])
{
	struct gpu_runlist runlist = { .base = base };
	int err = read_config(reader, &runlist);
	unsigned int i;

	for (i = 0; !err && i < TOPO_CHANNELS_AT_ONCE && first + i < runlist.nr_channels; i++)
		err = gp_topo_rd32(reader, runlist.chram + 4 * (first + i), &words[i]);
	return err ? err : (int)i;
}
