// SPDX-License-Identifier: MIT
/*
 * Tests that the reader gets the exact records of another process. That process may write wrong
 * values and may end at any time, but it must not harm the reader.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gpupart_manage.h>
#include "lib/core/hash.h"
#include "lib/private.h"
#include "tests/unit/records/gpu.h"

#define CTX		((void *)(uintptr_t)0x7000)
#define NR_KILLS	200
#define NR_LIES		300

/*
 * A process executes one command for each byte that it receives, and answers each command with a
 * byte.
 */
struct other {
	int in, out;
	pid_t pid;
};

static bool begins_without;	/* the process has no context before a command creates one */
static struct launched waiting[64];
static unsigned int nr_waiting;

static void lie(struct state_records *shown, unsigned int seed)
{
	unsigned char *bytes = (unsigned char *)shown;
	uint64_t *words = (uint64_t *)shown;
	unsigned char *section = (unsigned char *)records->section;

	srandom(seed);
	for (size_t i = 0; i < sizeof(*shown) / 8; i++)
		if (seed % 3 == 0 || random() % 8 == 0)
			words[i] = seed % 2 ? (uint64_t)random() % 5000 : ~0ull - random() % 5000;
	for (size_t i = 0; i < 200; i++)
		bytes[random() % sizeof(*shown)] = random();
	for (size_t i = 0; i < 5000; i++)
		section[random() % sizeof(*records->section)] = random();
	/*
	 * In each ring, a million launches were made. All launches have ended, or as many
	 * launches as possible.
	 */
	for (int i = 0; seed % 5 == 0 && i < RECORDS_NR_CELLS; i++)
		records->section->cells[i].payload = 0x40000000;
	for (int i = 0; seed % 5 == 0 && i < STATE_NR_RINGS; i++) {
		shown->rings[i].issued = seed % 10 ? 1000000 : UINT64_MAX;
		shown->rings[i].folded = records_base(i);
	}
	shown->on = 1;
}

static void other_does(char what, struct stream *s)
{
	static unsigned int lies;
	char path[128];

	switch (what) {
	case 'l':
		waiting[nr_waiting++] = launch(s);
		break;
	case 'e':
		end(waiting[0]);
		memmove(waiting, waiting + 1, sizeof(waiting) - sizeof(waiting[0]));
		nr_waiting--;
		break;
	case 'c':
		if (!records_context(records, &cuda, CTX))
			_exit(5);
		break;
	case 'x':
		lie(records->shown, lies++);
		break;
	case 'f':	/* runs endlessly, so that records arrive during the kill of the process */
		for (unsigned int i = 0; ; i++) {
			end(waiting[i % 64]);
			waiting[i % 64] = launch(s);
		}
	case 't': case 'T': case '0':
		snprintf(path, sizeof(path), "/dev/shm/gpupart-%u/%d.%llx%s", geteuid(), getpid(),
			 (unsigned long long)state_dir_pid_namespace(),
			 what == 'T' ? "" : STATE_RECORDS);
		if (truncate(path, what == 't' ? RECORDS_HEAD + 100000 : what == 'T' ? 5000 : 0))
			_exit(4);
	}
}

static void other_main(struct other *o, uid_t uid)
{
	static struct stream s;
	char what;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if ((uid && setresuid(uid, uid, uid)) || gpupart_open(&gp) ||
	    gpupart_process_publish(gp, "other") || !start() ||
	    !records_file_section(gp, 0) ||
	    (!begins_without && !records_context(records, &cuda, CTX)))
		_exit(3);
	s.ctx = CTX;
	what = 0;
	do {
		if (write(o->out, &what, 1) != 1 || read(o->in, &what, 1) != 1)
			_exit(0);
		other_does(what, &s);
	} while (what != 'q');
	exit(0);
}

static bool answered(struct other *o)
{
	char what;

	return read(o->in, &what, 1) == 1;
}

static bool tell(struct other *o, const char *words)
{
	for (; *words; words++)
		if (write(o->out, words, 1) != 1 ||
		    (*words != 'f' && *words != 'q' && !answered(o)))
			return false;
	return true;
}

static int started[NR_KILLS + 100];
static unsigned int nr_started;

static bool other_start(struct other *o, uid_t uid)
{
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		return false;
	fflush(stdout);
	o->pid = fork();
	if (!o->pid) {
		*o = (struct other){ to[0], from[1], 0 };
		close(to[1]);
		close(from[0]);
		other_main(o, uid);
	}
	if (nr_started < sizeof(started) / sizeof(started[0]))
		started[nr_started++] = o->pid;
	close(to[0]);
	close(from[1]);
	o->out = to[1];
	o->in = from[0];
	return answered(o);
}

static void other_end(struct other *o, int signal)
{
	if (signal)
		kill(o->pid, signal);
	else
		tell(o, "q");
	close(o->in);
	close(o->out);
	waitpid(o->pid, NULL, 0);
}

/*
 * Counts only the files of processes that this test has started, because other tests also have
 * files in the folder.
 */
static unsigned int nr_files(void)
{
	struct dirent *entry;
	unsigned int nr = 0;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/dev/shm/gpupart-%u", geteuid());
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		for (unsigned int i = 0; i < nr_started; i++)
			nr += atoi(entry->d_name) == started[i];
	if (dir)
		closedir(dir);
	return nr;
}

static bool is(struct gpupart_records_reader *reader, uint64_t issued, uint64_t ended_, bool busy)
{
	struct gpupart_records r;
	int err = gpupart_records_read(gp, reader, &r, sizeof(r));
	bool same = !err && r.on && r.issued == issued && r.ended == ended_ &&
		    r.outstanding == issued - ended_ && gpupart_records_busy(gp, reader) == busy;

	if (!same)
		printf("# %d %s: issued %lu ended %lu outstanding %lu\n", err, gpupart_error(gp),
		       r.issued, r.ended, r.outstanding);
	return same;
}

static void exact(void)
{
	struct gpupart_records_reader *reader, *other_gpu;
	struct gpupart_records r;
	struct other o;

	if (!tap_ok(other_start(&o, 0) && !gpupart_records_open(gp, o.pid, PCI, &reader),
		    "another process"))
		return;
	tap_ok(is(reader, 0, 0, false), "has launched nothing");
	tap_ok(tell(&o, "lll") && is(reader, 3, 0, true), "three launches");
	tap_ok(tell(&o, "e") && is(reader, 3, 1, true), "of which one ended");
	tap_ok(tell(&o, "ee") && is(reader, 3, 3, false), "and all: it is idle");
	tap_ok(tell(&o, "lelelelelelelelelelele") && is(reader, 14, 14, false), "again and again");
	tap_ok(!gpupart_records_read(gp, reader, &r, sizeof(r)) && r.nr_functions == 1 &&
	       r.functions[0].count == 14 && r.busy_ns && r.last_end_ns &&
	       !strcmp(r.pci, PCI), "with times");
	memset(&r, 0xff, sizeof(r));
	tap_ok(!gpupart_records_read(gp, reader, &r, 100) && r.on && r.issued == 14 &&
	       ((unsigned char *)&r)[100] == 0xff, "a caller with a smaller struct gets that much");
	tap_ok(gpupart_records_read(gp, reader, &r, 0) == -EINVAL, "of none: -EINVAL");
	tap_ok(gpupart_records_open(gp, o.pid, "0000:02:00.0", &other_gpu) == -ENODEV,
	       "another GPU: -ENODEV");
	other_end(&o, SIGKILL);
	tap_ok(gpupart_records_read(gp, reader, &r, sizeof(r)) == -ESRCH, "it is gone: -ESRCH");
	gpupart_records_close(reader);
	tap_ok(gpupart_records_open(gp, o.pid, PCI, &reader) == -ESRCH, "and is not found: -ESRCH");
}

/* Returns the size of this process's address space in KiB. */
static unsigned long vm_size(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;

	if (file && fscanf(file, "%lu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages * sysconf(_SC_PAGESIZE) / 1024;
}

static void without_room(void)
{
	struct gpupart_records_reader *reader;
	struct rlimit before, less;
	unsigned long size;
	bool refused = true;
	struct other o;

	if (!tap_ok(other_start(&o, 0) && tell(&o, "lll") &&
		    !gpupart_records_open(gp, o.pid, PCI, &reader), "another process"))
		return;
	getrlimit(RLIMIT_AS, &before);
	less = before;
	size = vm_size();
	/* The block fits into the limit. The section of records is larger and does not fit. */
	less.rlim_cur = (size + 800) * 1024;
	setrlimit(RLIMIT_AS, &less);
	for (int n = 0; n < 3; n++)
		refused &= gpupart_records_busy(gp, reader) == -EINVAL;
	setrlimit(RLIMIT_AS, &before);
	tap_ok(refused && vm_size() < size + 500, "no room for its records: %lu KiB are taken",
	       vm_size() - size);
	tap_ok(is(reader, 3, 0, true), "there is room again");
	gpupart_records_close(reader);
	other_end(&o, SIGKILL);
}

static void truncated(void)
{
	struct gpupart_records_reader *reader;
	struct gpupart_records r;
	struct other o;

	if (!tap_ok(other_start(&o, 0) && tell(&o, "lllet") &&
		    !gpupart_records_open(gp, o.pid, PCI, &reader), "its records are cut off"))
		return;
	tap_ok(!gpupart_records_read(gp, reader, &r, sizeof(r)) && r.issued == 3 &&
	       r.outstanding >= 2, "nothing ended that is not seen to have");
	tap_ok(gpupart_records_busy(gp, reader) == -EINVAL, "and what is too short is not mapped");
	tell(&o, "T");
	tap_ok(gpupart_records_read(gp, reader, &r, sizeof(r)) == -ESRCH,
	       "its block is cut off: -ESRCH");
	gpupart_records_close(reader);
	other_end(&o, SIGKILL);
}

/* The process truncates its files after the reader has mapped these files. */
static void truncated_later(const char *what, const char *does)
{
	struct gpupart_records_reader *reader;
	bool good = true;
	struct other o;

	if (!tap_ok(other_start(&o, 0) && tell(&o, "llle") &&
		    !gpupart_records_open(gp, o.pid, PCI, &reader) &&
		    gpupart_records_busy(gp, reader) == 1, "it is busy, and mapped"))
		return;
	tell(&o, does);
	for (int i = 0; i < 3; i++)
		good &= gpupart_records_busy(gp, reader) == -ESRCH;
	tap_ok(good && strstr(gpupart_error(gp), "were truncated"), "%s: -ESRCH, %s", what,
	       gpupart_error(gp));
	gpupart_records_close(reader);
	other_end(&o, SIGKILL);
}

static bool watched_is(struct gpupart_records_reader *reader, uint64_t count)
{
	static struct gpupart_records_watched w;

	gpupart_records_watched(reader, &w);
	if (w.nr_kernels != !!count || (count && w.kernels[0].count != count) || w.missed) {
		printf("# %u kernels, %lu launches, %lu missed\n", w.nr_kernels,
		       w.kernels[0].count, w.missed);
		return false;
	}
	/*
	 * The process is busy from the first launch on, because one launch was outstanding until
	 * the end.
	 */
	return !count ? !w.ns : w.ns && w.most_ns == w.ns;
}

/*
 * A reader that began before the first launch must read to the end. The process may end in any
 * way.
 */
static void ended(const char *what, const char *does, int signal, uint64_t count)
{
	struct gpupart_records_reader *reader, *unseen;
	struct gpupart_records r;
	unsigned int pause_us;
	struct other o;
	bool good;

	begins_without = true;
	good = other_start(&o, 0);
	begins_without = false;
	if (!tap_ok(good && !gpupart_records_open(gp, o.pid, PCI, &reader) &&
		    !gpupart_records_open(gp, o.pid, PCI, &unseen), "%s: begins", what))
		return;
	tap_ok(!gpupart_records_watch(gp, reader, &r, &pause_us) && !r.on &&
	       !gpupart_records_watch(gp, reader, &r, &pause_us) &&
	       !gpupart_records_watch(gp, reader, &r, &pause_us) && watched_is(reader, 0),
	       "without records");
	tap_ok(tell(&o, "c") && !gpupart_records_watch(gp, reader, &r, &pause_us) && r.on &&
	       watched_is(reader, 0), "without a launch no time passes");
	tell(&o, does);
	other_end(&o, signal);
	gpupart_process_list(gp, NULL, 0, sizeof(struct gpupart_process));
	tap_ok(nr_files() == 0, "it ends, and its files are gone");
	tap_ok(gpupart_records_watch(gp, reader, &r, &pause_us) == -ESRCH && r.on &&
	       r.issued == count + 2 && r.ended == count && r.outstanding == 2,
	       "all that it launched is there");
	tap_ok(watched_is(reader, count), "and watched");
	tap_ok(gpupart_records_read(gp, reader, &r, sizeof(r)) == -ESRCH &&
	       gpupart_records_watch(gp, unseen, &r, &pause_us) == -ESRCH, "others find it gone");
	gpupart_records_close(unseen);
	gpupart_records_close(reader);
}

static void lying(void)
{
	struct gpupart_records_reader *reader;
	struct gpupart_records r;
	static struct gpupart_records_watched watched;
	unsigned int nr = 0, pause_us;
	struct other o;

	if (!tap_ok(other_start(&o, 0) && tell(&o, "llle") &&
		    !gpupart_records_open(gp, o.pid, PCI, &reader), "one that lies"))
		return;
	for (int i = 0; i < NR_LIES; i++) {
		nr += tell(&o, "x") && !gpupart_records_read(gp, reader, &r, sizeof(r)) &&
		      r.nr_functions <= GPUPART_RECORDS_NR_FUNCTIONS &&
		      gpupart_records_busy(gp, reader) >= 0 &&
		      !gpupart_records_watch(gp, reader, &r, &pause_us);
		gpupart_records_watched(reader, &watched);
		nr -= watched.most_ns > watched.ns || watched.least_ns > watched.ns ||
		      watched.nr_kernels > GPUPART_RECORDS_NR_FUNCTIONS;
	}
	tap_ok(nr == NR_LIES, "it is read and watched %u times", nr);
	gpupart_records_close(reader);
	other_end(&o, SIGKILL);
}

static uint64_t hash_of(const char *path)
{
	static char bytes[1 << 16];
	int fd = open(path, O_RDONLY);
	uint64_t hash = HASH_INIT;
	ssize_t len;

	while ((len = read(fd, bytes, sizeof(bytes))) > 0)
		hash = hash_bytes(hash, bytes, len);
	close(fd);
	return hash;
}

/*
 * The process is killed during launches. The files of an uninvolved process must not change. No
 * file of the killed process may remain.
 */
static void killed(void)
{
	struct other stays, o;
	char path[2][128];
	uint64_t before[2];
	unsigned int nr = 0;

	if (!tap_ok(other_start(&stays, 0) && tell(&stays, "lll"), "a bystander"))
		return;
	for (int i = 0; i < 2; i++) {
		snprintf(path[i], sizeof(path[i]), "/dev/shm/gpupart-%u/%d.%llx%s", geteuid(),
			 stays.pid, (unsigned long long)state_dir_pid_namespace(),
			 i ? STATE_RECORDS : "");
		before[i] = hash_of(path[i]);
	}
	for (int i = 0; i < NR_KILLS; i++) {
		nr += other_start(&o, 0) && tell(&o, "f");
		usleep(i * 10 % 2000);
		other_end(&o, SIGKILL);
	}
	gpupart_process_list(gp, NULL, 0, sizeof(struct gpupart_process));
	tap_ok(nr == NR_KILLS && before[0] == hash_of(path[0]) && before[1] == hash_of(path[1]),
	       "%u are killed in the middle of launches: its files are as they were", nr);
	tap_ok(nr_files() == 2, "and are all that there are");
	other_end(&stays, 0);
	tap_ok(nr_files() == 0, "one that ends takes its files away");
}

static void of_another_user(void)
{
	/* No other test or user has a folder for this uid. */
	uid_t uid = 1000000000 + getpid();
	struct gpupart_records_reader *reader;
	char folder[64];
	struct other o;

	if (geteuid()) {
		tap_skip("another user's process: only root may read it");
		return;
	}
	if (!tap_ok(other_start(&o, uid) && tell(&o, "lle") &&
		    !gpupart_records_open(gp, o.pid, PCI, &reader), "another user's process"))
		return;
	tap_ok(gpupart_records_busy(gp, reader) == -EPERM, "is not mapped by root");
	tap_ok(tell(&o, "e"), "it goes on");
	gpupart_records_close(reader);
	other_end(&o, 0);
	snprintf(folder, sizeof(folder), "/dev/shm/gpupart-%u", uid);
	tap_ok(!rmdir(folder), "and leaves nothing");
}

int main(void)
{
	if (gpupart_open(&gp))
		return 1;
	exact();
	without_room();
	truncated();
	truncated_later("its records are cut off", "0");
	truncated_later("its block is cut off", "T");
	ended("one that ends", "lllele", 0, 2);
	ended("one that is killed", "lllleele", SIGKILL, 3);
	lying();
	killed();
	of_another_user();
	return tap_done();
}
