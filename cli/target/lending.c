// SPDX-License-Identifier: MIT
/* Reads and describes the TPCs that a process may borrow. */
#include <string.h>
#include <sys/stat.h>
#include "cli/target/lending.h"
#include "cli/util/process.h"

bool lending_of(const struct gpupart_process *p, struct gpupart_lending *lending)
{
	char id[64];
	struct stat st;

	/*
	 * If the process is in another pid namespace, its id selects the file of a different
	 * process.
	 */
	if (!p->pid || p->other_version)
		return false;
	process_variable(p->pid, "GPUPART_REPORT", id, sizeof(id));
	/* A user can write any id to this variable. So do not show another user's report. */
	return *id && !stat(id, &st) && st.st_uid == p->uid &&
	       !gpupart_lending_get(NULL, id, lending) && lending->depth_ns;
}

const char *lending_text(char text[LENDING_STRLEN], const struct gpupart_topology *topo,
			 const struct gpupart_lending *lending)
{
	const struct gpupart_lend_counts *c = &lending->counts;
	char set[OUT_SET_STRLEN], lost[64] = "";

	if (c->unbounded)
		snprintf(lost, sizeof(lost), ", %llu were not bounded",
			 (unsigned long long)c->unbounded);
	if (!*lending->lender) {
		snprintf(text, LENDING_STRLEN,
			 "bounds outstanding launches to %g ms: %llu launches waited%s",
			 lending->depth_ns / 1e6, (unsigned long long)c->waited, lost);
		return text;
	}
	if (topo)
		out_set(set, sizeof(set), topo, &lending->tpcs);
	else
		gpupart_tpcset_format_list(&lending->tpcs, set, sizeof(set));
	snprintf(text, LENDING_STRLEN,
		 "borrows from %s: %s%s; %llu launches used lent TPCs, %llu waited%s",
		 lending->lender, gpupart_tpcset_empty(&lending->tpcs) ? "nothing now" : "TPCs ",
		 gpupart_tpcset_empty(&lending->tpcs) ? "" : set,
		 (unsigned long long)c->lent, (unsigned long long)c->waited, lost);
	return text;
}

json_t *lending_json(const struct gpupart_lending *lending)
{
	const struct gpupart_lend_counts *c;
	json_t *set;

	if (!lending)
		return json_null();
	c = &lending->counts;
	set = out_json_tpcs(&lending->tpcs);
	return json_pack("{s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I}",
			 "lender", out_json_text(lending->lender),
			 "set", set,
			 "limit_ns", lending->limit_ns ? json_integer(lending->limit_ns) :
							 json_null(),
			 "depth_ns", (json_int_t)lending->depth_ns,
			 "launches", (json_int_t)c->lent, "waited", (json_int_t)c->waited,
			 "expired", (json_int_t)c->expired, "revoked", (json_int_t)c->revoked,
			 "unbounded", (json_int_t)c->unbounded);
}
