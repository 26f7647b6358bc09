// SPDX-License-Identifier: MIT
/*
 * gpupart slurm-conf: writes lines for Slurm's configuration files. With these lines, slurmctld
 * counts the TPCs and the memory of each GPU on a node.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/cmd.h"
#include "cli/slurm/node_gpus.h"
#include "cli/target/args.h"
#include "cli/util/out.h"
#include "cli/util/paths.h"

const char slurm_conf_help[] =
"Usage: gpupart slurm-conf [--of FORM] [--node NAME] [-i CAPTURE ...] [--mem SIZE]\n"
"                          [--json] [-o FILE]\n"
"Writes the lines that Slurm's configuration files need for this node's GPUs, or for\n"
"the GPUs of captures. Slurm counts TPCs as shards of a GPU, and memory as tpcmem in\n"
"MiB. Without --of it writes all pieces, each under the name of its file.\n"
"\n"
"      --of FORM       write only this piece:\n"
"                      gres       gres.conf: lines for the node\n"
"                      node       slurm.conf: Gres= for the node's line NodeName=\n"
"                      boards     gpupart-boards.lua: which requests can never fit\n"
"                      cluster    slurm.conf: lines needed once per cluster\n"
"                      plugstack  plugstack.conf\n"
"                      submit     job_submit.lua, for a cluster without one\n"
"      --node NAME     the node's name (default: this host's name)\n"
"  -i, --input CAPTURE a GPU of another node, from 'gpupart topology --of capture', or\n"
"                      sample:NAME; one -i for each GPU, in the order of the numbers\n"
"                      of /dev/nvidiaN\n"
"      --mem SIZE      memory of each GPU; needed with -i, since captures lack it\n"
"      --json          print JSON, schema gpupart/1\n"
"  -o, --output FILE   write FILE instead of stdout; FILE.json: as with --json\n"
"\n"
"Without -i it uses the results of 'gpupart slurm-node', which root must run first.\n"
"\n"
"Examples:\n"
"  gpupart slurm-conf --of gres >>/etc/slurm/gres.conf\n"
"  gpupart slurm-conf --node n7 -i n7-gpu0.capture -i n7-gpu1.capture --mem 141G\n";

#define MIB (1ull << 20)

/* A GPU model. Its memory size is in MiB. */
struct board {
	char type[64];		/* Slurm's name of the type, such as "h200" */
	/* numbers of TPCs: in the largest uGPU, in the smallest GPC, and for a cluster */
	unsigned int tpcs, ugpu, gpc, home;
	uint64_t mib;
};

struct conf {
	const char *node;
	struct node_gpus gpus;
};

/* Converts "NVIDIA H200" to "h200". Slurm's types consist of letters, digits, '_' and '-'. */
static void type_of(const char *name, char *type, size_t len)
{
	size_t n = 0;

	if (!strncmp(name, "NVIDIA ", 7))
		name += 7;
	for (; *name && n + 1 < len; name++)
		type[n++] = isalnum((unsigned char)*name) ? tolower((unsigned char)*name) : '_';
	type[n] = 0;
	if (!n)
		snprintf(type, len, "gpu");
}

/*
 * Returns the number of TPCs in the largest virtual GPC, rounded down to a power of 2. A cluster
 * must fit in one virtual GPC.
 */
static unsigned int largest_home(const struct gpupart_topology *topo)
{
	unsigned int largest = 0, home = 1;

	for (unsigned int v = 0; v < gpupart_topology_end_vgpc(topo); v++) {
		struct gpupart_tpcset set = gpupart_topology_vgpc(topo, v);
		unsigned int nr = gpupart_tpcset_count(&set);

		largest = nr > largest ? nr : largest;
	}
	for (unsigned int g = 0; !gpupart_topology_end_vgpc(topo) &&
				 g < gpupart_topology_nr_gpcs(topo); g++) {
		unsigned int nr = gpupart_tpcset_count(&gpupart_topology_gpc(topo, g)->tpcs);

		largest = nr > largest ? nr : largest;
	}
	while (2 * home <= largest)
		home *= 2;
	return home;
}

static void board_of(const struct node_gpu *gpu, struct board *board)
{
	const struct gpupart_topology *topo = gpu->topo;

	type_of(gpupart_topology_info(topo)->name, board->type, sizeof(board->type));
	board->tpcs = gpupart_topology_nr_tpcs(topo);
	board->mib = gpu->memory / MIB;
	board->home = largest_home(topo);
	board->ugpu = 0;
	for (unsigned int u = 0; u < gpupart_topology_nr_ugpus(topo); u++) {
		struct gpupart_tpcset set = gpupart_topology_ugpu(topo, u);
		unsigned int nr = gpupart_tpcset_count(&set);

		board->ugpu = nr > board->ugpu ? nr : board->ugpu;
	}
	board->gpc = board->tpcs;
	for (unsigned int g = 0; g < gpupart_topology_nr_gpcs(topo); g++) {
		unsigned int nr = gpupart_tpcset_count(&gpupart_topology_gpc(topo, g)->tpcs);

		board->gpc = nr < board->gpc ? nr : board->gpc;
	}
}

static uint64_t memory_of(const struct conf *conf)
{
	uint64_t mib = 0;

	for (unsigned int i = 0; i < conf->gpus.nr; i++)
		mib += conf->gpus.gpus[i].memory / MIB;
	return mib;
}

static void print_gres(FILE *file, const struct conf *conf)
{
	struct board board;

	for (unsigned int i = 0; i < conf->gpus.nr; i++) {
		const struct node_gpu *gpu = &conf->gpus.gpus[i];

		board_of(gpu, &board);
		fprintf(file, "NodeName=%s Name=gpu Type=%s File=/dev/nvidia%u\n", conf->node,
			board.type, gpu->number);
	}
	for (unsigned int i = 0; i < conf->gpus.nr; i++)
		fprintf(file, "NodeName=%s Name=shard Count=%u File=/dev/nvidia%u\n", conf->node,
			gpupart_topology_nr_tpcs(conf->gpus.gpus[i].topo),
			conf->gpus.gpus[i].number);
	fprintf(file, "NodeName=%s Name=tpcmem Count=%llu\n", conf->node,
		(unsigned long long)memory_of(conf));
}

/* Prints text such as "gpu:h200:2,shard:132,tpcmem:287542", with each type once. */
static void print_node_gres(FILE *file, const struct conf *conf)
{
	unsigned int tpcs = 0;

	for (unsigned int i = 0; i < conf->gpus.nr; i++) {
		unsigned int alike = 0, before = 0;
		struct board board, other;

		board_of(&conf->gpus.gpus[i], &board);
		tpcs += board.tpcs;
		for (unsigned int j = 0; j < conf->gpus.nr; j++) {
			board_of(&conf->gpus.gpus[j], &other);
			alike += !strcmp(board.type, other.type);
			before += j < i && !strcmp(board.type, other.type);
		}
		if (!before)
			fprintf(file, "gpu:%s:%u,", board.type, alike);
	}
	fprintf(file, "shard:%u,tpcmem:%llu", tpcs, (unsigned long long)memory_of(conf));
}

static void print_node(FILE *file, const struct conf *conf)
{
	fprintf(file, "# in the line NodeName=%s:\n#   Gres=", conf->node);
	print_node_gres(file, conf);
	fputs("\n", file);
}

static void print_boards(FILE *file, const struct conf *conf)
{
	struct board board;

	for (unsigned int i = 0; i < conf->gpus.nr; i++) {
		board_of(&conf->gpus.gpus[i], &board);
		fprintf(file,
			"board { node = \"%s\", gpu = \"%s\", tpcs = %u, memory = %llu, "
			"ugpu = %u, gpc = %u, home = %u }\n",
			conf->node, board.type, board.tpcs, (unsigned long long)board.mib,
			board.ugpu, board.gpc, board.home);
	}
}

static void print_cluster(FILE *file, const struct conf *conf)
{
	char path[4096];

	(void)conf;
	fputs("GresTypes=gpu,shard,tpcmem\n"
	      "SelectType=select/cons_tres\n"
	      "JobSubmitPlugins=lua\n", file);
	if (!paths_package("slurm-health", path, sizeof(path)))
		fprintf(file, "HealthCheckProgram=%s\nHealthCheckInterval=60\n", path);
	fputs("# accounting can also limit these resources (sacctmgr: GrpTRES=gres/shard=32):\n"
	      "# AccountingStorageTRES=gres/gpu,gres/shard,gres/tpcmem\n", file);
}

static void print_plugstack(FILE *file, const struct conf *conf)
{
	char path[4096];

	(void)conf;
	if (paths_package("gpupart_spank.so", path, sizeof(path)))
		snprintf(path, sizeof(path), "gpupart_spank.so");
	/*
	 * The plugin is optional. A node without the plugin runs jobs that do not need the plugin.
	 */
	fprintf(file, "optional %s\n", path);
}

static void print_submit(FILE *file, const struct conf *conf)
{
	char path[4096];

	(void)conf;
	if (paths_package("gpupart.lua", path, sizeof(path)))
		snprintf(path, sizeof(path), "/usr/local/lib/gpupart/gpupart.lua");
	fprintf(file,
		"-- If the cluster has a job_submit.lua, add the lines that end with -- to it.\n"
		"local gpupart = dofile(\"%s\") --\n"
		"function board(b) table.insert(gpupart.boards, b) end --\n"
		"dofile(\"/etc/slurm/gpupart-boards.lua\") --\n"
		"\n"
		"function slurm_job_submit(job_desc, part_list, submit_uid)\n"
		"\tif not gpupart.submit(job_desc) then return slurm.ERROR end --\n"
		"\treturn slurm.SUCCESS\n"
		"end\n"
		"\n"
		"function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)\n"
		"\tif not gpupart.modify(job_desc, modify_uid) then return slurm.ERROR end --\n"
		"\treturn slurm.SUCCESS\n"
		"end\n"
		"\n"
		"return slurm.SUCCESS\n", path);
}

static const struct piece {
	const char *name, *file;
	void (*print)(FILE *file, const struct conf *conf);
	bool of_gpus;		/* true: the text depends on the GPUs; false: it does not */
} pieces[] = {
	{ "gres", "gres.conf", print_gres, true },
	{ "node", "slurm.conf", print_node, true },
	{ "boards", "gpupart-boards.lua", print_boards, true },
	{ "cluster", "slurm.conf", print_cluster, false },
	{ "plugstack", "plugstack.conf", print_plugstack, false },
	{ "submit", "job_submit.lua", print_submit, false },
};

#define NR_PIECES (sizeof(pieces) / sizeof(pieces[0]))

static json_t *json_board(const struct node_gpu *gpu)
{
	struct board board;

	board_of(gpu, &board);
	return json_pack("{s:i, s:s, s:i, s:I, s:i, s:i, s:i, s:b}", "number", (int)gpu->number,
			 "type", board.type, "nr_tpcs", (int)board.tpcs,
			 "memory_mib", (json_int_t)board.mib, "ugpu_tpcs", (int)board.ugpu,
			 "smallest_gpc_tpcs", (int)board.gpc, "home_tpcs", (int)board.home,
			 "simulated", gpu->simulated);
}

static void print_json(struct out *out, const struct conf *conf)
{
	json_t *root, *boards = json_array();
	bool simulated = false;
	char *text = NULL;
	size_t len;
	FILE *file = alloc_file(&text, &len);

	for (unsigned int i = 0; i < conf->gpus.nr; i++) {
		simulated |= conf->gpus.gpus[i].simulated;
		json_array_append_new(boards, json_board(&conf->gpus.gpus[i]));
	}
	root = out_json_new("slurm-conf", simulated);
	print_node_gres(file, conf);
	alloc_file_close(file);
	json_object_set_new(root, "node", out_json_text(conf->node));
	json_object_set_new(root, "gres", out_json_text(text));
	json_object_set_new(root, "gpus", boards);
	out_json_write(out, root);
	free(text);
}

static int print(const struct args *args, const struct piece *only, const struct conf *conf)
{
	struct out out;
	int status = out_open(&out, args);

	if (status)
		return status;
	for (size_t i = 0; i < NR_PIECES && !args->json; i++) {
		if (only && only != &pieces[i])
			continue;
		if (!only)
			fprintf(out.file, "%s%s %s\n", i ? "\n" : "",
				strstr(pieces[i].file, ".lua") ? "--" : "#", pieces[i].file);
		pieces[i].print(out.file, conf);
	}
	if (args->json)
		print_json(&out, conf);
	return out_close(&out);
}

/* Adds a GPU for each capture. GPU number N belongs to capture number N. Returns 0 or an error. */
static int take_captures(const struct args_texts *captures, uint64_t memory, struct node_gpus *node)
{
	for (unsigned int i = 0; i < captures->nr; i++) {
		struct node_gpu *gpu = &node->gpus[node->nr];
		int err;

		if (node->nr == NODE_GPUS_MAX)
			return usage_error("-i %s: there are more than %d GPUs", captures->texts[i],
					   NODE_GPUS_MAX);
		err = gpupart_topology_open(cmd_gp, captures->texts[i], NULL, &gpu->topo);
		if (err)
			return error_of(err, "-i %s: %s", captures->texts[i],
					gpupart_error(cmd_gp));
		gpu->number = node->nr++;
		gpu->memory = memory;
		gpu->simulated = !strncmp(captures->texts[i], "sample:", 7);
	}
	return 0;
}

static int take_node(const char *given, char *name, size_t len)
{
	if (given)
		snprintf(name, len, "%s", given);
	else if (gethostname(name, len))
		return failure("cannot read this host's name: %s", strerror(errno));
	name[len - 1] = 0;
	name[strcspn(name, ".")] = 0;
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_", *c))
			*name = 0;
	if (*name)
		return 0;
	return usage_error("--node '%s': must be a name of letters, digits, '-' and '_'",
			   given ? given : "");
}

static int find_piece(const char *name, const struct piece **piece)
{
	*piece = NULL;
	for (size_t i = 0; name && i < NR_PIECES; i++)
		if (!strcmp(pieces[i].name, name))
			*piece = &pieces[i];
	if (!name || *piece)
		return 0;
	return usage_error("--of %s: must be gres, node, boards, cluster, plugstack or submit",
			   name);
}

int cmd_slurm_conf(int argc, char **argv)
{
	const char *of = NULL, *node = NULL, *mem = NULL;
	struct args_texts captures = { 0 };
	const struct args_option own[] = { { .name = "of", .value = &of },
					   { .name = "node", .value = &node },
					   { .name = "mem", .value = &mem },
					   { .name = "input", .letter = 'i', .values = &captures },
					   { 0 } };
	static struct conf conf;
	struct args args = { 0 };
	const struct piece *piece;
	uint64_t memory = 0;
	char name[256];
	int status;

	status = args_parse(&args, ARGS_JSON | ARGS_OUTPUT, own, slurm_conf_help, argc, argv) ?:
		 find_piece(of, &piece) ?:
		 take_node(node, name, sizeof(name));
	if (!status && mem)
		status = args_memory(mem, &memory);
	if (!status && !mem != !captures.nr)
		status = usage_error(
			"%s",
			mem ? "--mem is only for captures (-i): the GPUs of this node report "
			      "the size of their memory"
			    : "-i: captures do not contain the memory size of a GPU: use --mem");
	if (status)
		return status;
	conf.node = name;
	if (captures.nr)
		status = take_captures(&captures, memory, &conf.gpus);
	else if (!piece || piece->of_gpus || args.json)
		status = node_gpus_read(&conf.gpus);
	else
		status = 0;
	if (!status)
		status = print(&args, piece, &conf);
	node_gpus_close(&conf.gpus);
	return status;
}
