// SPDX-License-Identifier: MIT
/*
 * Writes captures of made-up GPUs, so that no code can rely on certain numbers of GPCs, TPCs or
 * SMs. For the same argument NUMBER it always writes the same capture. This program shares no
 * code with the library. It has a separate writer and a separate checksum. It also has a separate
 * rule for the mask bits. Tests compare this rule with the library's rule.
 *
 * 	gen-topology NUMBER		one capture to stdout
 * 	gen-topology -o FOLDER		all of them, FOLDER/NN.capture
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_GPCS 32
#define MAX_TPCS 256

/* A made-up GPU. The array @tpcs has the number of TPCs of each GPC, in logical order. */
static const struct shape {
	const char *what;
	unsigned int max_gpcs, max_tpcs_per_gpc, sms_per_tpc;
	int nr_ugpus; /* 0: the source does not report uGPUs */
	/* the distance between the ids of virtual GPCs */
	unsigned int nr_singletons, singleton_step;
	int maxima_from_registers; /* registers instead of keys */
	unsigned char tpcs[MAX_GPCS + 1]; /* terminated by 0 */
} shapes[] = {
	{ "8 GPCs of 9, four singletons", 8, 9, 2, 2, 4, 3, 0, { 9, 8, 8, 8, 8, 8, 8, 9 } },
	{ "7 GPCs of 12", 7, 12, 2, 2, 2, 4, 0, { 12, 11, 12, 10, 12, 9, 12 } },
	{ "12 GPCs", 12, 9, 2, 2, 3, 5, 0, { 9, 8, 9, 9, 7, 9, 8, 9, 9, 8, 9, 9 } },
	{ "1 GPC", 1, 5, 2, 1, 0, 1, 0, { 4 } },
	{ "no singletons", 8, 8, 2, 2, 0, 1, 0, { 8, 7, 8, 6, 8, 8, 7, 8 } },
	{ "many singletons", 8, 9, 2, 2, 40, 1, 0, { 9, 9, 9, 9, 9, 9, 9, 9 } },
	{ "a GPC of 6 TPCs", 8, 9, 2, 2, 4, 2, 0, { 9, 6, 8, 8, 8, 9, 9, 9 } },
	{ "one SM a TPC", 6, 7, 1, 2, 2, 1, 0, { 7, 6, 7, 5, 7, 7 } },
	{ "unequal GPCs", 7, 10, 2, 2, 1, 6, 0, { 3, 10, 1, 7, 2, 9, 5 } },
	{ "1 uGPU", 5, 8, 2, 1, 3, 2, 0, { 8, 8, 6, 7, 8 } },
	{ "unknown uGPU", 6, 6, 2, 0, 2, 3, 0, { 6, 6, 5, 6, 4, 6 } },
	{ "32 GPCs of 8, 256 TPCs", 32, 8, 2, 2, 0, 1, 0,
	  { 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8,
	    8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8 } },
	{ "2 GPCs of 20", 2, 20, 2, 2, 5, 1, 0, { 20, 17 } },
	{ "four SMs a TPC", 4, 6, 4, 2, 1, 2, 0, { 6, 5, 6, 6 } },
	{ "16 GPCs, 4 uGPUs", 16, 7, 2, 4, 8, 1, 0,
	  { 7, 7, 6, 7, 7, 5, 7, 7, 7, 6, 7, 7, 7, 7, 6, 7 } },
	{ "one TPC", 1, 1, 2, 1, 0, 1, 0, { 1 } },
	{ "6 GPCs left of 10, maxima in registers", 10, 9, 2, 2, 2, 2, 1, { 9, 7, 8, 9, 9, 6 } },
	{ "three SMs a TPC", 3, 10, 3, 1, 3, 1, 0, { 10, 9, 10 } },
	{ "all 128 bits", 12, 10, 2, 2, 8, 1, 0,
	  { 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10 } },
	{ "7 GPCs of 8, singletons of one GPC", 7, 8, 2, 2, 3, 7, 0, { 8, 8, 7, 8, 8, 8, 6 } },
	{ "9 GPCs, one SM a TPC, no singletons", 9, 10, 1, 3, 0, 1, 0,
	  { 10, 9, 10, 8, 10, 10, 7, 10, 9 } },
	{ "more than 128 bits", 18, 11, 2, 2, 6, 2, 0,
	  { 11, 10, 11, 11, 9, 11, 11, 10, 11, 11, 11, 8, 11, 11, 11, 11, 10, 11 } },
	{ "24 TPCs", 6, 4, 2, 1, 0, 1, 0, { 4, 4, 4, 4, 4, 4 } },
	{ "74 TPCs on two dies", 8, 10, 2, 2, 2, 1, 0, { 10, 9, 9, 9, 9, 9, 9, 10 } },
	{ "94 TPCs", 12, 8, 2, 1, 0, 1, 0, { 8, 8, 8, 7, 8, 8, 8, 8, 8, 7, 8, 8 } },
	{ "160 TPCs on two dies", 18, 10, 2, 2, 4, 1, 0,
	  { 10, 10, 10, 9, 10, 10, 8, 9, 10, 7, 9, 9, 10, 8, 10, 8, 6, 7 } },
};

#define NR_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

struct tpc {
	unsigned int gpc, local_tpc, vgpc, tpc_in_vgpc, cpc, place;
};

static char *text;
static size_t text_len, text_room;

__attribute__((format(printf, 1, 2)))
static void put(const char *fmt, ...)
{
	va_list ap;

	if (text_room - text_len < 1024) {
		text_room = 2 * text_room + 4096;
		text = realloc(text, text_room);
		if (!text)
			abort();
	}
	va_start(ap, fmt);
	text_len += vsnprintf(text + text_len, text_room - text_len, fmt, ap);
	va_end(ap);
}

static uint32_t random_state;

static unsigned int random_below(unsigned int end)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state % end;
}

/* Like on real boards, a CPC has three TPCs. The numbering takes one TPC of each CPC in turn. */
static unsigned int in_turn(unsigned int nr, unsigned int place)
{
	unsigned int row, local;

	for (row = 0; row < 3; row++)
		for (local = row; local < nr; local += 3)
			if (!place--)
				return local;
	abort();
}

/*
 * Numbers units like NVIDIA's driver. Virtual GPCs are sorted by ascending size. TPCs are
 * numbered breadth first over the virtual GPCs. Then the singletons are numbered. Each singleton
 * is a separate virtual GPC.
 */
static unsigned int number_tpcs(const struct shape *shape, unsigned int nr_gpcs, struct tpc *tpcs)
{
	unsigned int gpc_of[MAX_GPCS], left[MAX_GPCS], taken[MAX_GPCS];
	unsigned int nr = 0, size, gpc, v, place, singleton, found;

	for (v = 0, size = 1; size <= shape->max_tpcs_per_gpc; size++)
		for (gpc = 0; gpc < nr_gpcs; gpc++)
			if (shape->tpcs[gpc] == size)
				gpc_of[v++] = gpc;
	for (v = 0; v < nr_gpcs; v++)
		left[v] = taken[v] = shape->tpcs[gpc_of[v]];
	for (singleton = 0, v = 0; singleton < shape->nr_singletons; v = (v + 1) % nr_gpcs)
		if (left[v] > 1) {
			left[v]--;
			singleton++;
		}
	for (place = 0, found = 1; found; place++)
		for (v = 0, found = 0; v < nr_gpcs; v++)
			if (place < left[v]) {
				gpc = gpc_of[v];
				tpcs[nr++] = (struct tpc){
					.gpc = gpc, .local_tpc = in_turn(shape->tpcs[gpc], place),
					.vgpc = v, .tpc_in_vgpc = place, .place = place,
				};
				found = 1;
			}
	for (singleton = 0, v = 0; singleton < shape->nr_singletons; v = (v + 1) % nr_gpcs)
		if (taken[v] > left[v]) {
			gpc = gpc_of[v];
			place = left[v]++;
			tpcs[nr++] = (struct tpc){
				.gpc = gpc, .local_tpc = in_turn(shape->tpcs[gpc], place),
				.vgpc = shape->max_gpcs + singleton * shape->singleton_step,
				.tpc_in_vgpc = 0, .place = place,
			};
			singleton++;
		}
	for (v = 0; v < nr; v++)
		tpcs[v].cpc = tpcs[v].local_tpc / 3;
	return nr;
}

/* The rule for V04_00. Its source is measurements on H200 boards. */
static unsigned int v04_00_bit(const struct shape *shape, const struct tpc *tpc)
{
	unsigned int singletons_from = shape->max_gpcs * shape->max_tpcs_per_gpc;

	if (tpc->vgpc >= shape->max_gpcs)
		return singletons_from + tpc->vgpc - shape->max_gpcs;
	return tpc->vgpc * shape->max_tpcs_per_gpc + tpc->tpc_in_vgpc;
}

static void put_gpu(unsigned int number, const struct shape *shape)
{
	put("# gpupart capture 1\n\n[gpu]\nname = generated %u\npci = 0000:%02x:00.0\n", number,
	    number + 1);
	put("uuid = GPU-00000000-0000-0000-0000-%012u\ndriver = unknown\nchip-id = 0x180\n",
	    number);
	put("mig = off\n");
	if (shape->maxima_from_registers)
		put("max-gpcs = unknown\nmax-tpcs-per-gpc = unknown\n");
	else
		put("max-gpcs = %u\nmax-tpcs-per-gpc = %u\n", shape->max_gpcs,
		    shape->max_tpcs_per_gpc);
	put("simulated = no\norigin = generated: no such GPU exists; %s\n", shape->what);
}

static void put_rm(const struct shape *shape, const struct tpc *tpcs, unsigned int nr_tpcs,
		   const unsigned int *ugpu)
{
	unsigned int tpc, local_sm, smid = 0;

	put("\n[rm]\nsource = generated\ncolumns = sm gpc local_tpc local_sm tpc vgpc tpc_in_vgpc "
	    "ugpu cpc virtual_tpc\n");
	for (tpc = 0; tpc < nr_tpcs; tpc++)
		for (local_sm = 0; local_sm < shape->sms_per_tpc; local_sm++) {
			const struct tpc *t = &tpcs[tpc];

			put("%u\t%u\t%u\t%u\t%u\t%u\t%u\t", smid++, t->gpc, t->local_tpc, local_sm,
			    tpc, t->vgpc, t->tpc_in_vgpc);
			if (shape->nr_ugpus)
				put("%u", ugpu[t->gpc]);
			else
				put("-");
			put("\t%u\t%u\n", t->cpc, t->place);
		}
}

/* Some physical GPCs and TPCs are fused off, and logical ids have no particular order. */
static void put_gpc_map(const struct shape *shape, unsigned int nr_gpcs)
{
	unsigned int logical_of[MAX_GPCS], phys, gpc, nr = 0;

	for (phys = 0; phys < shape->max_gpcs; phys++)
		logical_of[phys] = phys < nr_gpcs ? phys : MAX_GPCS;
	for (phys = shape->max_gpcs - 1; phys > 0; phys--) {
		unsigned int other = random_below(phys + 1), gpc_there = logical_of[other];

		logical_of[other] = logical_of[phys];
		logical_of[phys] = gpc_there;
	}
	put("\n[gpc-map]\nsource = generated\ncolumns = gpc_phys present_tpcs gpc\n");
	for (phys = 0; phys < shape->max_gpcs; phys++) {
		uint32_t present = (1u << shape->max_tpcs_per_gpc) - 1;

		gpc = logical_of[phys];
		if (gpc == MAX_GPCS)
			continue;
		for (nr = shape->max_tpcs_per_gpc; nr > shape->tpcs[gpc];) {
			unsigned int bit = random_below(shape->max_tpcs_per_gpc);

			if (present >> bit & 1) {
				present &= ~(1u << bit);
				nr--;
			}
		}
		put("%u\t0x%x\t%u\n", phys, present, gpc);
	}
}

static void put_bits(const struct shape *shape, const struct tpc *tpcs, unsigned int nr_tpcs)
{
	unsigned int smid;

	put("\n[measured-bits]\nsource = generated by the rule of V04_00\ncolumns = sm bit\n");
	for (smid = 0; smid < nr_tpcs * shape->sms_per_tpc; smid++)
		put("%u\t%u\n", smid, v04_00_bit(shape, &tpcs[smid / shape->sms_per_tpc]));
}

static void generate(unsigned int number)
{
	const struct shape *shape = &shapes[number];
	unsigned int nr_gpcs = strlen((const char *)shape->tpcs), nr_tpcs, gpc;
	unsigned int ugpu[MAX_GPCS];
	uint64_t sum = 0xcbf29ce484222325ull;
	struct tpc tpcs[MAX_TPCS];
	size_t i;

	text_len = 0;
	random_state = 2463534242u + 7919 * number;
	for (gpc = 0; gpc < nr_gpcs; gpc++)
		ugpu[gpc] = (int)gpc < shape->nr_ugpus || !shape->nr_ugpus ?
				    gpc : random_below(shape->nr_ugpus);
	nr_tpcs = number_tpcs(shape, nr_gpcs, tpcs);
	put_gpu(number, shape);
	put_rm(shape, tpcs, nr_tpcs, ugpu);
	put_gpc_map(shape, nr_gpcs);
	if (shape->maxima_from_registers)
		put("\n[registers]\nsource = generated\ncolumns = offset value\n"
		    "0x022430\t0x%08x\n0x022434\t0x%08x\n",
		    shape->max_gpcs, shape->max_tpcs_per_gpc);
	put_bits(shape, tpcs, nr_tpcs);
	put("\n");
	for (i = 0; i < text_len; i++)
		sum = (sum ^ (unsigned char)text[i]) * 1099511628211ull;
	put("checksum = %016llx\n", (unsigned long long)sum);
}

static int write_to(FILE *out)
{
	size_t wrote = fwrite(text, 1, text_len, out);

	return fflush(out) || wrote != text_len;
}

static int write_all(const char *folder)
{
	char path[4096];
	unsigned int number;
	FILE *out;
	int failed;

	for (number = 0; number < NR_SHAPES; number++) {
		snprintf(path, sizeof(path), "%s/%02u.capture", folder, number);
		generate(number);
		out = fopen(path, "w");
		failed = !out || write_to(out);
		if (out)
			fclose(out);
		if (failed) {
			perror(path);
			return 1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	char *end;
	unsigned long number;

	if (argc == 3 && !strcmp(argv[1], "-o"))
		return write_all(argv[2]);
	if (argc == 2) {
		number = strtoul(argv[1], &end, 10);
		if (*argv[1] && !*end && number < NR_SHAPES) {
			generate(number);
			return write_to(stdout);
		}
	}
	fprintf(stderr, "usage: gen-topology NUMBER | -o FOLDER, NUMBER 0-%zu\n", NR_SHAPES - 1);
	return 2;
}
