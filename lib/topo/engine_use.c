// SPDX-License-Identifier: MIT
/*
 * Samples the runlists of a GPU and counts which TSG is on each engine. The samples come from
 * one of three sources. These are the kernel module, NVIDIA's driver (which reads registers only
 * for root), and a file of registers.
 *
 * The file has lines "0xOFFSET 0xVALUE", which set registers. A line "sample" follows the
 * register lines of each sample. Lines that begin with '#' are comments.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "kmod/topo.h"
#include "lib/core/state_dir.h"
#include "lib/private.h"
#include "lib/topo/kernel_conn.h"
#include "lib/topo/rm_ioctl.h"
#include "lib/topo/topology.h"

#define SAMPLE_NS 1000000L
#define MAX_RUNLISTS 64
#define MAX_GPUS 64

#define BAR0_SIZE (16u << 20)
#define NO_SUCH_ADDRESS 0xbadf5040	/* the value that the GPU returns for a register that
					 * does not exist */

/* The registers of a file as they are at the current sample. */
struct recorded {
	FILE *file;
	u32 *regs;		/* all registers of BAR0, each XORed with NO_SUCH_ADDRESS, so
				 * that 0 means absent */
};

struct source {
	struct topo_reader reader;	/* used for all sources except the module */
	struct gpupart *gp;
	const char *name;
	struct kernel_conn kernel;	/* used if its sock is not NULL */
	struct rm_conn *rm;
	struct recorded recorded;
	struct gpupart_gpu_info *info;
	struct gpu_engines engines;
	u32 bases[MAX_RUNLISTS];	/* bases[0] belongs to the graphics runlist */
	unsigned int nr_bases;
	void (*begun)(void *user);
	void *user;
};

struct uses {
	struct gpupart_engine_use *list;
	unsigned int nr;
};

/* ------------------------------------------------------------- recorded registers */

static int recorded_rd32(struct topo_reader *reader, u32 offset, u32 *value)
{
	const struct recorded *r = &((struct source *)reader)->recorded;

	*value = (offset < BAR0_SIZE ? r->regs[offset / 4] : 0) ^ NO_SUCH_ADDRESS;
	return 0;
}

/*
 * Reads the lines up to the next line "sample", and sets the registers in these lines. Returns
 * 1, 0 at the end of the file, or an error.
 */
static int recorded_next(struct source *s)
{
	struct recorded *r = &s->recorded;
	unsigned int offset, value;
	char line[160];

	while (fgets(line, sizeof(line), r->file)) {
		if (!strncmp(line, "sample", 6))
			return 1;
		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (sscanf(line, "%x %x", &offset, &value) != 2 || offset >= BAR0_SIZE)
			return ctx_fail(
				s->gp, -EBADMSG,
				"%s: a line must be \"0xOFFSET 0xVALUE\" or \"sample\", not: %.*s",
				s->name, (int)strcspn(line, "\n"), line);
		r->regs[offset / 4] = value ^ NO_SUCH_ADDRESS;
	}
	return 0;
}

static int recorded_open(struct source *s)
{
	int ret;

	s->recorded.file = fopen(s->name, "re");
	if (!s->recorded.file)
		return ctx_fail(s->gp, -errno, "%s: %s", s->name, strerror(errno));
	s->recorded.regs = calloc(BAR0_SIZE / 4, 4);
	if (!s->recorded.regs)
		return ctx_fail(s->gp, -ENOMEM, "no memory for registers");
	s->reader.rd32 = recorded_rd32;
	snprintf(s->info->source, sizeof(s->info->source), "%s", s->name);
	s->info->simulated = true;
	ret = recorded_next(s);
	if (ret == 0)
		return ctx_fail(s->gp, -EBADMSG, "%s has no line \"sample\"", s->name);
	return ret < 0 ? ret : 0;
}

/* ------------------------------------------------------------------ NVIDIA's driver */

static int rm_rd32(struct topo_reader *reader, u32 offset, u32 *value)
{
	struct source *s = (struct source *)reader;

	if (!topo_rm_reg(s->rm, offset, value))
		return 0;
	return ctx_fail(s->gp, -EACCES,
			"NVIDIA's driver refuses to read register 0x%x (status 0x%x): try as root",
			offset, *value);
}

/* Reads the table of engines, and takes the bases of the runlists from it. */
static int find_runlists(struct source *s)
{
	struct gpu_id id;
	char why[TOPO_FAULT_LEN];
	u32 base = 0;
	int err = gp_topo_identify(&s->reader, &id);

	if (!err && (!id.chip || !gp_chip_cell(id.chip, CHIP_RUNLISTS)))
		return ctx_fail(s->gp, -EOPNOTSUPP,
				"chip 0x%x: the addresses of the chip's runlist registers are not known",
				id.chip_id);
	if (!err)
		err = gp_topo_read_engines(id.chip, &s->reader, &s->engines);
	if (err == -EACCES)
		return err;
	if (err) {
		gp_topo_fault_text(&s->reader.fault, why, sizeof(why));
		return ctx_fail(s->gp, err, "%s", why);
	}
	while (s->nr_bases < MAX_RUNLISTS && (base = gp_topo_next_runlist(&s->engines, base)))
		s->bases[s->nr_bases++] = base;
	return 0;
}

/* ----------------------------------------------------------------------- the module */

static int take_number(struct nlattr *a)
{
	return a ? (int)nla_get_u32(a) : -1;
}

static int parse_bases(struct nl_msg *msg, void *user)
{
	struct nlattr *a[GPUPART_A_RUNLIST_MAX + 1];
	struct source *s = user;
	u32 base;

	if (genlmsg_parse(nlmsg_hdr(msg), 0, a, GPUPART_A_RUNLIST_MAX, NULL) ||
	    !a[GPUPART_A_RUNLIST_PRI_BASE])
		return NL_SKIP;
	base = nla_get_u32(a[GPUPART_A_RUNLIST_PRI_BASE]);
	if (s->nr_bases < MAX_RUNLISTS && (!s->nr_bases || s->bases[s->nr_bases - 1] != base))
		s->bases[s->nr_bases++] = base;
	return NL_OK;
}

static int parse_runlist(struct nl_msg *msg, void *user)
{
	struct nlattr *a[GPUPART_A_RUNLIST_MAX + 1];
	struct gpu_runlist *r = user;
	struct gpu_runlist_engine *e = &r->engines[r->nr];

	if (genlmsg_parse(nlmsg_hdr(msg), 0, a, GPUPART_A_RUNLIST_MAX, NULL) ||
	    r->nr == TOPO_MAX_RUNLIST_ENGINES || !a[GPUPART_A_RUNLIST_CONTEXT])
		return NL_SKIP;
	r->id = take_number(a[GPUPART_A_RUNLIST_ID]);
	e->type = take_number(a[GPUPART_A_RUNLIST_TYPE]);
	e->instance = take_number(a[GPUPART_A_RUNLIST_INSTANCE]);
	e->context = take_number(a[GPUPART_A_RUNLIST_CONTEXT]);
	e->tsg = take_number(a[GPUPART_A_RUNLIST_TSG]);
	e->channel = take_number(a[GPUPART_A_RUNLIST_CHANNEL]);
	r->nr++;
	return NL_OK;
}

/*
 * If @base is 0, asks the module for all runlists of the GPU. Otherwise asks only for the
 * runlist at @base.
 */
static int kernel_runlists(struct source *s, u32 base,
			   int (*parse)(struct nl_msg *msg, void *user), void *user)
{
	struct nl_msg *msg = kernel_request(&s->kernel, NLM_F_DUMP, GPUPART_CMD_RUNLIST_GET,
					    GPUPART_A_RUNLIST_BUS_NAME, s->info->pci);

	if (msg && base && nla_put_u32(msg, GPUPART_A_RUNLIST_PRI_BASE, base)) {
		nlmsg_free(msg);
		msg = NULL;
	}
	return kernel_ask(&s->kernel, msg, parse, user);
}

static int kernel_open(struct source *s, const char *gpu)
{
	struct gpupart_gpu_info *list = calloc(MAX_GPUS, sizeof(*list));
	int i = 0, nr = -ENOMEM;

	if (list)
		nr = topo_kernel_list(s->gp, list, MAX_GPUS);
	while (i < nr && gpu && !topo_selects(gpu, &list[i], i))
		i++;
	if (nr >= 0 && i >= nr)
		nr = gpu ? ctx_fail(s->gp, -ENODEV, "the module has no GPU %s", gpu) :
			   ctx_fail(s->gp, -ENODEV, "the module has no GPU");
	if (nr >= 0)
		*s->info = list[i];
	free(list);
	if (nr < 0)
		return nr;
	nr = kernel_conn_open(s->gp, &s->kernel);
	if (nr) {
		s->kernel.sock = NULL;
		return nr;
	}
	return kernel_runlists(s, 0, parse_bases, s);
}

/* -------------------------------------------------------------------------- samples */

static int read_runlist(struct source *s, u32 base, struct gpu_runlist *r)
{
	if (!s->kernel.sock)
		return gp_topo_read_runlist(&s->reader, &s->engines, base, r);
	memset(r, 0, sizeof(*r));
	r->base = base;
	return kernel_runlists(s, base, parse_runlist, r);
}

static struct gpupart_engine_use *use_of(struct uses *uses, const struct gpu_runlist *r,
					 const struct gpu_runlist_engine *e)
{
	const char *name = gp_topo_engine_name(e->type);
	struct gpupart_engine_use *use;

	for (unsigned int i = 0; i < uses->nr; i++)
		if (uses->list[i].runlist == r->base && uses->list[i].type == e->type &&
		    uses->list[i].instance == e->instance)
			return &uses->list[i];
	if (uses->nr == GPUPART_MAX_ENGINES)
		return NULL;
	use = &uses->list[uses->nr++];
	*use = (struct gpupart_engine_use){ .runlist = r->base, .id = r->id, .type = e->type,
					    .instance = e->instance };
	snprintf(use->name, sizeof(use->name), "%s", name ? name : "");
	return use;
}

static void count(struct uses *uses, const struct gpu_runlist *r,
		  const struct gpu_runlist_engine *e)
{
	struct gpupart_engine_use *use = use_of(uses, r, e);
	unsigned int i = 0;

	if (!use)
		return;
	use->samples++;
	if (e->context == GPUPART_CONTEXT_NONE) {
		use->idle++;
		return;
	}
	if (e->context != GPUPART_CONTEXT_VALID) {
		use->switching++;
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

/*
 * Counts one sample of a runlist. Returns -ENODATA if the GPU refuses reads of its registers.
 */
static int sample(struct source *s, u32 base, struct uses *uses)
{
	struct gpu_runlist r;
	int err = read_runlist(s, base, &r);

	if (err)
		return err == -EIO || err == -ERANGE ? -ENODATA : err;
	for (unsigned int i = 0; i < r.nr; i++)
		count(uses, &r, &r.engines[i]);
	return r.nr ? 0 : -ENODATA;
}

static int sample_all(struct source *s, double seconds, struct uses *uses)
{
	struct timespec now, next = { 0 };
	double end = 0;
	int err = 0;

	for (unsigned int tick = 0; !err; tick++) {
		unsigned int other = s->nr_bases > 1 ? 1 + tick % (s->nr_bases - 1) : 0;

		err = sample(s, s->bases[0], uses);
		if (err == -ENODATA)
			return ctx_fail(s->gp, -EIO,
					"a register of the runlist at 0x%x cannot be read",
					s->bases[0]);
		if (!err && !tick) {
			if (s->begun)
				s->begun(s->user);
			clock_gettime(CLOCK_MONOTONIC, &next);
			end = next.tv_sec + next.tv_nsec / 1e9 + seconds;
		}
		if (!err && other)
			err = sample(s, s->bases[other], uses);
		/* A refused read causes an error in the GPU, so the read is not repeated. */
		if (err == -ENODATA) {
			s->bases[other] = s->bases[--s->nr_bases];
			err = 0;
		}
		if (s->recorded.file) {
			int more = err ? 0 : recorded_next(s);

			if (more <= 0)
				return err ? err : more;
			continue;
		}
		next.tv_nsec += SAMPLE_NS;
		next.tv_sec += next.tv_nsec / 1000000000L;
		next.tv_nsec %= 1000000000L;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec + now.tv_nsec / 1e9 >= end)
			break;
		/* If the source is too slow, samples are skipped. */
		if (now.tv_sec > next.tv_sec ||
		    (now.tv_sec == next.tv_sec && now.tv_nsec > next.tv_nsec))
			next = now;
		else
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	return err;
}

static int most_first(const void *a, const void *b)
{
	const struct gpupart_engine_tsg *x = a, *y = b;

	return (x->samples < y->samples) - (x->samples > y->samples);
}

static void close_source(struct source *s)
{
	if (s->kernel.sock)
		nl_socket_free(s->kernel.sock);
	if (s->rm)
		rm_conn_close(s->rm);
	if (s->recorded.file)
		fclose(s->recorded.file);
	free(s->recorded.regs);
	free(s);
}

static int open_source(struct source *s, const char *gpu)
{
	const char *name = s->name;
	char said[600];
	int err = -ENODEV;

	if (name && strcmp(name, "kernel") && strcmp(name, "rm")) {
		err = recorded_open(s);
		return err ? err : find_runlists(s);
	}
	if (!name || !strcmp(name, "kernel"))
		err = kernel_open(s, gpu);
	if (!err || (name && !strcmp(name, "kernel")))
		return err;
	/* The module is loaded, but it refuses the request. Report its error. */
	if (s->kernel.sock)
		return err;
	snprintf(said, sizeof(said), "kernel: %s; rm", s->gp->error);
	err = topo_rm_regs_open(s->gp, gpu, s->info, &s->rm);
	if (!err) {
		s->reader.rd32 = rm_rd32;
		return find_runlists(s);
	}
	return name ? err : ctx_fail_because(s->gp, err, "%s", said);
}

int gpupart_engine_uses(struct gpupart *gp, const char *gpu, const char *source, double seconds,
			void (*begun)(void *user), void *user, struct gpupart_gpu_info *info,
			struct gpupart_engine_use list[GPUPART_MAX_ENGINES])
{
	struct source *s = calloc(1, sizeof(*s));
	struct uses uses = { .list = list };
	int err;

	memset(info, 0, sizeof(*info));
	if (!s)
		return ctx_fail(gp, -ENOMEM, "out of memory while preparing to sample the engines");
	s->gp = gp;
	s->name = source;
	s->info = info;
	s->begun = begun;
	s->user = user;
	err = open_source(s, gpu);
	if (!err && !s->nr_bases)
		err = ctx_fail(gp, -EOPNOTSUPP, "%s has no runlist", info->pci);
	if (!err)
		err = sample_all(s, seconds, &uses);
	close_source(s);
	for (unsigned int i = 0; !err && i < uses.nr; i++)
		qsort(list[i].tsgs, list[i].nr_tsgs, sizeof(list[i].tsgs[0]), most_first);
	return err ? err : (int)uses.nr;
}

int gpupart_engine_owner(struct gpupart *gp, const char *pci)
{
	/*
	 * Compute, 3D, 2D and memory classes of Ampere to Hopper, which run on the graphics engine:
	 * open-gpu-kernel-modules, class/cl{c6,c7,c9,cb}{c0,97}.h, cl902d.h, cla140.h.
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
