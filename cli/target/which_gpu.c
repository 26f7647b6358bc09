// SPDX-License-Identifier: MIT
/* Finds out whether --gpu selects a GPU of a running program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "cli/target/cuda.h"
#include "cli/target/which_gpu.h"
#include "cli/util/alloc.h"

struct address {
	unsigned int domain, bus, device, function;
};

static bool take_hex(const char **text, size_t most, unsigned int *value)
{
	size_t digits = strspn(*text, "0123456789abcdefABCDEF");

	if (!digits || digits > most)
		return false;
	*value = strtoul(*text, NULL, 16);
	*text += digits;
	return true;
}

/*
 * Reads a PCI address, [DOMAIN:]BUS:DEVICE[.FUNCTION]. The option 'gpupart topology --gpu' has the
 * same form.
 */
static bool parse_address(const char *text, struct address *address)
{
	const char *point = strrchr(text, ':');
	bool has_domain = point && memchr(text, ':', point - text);

	memset(address, 0, sizeof(*address));
	if (has_domain && (!take_hex(&text, 8, &address->domain) || *text++ != ':'))
		return false;
	if (!take_hex(&text, 8, &address->bus) || *text++ != ':' ||
	    !take_hex(&text, 8, &address->device))
		return false;
	if (*text != '.')
		return !*text;
	text++;
	return take_hex(&text, 1, &address->function) && !*text;
}

static bool is_index(const char *text, unsigned int *index)
{
	size_t len = strlen(text);

	*index = atoi(text);
	return len && len < 6 && strspn(text, "0123456789") == len;
}

static bool has_uuid(const char *source, const char *uuid)
{
	struct gpupart_topology *topo;
	bool same;

	if (gpupart_topology_open(NULL, source, NULL, &topo))
		return false;
	same = *uuid && !strcasecmp(gpupart_topology_info(topo)->uuid, uuid);
	gpupart_topology_close(topo);
	return same;
}

static bool is_live(struct which_gpu *which, const char *pci)
{
	struct gpupart_topology *topo;

	if (!which->live_asked &&
	    !gpupart_topology_open(cmd_gp, NULL, which->selector, &topo)) {
		snprintf(which->live, sizeof(which->live), "%s", gpupart_topology_info(topo)->pci);
		gpupart_topology_close(topo);
	}
	which->live_asked = true;
	return !strcmp(which->live, pci);
}

/*
 * Returns whether the selector selects this simulated GPU. If this process does not use the
 * program's captures, the simulated driver of the program is private to the program.
 */
static bool is_simulated(struct which_gpu *which, const char *pci, const char *source,
			 unsigned int index)
{
	const char *captures = getenv("GPUPART_SIM");
	struct cuda_simulated found;
	unsigned int wanted;

	if (!which->simulated_asked && captures && *captures &&
	    !cuda_find_simulated(which->selector, &found) && found.simulated)
		snprintf(which->simulated, sizeof(which->simulated), "%s", found.pci);
	which->simulated_asked = true;
	if (*which->simulated)
		return !strcmp(which->simulated, pci);
	return is_index(which->selector, &wanted) ? wanted == index :
						    has_uuid(source, which->selector);
}

bool which_gpu_is(struct which_gpu *which, const char *pci, const char *source, bool simulated,
		  unsigned int index)
{
	struct address wanted, found;

	if (parse_address(which->selector, &wanted))
		return parse_address(pci, &found) && !memcmp(&wanted, &found, sizeof(found));
	return simulated ? is_simulated(which, pci, source, index) : is_live(which, pci);
}
