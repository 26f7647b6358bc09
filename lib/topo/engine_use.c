// SPDX-License-Identifier: MIT
/*
 * Samples the runlists of a GPU. Counts in how many samples each TSG was on each engine. The
 * samples come from the kernel module, from NVIDIA's driver, or from a file. NVIDIA's driver reads
 * registers only for root.
 *
 * Each line "0xOFFSET 0xVALUE" of the file sets a register. A line "sample" ends each sample. Lines
 * that begin with '#' are comments.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kmod/topo.h"
#include "lib/core/clock.h"
#include "lib/core/state_dir.h"
#include "lib/topo/kernel_conn.h"
#include "lib/topo/rm_ioctl.h"
#include "lib/topo/topology.h"

#define SAMPLE_NS 1000000
#define MAX_RUNLISTS 64

#define BAR0_SIZE (16u << 20)
#define NO_SUCH_ADDRESS 0xbadf5040	/* the value that the GPU returns for a register that
					 * does not exist */

struct source {
	struct topo_reader reader;	/* used for all sources except the module */
	struct gpupart *gp;
	const char *name;
	struct gpupart_gpu_info *info;
	struct kernel_conn kernel;	/* used if its sock is not NULL */
	struct rm_conn *rm;		/* used if it is not NULL */
	FILE *file;
	u32 *regs;		/* All registers of BAR0 at the current sample of the file. Each
				 * value is XORed with NO_SUCH_ADDRESS, so 0 means that the register
				 * is absent. */
	struct gpu_engines engines;
	u32 bases[MAX_RUNLISTS];	/* bases[0] belongs to the graphics runlist */
	unsigned int nr_bases;
	u32 base;		/* the runlist that is read now; 0: the bases are being listed */
	unsigned int nr_read;	/* number of engines of this runlist that were read */
	struct gpupart_engine_use *list;
	unsigned int nr;
};

/*
 * Counts one sample of engine @e. The engine is on the runlist at s->base, which has the id @id. If
 * the list is full, ignores further engines.
 */
static void count(struct source *s, const struct gpu_runlist_engine *e, unsigned int id)
{
	const char *name = gp_topo_engine_name(e->type);
	struct gpupart_engine_use *use = s->list, *end = use + s->nr;
	unsigned int i = 0;

	s->nr_read++;
	while (use < end && (use->runlist != s->base || use->type != e->type ||
			     use->instance != e->instance))
		use++;
	if (use == s->list + GPUPART_MAX_ENGINES)
		return;
	if (use == end) {
		s->nr++;
		*use = (struct gpupart_engine_use){ .runlist = s->base, .id = id, .type = e->type,
						    .instance = e->instance };
		snprintf(use->name, sizeof(use->name), "%s", name ? name : "");
	}
	use->samples++;
	if (e->context != GPUPART_CONTEXT_VALID) {
		use->idle += e->context == GPUPART_CONTEXT_NONE;
		use->switching += e->context != GPUPART_CONTEXT_NONE;
		return;
	}
	while (i < use->nr_tsgs && use->tsgs[i].tsg != (unsigned int)e->tsg)
		i++;
	if (i == GPUPART_ENGINE_MAX_TSGS) {
		use->others++;
		return;
	}
	if (i == use->nr_tsgs)
		use->tsgs[use->nr_tsgs++] = (struct gpupart_engine_tsg){ .tsg = e->tsg,
									 .channel = -1 };
	use->tsgs[i].samples++;
	if (e->channel >= 0)
		use->tsgs[i].channel = e->channel;
}

/* ------------------------------------- recorded registers and NVIDIA's driver */

static int rd32(struct topo_reader *reader, u32 offset, u32 *value)
{
	struct source *s = (struct source *)reader;

	if (s->regs)
		*value = (offset < BAR0_SIZE ? s->regs[offset / 4] : 0) ^ NO_SUCH_ADDRESS;
	else if (topo_rm_reg(s->rm, offset, value))
		return ctx_fail(s->gp, -EACCES,
				"NVIDIA's driver refuses to read register 0x%x (status 0x%x): try as root",
				offset, *value);
	return 0;
}

/*
 * Reads the lines up to the next line "sample", and sets the registers in these lines. Returns 1
 * after a sample, 0 at the end of the file, or a negative errno.
 */
static int next_sample(struct source *s)
{
	unsigned int offset, value;
	char line[160];

	while (fgets(line, sizeof(line), s->file)) {
		if (!strncmp(line, "sample", 6))
			return 1;
		if (sscanf(line, "%x %x", &offset, &value) == 2 && offset < BAR0_SIZE)
			s->regs[offset / 4] = value ^ NO_SUCH_ADDRESS;
		else if (line[0] != '#' && line[0] != '\n')
			return ctx_fail(
				s->gp, -EBADMSG,
				"%s: a line must be \"0xOFFSET 0xVALUE\" or \"sample\", not: %.*s",
				s->name, (int)strcspn(line, "\n"), line);
	}
	return 0;
}

static int file_open(struct source *s)
{
	int ret;

	s->file = fopen(s->name, "re");
	if (!s->file)
		return ctx_fail(s->gp, -errno, "%s: %s", s->name, strerror(errno));
	s->regs = calloc(BAR0_SIZE / 4, 4);
	if (!s->regs)
		return ctx_fail(s->gp, -ENOMEM, "no memory for registers");
	topo_source_set(s->info, s->name);
	s->info->simulated = true;
	ret = next_sample(s);
	return ret ? ret : ctx_fail(s->gp, -EBADMSG, "%s has no line \"sample\"", s->name);
}

/* Reads the table of engines. The table contains the bases of the runlists. */
static int find_runlists(struct source *s)
{
	struct gpu_id id;
	char why[TOPO_FAULT_LEN];
	u32 base = 0;
	int err;

	s->reader.rd32 = rd32;
	err = gp_topo_identify(&s->reader, &id);
	if (!err && (!id.chip || !gp_chip_cell(id.chip, CHIP_RUNLISTS)))
		return ctx_fail(s->gp, -EOPNOTSUPP,
				"chip 0x%x: the addresses of the chip's runlist registers are not known",
				id.chip_id);
	if (!err)
		err = gp_topo_read_engines(id.chip, &s->reader, &s->engines);
	if (err && err != -EACCES) {
		gp_topo_fault_text(&s->reader.fault, why, sizeof(why));
		ctx_fail(s->gp, err, "%s", why);
	}
	while (!err && s->nr_bases < MAX_RUNLISTS &&
	       (base = gp_topo_next_runlist(&s->engines, base)))
		s->bases[s->nr_bases++] = base;
	return err;
}

/* ----------------------------------------------------------------------- the module */

static int take_number(struct nlattr *a)
{
	return a ? (int)nla_get_u32(a) : -1;
}

static int on_engine(struct nl_msg *msg, void *user)
{
	struct nlattr *a[GPUPART_A_RUNLIST_MAX + 1];
	struct source *s = user;
	u32 base;

	if (genlmsg_parse(nlmsg_hdr(msg), 0, a, GPUPART_A_RUNLIST_MAX, NULL))
		return NL_SKIP;
	base = take_number(a[GPUPART_A_RUNLIST_PRI_BASE]);
	if (!s->base && s->nr_bases < MAX_RUNLISTS &&
	    (!s->nr_bases || s->bases[s->nr_bases - 1] != base))
		s->bases[s->nr_bases++] = base;
	else if (s->base && a[GPUPART_A_RUNLIST_CONTEXT])
		count(s, &(struct gpu_runlist_engine){
			.type = take_number(a[GPUPART_A_RUNLIST_TYPE]),
			.instance = take_number(a[GPUPART_A_RUNLIST_INSTANCE]),
			.context = take_number(a[GPUPART_A_RUNLIST_CONTEXT]),
			.tsg = take_number(a[GPUPART_A_RUNLIST_TSG]),
			.channel = take_number(a[GPUPART_A_RUNLIST_CHANNEL]),
		}, take_number(a[GPUPART_A_RUNLIST_ID]));
	return NL_OK;
}

/* Asks the module for the runlist at s->base, or for all runlists of the GPU if s->base is 0. */
static int ask_module(struct source *s)
{
	struct nl_msg *msg = kernel_request(&s->kernel, NLM_F_DUMP, GPUPART_CMD_RUNLIST_GET,
					    GPUPART_A_RUNLIST_BUS_NAME, s->info->pci);

	if (msg && s->base && nla_put_u32(msg, GPUPART_A_RUNLIST_PRI_BASE, s->base)) {
		nlmsg_free(msg);
		msg = NULL;
	}
	return kernel_ask(&s->kernel, msg, on_engine, s);
}

/* -------------------------------------------------------------------------- samples */

/* Counts one sample of a runlist. Returns -ENODATA if the GPU refuses reads of its registers. */
static int sample(struct source *s, u32 base)
{
	struct gpu_runlist r;
	int err;

	s->base = base;
	s->nr_read = 0;
	if (s->kernel.sock) {
		err = ask_module(s);
	} else {
		err = gp_topo_read_runlist(&s->reader, &s->engines, base, &r);
		for (unsigned int i = 0; !err && i < r.nr; i++)
			count(s, &r.engines[i], r.id);
	}
	return err == -EIO || err == -ERANGE || (!err && !s->nr_read) ? -ENODATA : err;
}

static int sample_all(struct source *s, double seconds, void (*begun)(void *user), void *user)
{
	uint64_t now, next = 0, end = 0;
	int err;

	for (unsigned int tick = 0;; tick++) {
		unsigned int other = s->nr_bases > 1 ? 1 + tick % (s->nr_bases - 1) : 0;

		err = sample(s, s->bases[0]);
		if (err)
			return err != -ENODATA ? err :
			       ctx_fail(s->gp, -EIO,
					"a register of the runlist at 0x%x cannot be read",
					s->bases[0]);
		if (!tick) {
			if (begun)
				begun(user);
			next = clock_monotonic_ns();
			end = next + (uint64_t)(seconds * 1e9);
		}
		if (other)
			err = sample(s, s->bases[other]);
		/* A refused read causes an error in the GPU, so the read is not repeated. */
		if (err == -ENODATA)
			s->bases[other] = s->bases[--s->nr_bases];
		else if (err)
			return err;
		if (s->file) {
			err = next_sample(s);
			if (err <= 0)
				return err;
			continue;
		}
		now = clock_monotonic_ns();
		if (now >= end)
			return 0;
		/* If the source is too slow, samples are skipped. */
		next = next + SAMPLE_NS > now ? next + SAMPLE_NS : now;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME,
				&(struct timespec){ next / 1000000000, next % 1000000000 }, NULL);
	}
}

static int most_first(const void *a, const void *b)
{
	const struct gpupart_engine_tsg *x = a, *y = b;

	return (x->samples < y->samples) - (x->samples > y->samples);
}

static int open_source(struct source *s, const char *gpu)
{
	char said[sizeof(s->gp->error)];
	int err;

	if (!s->name || !strcmp(s->name, "kernel")) {
		err = kernel_conn_select(s->gp, gpu, s->info, &s->kernel);
		/* If the module is loaded but refuses the request, return the module's error. */
		if (!err)
			return ask_module(s);
		s->kernel.sock = NULL;
		if (s->name)
			return err;
	}
	snprintf(said, sizeof(said), "%s", s->gp->error);
	err = s->name && strcmp(s->name, "rm") ? file_open(s) :
						 topo_rm_regs_open(s->gp, gpu, s->info, &s->rm);
	if (err < 0)
		return s->name ? err : ctx_fail_because(s->gp, err, "kernel: %s; rm", said);
	return find_runlists(s);
}

int gpupart_engine_uses(struct gpupart *gp, const char *gpu, const char *source, double seconds,
			void (*begun)(void *user), void *user, struct gpupart_gpu_info *info,
			struct gpupart_engine_use list[GPUPART_MAX_ENGINES])
{
	struct source s = { .gp = gp, .name = source, .info = info, .list = list };
	int ret;

	memset(info, 0, sizeof(*info));
	ret = open_source(&s, gpu);
	if (!ret && !s.nr_bases)
		ret = ctx_fail(gp, -EOPNOTSUPP, "%s has no runlist", info->pci);
	if (!ret)
		ret = sample_all(&s, seconds, begun, user);
	for (unsigned int i = 0; i < s.nr; i++)
		qsort(list[i].tsgs, list[i].nr_tsgs, sizeof(list[i].tsgs[0]), most_first);
	if (s.kernel.sock)
		nl_socket_free(s.kernel.sock);
	if (s.rm)
		rm_conn_close(s.rm);
	if (s.file)
		fclose(s.file);
	free(s.regs);
	return ret ? ret : (int)s.nr;
}

int gpupart_engine_owner(struct gpupart *gp, const char *pci)
{
	/*
	 * The compute, 3D, 2D and memory classes of Ampere to Hopper. These classes run on the
	 * graphics engine. Sources in open-gpu-kernel-modules: class/cl{c6,c7,c9,cb}{c0,97}.h,
	 * cl902d.h, cla140.h.
	 */
	static const uint32_t classes[] = { 0xc6c0, 0xc7c0, 0xc9c0, 0xcbc0, 0xc697, 0xc797, 0xc997,
					    0xcb97, 0x902d, 0xa140 };
	struct gpupart_gpu_info info;
	struct rm_gpu_pids pids;
	struct rm_conn *rm;
	uint32_t owner = 0;
	bool known = true;

	if (state_dir_pid_namespace() != STATE_DIR_FIRST_PID_NAMESPACE ||
	    topo_rm_regs_open(gp, pci, &info, &rm))
		return 0;
	for (unsigned int i = 0; known && i < sizeof(classes) / sizeof(classes[0]); i++) {
		known = !topo_rm_pids(rm, classes[i], &pids);
		for (unsigned int j = 0; known && j < pids.nr; j++) {
			known = !owner || owner == pids.pids[j];
			owner = pids.pids[j];
		}
	}
	rm_conn_close(rm);
	return known ? owner : 0;
}
