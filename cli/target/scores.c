// SPDX-License-Identifier: MIT
/*
 * Writes and reads the file of QoS scores. The first line identifies the process that wrote the
 * file. The first line also has the time at which the scores become invalid, in ms since boot. Each
 * other line is for a tenant.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/target/state_dir.h"
#include "cli/target/scores.h"
#include "cli/util/alloc.h"
#include "cli/util/atomic_file.h"
#include "cli/util/process.h"

#define FILE_STRLEN	40
#define MAX_BYTES	8192

static const char *file_of(char file[FILE_STRLEN], const char *pci)
{
	snprintf(file, FILE_STRLEN, "qos-%.19s.scores", pci);
	return file;
}

static char *path_of(const char *pci)
{
	char folder[STATE_DIR_PATH_LEN], file[FILE_STRLEN];

	return alloc_text("%s/%s", state_dir_path(geteuid(), folder), file_of(file, pci));
}

int scores_write(const char *pci, const struct score *list, unsigned int nr, long hold_ms)
{
	char *path = path_of(pci), *text;
	struct process self;
	size_t len;
	FILE *file = alloc_file(&text, &len);
	int err;

	process_find(getpid(), &self);
	fprintf(file, "%d %llu %ld\n", self.pid, self.start, process_now_ms() + hold_ms);
	for (const struct score *score = list; score < list + nr; score++)
		fprintf(file, "%s %d %u %d %llu %d %d\n", *score->job ? score->job : "-",
			score->pid, score->milli, score->met, (unsigned long long)score->lend_ns,
			score->has_limit, score->idle);
	alloc_file_close(file);
	err = atomic_file_write(path, text);
	free(text);
	free(path);
	return err;
}

void scores_remove(const char *pci)
{
	char *path = path_of(pci);

	unlink(path);
	free(path);
}

/*
 * Reads a file of user @uid into @text. This user is not trusted. If reading fails, returns false.
 */
static bool read_file(unsigned int uid, const char *file, char text[MAX_BYTES])
{
	char folder[STATE_DIR_PATH_LEN];
	int dir = open(state_dir_path(uid, folder), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int fd = dir < 0 ? -1 : openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
				       O_CLOEXEC);
	ssize_t nr = -1;
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == uid &&
	    st.st_size < MAX_BYTES)
		nr = read(fd, text, MAX_BYTES - 1);
	if (fd >= 0)
		close(fd);
	if (dir >= 0)
		close(dir);
	text[nr > 0 ? nr : 0] = 0;
	return nr > 0;
}

unsigned int scores_read(unsigned int uid, const char *pci, struct score *list)
{
	char text[MAX_BYTES], file[FILE_STRLEN], *line, *save;
	struct process writer;
	unsigned int nr = 0;
	long until;

	/* The address comes from another user. So check the address. */
	if (!*pci || strchr(pci, '/') || !read_file(uid, file_of(file, pci), text) ||
	    sscanf(text, "%d %llu %ld", &writer.pid, &writer.start, &until) != 3 ||
	    process_now_ms() > until || !process_lives(&writer))
		return 0;
	strtok_r(text, "\n", &save);
	while (nr < SCORES_MAX && (line = strtok_r(NULL, "\n", &save))) {
		struct score *score = &list[nr];
		unsigned long long lend;
		int met, has_limit, idle;

		if (sscanf(line, "%63s %d %u %d %llu %d %d", score->job, &score->pid,
			   &score->milli, &met, &lend, &has_limit, &idle) != 7)
			continue;
		score->idle = idle;
		score->lend_ns = lend;
		score->has_limit = has_limit;
		if (!strcmp(score->job, "-"))
			*score->job = 0;
		score->met = met;
		nr++;
	}
	return nr;
}
