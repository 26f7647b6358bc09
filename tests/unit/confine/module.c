// SPDX-License-Identifier: MIT
/*
 * Tests internal functions of module.c. The tests cover names in an image, a reused address of a
 * module, and more modules than table entries.
 */
#include "lib/confine/module.c"
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/tap.h"

size_t __real_peek(const void *address, void *data, size_t len);
size_t __wrap_peek(const void *address, void *data, size_t len);

static bool reading_waits;
static atomic_bool reads, forked;
static bool fork_waited;

/* Waits until the fork has returned, or for 3 s. */
size_t __wrap_peek(const void *address, void *data, size_t len)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	atomic_store(&reads, true);
	for (int i = 0; reading_waits && !atomic_load(&forked) && i < 3000; i++)
		nanosleep(&pause, NULL);
	fork_waited = reading_waits && !atomic_load(&forked);
	return __real_peek(address, data, len);
}

/* The distances of the addresses are like those in a heap. */
static const void *module(unsigned int n)
{
	return (const void *)(0x7f1200000000 + (uintptr_t)n * 0x1d0);
}

static bool found(unsigned int n)
{
	return module_any() && module_find(module(n));
}

static char kernel[MODULE_KERNEL_LEN];

static void load(unsigned int n, const void *image, uint64_t size)
{
	module_loaded(module(n), image, size, MODULE_PROGRAM, kernel);
}

static const char launching[] = "\177ELF\2\1\1.text.__cudaCDP2LaunchDeviceV2";
static const char graph[] = "\177ELF\2\1\1.cudaGraphLaunch";
static const char plain[] = "\177ELF\2\1\1.text.Launch Device cudaGraph";

static void test_names(void)
{
	static const struct {
		const char *image;
		size_t size;
		bool launches;
	} images[] = {
		{ launching, sizeof(launching), true },
		{ graph, sizeof(graph), true },
		{ "\177ELF__cuda_syscall_cnpv2LaunchDeviceV2", 38, true },
		{ "\177ELFcudaLaunchDevice", 20, true },
		{ plain, sizeof(plain), false },
		{ "\177ELFcudaGraphSetConditional", 27, false },
		{ launching, sizeof(launching) - sizeof("LaunchDeviceV2"), false },
		{ "\177ELF", 3, false },
		{ "\177ELF", 0, false },
		{ ".version 8.0 LaunchDevice", 25, false },
	};

	for (unsigned int i = 0; i < sizeof(images) / sizeof(images[0]); i++) {
		load(1, images[i].image, images[i].size);
		tap_ok(found(1) == images[i].launches, "image %u %s from the GPU", i,
		       images[i].launches ? "launches" : "does not launch");
		tap_ok(!found(2), "and another module does not");
		tap_ok(!images[i].launches == !atomic_load(&module_nr_launching),
		       "they are counted");
		module_unloaded(module(1));
		tap_ok(!found(1) && !atomic_load(&module_nr_launching), "and gone");
	}
	module_loaded(module(1), launching, sizeof(launching), MODULE_DRIVER, kernel);
	tap_ok(!found(1), "the driver's own do not count");
	module_loaded(NULL, launching, sizeof(launching), MODULE_PROGRAM, kernel);
	module_unloaded(NULL);
	tap_ok(!(module_any() && module_find(NULL)) && !atomic_load(&module_nr_launching),
	       "nor does no module");
}

/*
 * Puts the name at every offset near the end of a piece of the image, and at the end of the
 * image.
 */
static void test_long_images(void)
{
	size_t size = 3 * PIECE, most = size - sizeof(graph), page = 4096;
	unsigned int missed = 0, invented = 0;
	char *image = mmap(NULL, size + page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(image, "\177ELF", 4);
	munmap(image + size, page);
	for (size_t at = PIECE - 40; at < PIECE + 40; at++) {
		memcpy(image + at, launch_graph, sizeof(launch_graph) - 1);
		load(1, image, size);
		missed += !found(1);
		load(1, image, at + sizeof(launch_graph) - 2);
		invented += found(1);
		memset(image + at, 0, sizeof(launch_graph));
	}
	tap_ok(!missed, "a name across two pieces is found (%u missed)", missed);
	tap_ok(!invented, "a name that the image cuts off is not (%u found)", invented);
	memcpy(image + most, launch_kernel, sizeof(launch_kernel) - 1);
	load(1, image, size);
	tap_ok(found(1), "and one at the end");
	load(1, image, UINT64_MAX);
	tap_ok(found(1), "a size that is too large: what is there is looked at");
	memset(image + most, 0, sizeof(launch_kernel));
	load(1, image, UINT64_MAX);
	tap_ok(!found(1), "and what is not there is no fault");
	munmap(image, size);
	load(1, image, size);
	tap_ok(!found(1), "nor is an image that is not there at all");
	load(1, (const void *)16, 4096);
	tap_ok(!found(1), "nor one at no address");
}

/* A module is identified by one of its kernels. */
static void test_kernel(void)
{
	static const char one[] = "\177ELF\0.nv.constant0.a_kernel\0.nv.constant0.other\0"
				  "LaunchDevice";
	static char far[2 * PIECE] = "\177ELF", cut[] = "\177ELF.nv.constant0.LaunchDevice";
	static char wide[1024] = "\177ELF.nv.constant0.";

	load(1, launching, sizeof(launching));
	tap_ok(!*kernel, "no kernel is named: none is reported");
	load(1, one, sizeof(one));
	tap_ok(!strcmp(kernel, "a_kernel"), "the first is: '%s'", kernel);
	strcpy(far + 100, ".nv.constant0.far");
	strcpy(far + PIECE + 100, ".nv.constant0.other");
	strcpy(far + PIECE + 200, "LaunchDevice");
	load(1, far, sizeof(far));
	tap_ok(!strcmp(kernel, "far"), "in another piece: '%s'", kernel);
	load(1, cut, sizeof(cut) - 1);
	tap_ok(!strcmp(kernel, "LaunchDevice"), "the image ends in it: '%s'", kernel);
	memset(wide + strlen(wide), 'k', sizeof(wide) - strlen(wide));
	strcpy(wide + sizeof(wide) - sizeof("LaunchDevice"), "LaunchDevice");
	load(1, wide, sizeof(wide));
	tap_ok(strlen(kernel) == MODULE_KERNEL_LEN - 1, "a long name is cut");
	module_unloaded(module(1));
}

static void test_reused_address(void)
{
	load(1, launching, sizeof(launching));
	load(2, launching, sizeof(launching));
	load(1, launching, sizeof(launching));
	tap_ok(found(1) && found(2) && atomic_load(&module_nr_launching) == 2,
	       "the same address again counts once");
	load(1, plain, sizeof(plain));
	tap_ok(!found(1) && found(2), "a plain module in its place takes it away");
	load(1, launching, sizeof(launching));
	module_loaded(module(1), launching, sizeof(launching), MODULE_DRIVER, kernel);
	tap_ok(!found(1) && found(2), "and so does one of the driver's");
	module_unloaded(module(1));
	module_unloaded(module(3));
	tap_ok(found(2) && atomic_load(&module_nr_launching) == 1,
	       "going of what is not there changes nothing");
	module_unloaded(module(2));
	tap_ok(!atomic_load(&module_nr_launching), "the last goes");
}

/* A search skips entries of other modules. Later, these entries become free. */
static void test_crowd(void)
{
	unsigned int missed = 0, wrong = 0, left;

	for (unsigned int n = 1; n <= 150; n++)
		load(n, launching, sizeof(launching));
	for (unsigned int n = 1; n <= 150; n += 2)
		module_unloaded(module(n));
	for (unsigned int n = 1; n <= 150; n++)
		*(n % 2 ? &wrong : &missed) += found(n) == n % 2;
	tap_ok(!missed && !wrong && !atomic_load(&too_many),
	       "150 modules less every second (%u missed, %u wrong)", missed, wrong);
	for (unsigned int n = 2; n <= 150; n += 2)
		module_unloaded(module(n));
	left = atomic_load(&nr_places);
	tap_ok(!left, "with the last the places are as new (%u are not)", left);
}

/*
 * Modules are loaded and unloaded for a long time. The entries of unloaded modules must be reused.
 */
static void test_long_life(void)
{
	unsigned int lost = 0, wrong = 0;

	load(0, launching, sizeof(launching));
	for (unsigned int n = 1; n < 100000; n++) {
		load(n, launching, sizeof(launching));
		lost += !found(n) || !found(0);
		module_unloaded(module(n));
		wrong += found(n);
	}
	tap_ok(!lost && !wrong, "100000 modules one after the other (%u lost, %u wrong)", lost,
	       wrong);
	tap_ok(atomic_load(&module_nr_launching) == 1 && !atomic_load(&too_many),
	       "there were not too many of them");
	module_unloaded(module(0));
}

static void test_full(void)
{
	unsigned int first = 0, missed = 0;

	for (unsigned int n = 1; n <= 2 * MODULE_TABLE_SIZE; n++) {
		load(n, launching, sizeof(launching));
		if (!first && atomic_load(&too_many))
			first = n;
	}
	tap_ok(first > MODULE_TABLE_SIZE / 2, "the table is full at module %u", first);
	for (unsigned int n = 1; n <= 2 * MODULE_TABLE_SIZE; n++)
		missed += !found(n);
	tap_ok(!missed, "twice as many modules as places: none is missed (%u)", missed);
	tap_ok(found(100000), "any other may be one of them");
	for (unsigned int n = 1; n <= 2 * MODULE_TABLE_SIZE; n++)
		module_unloaded(module(n));
	tap_ok(found(1), "also when they went, for which was which is not known");
}

static void *load_in_thread(void *unused)
{
	load(1, launching, sizeof(launching));
	return unused;
}

/* It takes long to read a large image, but a fork must not wait for the end of the read. */
static void test_fork(void)
{
	pthread_t thread;
	int status = 1;
	pid_t pid;

	fork_guard();
	reading_waits = true;
	atomic_store(&reads, false);
	pthread_create(&thread, NULL, load_in_thread, NULL);
	while (!atomic_load(&reads))
		sched_yield();
	pid = fork();
	if (!pid) {
		reading_waits = false;
		alarm(60);
		load(2, launching, sizeof(launching));
		_exit(!found(2) || found(1));
	}
	atomic_store(&forked, true);
	pthread_join(thread, NULL);
	reading_waits = false;
	tap_ok(pid > 0 && !fork_waited, "a fork does not wait while an image is read");
	tap_ok(waitpid(pid, &status, 0) == pid && !status, "the child reads images of its own");
	tap_ok(found(1), "and the parent's is read to its end");
	module_unloaded(module(1));
}

int main(void)
{
	test_names();
	test_long_images();
	test_kernel();
	test_reused_address();
	test_crowd();
	test_long_life();
	test_fork();
	test_full();
	return tap_done();
}
