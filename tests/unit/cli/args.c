// SPDX-License-Identifier: MIT
/*
 * Tests the selection of a GPU by options and by CUDA_VISIBLE_DEVICES. The test needs no driver.
 */
#include "tests/tap.h"
#include "cli/target/amount.c"
#include "cli/target/args.c"
#include "cli/target/clusters.c"
#include "cli/util/alloc.c"
#include "cli/util/number.c"

static int probe_err, nr_probes;
static char said[512];

const char *cmd_name;

int cmd_fail(const char *cmd, int status, const char *fmt, ...)
{
	va_list ap;

	(void)cmd;
	va_start(ap, fmt);
	vsnprintf(said, sizeof(said), fmt, ap);
	va_end(ap);
	return status;
}

void cmd_note(const char *cmd, const char *fmt, ...)
{
	(void)cmd;
	(void)fmt;
}

int cmd_exit_status(int result, bool starts)
{
	(void)starts;
	return result;
}

int cmd_status(int err)
{
	return err ? EXIT_USAGE : 0;
}

const char *out_set(char *text, size_t len, const struct gpupart_topology *topo,
		    const struct gpupart_tpcset *set)
{
	(void)topo;
	(void)set;
	snprintf(text, len, "TPCs");
	return text;
}

int cuda_probe(struct cuda_probe *probe)
{
	nr_probes++;
	*probe = (struct cuda_probe){
		.nr_devices = 1, .pci = { "0000:0d:00.0" }, .why = "no driver",
	};
	return probe_err;
}

int cuda_find_simulated(const char *selector, struct cuda_simulated *found)
{
	(void)selector;
	*found = (struct cuda_simulated){ 0 };
	return 0;
}

int out_open(struct out *out, const struct args *args)
{
	(void)args;
	out->file = stdout;
	return 0;
}

int out_close(struct out *out)
{
	(void)out;
	return 0;
}

void out_append(char *text, size_t len, const char *fmt, ...)
{
	(void)text;
	(void)len;
	(void)fmt;
}

int settings_default(const char *key, const struct setting **setting)
{
	(void)key;
	*setting = NULL;
	return 0;
}

void settings_note(void)
{
}

int settings_set(const char *name, const struct setting **setting)
{
	(void)name;
	*setting = NULL;
	return EXIT_USAGE;
}

struct gpupart_tpcset neighbours_tpcs(const struct args *args, const struct gpupart_topology *topo,
				      const char *pci, const struct gpupart_tpcset *within)
{
	(void)args;
	(void)topo;
	(void)pci;
	(void)within;
	return (struct gpupart_tpcset){ 0 };
}

void neighbours_note(const struct args *args, const struct gpupart_topology *topo, const char *pci,
		     const struct gpupart_tpcset *within, const struct gpupart_tpcset *set)
{
	(void)args;
	(void)topo;
	(void)pci;
	(void)within;
	(void)set;
}

int neighbours_lock(void)
{
	return 0;
}

int paths_full(const char *path, char *full, size_t len)
{
	snprintf(full, len, "%s", path);
	return 0;
}

bool paths_is_live(const char *source)
{
	(void)source;
	return false;
}

int paths_enter_sim(const char *capture)
{
	(void)capture;
	return EXIT_USAGE;
}

static const char *gpu_for(struct args *args, const char *visible)
{
	const char *gpu = NULL;
	int status;

	if (visible)
		setenv("CUDA_VISIBLE_DEVICES", visible, 1);
	else
		unsetenv("CUDA_VISIBLE_DEVICES");
	status = args_gpu(args, &gpu);
	return status ? "refused" : gpu ? gpu : "first";
}

#define IS(args, visible, wanted) do { \
	const char *found_ = gpu_for(args, visible); \
	tap_ok(!strcmp(found_, wanted), "%s: %s", visible ? visible : "not set", found_); \
} while (0)

int main(void)
{
	struct args args = { .cmd = "test" };
	struct args named = { .cmd = "test", .gpu = "3" };

	IS(&args, NULL, "first");
	IS(&args, "GPU-aaa", "GPU-aaa");
	IS(&args, "GPU-aaa,GPU-bbb", "GPU-aaa");
	IS(&named, "GPU-aaa,GPU-bbb", "3");
	tap_ok(!nr_probes, "none of these asks the driver");
	IS(&args, "-1", "0000:0d:00.0");
	probe_err = -EIO;
	IS(&args, "", "refused");
	tap_ok(strstr(said, "no driver"), "and says why: %s", said);
	return tap_done();
}
