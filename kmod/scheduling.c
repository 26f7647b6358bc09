// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Reports runlists and channels to /proc and netlink. Runlists and channels show what all users are
 * running on a GPU at this moment. Readers need CAP_PERFMON, because this information is a side
 * channel. A GPU that sleeps is not woken. Only refusals are kept. All other values are read again.
 * After at most 64 of these reads, gpu->lock is released.
 */
#include <linux/capability.h>
#include <linux/gpupart.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include "device.h"

#define ASLEEP "asleep: runlists are read only while something else keeps the GPU awake"

/*
 * Opens a session and reads the table of engines. From then on, all reads of the session are live.
 */
static int open_live(struct gpu *gpu, struct gpu_session *session, struct gpu_engines *engines)
{
	int err = gp_gpu_open(gpu, session);

	if (err)
		return err;
	session->wake = GPU_LEAVE_ASLEEP;
	session->whole = true;
	err = gp_gpu_identify(session);
	if (!err && (!gpu->id.chip || !gp_chip_cell(gpu->id.chip, CHIP_RUNLISTS)))
		err = -EOPNOTSUPP;
	if (!err)
		err = gp_topo_read_engines(gpu->id.chip, &session->reader, engines);
	if (err)
		gp_gpu_close(session);
	session->reader.live = true;
	return err;
}

/*
 * Reads the first runlist with a base above @after. Sets *chip to the chip at the time of the read.
 * The caller cannot use gpu->id for the chip. After gpu->lock is released, gpu->id can change when
 * a driver binds or unbinds. If there is no such runlist, returns -ENOENT. If a register of the
 * runlist is refused, stores the refusal in @fault and returns no error.
 */
static int read_next(struct gpu *gpu, struct gpu_engines *engines, u32 after,
		     struct gpu_runlist *runlist, const struct chip **chip,
		     struct topo_fault *fault)
{
	struct gpu_session session;
	int err = open_live(gpu, &session, engines);

	memset(runlist, 0, sizeof(*runlist));
	memset(fault, 0, sizeof(*fault));
	if (!err) {
		u32 base = gp_topo_next_runlist(engines, after);

		*chip = gpu->id.chip;
		err = base ? gp_topo_read_runlist(&session.reader, engines, base, runlist) :
			     -ENOENT;
		gp_gpu_close(&session);
	}
	if (err && err != -ENOENT)
		*fault = session.reader.fault;
	if (runlist->base && (err == -EIO || err == -ERANGE))
		err = 0;
	cond_resched();
	return err;
}

/* -------------------------------------------------------------------- page */

int gp_scheduling_runlists_page(struct gpu *gpu, struct text *text)
{
	struct gpu_engines *engines = kmalloc(sizeof(*engines), GFP_KERNEL);
	struct gpu_runlist runlist = { 0 };
	const struct chip *chip = NULL;
	struct topo_fault fault;
	bool complete = true;
	int err;

	if (!engines)
		return -ENOMEM;
	while (!(err = read_next(gpu, engines, runlist.base, &runlist, &chip, &fault))) {
		if (!text->len)
			gp_text_runlists_head(text, chip);
		gp_text_runlist(text, &runlist, &fault);
		complete &= !fault.err;
	}
	kfree(engines);
	if (err == -EHOSTDOWN)
		gp_text_add(text, "unreadable  " ASLEEP "\n");
	else if (err != -ENOENT)
		return err;
	gp_text_add(text, "\ncomplete    %s\n", complete && err == -ENOENT ? "yes" : "no");
	return 0;
}

/* ----------------------------------------------------------------- netlink */

static int may_ask(struct netlink_callback *cb)
{
	if (netlink_capable(cb->skb, CAP_PERFMON) || netlink_capable(cb->skb, CAP_SYS_ADMIN))
		return 0;
	NL_SET_ERR_MSG(cb->extack, "runlists and channels need CAP_PERFMON");
	return -EPERM;
}

/* Sets the error message of a dump that failed. */
static int refuse(struct netlink_callback *cb, int err, const struct topo_fault *fault)
{
	if (err == -EHOSTDOWN)
		NL_SET_ERR_MSG(cb->extack, ASLEEP);
	else if (err == -EOPNOTSUPP)
		NL_SET_ERR_MSG(cb->extack, "this chip's runlist registers are not known");
	else if (err == -ENOENT)
		NL_SET_ERR_MSG(cb->extack, "there is no runlist at that pri-base");
	else if (fault->err)
		gp_netlink_fault(cb->extack, fault);
	return err;
}

static int put_flag(struct sk_buff *skb, int attribute, bool set)
{
	return set ? nla_put_flag(skb, attribute) : 0;
}

static int put_engine(struct sk_buff *skb, const struct gpu_runlist *r,
		      const struct gpu_runlist_engine *e)
{
	return nla_put_u32(skb, GPUPART_A_RUNLIST_ID, r->id) ||
	       nla_put_u32(skb, GPUPART_A_RUNLIST_CHANNELS, r->nr_channels) ||
	       put_flag(skb, GPUPART_A_RUNLIST_IDLE, r->idle) ||
	       put_flag(skb, GPUPART_A_RUNLIST_ENGINES_IDLE, r->engines_idle) ||
	       put_flag(skb, GPUPART_A_RUNLIST_DISABLED, r->disabled) ||
	       nla_put_u32(skb, GPUPART_A_RUNLIST_ENGINE, e->rleng) ||
	       nla_put_u32(skb, GPUPART_A_RUNLIST_TYPE, e->type) ||
	       nla_put_u32(skb, GPUPART_A_RUNLIST_INSTANCE, e->instance) ||
	       nla_put_u32(skb, GPUPART_A_RUNLIST_CONTEXT, e->context) ||
	       gp_netlink_put_number(skb, GPUPART_A_RUNLIST_TSG, e->tsg) ||
	       gp_netlink_put_number(skb, GPUPART_A_RUNLIST_NEXT_TSG, e->next_tsg) ||
	       gp_netlink_put_number(skb, GPUPART_A_RUNLIST_CHANNEL, e->channel) ||
	       put_flag(skb, GPUPART_A_RUNLIST_BUSY, e->busy) ||
	       put_flag(skb, GPUPART_A_RUNLIST_FAULTED, e->faulted);
}

/*
 * Adds a message for each engine of a runlist. If not all messages fit, adds none of them and
 * returns -EMSGSIZE.
 */
static int put_runlist(struct sk_buff *skb, struct netlink_callback *cb, const struct gpu *gpu,
		       const struct gpu_runlist *r, const struct topo_fault *fault)
{
	unsigned char *end = skb_tail_pointer(skb);
	char why[TOPO_FAULT_LEN];
	unsigned int i = 0;
	void *header;

	if (fault->err)
		gp_topo_fault_text(fault, why, sizeof(why));
	do {
		header = gp_netlink_dump_header(skb, cb, GPUPART_CMD_RUNLIST_GET);
		if (!header || nla_put_u32(skb, GPUPART_A_RUNLIST_INDEX, gpu->index) ||
		    nla_put_string(skb, GPUPART_A_RUNLIST_BUS_NAME, gpu->bus_name) ||
		    nla_put_u32(skb, GPUPART_A_RUNLIST_PRI_BASE, r->base) ||
		    (fault->err ? nla_put_string(skb, GPUPART_A_RUNLIST_UNREADABLE, why) :
				  put_engine(skb, r, &r->engines[i]))) {
			nlmsg_trim(skb, end);
			return -EMSGSIZE;
		}
		genlmsg_end(skb, header);
	} while (!fault->err && ++i < r->nr);
	return 0;
}

/*
 * Checks the privilege of the caller. Finds the GPU with the index @index or the name @name.
 * Allocates @engines.
 */
static int dump_begin(struct netlink_callback *cb, struct nlattr *index, struct nlattr *name,
		      struct gpu **gpu, struct gpu_engines **engines)
{
	int err = may_ask(cb);

	if (err)
		return err;
	*gpu = gp_netlink_named_gpu(index, name, cb->extack);
	if (IS_ERR(*gpu))
		return PTR_ERR(*gpu);
	cb->seq = gp_gpu_generation();
	*engines = kmalloc(sizeof(**engines), GFP_KERNEL);
	if (*engines)
		return 0;
	gp_gpu_put(*gpu);
	return -ENOMEM;
}

/* args[0] is the last runlist that was sent. If the dump is complete, args[1] is 1. */
int gp_scheduling_runlist_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct nlattr **attrs = compat_dump_attrs(cb), *only = attrs[GPUPART_A_RUNLIST_PRI_BASE];
	struct gpu_engines *engines;
	struct gpu_runlist runlist;
	const struct chip *chip;
	struct topo_fault fault;
	struct gpu *gpu;
	u32 after;
	int err;

	if (cb->args[1])
		return 0;
	err = dump_begin(cb, attrs[GPUPART_A_RUNLIST_INDEX], attrs[GPUPART_A_RUNLIST_BUS_NAME],
			 &gpu, &engines);
	if (err)
		return err;
	while (!err) {
		after = cb->args[0];
		if (only && nla_get_u32(only))
			after = nla_get_u32(only) - 1;
		err = read_next(gpu, engines, after, &runlist, &chip, &fault);
		if (err == -ENOENT && cb->args[0])
			break;
		if (!err && only && runlist.base != nla_get_u32(only))
			err = -ENOENT;
		if (err) {
			refuse(cb, err, &fault);
			break;
		}
		err = put_runlist(skb, cb, gpu, &runlist, &fault);
		if (!err)
			cb->args[0] = runlist.base;
		if (only)
			break;
	}
	cb->args[1] = !err || err == -ENOENT;
	kfree(engines);
	gp_gpu_put(gpu);
	if (err == -EMSGSIZE || (err == -ENOENT && cb->args[0]))
		return skb->len;
	return err ? err : (int)skb->len;
}

static int put_channel(struct sk_buff *skb, struct netlink_callback *cb, const struct gpu *gpu,
		       u32 base, unsigned int channel, u32 state)
{
	void *header = gp_netlink_dump_header(skb, cb, GPUPART_CMD_CHANNEL_GET);

	return gp_netlink_end(skb, header, !header ||
	    nla_put_u32(skb, GPUPART_A_CHANNEL_INDEX, gpu->index) ||
	    nla_put_string(skb, GPUPART_A_CHANNEL_BUS_NAME, gpu->bus_name) ||
	    nla_put_u32(skb, GPUPART_A_CHANNEL_RUNLIST_PRI_BASE, base) ||
	    nla_put_u32(skb, GPUPART_A_CHANNEL_CHANNEL, channel) ||
	    nla_put_u32(skb, GPUPART_A_CHANNEL_STATE, state));
}

/* Dumps the channels of one runlist, beginning with number cb->args[0], 64 at a time. */
static int dump_channels(struct sk_buff *skb, struct netlink_callback *cb, struct gpu *gpu,
			 struct gpu_engines *engines, u32 base)
{
	u32 words[TOPO_CHANNELS_AT_ONCE];
	struct gpu_session session;
	int nr, i, err;

	do {
		err = open_live(gpu, &session, engines);
		if (err)
			return refuse(cb, err, &session.reader.fault);
		nr = !base || gp_topo_next_runlist(engines, base - 1) != base ? -ENOENT :
		     gp_topo_read_channels(&session.reader, base, cb->args[0], words);
		gp_gpu_close(&session);
		if (nr < 0)
			return refuse(cb, nr, &session.reader.fault);
		for (i = 0; i < nr; i++) {
			err = words[i] ? put_channel(skb, cb, gpu, base, cb->args[0], words[i]) : 0;
			if (err)
				return err;
			cb->args[0]++;
		}
		cond_resched();
	} while (nr);
	return 0;
}

/* args[0] is the next channel. If the dump is complete, args[1] is 1. */
int gp_scheduling_channel_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct nlattr **attrs = compat_dump_attrs(cb);
	struct nlattr *base = attrs[GPUPART_A_CHANNEL_RUNLIST_PRI_BASE];
	struct gpu_engines *engines;
	struct gpu *gpu;
	int err;

	if (cb->args[1])
		return 0;
	err = dump_begin(cb, attrs[GPUPART_A_CHANNEL_INDEX], attrs[GPUPART_A_CHANNEL_BUS_NAME],
			 &gpu, &engines);
	if (err)
		return err;
	err = dump_channels(skb, cb, gpu, engines, base ? nla_get_u32(base) : 0);
	kfree(engines);
	gp_gpu_put(gpu);
	cb->args[1] = !err;
	return err && err != -EMSGSIZE ? err : (int)skb->len;
}
