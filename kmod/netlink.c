// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Implements the generic netlink family "gpupart". Documentation/netlink/specs/gpupart.yaml
 * describes this family. Every error reply contains a message.
 *
 * A request never wakes a GPU itself. The reason is genetlink's cb_lock, which the kernel holds
 * during a request. During a wake-up, another driver may register a family. This driver would wait
 * for cb_lock. Then all generic netlink requests of the machine would wait for this driver.
 */
#include <linux/gpupart.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include "device.h"

static struct genl_family family;

/* The attributes of all requests. Each operation accepts only the attributes up to its .maxattr. */
static const struct nla_policy policy[] = {
	[GPUPART_A_GPU_INDEX] = { .type = NLA_U32 },
	[GPUPART_A_GPU_BUS_NAME] = { .type = NLA_NUL_STRING, .len = 31 },
	[GPUPART_A_RUNLIST_PRI_BASE] = { .type = NLA_U32 },
};

struct gpu *gp_netlink_named_gpu(struct nlattr *index, struct nlattr *bus_name,
				 struct netlink_ext_ack *extack)
{
	struct gpu *gpu;

	if (!index == !bus_name) {
		NL_SET_ERR_MSG(extack,
			       "a GPU is named by its index or by its bus-name, one of them");
		return ERR_PTR(-EINVAL);
	}
	if (index) {
		gpu = gp_gpu_get(nla_get_u32(index), NULL);
		if (gpu && gpu->index == nla_get_u32(index))
			return gpu;
		if (gpu)
			gp_gpu_put(gpu);
		NL_SET_BAD_ATTR(extack, index);
		compat_extack(extack, "there is no GPU of this index", "there is no GPU %u",
			      nla_get_u32(index));
		return ERR_PTR(-ENODEV);
	}
	gpu = gp_gpu_get(0, nla_data(bus_name));
	if (gpu)
		return gpu;
	NL_SET_BAD_ATTR(extack, bus_name);
	compat_extack(extack, "there is no GPU of this bus-name", "there is no GPU at %s",
		      (char *)nla_data(bus_name));
	return ERR_PTR(-ENODEV);
}

void gp_netlink_fault(struct netlink_ext_ack *extack, const struct topo_fault *fault)
{
	const char *why = fault->err == -EIO ? gp_topo_bad_read(fault->value) :
			  fault->err == -ERANGE ? "a register's value cannot be" :
			  gp_topo_unreadable(fault->err);

	if (fault->err == -EIO || fault->err == -ERANGE)
		compat_extack(extack, why, "0x%x reads 0x%x: %s", fault->offset, fault->value, why);
	else
		compat_extack(extack, why, "the GPU is %s", why);
}

/* --------------------------------------------------------------------- GPU */

void *gp_netlink_dump_header(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd)
{
	void *header = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &family,
				   NLM_F_MULTI, cmd);

	if (header)
		genl_dump_check_consistent(cb, header);
	return header;
}

int gp_netlink_end(struct sk_buff *skb, void *header, bool full)
{
	if (full) {
		genlmsg_cancel(skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	return 0;
}

/*
 * Stores the identity of the session's GPU in @id. After an error, stores the reason in @why. The
 * caller may have changed session->wake.
 */
static void identify(struct gpu_session *session, struct gpu_id *id, char why[TOPO_FAULT_LEN])
{
	why[0] = 0;
	if (!gp_gpu_identify(session))
		*id = session->gpu->id;
	else
		gp_topo_fault_text(&session->reader.fault, why, TOPO_FAULT_LEN);
}

/*
 * Writes the message for a GPU. If the message does not fit, returns -EMSGSIZE. @why is the reason
 * for a failed read. If nothing is known about the GPU, @id is empty.
 */
static int put_gpu(struct sk_buff *skb, void *header, const struct gpu *gpu,
		   const struct gpu_id *id, const char *why)
{
	bool full = !header || nla_put_u32(skb, GPUPART_A_GPU_INDEX, gpu->index) ||
		    nla_put_string(skb, GPUPART_A_GPU_BUS_NAME, gpu->bus_name);

	if (!full && why[0])
		full = nla_put_string(skb, GPUPART_A_GPU_UNREADABLE, why);
	else if (!full && id->boot_0)
		full = nla_put_u32(skb, GPUPART_A_GPU_CHIP_ID, id->chip_id) ||
		       (id->chip ?
			nla_put_string(skb, GPUPART_A_GPU_CHIP_NAME, id->chip->name) ||
			nla_put_string(skb, GPUPART_A_GPU_FAMILY, id->chip->family) :
			nla_put_string(skb, GPUPART_A_GPU_REFUSED, id->why));
	return gp_netlink_end(skb, header, full);
}

/* Writes the message for a GPU. The caller does not hold the lock of this GPU. */
static int ask_gpu(struct sk_buff *skb, void *header, struct gpu *gpu)
{
	char why[TOPO_FAULT_LEN];
	struct gpu_session session;
	struct gpu_id id = { 0 };

	if (!gp_gpu_open(gpu, &session)) {
		session.wake = GPU_WAKE_LATER;
		identify(&session, &id, why);
		gp_gpu_close(&session);
	} else {
		gp_topo_fault_text(&session.reader.fault, why, sizeof(why));
	}
	return put_gpu(skb, header, gpu, &id, why);
}

static int gpu_get_doit(struct sk_buff *request, struct genl_info *info)
{
	struct gpu *gpu = gp_netlink_named_gpu(info->attrs[GPUPART_A_GPU_INDEX],
				    info->attrs[GPUPART_A_GPU_BUS_NAME], info->extack);
	struct sk_buff *skb;
	int err = -ENOMEM;

	if (IS_ERR(gpu))
		return PTR_ERR(gpu);
	skb = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	if (skb)
		err = ask_gpu(skb, genlmsg_put_reply(skb, info, &family, 0, GPUPART_CMD_GPU_GET),
			      gpu);
	gp_gpu_put(gpu);
	if (!err)
		return genlmsg_reply(skb, info);
	nlmsg_free(skb);
	return err;
}

/* args[0] is the next index. */
static int gpu_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct gpu *gpu;
	int err;

	cb->seq = gp_gpu_generation();
	while ((gpu = gp_gpu_get(cb->args[0], NULL))) {
		err = ask_gpu(skb, gp_netlink_dump_header(skb, cb, GPUPART_CMD_GPU_GET), gpu);
		if (!err)
			cb->args[0] = gpu->index + 1;
		gp_gpu_put(gpu);
		if (err)
			break;
	}
	return skb->len;
}

/* -------------------------------------------------------------- monitoring */

static void notify(const struct gpu *gpu, u8 cmd, const struct gpu_id *id, const char *why)
{
	struct sk_buff *skb = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);

	if (!skb)
		return;
	if (put_gpu(skb, genlmsg_put(skb, 0, 0, &family, 0, cmd), gpu, id, why)) {
		nlmsg_free(skb);
		return;
	}
	/* If the multicast group has no member, sending a notice fails. */
	compat_multicast_allns(&family, skb, 0);
}

void gp_netlink_added(struct gpu_session *session)
{
	char why[TOPO_FAULT_LEN];
	struct gpu_id id = { 0 };

	identify(session, &id, why);
	notify(session->gpu, GPUPART_CMD_GPU_ADD_NTF, &id, why);
}

void gp_netlink_removed(struct gpu *gpu)
{
	static const struct gpu_id unknown;

	notify(gpu, GPUPART_CMD_GPU_DEL_NTF, &unknown, gp_topo_unreadable(-ENODEV));
}

void gp_netlink_changed(struct gpu *gpu)
{
	if (gpu->announced)
		notify(gpu, GPUPART_CMD_GPU_CHANGE_NTF, &gpu->id, "");
}

/* ---------------------------------------------------------------- topology */

static int put_topology(struct sk_buff *skb, const struct gpu *gpu)
{
	const struct gpu_floorsweep *fs = &gpu->fs;
	const struct chip *chip = fs->chip;
	u8 column[GPUPART_MAX_TPCS];
	u8 order_tag = GPUPART_TAG_NONE;
	unsigned int tpc;

	BUILD_BUG_ON((int)GPUPART_A_TOPOLOGY_BUS_NAME != (int)GPUPART_A_GPU_BUS_NAME ||
		     (int)GPUPART_A_RUNLIST_BUS_NAME != (int)GPUPART_A_GPU_BUS_NAME ||
		     (int)GPUPART_A_CHANNEL_BUS_NAME != (int)GPUPART_A_GPU_BUS_NAME ||
		     (int)GPUPART_A_CHANNEL_RUNLIST_PRI_BASE != (int)GPUPART_A_RUNLIST_PRI_BASE);
	BUILD_BUG_ON((int)GPUPART_ORDER_READ != (int)TOPO_ORDER_READ ||
		     (int)GPUPART_ORDER_COMPUTED != (int)TOPO_ORDER_COMPUTED ||
		     (int)GPUPART_TAG_VERIFIED != (int)CHIP_VERIFIED ||
		     (int)GPUPART_TAG_INFERRED != (int)CHIP_INFERRED);
	if (fs->order == TOPO_ORDER_READ)
		order_tag = chip->cells[CHIP_CWD].tag;
	else if (fs->order == TOPO_ORDER_COMPUTED)
		order_tag = chip->cells[CHIP_ORDER].tag;

	if (nla_put_u32(skb, GPUPART_A_TOPOLOGY_INDEX, gpu->index) ||
	    nla_put_string(skb, GPUPART_A_TOPOLOGY_BUS_NAME, gpu->bus_name) ||
	    nla_put_u32(skb, GPUPART_A_TOPOLOGY_CHIP_ID, gpu->id.chip_id) ||
	    nla_put_u32(skb, GPUPART_A_TOPOLOGY_MAX_GPCS, fs->max_gpcs) ||
	    nla_put_u32(skb, GPUPART_A_TOPOLOGY_MAX_TPCS_PER_GPC, fs->max_tpcs_per_gpc) ||
	    nla_put_u32(skb, GPUPART_A_TOPOLOGY_PRESENT_GPCS, fs->present_gpcs) ||
	    nla_put(skb, GPUPART_A_TOPOLOGY_PRESENT_TPCS, fs->max_gpcs * sizeof(u32),
		    fs->present_tpcs) ||
	    nla_put_u32(skb, GPUPART_A_TOPOLOGY_FUSE_TAG, chip->cells[CHIP_FUSE_TPC].tag) ||
	    nla_put_u32(skb, GPUPART_A_TOPOLOGY_ORDER, fs->order) ||
	    nla_put_u32(skb, GPUPART_A_TOPOLOGY_ORDER_TAG, order_tag) ||
	    (fs->sms_per_tpc &&
	     nla_put_u32(skb, GPUPART_A_TOPOLOGY_SMS_PER_TPC, fs->sms_per_tpc)) ||
	    (fs->has_map &&
	     (nla_put(skb, GPUPART_A_TOPOLOGY_GPC_PHYS, fs->nr_gpcs, fs->gpc_phys) ||
	      nla_put(skb, GPUPART_A_TOPOLOGY_GPC_UGPU, fs->nr_gpcs, fs->ugpu))) ||
	    (fs->order != TOPO_ORDER_READ &&
	     nla_put_string(skb, GPUPART_A_TOPOLOGY_ORDER_WHY, fs->order_why)) ||
	    (fs->disagree[0] &&
	     nla_put_string(skb, GPUPART_A_TOPOLOGY_DISAGREE, fs->disagree)) ||
	    (fs->complete && nla_put_flag(skb, GPUPART_A_TOPOLOGY_COMPLETE)))
		return -EMSGSIZE;
	if (fs->order != TOPO_ORDER_UNKNOWN) {
		for (tpc = 0; tpc < fs->nr_ordered; tpc++)
			column[tpc] = fs->tpcs[tpc].gpc;
		if (nla_put(skb, GPUPART_A_TOPOLOGY_TPC_GPC, fs->nr_ordered, column))
			return -EMSGSIZE;
		for (tpc = 0; tpc < fs->nr_ordered; tpc++)
			column[tpc] = fs->tpcs[tpc].tpc_in_gpc;
		if (nla_put(skb, GPUPART_A_TOPOLOGY_TPC_IN_GPC, fs->nr_ordered, column))
			return -EMSGSIZE;
	}
	return 0;
}

static int topology_get_doit(struct sk_buff *request, struct genl_info *info)
{
	struct gpu *gpu = gp_netlink_named_gpu(info->attrs[GPUPART_A_TOPOLOGY_INDEX],
				    info->attrs[GPUPART_A_TOPOLOGY_BUS_NAME], info->extack);
	struct gpu_session session;
	struct sk_buff *skb = NULL;
	void *header;
	int err;

	if (IS_ERR(gpu))
		return PTR_ERR(gpu);
	err = gp_gpu_open(gpu, &session);
	if (err) {
		gp_netlink_fault(info->extack, &session.reader.fault);
		goto put;
	}
	session.wake = GPU_WAKE_LATER;
	err = gp_gpu_topology(&session);
	if (err == -EOPNOTSUPP)
		compat_extack(info->extack, gpu->id.why, "chip 0x%x: %s", gpu->id.chip_id,
			      gpu->id.why);
	else if (err)
		gp_netlink_fault(info->extack, &session.reader.fault);
	if (err)
		goto close;
	err = -ENOMEM;
	/*
	 * The message has three arrays. Add their maximum sizes, and 1024 bytes for the other
	 * attributes.
	 */
	skb = genlmsg_new(GPUPART_MAX_GPCS * 6 + GPUPART_MAX_TPCS * 2 + 1024, GFP_KERNEL);
	if (!skb)
		goto close;
	err = -EMSGSIZE;
	header = genlmsg_put_reply(skb, info, &family, 0, GPUPART_CMD_TOPOLOGY_GET);
	if (header)
		err = put_topology(skb, gpu);
	if (!err)
		genlmsg_end(skb, header);
close:
	gp_gpu_close(&session);
put:
	gp_gpu_put(gpu);
	if (!err)
		return genlmsg_reply(skb, info);
	nlmsg_free(skb);
	return err;
}

/* ----------------------------------------------------------------- engines */

int gp_netlink_put_number(struct sk_buff *skb, int attribute, int number)
{
	return number < 0 ? 0 : nla_put_u32(skb, attribute, number);
}

static int put_engine(struct sk_buff *skb, struct netlink_callback *cb, const struct gpu *gpu,
		      const struct gpu_engine *engine, const char *unreadable)
{
	void *header = gp_netlink_dump_header(skb, cb, GPUPART_CMD_ENGINE_GET);
	const char *name = engine ? gp_topo_engine_name(engine->type) : NULL;

	return gp_netlink_end(skb, header, !header ||
	    nla_put_u32(skb, GPUPART_A_ENGINE_INDEX, gpu->index) ||
	    (unreadable && nla_put_string(skb, GPUPART_A_ENGINE_UNREADABLE, unreadable)) ||
	    (name && nla_put_string(skb, GPUPART_A_ENGINE_NAME, name)) ||
	    (engine &&
	    (nla_put_u32(skb, GPUPART_A_ENGINE_TYPE, engine->type) ||
	     nla_put_u32(skb, GPUPART_A_ENGINE_INSTANCE, engine->instance) ||
	     nla_put_u32(skb, GPUPART_A_ENGINE_DIE, engine->die) ||
	     nla_put_u32(skb, GPUPART_A_ENGINE_PRI_BASE, engine->pri_base) ||
	     gp_netlink_put_number(skb, GPUPART_A_ENGINE_RUNLIST, engine->runlist) ||
	     gp_netlink_put_number(skb, GPUPART_A_ENGINE_RUNLIST_ENGINE, engine->rleng) ||
	     gp_netlink_put_number(skb, GPUPART_A_ENGINE_RESET_ID, engine->reset) ||
	     gp_netlink_put_number(skb, GPUPART_A_ENGINE_FAULT_ID, engine->fault) ||
	     gp_netlink_put_number(skb, GPUPART_A_ENGINE_INTR_ID, engine->intr) ||
	     (engine->runlist_pri_base &&
	      nla_put_u32(skb, GPUPART_A_ENGINE_RUNLIST_PRI_BASE, engine->runlist_pri_base)))));
}

/* Dumps the engines of one GPU, beginning with engine number cb->args[1]. */
static int dump_engines(struct sk_buff *skb, struct netlink_callback *cb, struct gpu *gpu)
{
	struct gpu_engines *engines = kmalloc(sizeof(*engines), GFP_KERNEL);
	char why[TOPO_FAULT_LEN] = "";
	struct gpu_session session;
	int err;

	if (!engines)
		return -ENOMEM;
	err = gp_gpu_open(gpu, &session);
	if (!err) {
		session.wake = GPU_WAKE_LATER;
		err = gp_gpu_identify(&session);
		if (!err)
			err = gpu->id.chip
				      ? gp_topo_read_engines(gpu->id.chip, &session.reader, engines)
				      : -EOPNOTSUPP;
		gp_gpu_close(&session);
	}
	if (err == -EOPNOTSUPP) {
		/* The chip is refused, or it has no table of engines. */
		err = 0;
	} else if (err) {
		gp_topo_fault_text(&session.reader.fault, why, sizeof(why));
		err = put_engine(skb, cb, gpu, NULL, why);
	} else {
		while (!err && cb->args[1] < engines->nr) {
			err = put_engine(skb, cb, gpu, &engines->engines[cb->args[1]], NULL);
			if (!err)
				cb->args[1]++;
		}
	}
	kfree(engines);
	return err;
}

/*
 * args[0] is the next GPU, and args[1] is the next engine of that GPU. After the start of the dump,
 * args[2] is 1.
 */
static int engine_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct nlattr *index = compat_dump_attrs(cb)[GPUPART_A_ENGINE_INDEX];
	struct gpu *gpu;
	int err = 0;

	cb->seq = gp_gpu_generation();
	if (index && !cb->args[2]) {
		/*
		 * If the requested GPU does not exist, the reply is an error and not an empty list.
		 */
		gpu = gp_netlink_named_gpu(index, NULL, cb->extack);
		if (IS_ERR(gpu))
			return PTR_ERR(gpu);
		cb->args[0] = gpu->index;
		gp_gpu_put(gpu);
	}
	cb->args[2] = 1;
	while (!err && (gpu = gp_gpu_get(cb->args[0], NULL))) {
		if (index && gpu->index != nla_get_u32(index)) {
			gp_gpu_put(gpu);
			break;
		}
		/*
		 * The GPU of the previous message may have been removed. In this case, begin with
		 * the first engine of the next GPU.
		 */
		if (gpu->index != cb->args[0])
			cb->args[1] = 0;
		cb->args[0] = gpu->index;
		err = dump_engines(skb, cb, gpu);
		gp_gpu_put(gpu);
		if (!err) {
			cb->args[0]++;
			cb->args[1] = 0;
		}
	}
	if (err && err != -EMSGSIZE)
		return err;
	return skb->len;
}

/* ------------------------------------------------------------------ family */

static const struct genl_ops ops[] = {
	{
		.cmd = GPUPART_CMD_GPU_GET,
		.doit = gpu_get_doit,
		.dumpit = gpu_get_dumpit,
		.maxattr = GPUPART_A_GPU_BUS_NAME,
	}, {
		.cmd = GPUPART_CMD_TOPOLOGY_GET,
		.doit = topology_get_doit,
		.maxattr = GPUPART_A_TOPOLOGY_BUS_NAME,
	}, {
		.cmd = GPUPART_CMD_ENGINE_GET,
		.dumpit = engine_get_dumpit,
		.maxattr = GPUPART_A_ENGINE_INDEX,
	}, {
		.cmd = GPUPART_CMD_RUNLIST_GET,
		.dumpit = gp_scheduling_runlist_dumpit,
		.maxattr = GPUPART_A_RUNLIST_PRI_BASE,
	}, {
		.cmd = GPUPART_CMD_CHANNEL_GET,
		.dumpit = gp_scheduling_channel_dumpit,
		.maxattr = GPUPART_A_CHANNEL_RUNLIST_PRI_BASE,
	},
};

static const struct genl_multicast_group groups[] = {
	{ .name = GPUPART_MCGRP_MONITOR },
};

static struct genl_family family = {
	.name = GPUPART_FAMILY_NAME,
	.version = GPUPART_FAMILY_VERSION,
	.netnsok = true,
	.policy = policy,
	/*
	 * Requests of this family use locks of this module. So they do not need the lock of all
	 * families.
	 */
	.parallel_ops = true,
	.module = THIS_MODULE,
	.ops = ops,
	.n_ops = ARRAY_SIZE(ops),
	.mcgrps = groups,
	.n_mcgrps = ARRAY_SIZE(groups),
	COMPAT_RESV_START_OP(GPUPART_CMD_GPU_GET)
};

int gp_netlink_init(void)
{
	return genl_register_family(&family);
}

void gp_netlink_fini(void)
{
	genl_unregister_family(&family);
}
