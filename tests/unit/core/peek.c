// SPDX-License-Identifier: MIT
/*
 * Tests peek.c, which computes the number of readable bytes at the start of a range. The first
 * test uses the system call process_vm_readv(). The second test simulates a container that
 * refuses this system call.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/core/peek.h"
#include "tests/tap.h"

#define NR_PAGES 5

static char *pages;	/* NR_PAGES pages; the last page is unmapped */
static size_t page;

static bool same(const char *at, size_t len, size_t want)
{
	static char into[5 << 16];

	memset(into, '?', sizeof(into));
	return peek(at, into, len) == want && !memcmp(into, at, want) && into[want] == '?';
}

static void ranges(const char *how)
{
	size_t there = (NR_PAGES - 1) * page;
	char into[8];

	tap_ok(same(pages, 8, 8), "%s: a word", how);
	tap_ok(same(pages + page - 3, 8, 8), "%s: a word over two pages", how);
	tap_ok(same(pages + 100, there - 100, there - 100), "%s: all that is there", how);
	tap_ok(same(pages, 0, 0), "%s: nothing", how);
	tap_ok(same(pages + 100, there, there - 100), "%s: up to the first page that is not", how);
	tap_ok(same(pages + there - 8, 16, 8), "%s: the last word of what is there", how);
	tap_ok(!peek(pages + there, into, 8), "%s: an address that is none", how);
	tap_ok(!peek(NULL, into, 8), "%s: NULL", how);
	tap_ok(!peek((void *)(uintptr_t)0xdeadbeefcafe0000, into, 8), "%s: no canonical one", how);
}

/* After this call, the system call fails with @err, like in a container. */
static bool refuse(int err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static bool is_refused(int err)
{
	char to, from = 1;
	struct iovec local = { &to, 1 }, remote = { &from, 1 };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) < 0 && errno == err;
}

/*
 * Runs in a child, because the refusal cannot be undone. The parent counts the checks of ranges.
 */
static void refused(int err)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (!child) {
		int failed = tap_failed;

		if (!refuse(err))
			_exit(77);
		tap_ok(is_refused(err), "%s: it is refused", strerror(err));
		ranges(strerror(err));
		fflush(stdout);
		_exit(tap_failed != failed);
	}
	waitpid(child, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		tap_skip("%s: no seccomp here", strerror(err));
		return;
	}
	tap_count += 10;
	tap_ok(WIFEXITED(status) && !WEXITSTATUS(status), "%s: all of them", strerror(err));
}

int main(void)
{
	page = sysconf(_SC_PAGESIZE);
	pages = mmap(NULL, NR_PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	for (size_t i = 0; i < (NR_PAGES - 1) * page; i++)
		pages[i] = (char)(i * 7 + i / 4096);
	munmap(pages + (NR_PAGES - 1) * page, page);
	refused(ENOSYS);
	refused(EPERM);
	ranges("as it is");
	return tap_done();
}
