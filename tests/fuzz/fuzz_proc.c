// SPDX-License-Identifier: MIT
/*
 * Fuzz target: the files of processes in /proc. The input is either any bytes or a file in the
 * kernel's form. In the kernel's form, the name and the numbers can be any. The library's reader
 * and the command's reader share no code. Both readers must return the values of the input.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/util/namespaces.h"
#include "cli/util/process.h"
#include "lib/core/state_dir.h"
#include "lib/state/holder.h"
#include "tests/fuzz/fuzz.h"

#define PID 4242

static char *text;		/* content of every opened file */
static size_t text_len;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);

static bool is_ours(const char *path)
{
	return text && !strncmp(path, "/proc/", 6) && strncmp(path, "/proc/self/fd", 13);
}

int __wrap_open(const char *path, int flags, ...)
{
	return __real_open(is_ours(path) ? fuzz_file(text, text_len) : path, flags, 0600);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (strstr(path, "timens_offsets"))
		return NULL;
	return __real_fopen(is_ours(path) ? fuzz_file(text, text_len) : path, mode);
}

/* ------------------------------------------------------------------- the kernel's form */

/* Writes "PID (NAME) STATE .." with at least 22 fields. Sets the expected values. */
static uint64_t make_stat(struct input *in)
{
	static char room[2048];
	char name[16], state = "RSDZTX"[input_u8(in) % 6];
	unsigned int nr_threads = input_u8(in) % 3 + 1;
	uint64_t start = input_u64(in) >> 1;
	int len;

	input_bytes(in, name, sizeof(name) - 1);
	name[15] = 0;
	/*
	 * The kernel writes escapes for these two characters. So the name must not contain these
	 * characters.
	 */
	for (char *c = name; *c; c++)
		if (*c == '\n' || *c == '\\')
			*c = '?';
	len = snprintf(room, sizeof(room), "%d (%s) %c", PID, name, state);
	for (int field = 4; field <= 30; field++)
		len += field == 20 ? snprintf(room + len, sizeof(room) - len, " %u", nr_threads) :
		       field == 22 ? snprintf(room + len, sizeof(room) - len, " %llu",
					      (unsigned long long)start) :
				     snprintf(room + len, sizeof(room) - len, " %d",
					      (int)input_u16(in) - 1000);
	room[len++] = '\n';
	text = room;
	text_len = len;
	/*
	 * If only the first thread of a process is dead, the library treats the process as alive.
	 */
	if (state == 'X' || (state == 'Z' && nr_threads == 1))
		return 0;
	return start;
}

static void check_stat(struct input *in)
{
	uint64_t start = make_stat(in);
	struct process found;
	bool zombie = strstr(strrchr(text, ')'), ") Z");

	MUST(state_dir_process_start(PID) == start);
	MUST(process_find(PID, &found) == (!zombie && start));
	MUST(zombie || found.start == start);
	MUST(!start || state_dir_process_lives(PID, start));
	MUST(state_dir_process_lives(PID, start + 5) == false);
}

static void check_status(struct input *in)
{
	static char room[512];
	struct state_dir_status status;
	unsigned int uid[4], nr = input_u8(in) % 4;
	char name[16];
	int len, pid = 0;

	input_bytes(in, name, sizeof(name) - 1);
	name[15] = 0;
	name[strcspn(name, "\n")] = 0;
	for (int i = 0; i < 4; i++)
		uid[i] = input_u64(in);
	len = snprintf(room, sizeof(room), "Name:\t%s\nUid:\t%u\t%u\t%u\t%u\nNSpid:", name,
		       uid[0], uid[1], uid[2], uid[3]);
	for (unsigned int i = 0; i < nr; i++) {
		pid = input_u16(in) + 1;
		len += snprintf(room + len, sizeof(room) - len, "\t%d", pid);
	}
	len += snprintf(room + len, sizeof(room) - len, "\nThreads:\t1\n");
	text = room;
	text_len = len;
	MUST(state_dir_read_status(PID, &status));
	MUST(!memcmp(status.uids, uid, sizeof(uid)));
	MUST(status.inner == pid && status.nested == (nr > 1));
}

/* ----------------------------------------------------------------------- any bytes */

static void check_any(const uint8_t *data, size_t size)
{
	struct state_page *block = aligned_alloc(_Alignof(struct state_page), sizeof(*block));
	struct holder_table table = { 0 };
	struct state_dir_status status;
	char how[512];
	struct process process;
	int fd;

	text = (char *)data;
	text_len = size;
	state_dir_process_start(PID);
	process_find(PID, &process);
	state_dir_read_status(PID, &status);
	namespaces_advice(how, sizeof(how));
	/* Searches the text of the processes' maps for a file. */
	memset(block, 0, sizeof(*block));
	block->header.pid = PID;
	block->header.pid_namespace = state_dir_pid_namespace();
	fd = __real_open("/dev/null", O_RDONLY | O_CLOEXEC);
	MUST(fd >= 0);
	holder_pid(fd, geteuid(), &block->header, &table);
	holder_table_free(&table);
	close(fd);
	free(block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };

	check_stat(&in);
	in = (struct input){ data, size };
	check_status(&in);
	check_any(data, size);
	text = NULL;
	return 0;
}
