// SPDX-License-Identifier: MIT
/*
 * Tests the header of shared files byte by byte, because its layout is frozen. Also tests headers
 * with wrong values.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib/core/shared_header.h"
#include "tests/tap.h"

static uint8_t bytes[2000];
static struct shared_seen seen;

static void put(size_t at, uint64_t value, size_t len)
{
	memcpy(bytes + at, &value, len);
}

static enum shared_version read_of(enum shared_kind kind, uint32_t layout, size_t size)
{
	int fd = memfd_create("shared", MFD_CLOEXEC);
	enum shared_version version = SHARED_NONE;

	if (write(fd, bytes, size) == (ssize_t)size)
		version = shared_read(fd, kind, layout, &seen);
	close(fd);
	return version;
}

/*
 * A file of a later version with two GPUs: the header has 300 bytes, and each GPU has 200 bytes.
 */
static void make_later(void)
{
	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, "gpupart\2", 8);
	put(8, 4711, 4);
	put(12, 1234, 4);
	put(16, 99, 8);
	put(24, 4026531836, 8);
	strcpy((char *)bytes + 32, "name");
	strcpy((char *)bytes + 96, "id");
	strcpy((char *)bytes + 160, "parent");
	put(224, 1000, 4);
	put(228, 300, 4);
	put(232, 320, 4);
	put(236, 200, 4);
	put(240, 2, 4);
	put(248, 2000, 8);
	strcpy((char *)bytes + 320, "0000:0d:00.0");
	put(320 + 20, 66, 2);
	put(320 + 22, 1, 1);
	put(320 + 23, 1, 1);
	put(320 + 24, 5000, 8);
	put(320 + 32, 4000, 8);
	put(320 + 40, 0xf0, 8);
	strcpy((char *)bytes + 320 + 104, "0123456789abcdef");
	strcpy((char *)bytes + 520, "0000:1a:00.0");
	put(520 + 20, 8, 2);
	/*
	 * There are three sets at a distance of 48 bytes, and this is the third set. The memory
	 * consists of two numbers.
	 */
	put(520 + 72, 1000, 4);
	put(520 + 76, 48, 4);
	put(520 + 80, 3, 4);
	put(520 + 84, 900, 4);
	put(900, 5, 8);
	put(1000 + 2 * 48, 0x55, 8);
	put(520 + 88, 1200, 4);
	put(520 + 92, 100, 4);
	put(520 + 96, 2, 4);
	put(1200, 30, 8);
	put(1300, 12, 8);
}

static void test_bytes(void)
{
	const struct shared_gpu *gpus = seen.gpus;

	make_later();
	tap_ok(read_of(SHARED_LEDGER, 1234, 2000) == SHARED_SAME &&
	       read_of(SHARED_LEDGER, 1235, 2000) == SHARED_OTHER,
	       "the layout is the same, or another");
	tap_ok(read_of(SHARED_JOB, 1234, 2000) == SHARED_NONE, "a ledger is no job");
	read_of(SHARED_LEDGER, 1, 2000);
	tap_ok(seen.header.pid == 4711 && seen.header.start == 99 &&
	       seen.header.pid_namespace == 4026531836 && seen.header.uid == 1000 &&
	       !strcmp(seen.header.name, "name") && !strcmp(seen.header.id, "id") &&
	       !strcmp(seen.header.parent, "parent"), "the owner");
	tap_ok(seen.nr_gpus == 2 && !strcmp(gpus[0].pci, "0000:0d:00.0") && gpus[0].nr_tpcs == 66 &&
	       gpus[0].simulated && gpus[0].strict && !strcmp(gpus[0].key, "0123456789abcdef") &&
	       gpus[0].quota == 5000 && gpus[0].memory == 4000 &&
	       gpus[0].tpcs.allowed[0] == 0xf0, "a GPU whose set stands in the header");
	tap_ok(!strcmp(gpus[1].pci, "0000:1a:00.0") && gpus[1].tpcs.allowed[0] == 0x55 &&
	       gpus[1].memory == 42 && !gpus[1].strict && !*gpus[1].key,
	       "one whose set and memory stand behind it");
	put(900, 0, 8);
	read_of(SHARED_LEDGER, 1, 2000);
	tap_ok(gpupart_tpcset_empty(&gpus[1].tpcs), "none was set yet");
}

static void test_lies(void)
{
	make_later();
	tap_ok(read_of(SHARED_LEDGER, 1, 1999) == SHARED_NONE, "a file that is cut short is none");
	put(0, 0, 8);
	tap_ok(read_of(SHARED_LEDGER, 1, 2000) == SHARED_NONE,
	       "nor is one whose magic number is not written yet");
	make_later();
	put(228, 255, 4);
	tap_ok(read_of(SHARED_LEDGER, 1, 2000) == SHARED_NONE, "nor one with a shorter header");
	make_later();
	put(240, 0xffffffff, 4);
	memset(bytes + 32, 'x', 192);
	memset(bytes + 320 + 104, 'x', 24);
	put(520 + 72, 0xffffffff, 4);
	put(520 + 76, 0xffffffff, 4);
	put(520 + 96, 0xffffffff, 4);
	put(520 + 92, 0, 4);
	tap_ok(read_of(SHARED_LEDGER, 1, 2000) == SHARED_OTHER && seen.nr_gpus <= SHARED_MAX_GPUS &&
	       strlen(seen.gpus[0].key) == 19 && strlen(seen.header.name) == 63 &&
	       strlen(seen.header.parent) == 63 && seen.gpus[1].memory == 4096 * 30,
	       "GPUs, texts and numbers without end are bounded");
}

int main(void)
{
	test_bytes();
	test_lies();
	return tap_done();
}
