// SPDX-License-Identifier: MIT
/*
 * Reads the tenant's share of a GPU from the tenant's ledger. If the tenant has no ledger yet,
 * reads the share from the environment variables that `gpupart run --mem` set.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "lib/core/environment.h"
#include "lib/ledger/ledger.h"
#include "lib/nvml/share.h"

/*
 * These values are copied from the environment when the program starts. Later, any thread of the
 * program may change the environment.
 */
static char tenant[LEDGER_NAME_LEN];
static uint64_t first_quota;	/* quota of each GPU without a quota in the ledger; 0: no quota */

bool share_setup(void)
{
	struct environment environment = environment_read();

	if (!environment.tenant || !state_dir_name_valid(environment.tenant) ||
	    environment.untouched)
		return false;
	strcpy(tenant, environment.tenant);
	first_quota = environment_mem(&environment);
	return true;
}

static int find_gpu(const struct ledger_view *view, const char *pci)
{
	for (unsigned int i = 0; i < view->nr_gpus; i++)
		if (!strcasecmp(view->gpus[i].pci, pci))
			return i;
	return -1;
}

static void look(struct share *share)
{
	*share = (struct share){ .gpu = -1 };
	if (ledger_read(geteuid(), tenant, &share->view))
		share->view = NULL;
}

bool share_open(const char *pci, struct share *share)
{
	look(share);
	if (share->view) {
		share->gpu = find_gpu(share->view, pci);
		share->quota = share->view->quota;
	}
	if (share->gpu >= 0) {
		share->quota = share->view->gpus[share->gpu].quota;
		share->used = share->view->gpus[share->gpu].used;
	}
	if (!share->quota)
		share->quota = first_quota;
	if (!share->quota)
		share_close(share);
	return share->quota;
}

bool share_open_everywhere(struct share *share)
{
	if (!first_quota)
		return false;
	look(share);
	return true;
}

void share_close(struct share *share)
{
	free(share->view);
	share->view = NULL;
}

bool share_has(const struct share *share, uint32_t pid, uint64_t *used)
{
	*used = 0;
	for (unsigned int i = 0; share->view && i < share->view->nr_processes; i++) {
		const struct ledger_process *process = &share->view->processes[i];

		if (!pid || (uint32_t)process->pid != pid)
			continue;
		*used = share->gpu < 0 ? 0 : process->used[share->gpu];
		return true;
	}
	return false;
}
