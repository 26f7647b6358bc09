// SPDX-License-Identifier: MIT
/* Reads the topology from NVIDIA's driver. The code issues only controls that change nothing. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "lib/topo/rm_client.h"

/* Returns the value of the line "Key:   value", or "". */
static void text_value(const char *text, const char *key, char *value, size_t len)
{
	const char *at = strstr(text, key);
	size_t n;

	value[0] = '\0';
	if (!at || (at != text && at[-1] != '\n'))
		return;
	at += strlen(key);
	at += strspn(at, " \t");
	n = strcspn(at, "\n");
	if (n < len)
		snprintf(value, len, "%.*s", (int)n, at);
}

/*
 * Converts a name to the form that captures contain. Removes blanks at the start and at the end. If
 * the name is not valid text, stores "".
 */
static void take_name(char *name, size_t len, char *text)
{
	size_t n;

	text += strspn(text, " ");
	n = strlen(text);
	while (n && text[n - 1] == ' ')
		text[--n] = '\0';
	for (size_t i = 0; i < n; i++)
		if (text[i] < ' ' || text[i] > '~')
			return;
	snprintf(name, len, "%s", text);
}

/*
 * Finds the address, the UUID and the name of the GPU. The function asks RM first. If RM does not
 * answer, the function reads RM's text file under /proc.
 */
static void rm_gpu_identify(struct rm_conn *s, const struct rm_gpu *gpu,
			    struct gpupart_gpu_info *info)
{
	struct rm_name name = { 0 };
	struct rm_gid gid = { 0 };
	char path[80], text[1024];

	memset(info, 0, sizeof(*info));
	info->mig = -1;
	snprintf(info->source, sizeof(info->source), "rm");
	snprintf(info->driver, sizeof(info->driver), "%s", s->driver);
	snprintf(info->pci, sizeof(info->pci), "%04x:%02x:%02x.0", gpu->domain, gpu->bus & 0xff,
		 gpu->slot & 0x1f);

	if (!rm_control(s, s->subdevice, RM_GPU_GET_GID_INFO, &gid, sizeof(gid))) {
		gid.data[sizeof(gid.data) - 1] = '\0';
		if (topo_is_uuid(gid.data))
			memcpy(info->uuid, gid.data, strlen(gid.data) + 1);
	}
	if (!rm_control(s, s->subdevice, RM_GPU_GET_NAME_STRING, &name, sizeof(name))) {
		name.ascii[sizeof(info->name) - 1] = '\0';
		take_name(info->name, sizeof(info->name), name.ascii);
	}
	if (info->uuid[0] && info->name[0])
		return;
	snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/information", info->pci);
	if (!rm_read_text(path, text, sizeof(text)))
		return;
	if (!info->name[0]) {
		text_value(text, "Model:", name.ascii, sizeof(info->name));
		take_name(info->name, sizeof(info->name), name.ascii);
	}
	if (!info->uuid[0]) {
		text_value(text, "GPU UUID:", info->uuid, sizeof(info->uuid));
		if (!topo_is_uuid(info->uuid))
			info->uuid[0] = '\0';
	}
}

/*
 * Creates RM's objects for the GPU and reads the GPU's identity. If RM refuses, records a
 * problem.
 */
static bool rm_gpu_get(struct rm_conn *s, const struct rm_gpu *gpu,
		       struct gpupart_gpu_info *info)
{
	struct rm_device_params device = { .device_instance = gpu->device_instance };
	struct rm_subdevice_params subdevice = { .subdevice_instance = gpu->subdevice_instance };
	int64_t status;

	status = rm_alloc(s, s->client, RM_CLASS_DEVICE, &device, sizeof(device), &s->device);
	if (!status)
		status = rm_alloc(s, s->device, RM_CLASS_SUBDEVICE, &subdevice, sizeof(subdevice),
				  &s->subdevice);
	if (status) {
		rm_gpu_put(s);
		rm_trouble(s, rm_status_find(status)->err,
			   "GPU %04x:%02x:%02x.0 cannot be opened (%s): %s", gpu->domain,
			   gpu->bus & 0xff, gpu->slot & 0x1f, rm_status_text(status).text,
			   rm_status_find(status)->help);
		return false;
	}
	rm_gpu_identify(s, gpu, info);
	return true;
}

/*
 * Converts a value NV2080_CTRL_GPU_INFO_GPU_SMC_MODE_*. If a change of the MIG mode is pending, the
 * old mode is still in force.
 */
static int rm_mig_state(uint32_t smc_mode)
{
	static const int state[] = { [0] = 0, [1] = 1, [2] = 0, [3] = 0, [4] = 1 };

	return smc_mode < sizeof(state) / sizeof(state[0]) ? state[smc_mode] : -1;
}

static int rm_ask_mig(struct rm_conn *s)
{
	struct rm_info mode = { .index = RM_GPU_INFO_SMC_MODE, .data = ~0u };
	struct rm_gpu_info_list list = { .nr = 1, .list = (uintptr_t)&mode };
	struct rm_gpu_info_v2 v2;
	size_t i, size;

	if (!rm_control(s, s->subdevice, RM_GPU_GET_INFO, &list, sizeof(list)))
		return rm_mig_state(mode.data);
	for (i = 0; i < sizeof(gpu_info_v2_places); i++) {
		v2 = (struct rm_gpu_info_v2){ .nr = 1, .list[0] = mode };
		size = offsetof(struct rm_gpu_info_v2, list) +
		       gpu_info_v2_places[i] * sizeof(v2.list[0]);
		if (!rm_control(s, s->subdevice, RM_GPU_GET_INFO_V2, &v2, size))
			return rm_mig_state(v2.list[0].data);
	}
	return -1;
}

static uint32_t rm_ask_chip_id(struct rm_conn *s)
{
	struct rm_arch arch = { 0 };

	if (rm_control(s, s->subdevice, RM_MC_GET_ARCH_INFO, &arch, sizeof(arch)))
		return 0;
	/* BOOT_42 has six bits of architecture above four bits of implementation. */
	if (arch.architecture & ~0x3f0u || arch.implementation & ~0xfu)
		return 0;
	return arch.architecture | arch.implementation;
}

/*
 * Returns the device's compute class (0x..c0). If the device has no compute class or more than one,
 * returns 0.
 */
static unsigned int rm_ask_compute_class(struct rm_conn *s)
{
	uint32_t classes[RM_MAX_CLASSES], found = 0, nr;
	struct rm_class_list list = { 0 };

	if (rm_control(s, s->device, RM_GPU_GET_CLASSLIST, &list, sizeof(list)) ||
	    list.nr > RM_MAX_CLASSES)
		return 0;
	nr = list.nr;
	list.list = (uintptr_t)classes;
	memset(classes, 0, sizeof(classes));
	if (rm_control(s, s->device, RM_GPU_GET_CLASSLIST, &list, sizeof(list)))
		return 0;
	while (nr-- > 0)
		if ((classes[nr] & 0xff) == RM_CLASS_COMPUTE && classes[nr] != found) {
			if (found)
				return 0;
			found = classes[nr];
		}
	return found;
}

/* Reads the design maxima of the chip. If RM refuses one index, it refuses the whole list. */
static unsigned int rm_ask_design(struct rm_conn *s, struct gpupart_gpu_info *info)
{
	struct rm_info want[] = {
		{ .index = RM_GR_INFO_NUM_GPCS },
		{ .index = RM_GR_INFO_NUM_TPC_PER_GPC },
		{ .index = RM_GR_INFO_SM_PER_TPC },
	};
	const size_t nr = sizeof(want) / sizeof(want[0]);
	struct rm_gr_info_list list = { .nr = nr, .list = (uintptr_t)want };
	size_t i;

	if (rm_control(s, s->subdevice, RM_GR_GET_INFO, &list, sizeof(list))) {
		for (i = 0; i < nr; i++) {
			list = (struct rm_gr_info_list){ .nr = 1, .list = (uintptr_t)&want[i] };
			if (rm_control(s, s->subdevice, RM_GR_GET_INFO, &list, sizeof(list)))
				want[i].data = 0;
		}
	}
	if (want[0].data <= GPUPART_MAX_GPCS)
		info->max_gpcs = want[0].data;
	if (want[1].data <= GPUPART_MAX_TPCS)
		info->max_tpcs_per_gpc = want[1].data;
	return want[2].data <= GPUPART_MAX_SMS_PER_TPC ? want[2].data : 0;
}

static int sm_index(uint16_t word)
{
	return word == 0xffff ? -1 : word;
}

/* A virtual id of 0xff is invalid, as ctrl2080gr.h says. But 255 is a valid global TPC number. */
static int sm_virtual_index(uint16_t word)
{
	return word == 0xff ? -1 : sm_index(word);
}

static void sm_decode(const struct sm_order_form *form, const uint16_t *entry, struct topo_sm *sm)
{
	sm->gpc = sm_index(entry[SM_GPC]);
	sm->local_tpc = sm_index(entry[SM_LOCAL_TPC]);
	sm->local_sm = sm_index(entry[SM_LOCAL_SM]);
	sm->tpc = sm_index(entry[SM_TPC]);
	sm->vgpc = sm_virtual_index(entry[SM_VGPC]);
	/*
	 * This is the number of the TPC in its virtual GPC. If there is no virtual GPC, the number
	 * has no meaning.
	 */
	sm->tpc_in_vgpc = sm->vgpc < 0 ? -1 : sm_virtual_index(entry[SM_TPC_IN_VGPC]);
	sm->ugpu = form->entry_words > SM_UGPU ? sm_virtual_index(entry[SM_UGPU]) : -1;
	sm->cpc = form->entry_words > SM_CPC ? sm_virtual_index(entry[SM_CPC]) : -1;
	sm->virtual_tpc = form->entry_words > SM_VIRTUAL_TPC ?
			  sm_virtual_index(entry[SM_VIRTUAL_TPC]) : -1;
	sm->measured_bit = -1;
}

/*
 * Two TPCs cannot have the same place in the same virtual GPC. So if all values are zero, the
 * driver does not report virtual GPCs.
 */
static void sm_order_drop_unreported(struct topo_sm *sms, unsigned int nr_sms)
{
	bool two_tpcs = false;
	unsigned int sm;

	for (sm = 0; sm < nr_sms; sm++) {
		if (sms[sm].vgpc || sms[sm].tpc_in_vgpc)
			return;
		two_tpcs |= sms[sm].tpc != sms[0].tpc;
	}
	for (sm = 0; two_tpcs && sm < nr_sms; sm++)
		sms[sm].vgpc = sms[sm].tpc_in_vgpc = -1;
}

static int rm_sm_order_refused(struct rm_conn *s, const struct gpupart_gpu_info *info,
			       int64_t status)
{
	char sizes[64] = "";
	size_t i, len = 0;

	for (i = 0; i < NR_SM_ORDER_FORMS; i++)
		topo_append(sizes, sizeof(sizes), &len, "%s%u", i ? ", " : "",
			    sm_order_forms[i].size);
	return ctx_fail(s->gp, rm_status_find(status)->err,
			"GPU %s: driver %s does not report the SM order; it refuses RM control 0x%x in every known form (%s bytes; %s)%s: %s",
			info->pci, rm_driver(s),
			RM_GR_GET_GLOBAL_SM_ORDER, sizes, rm_status_text(status).text,
			info->mig > 0 ? " while MIG is on" : "", rm_status_find(status)->help);
}

static int rm_ask_sm_order(struct rm_conn *s, const struct gpupart_gpu_info *info)
{
	const struct sm_order_form *form;
	int64_t status, worst = 0;
	unsigned int sm;
	size_t i;

	for (i = 0; i < NR_SM_ORDER_FORMS; i++) {
		form = &sm_order_forms[i];
		memset(s->sm_order, 0, form->size);
		status = rm_control(s, s->subdevice, RM_GR_GET_GLOBAL_SM_ORDER, s->sm_order,
				    form->size);
		if (!status)
			break;
		/*
		 * Only one of the sizes is right, so report the driver's error for the right
		 * size.
		 */
		if (!worst || rm_status_find(worst)->about_size)
			worst = status;
	}
	if (i == NR_SM_ORDER_FORMS)
		return rm_sm_order_refused(s, info, worst);

	s->form = form;
	s->nr_sms = s->sm_order[form->nr_sms_at];
	s->nr_tpcs = s->sm_order[form->nr_sms_at + 1];
	if (!s->nr_sms || s->nr_sms > SM_ORDER_MAX_SMS)
		return ctx_fail(s->gp, -EOPNOTSUPP,
				"GPU %s: driver %s reports %u SMs (RM control 0x%x, %u-byte form): must be 1 to %u",
				info->pci, rm_driver(s), s->nr_sms,
				RM_GR_GET_GLOBAL_SM_ORDER, form->size, SM_ORDER_MAX_SMS);
	for (sm = 0; sm < s->nr_sms; sm++)
		sm_decode(form, &s->sm_order[sm * form->entry_words], &s->sms[sm]);
	sm_order_drop_unreported(s->sms, s->nr_sms);
	return 0;
}

/*
 * Stores the logical number of each physical GPC in gpc_of[]. The number is -1 if it is unknown.
 * Returns false if the answer is inconsistent or contradicts @present.
 */
static bool rm_ask_gpc_ids(struct rm_conn *s, unsigned int nr_gpcs, uint32_t present,
			   int gpc_of[GPUPART_MAX_GPCS])
{
	struct rm_fs_query *query = s->fs_info.query;
	unsigned int gpc, phys, found = 0;

	if (!nr_gpcs)
		return false;
	memset(&s->fs_info, 0, sizeof(s->fs_info));
	s->fs_info.nr = nr_gpcs;
	for (gpc = 0; gpc < nr_gpcs; gpc++) {
		query[gpc].type = RM_FS_CHIPLET_GPC_MAP;
		query[gpc].gpc = gpc;
	}
	if (rm_control(s, s->subdevice, RM_GRMGR_GET_GR_FS_INFO, &s->fs_info, sizeof(s->fs_info)))
		return false;
	for (gpc = 0; gpc < nr_gpcs; gpc++) {
		if (query[gpc].status)
			continue;
		phys = query[gpc].gpc_phys;
		if (phys >= GPUPART_MAX_GPCS || (present && !(present >> phys & 1)) ||
		    gpc_of[phys] >= 0)
			goto contradiction;
		gpc_of[phys] = gpc;
		found++;
	}
	return found;

contradiction:
	for (phys = 0; phys < GPUPART_MAX_GPCS; phys++)
		gpc_of[phys] = -1;
	return false;
}

/*
 * Fills the map of GPCs, sorted by physical GPC. Returns the number of rows, and stores the
 * source of the rows in @text.
 */
static unsigned int rm_ask_gpc_map(struct rm_conn *s, struct topo_gpc map[GPUPART_MAX_GPCS],
				   char *text, size_t len)
{
	struct rm_gpc_mask gpcs = { 0 };
	int gpc_of[GPUPART_MAX_GPCS];
	unsigned int nr_gpcs = 0, nr = 0, phys, sm;
	bool has_ids, has_masks = false;
	size_t at = 0;

	for (phys = 0; phys < GPUPART_MAX_GPCS; phys++)
		gpc_of[phys] = -1;
	for (sm = 0; sm < s->nr_sms; sm++)
		if (s->sms[sm].gpc >= (int)nr_gpcs && s->sms[sm].gpc < GPUPART_MAX_GPCS)
			nr_gpcs = s->sms[sm].gpc + 1;

	if (rm_control(s, s->subdevice, RM_GR_GET_GPC_MASK, &gpcs, sizeof(gpcs)))
		gpcs.present_gpcs = 0;
	has_ids = rm_ask_gpc_ids(s, nr_gpcs, gpcs.present_gpcs, gpc_of);
	for (phys = 0; phys < GPUPART_MAX_GPCS; phys++) {
		struct rm_tpc_mask tpcs = { .gpc_phys = phys };

		if (!(gpcs.present_gpcs >> phys & 1) && gpc_of[phys] < 0)
			continue;
		if (!(gpcs.present_gpcs >> phys & 1) ||
		    rm_control(s, s->subdevice, RM_GR_GET_TPC_MASK, &tpcs, sizeof(tpcs)))
			tpcs.present_tpcs = 0;
		has_masks |= tpcs.present_tpcs != 0;
		map[nr++] = (struct topo_gpc){
			.gpc = gpc_of[phys], .gpc_phys = phys, .present_tpcs = tpcs.present_tpcs,
		};
	}
	text[0] = '\0';
	if (has_masks)
		topo_append(text, len, &at, "RM controls 0x%x, 0x%x", RM_GR_GET_GPC_MASK,
			    RM_GR_GET_TPC_MASK);
	else if (gpcs.present_gpcs)
		topo_append(text, len, &at, "RM control 0x%x", RM_GR_GET_GPC_MASK);
	if (has_ids)
		topo_append(text, len, &at, "%slogical ids by RM control 0x%x, query %u",
			    at ? "; " : "", RM_GRMGR_GET_GR_FS_INFO, RM_FS_CHIPLET_GPC_MAP);
	return nr;
}

static int rm_gpu_topology(struct rm_conn *s, struct gpupart_gpu_info *info,
			   struct gpupart_topology **topo)
{
	struct topo_gpc map[GPUPART_MAX_GPCS];
	char text_gpc_map[sizeof((*topo)->text_gpc_map)];
	unsigned int nr_map, sms_per_tpc;
	struct gpupart_topology *t;
	int err;

	info->chip_id = rm_ask_chip_id(s);
	info->mig = rm_ask_mig(s);
	sms_per_tpc = rm_ask_design(s, info);
	err = rm_ask_sm_order(s, info);
	if (err)
		return err;
	nr_map = rm_ask_gpc_map(s, map, text_gpc_map, sizeof(text_gpc_map));

	err = topo_build(s->gp, info, s->sms, s->nr_sms, map, nr_map, &t);
	if (err == -EINVAL)
		return ctx_fail_because(s->gp, -EOPNOTSUPP,
					"GPU %s: driver %s reports inconsistent data about SMs (RM control 0x%x, %u-byte form)",
					info->pci, rm_driver(s),
					RM_GR_GET_GLOBAL_SM_ORDER, s->form->size);
	if (err)
		return err;
	if (t->nr_tpcs != s->nr_tpcs || (sms_per_tpc && t->nr_sms > t->nr_tpcs * sms_per_tpc)) {
		err = ctx_fail(s->gp, -EOPNOTSUPP,
			       "GPU %s: driver %s counts %u TPCs with %u SMs (0: unknown), but its SM order has %u TPCs with %u SMs",
			       info->pci, rm_driver(s), s->nr_tpcs,
			       sms_per_tpc, t->nr_tpcs, t->nr_sms);
		gpupart_topology_close(t);
		return err;
	}
	t->compute_class = rm_ask_compute_class(s);
	snprintf(t->text_rm, sizeof(t->text_rm), "RM control 0x%x, %u-byte form",
		 RM_GR_GET_GLOBAL_SM_ORDER, s->form->size);
	snprintf(t->text_gpc_map, sizeof(t->text_gpc_map), "%s", text_gpc_map);
	*topo = t;
	return 0;
}

/* Sets the error message if no GPU can be used. The string @there lists the GPUs that exist. */
static int rm_no_gpu(struct rm_conn *s, const char *gpu, const char *there)
{
	const char *colon = s->trouble_err ? "; " : "";

	if (!there[0])
		return ctx_fail(s->gp, s->trouble_err ? s->trouble_err : -ENODEV,
				"NVIDIA's driver %s shows no GPU%s%s", rm_driver(s), colon,
				s->trouble);
	return ctx_fail(s->gp, -ENODEV, "GPU \"%s\" does not exist: NVIDIA's driver shows %s%s%s",
			gpu, there, colon, s->trouble);
}

/* Opens a connection and creates RM's objects for the GPU that @gpu selects. */
int topo_rm_regs_open(struct gpupart *gp, const char *gpu, struct gpupart_gpu_info *info,
		      struct rm_conn **conn)
{
	struct rm_conn *s;
	unsigned int i, index = 0;
	char there[384] = "";
	size_t len = 0;
	int err;

	err = rm_conn_open(gp, &s);
	if (err)
		return err;
	for (i = 0; i < s->nr_gpus; i++) {
		if (!rm_gpu_get(s, &s->gpus[i], info))
			continue;
		if (!gpu || topo_selects(gpu, info, index)) {
			*conn = s;
			return 0;
		}
		rm_gpu_put(s);
		topo_append(there, sizeof(there), &len, "%s%u (%s, %s)", index ? ", " : "", index,
			    info->pci, info->name[0] ? info->name : "no name");
		index++;
	}
	err = rm_no_gpu(s, gpu, there);
	rm_conn_close(s);
	return err;
}

int topo_rm_open(struct gpupart *gp, const char *gpu, struct gpupart_topology **topo)
{
	struct gpupart_gpu_info info;
	struct rm_conn *s;
	int err = topo_rm_regs_open(gp, gpu, &info, &s);

	if (err)
		return err;
	err = rm_gpu_topology(s, &info, topo);
	rm_conn_close(s);
	return err;
}

int topo_rm_reg(struct rm_conn *conn, uint32_t offset, uint32_t *value)
{
	struct rm_reg_op op = { .op = RM_REG_OP_READ_32, .offset = offset };
	struct rm_reg_ops ops = { .nr = 1, .ops = (uintptr_t)&op };
	int64_t status = rm_control(conn, conn->subdevice, RM_GPU_EXEC_REG_OPS, &ops, sizeof(ops));

	*value = status ? status : op.status ? op.status : op.value;
	return status || op.status ? -EACCES : 0;
}

int topo_rm_pids(struct rm_conn *conn, uint32_t class, struct rm_gpu_pids *pids)
{
	int64_t status;

	memset(pids, 0, sizeof(*pids));
	pids->id_type = RM_GPU_PIDS_OF_CLASS;
	pids->id = class;
	status = rm_control(conn, conn->subdevice, RM_GPU_GET_PIDS, pids, sizeof(*pids));
	return status || pids->nr > RM_GPU_PIDS_MAX ? -EIO : 0;
}

int topo_rm_list(struct gpupart *gp, struct gpupart_gpu_info *list, unsigned int max)
{
	struct gpupart_gpu_info info;
	struct rm_conn *s;
	unsigned int i, nr = 0;
	int err;

	err = rm_conn_open(gp, &s);
	if (err)
		return err;
	for (i = 0; i < s->nr_gpus; i++) {
		if (!rm_gpu_get(s, &s->gpus[i], &info))
			continue;
		info.chip_id = rm_ask_chip_id(s);
		info.mig = rm_ask_mig(s);
		rm_ask_design(s, &info);
		rm_gpu_put(s);
		if (nr < max)
			list[nr] = info;
		nr++;
	}
	/* If a problem made a GPU unavailable, an empty list is an error. */
	err = nr || !s->trouble_err ? (int)nr : rm_no_gpu(s, NULL, "");
	rm_conn_close(s);
	return err;
}
