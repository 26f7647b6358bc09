// SPDX-License-Identifier: MIT
/*
 * Manages the file into which the GPU writes records. The file is in the same directory as the
 * state page of this process. If the process has no published state page, the file is anonymous
 * memory. Any thread may call these functions.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/core/fork.h"
#include "lib/core/fsize.h"
#include "lib/core/shared_header.h"
#include "lib/records/records.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORK_TAKES(lock, 2);

/*
 * The descriptor of the file, or -1 if there is no descriptor yet. Some programs close descriptors
 * that they did not open. If a program has closed this descriptor, its number may belong to another
 * file.
 */
static struct {
	int fd;
	dev_t dev;
	ino_t ino;
	struct records_section *_Atomic sections[STATE_MAX_GPUS];
} file = { .fd = -1 };

static bool is_open(void)
{
	struct stat st;

	return file.fd >= 0 && !fstat(file.fd, &st) && st.st_dev == file.dev &&
	       st.st_ino == file.ino;
}

/* Removes the file from the child of a fork, because the file belongs to the parent. */
static void after_fork(void)
{
	if (is_open())
		close(file.fd);
	file.fd = -1;
	for (unsigned int n = 0; n < STATE_MAX_GPUS; n++)
		file.sections[n] = NULL;
}

static off_t section_at(unsigned int n)
{
	return RECORDS_HEAD + (off_t)n * RECORDS_STRIDE;
}

static int fill_head(int fd)
{
	struct shared_header header = { 0 };
	int err = posix_fallocate(fd, 0, RECORDS_HEAD);

	if (err)
		return -err;
	shared_init(&header, RECORDS_LAYOUT, RECORDS_HEAD);
	header.pid = getpid();
	header.uid = geteuid();
	header.start = state_dir_process_start(getpid());
	header.pid_namespace = state_dir_pid_namespace();
	atomic_store(&header.magic, SHARED_MAGIC(SHARED_RECORDS));
	if (pwrite(fd, &header, sizeof(header), 0) != sizeof(header))
		return -ENOSPC;
	return 0;
}

/* Returns 0 or -errno. The caller holds the lock. */
static int file_make(void)
{
	static bool registered;
	struct stat st;
	bool named;
	int fd, err;

	fd = state_file_create();
	named = fd >= 0;
	if (fd == -ENOENT)
		fd = memfd_create("gpupart-records", MFD_CLOEXEC);
	if (fd < 0)
		return named ? fd : -errno;
	err = fstat(fd, &st) ? -errno : fill_head(fd);
	if (!err && named)
		err = state_file_publish();
	if (err) {
		close(fd);
		return err;
	}
	file.fd = fd;
	file.dev = st.st_dev;
	file.ino = st.st_ino;
	if (!registered)
		pthread_atfork(NULL, NULL, after_fork);
	registered = true;
	return 0;
}

/*
 * Allocates the pages of a section. If the kernel could not allocate a page at the first write to
 * it, the kernel would kill the program. Readers do not read the section until records are turned
 * on for this GPU. The caller holds the lock.
 */
static int section_make(unsigned int n)
{
	const off_t at = section_at(n);
	struct records_section *section;
	int err = file.fd < 0 ? file_make() : is_open() ? 0 : -EBADF;

	if (!err)
		err = -posix_fallocate(file.fd, at, sizeof(*section));
	if (err)
		return err;
	section = mmap(NULL, sizeof(*section), PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, at);
	if (section == MAP_FAILED)
		return -errno;
	for (unsigned int ring = 0; ring < STATE_NR_RINGS; ring++)
		for (unsigned int i = 0; i < records_entries(ring); i++)
			section->cells[records_first(ring) + i].payload = i;
	file.sections[n] = section;
	return 0;
}

struct records_section *records_file_section(struct gpupart *gp, unsigned int n)
{
	struct fsize_guard guard;
	int err;

	fsize_guard_begin(&guard);
	pthread_mutex_lock(&lock);
	err = file.sections[n] ? 0 : section_make(n);
	pthread_mutex_unlock(&lock);
	fsize_guard_end(&guard);
	if (err)
		ctx_fail(gp, err, "out of memory for records: %s", strerror(-err));
	return file.sections[n];
}

struct records_section *records_file_find(unsigned int n)
{
	return atomic_load(&file.sections[n]);
}

/*
 * Maps the section a second time. The child of a fork does not inherit the new mapping. This
 * function also works if the descriptor was closed.
 */
void *records_file_again(unsigned int n)
{
	void *again;

	pthread_mutex_lock(&lock);
	again = is_open() ? mmap(NULL, RECORDS_REGISTERED, PROT_READ | PROT_WRITE, MAP_SHARED,
				 file.fd, section_at(n)) :
			    mremap(file.sections[n], 0, RECORDS_REGISTERED, MREMAP_MAYMOVE);
	pthread_mutex_unlock(&lock);
	if (again == MAP_FAILED)
		return NULL;
	madvise(again, RECORDS_REGISTERED, MADV_DONTFORK);
	return again;
}
