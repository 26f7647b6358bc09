// SPDX-License-Identifier: MIT
/* Writes and removes grants. Only root can do this. See grant.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "lib/core/ctx.h"
#include "lib/core/state_dir.h"
#include "lib/private.h"
#include "lib/state/grant.h"

/*
 * Writes a grant's file into @folder. If @folder is NULL, uses the machine's directory of grants.
 */
static int write_file(const char *folder, const struct gpupart_grant *grant)
{
	struct grant_file file;
	STATE_CLOSED int dir = folder ? grant_open_folder(folder) : grant_open_dir(true);
	char link[GRANT_LINK_LEN];

	if (dir < 0)
		return dir;
	/* A grant of another version must not be replaced if it allows TPCs. */
	if (grant_read(dir, grant->id, &file.grant) && file.grant.other_version &&
	    !gpupart_tpcset_empty(&file.grant.set))
		return -EPROTO;
	memset(&file, 0, sizeof(file));
	shared_init(&file.header, GRANT_LAYOUT, sizeof(file));
	strcpy(file.header.id, grant->id);
	strcpy(file.header.name, grant->name);
	strcpy(file.gpu.pci, grant->pci);
	strcpy(file.gpu.key, grant->key);
	file.header.uid = grant->uid;
	file.gpu.nr_tpcs = grant->nr_tpcs;
	file.gpu.simulated = strcmp(grant->source, "rm") && strcmp(grant->source, "kernel");
	file.gpu.strict = grant->strict;
	file.gpu.tpcs = grant->set;
	file.gpu.memory = grant->memory;
	atomic_init(&file.header.nr_gpus, 1);
	atomic_init(&file.header.magic, SHARED_MAGIC(SHARED_GRANT));
	file.grant = *grant;
	grant_link_name(grant->id, link);
	/*
	 * Only root can change the owner of the link. If the caller is not root, readers ignore the
	 * grant anyway.
	 */
	if ((symlinkat("user", dir, link) && errno != EEXIST) ||
	    (fchownat(dir, link, grant->uid, -1, AT_SYMLINK_NOFOLLOW) && errno != EPERM))
		return -errno;
	return state_dir_write_file(dir, grant->id, &file, sizeof(file), 0644);
}

int gpupart_grant_put_in(struct gpupart *gp, const char *folder,
			 const struct gpupart_grant *grant)
{
	char list[GPUPART_TPCSET_STRLEN];
	int err;

	if (!grant_is_valid(grant))
		return ctx_fail(gp, -EINVAL,
				"the grant '%.63s' (id %.63s) is invalid: check its id, name and key",
				grant->name, grant->id);
	gpupart_tpcset_format_list(&grant->set, list, sizeof(list));
	if (!grant_set_is_valid(grant))
		return ctx_fail(gp, -EINVAL,
				"job %s: TPCs %s cannot be granted: GPU \"%s\" has %u TPCs",
				grant->name, *list ? list : "-", grant->pci, grant->nr_tpcs);
	err = write_file(folder, grant);
	if (err == -EPROTO)
		return ctx_fail(gp, err,
				"job %s has a grant that another version of gpupart wrote: only that version can change the grant",
				grant->name);
	return err ? ctx_fail(gp, err, "the grant of job %s cannot be written below %s: %s",
			      grant->name, folder ? folder : GPUPART_GRANT_ROOT, strerror(-err))
		   : 0;
}

int gpupart_grant_drop(struct gpupart *gp, const char *id)
{
	STATE_CLOSED int dir = grant_is_id(id) ? grant_open_dir(false) : -EINVAL;
	int err = dir < 0 ? dir : 0;
	char link[GRANT_LINK_LEN];

	if (dir == -ENOENT)
		return 0;
	if (!err && unlinkat(dir, id, 0) && errno != ENOENT)
		err = -errno;
	if (!err) {
		grant_link_name(id, link);
		unlinkat(dir, link, 0);
	}
	return err ? ctx_fail(gp, err, "the grant %.63s cannot be removed from " GPUPART_GRANT_ROOT
			      ": %s", id ? id : "''", strerror(-err))
		   : 0;
}
