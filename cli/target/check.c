// SPDX-License-Identifier: MIT
/*
 * Makes checks before a program starts. Checks the mask bits, the names, and the setting for strict
 * runs.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/target/check.h"
#include "cli/target/cuda.h"
#include "cli/target/driver.h"
#include "cli/util/alloc.h"
#include "cli/util/child.h"
#include "cli/util/message.h"
#include "lib/private.h"

#define CHECK_SECONDS 60
#define NAME_MAX_LEN 63

void check_attach_gpu(void *selector, void *result)
{
	struct gpupart_counters counters;
	struct check *check = result;
	struct gpupart_check found;
	struct gpupart_gpu *gpu;
	struct gpupart *gp;

	/*
	 * The map of mask bits belongs to the GPU. Therefore the check must not use the limit of an
	 * outer run or the library of another tool.
	 */
	unsetenv("GPUPART_SET");
	unsetenv("CUDA_INJECTION64_PATH");
	check->err = gpupart_open(&gp);
	if (check->err)
		return;
	check->err = gpupart_attach(gp, selector, NULL, &gpu);
	gpupart_counters_get(&counters);
	check->called_back = counters.launches;
	if (check->err) {
		check->no_callback = gpupart_callback_unusable();
		snprintf(check->why, sizeof(check->why), "%s", gpupart_error(gp));
		return;
	}
	gpupart_gpu_check(gpu, &found);
	check->from_cache = found.from_cache;
	check->nr_proven = found.nr_proven;
	check->nr_launches = found.nr_launches;
	snprintf(check->layout, sizeof(check->layout), "%s", found.layout);
	snprintf(check->streams, sizeof(check->streams), "%s", found.streams);
	snprintf(check->graphs, sizeof(check->graphs), "%s", found.graphs);
	gpupart_records_lack(gpu, check->records, sizeof(check->records));
	if (gpupart_profilers(gp))
		snprintf(check->profilers, sizeof(check->profilers), "%s", gpupart_error(gp));
	snprintf(check->key, sizeof(check->key), "%.*s%s", GPUPART_KEY_LEN, found.key,
		 *check->records ? "" : GPUPART_KEY_RECORDS);
	gpupart_driver_get(gp, &check->driver);
	snprintf(check->pci, sizeof(check->pci), "%s",
		 gpupart_topology_info(gpupart_gpu_topology(gpu))->pci);
	check->memory = cuda_memory_here(check->pci);
	check->nr_visible = cuda_gpus_here(check->visible);
}

void check_attach_tools(void *selector, void *result)
{
	struct check *check = result;
	struct driver driver;
	void *green;

	setenv("GPUPART_PROFILE", "1", 1);
	check_attach_gpu(selector, result);
	if (!check->err &&
	    !driver_open(&driver, check->green, sizeof(check->green)) &&
	    !driver_start(&driver, check->pci, check->green, sizeof(check->green)))
		driver_green(&driver, &green, check->green, sizeof(check->green));
}

static void check_gpu_alone(void *arg, void *result)
{
	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
	check_attach_gpu(arg, result);
}

int check_in_child(const char *pci, struct check *check)
{
	struct check alone = { 0 };
	char why[128];

	/* The exit of the child destroys the driver's context. So the child closes nothing. */
	if (child_call(check_attach_gpu, (void *)pci, check, sizeof(*check), CHECK_SECONDS, why,
		       sizeof(why)))
		return failure("cannot check the mask bits of GPU %s: %s", pci, why);
	/* A client of MPS cannot check the mask bits. So try again without MPS. */
	if (check->err && getenv("CUDA_MPS_PIPE_DIRECTORY") &&
	    !child_call(check_gpu_alone, (void *)pci, &alone, sizeof(alone), CHECK_SECONDS, why,
			sizeof(why)) &&
	    !alone.err)
		*check = alone;
	if (check->err)
		return error_of(check->err, "%s", *check->why ? check->why : strerror(-check->err));
	return 0;
}

int check_node_strict(bool explicit, const char **node)
{
	struct gpupart *gp = alloc_gpupart();
	int found = gpupart_config_strict(gp), status = 0;

	if (found == -EINVAL || found == -EFBIG)
		status = failure("%s", gpupart_error(gp));
	else if (found < 0 && !explicit)
		remark("%s%s", gpupart_error(gp),
		       found == -EPERM ? "" : ": treated as strict = yes");
	gpupart_close(gp);
	*node = !config_is_strict(found) ? NULL :
		found > 0 ? "strict = yes in /etc/gpupart/config" :
			    "/etc/gpupart/config, which cannot be read,";
	return status;
}

bool check_is_name(const char *name)
{
	size_t len = strlen(name);

	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
			len = 0;
	/* 'gpupart set' would parse such a name as an option. */
	if (*name == '-')
		len = 0;
	return len && len <= NAME_MAX_LEN;
}

int check_name(const char *option, const char *name)
{
	if (check_is_name(name))
		return 0;
	return usage_error(
		"%s %s: must be 1 to %d characters of A-Z a-z 0-9 . _ -, and must not begin with '-'",
		option, *name ? name : "''", NAME_MAX_LEN);
}
