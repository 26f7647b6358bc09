// SPDX-License-Identifier: MIT
/*
 * launch_dump [GPU]: makes launches of known shape, and prints the data that the driver's launch
 * callback receives. The output is hexadecimal text. The argument GPU is an index in PCI order, a
 * PCI address or a UUID. scripts/capture-gpu runs this program. For a GPU or a driver that
 * gpupart does not support yet, the output helps to write a table row. The program changes
 * nothing, does not use gpupart and needs no layout. It prints the callback's parameters. If a
 * parameter is an address, it also prints the bytes at this address.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/uio.h>
#include <unistd.h>

#define DOMAIN_LAUNCH	0xb
#define CBID_BUILT	1
#define MAX_TABLE	1024
#define MAX_PARAMS	512
/* number of bytes printed for an address; the largest known TMD has 384 bytes */
#define AT_BYTES	512

enum { SUBSCRIBE = 3, UNSUBSCRIBE = 4, ENABLE = 6 };	/* lib/driver/table.h */
enum { CLUSTER_MAJOR = 9, ATTRIBUTE_MAJOR = 75, ATTRIBUTE_MINOR = 76 };
enum { LAUNCH_COOPERATIVE = 2, LAUNCH_CLUSTER = 4 };
enum { FUNC_SHARED = 1, FUNC_CONST, FUNC_LOCAL, FUNC_REGS };

typedef int CU;
typedef void *P;
typedef unsigned int U;

/* CUlaunchConfig and CUlaunchAttribute of cuda.h. */
struct attribute {
	int id, pad;
	union {
		int words[16];
	};
};
struct config {
	U grid[3], block[3], shared;
	P stream;
	struct attribute *attributes;
	U nr_attributes;
};

static const struct shape {
	const char *name;
	U grid[3], block[3], shared;
	int attribute;
	U value[3];
} shapes[] = {
	{ "one block", { 1, 1, 1 }, { 32, 1, 1 }, 0, 0, { 0 } },
	{ "a grid of 61x7x3", { 61, 7, 3 }, { 32, 1, 1 }, 0, 0, { 0 } },
	{ "a block of 32x5x3", { 2, 1, 1 }, { 32, 5, 3 }, 0, 0, { 0 } },
	{ "8192 bytes of dynamic shared memory", { 2, 1, 1 }, { 64, 1, 1 }, 8192, 0, { 0 } },
	{ "cooperative, a grid of 3x2x1", { 3, 2, 1 }, { 64, 1, 1 }, 0, LAUNCH_COOPERATIVE, { 1 } },
	{ "clusters of 2, a grid of 6x1x1", { 6, 1, 1 }, { 64, 1, 1 }, 0, LAUNCH_CLUSTER,
	  { 2, 1, 1 } },
};

static const char ptx[] =
	".version 4.2\n.target sm_30\n.address_size 64\n"
	".visible .entry work(.param .u64 out)\n{\n"
	".reg .b64 %d<2>; .reg .b32 %r<2>;\n"
	"ld.param.u64 %d0, [out];\ncvta.to.global.u64 %d1, %d0;\n"
	"mov.u32 %r0, %ctaid.x;\nst.global.u32 [%d1], %r0;\nbar.sync 0;\nret;\n}\n";

#define FUNCTIONS(F) \
	F(cuInit, (U)) \
	F(cuDriverGetVersion, (int *)) \
	F(cuDeviceGet, (int *, int)) \
	F(cuDeviceGetCount, (int *)) \
	F(cuDeviceGetByPCIBusId, (int *, const char *)) \
	F(cuDeviceGetUuid, (unsigned char *, int)) \
	F(cuDeviceGetName, (char *, int, int)) \
	F(cuDeviceGetPCIBusId, (char *, int, int)) \
	F(cuDeviceGetAttribute, (int *, int, int)) \
	F(cuDevicePrimaryCtxRetain, (P *, int)) \
	F(cuCtxSetCurrent, (P)) \
	F(cuCtxSynchronize, (void)) \
	F(cuModuleLoadData, (P *, const void *)) \
	F(cuModuleGetFunction, (P *, P, const char *)) \
	F(cuFuncGetAttribute, (int *, int, P)) \
	F(cuMemAlloc_v2, (uint64_t *, size_t)) \
	F(cuLaunchKernel, (P, U, U, U, U, U, U, U, P, P *, P *)) \
	F(cuGetExportTable, (const void **, const void *))
#define DEFINE(name, args) static CU (*name) args;
FUNCTIONS(DEFINE)
static CU (*cuLaunchKernelEx)(const struct config *, P, P *, P *);	/* CUDA 11.8 */

static unsigned char params[MAX_PARAMS];
static size_t params_bytes;
static struct {
	U offset;
	size_t bytes;
	unsigned char data[AT_BYTES];
} found[MAX_PARAMS / 8];
static U nr_found, nr_calls;

/*
 * Copies at most @len bytes. Skips unreadable pages, because reading them would crash the
 * program.
 */
static size_t peek(uint64_t address, void *to, size_t len)
{
	size_t done = 0;

	while (done < len) {
		size_t part = 64 - (address + done) % 64;
		struct iovec remote = { (void *)(uintptr_t)(address + done), part };
		struct iovec local = { (char *)to + done, part };

		if (part > len - done)
			local.iov_len = remote.iov_len = part = len - done;
		if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != (ssize_t)part)
			break;
		done += part;
	}
	return done;
}

/* The driver calls this function, so it only copies data and prints nothing. */
static void on_launch(void *user, int domain, int cbid, const void *p)
{
	uint64_t word;
	uint32_t size = 0;

	(void)user;
	if (domain != DOMAIN_LAUNCH || cbid != CBID_BUILT || !p || nr_calls++)
		return;
	peek((uintptr_t)p, &size, sizeof(size));
	params_bytes = peek((uintptr_t)p, params, size < MAX_PARAMS ? size : MAX_PARAMS);
	for (U at = 0; at + 8 <= params_bytes; at += 8) {
		memcpy(&word, params + at, sizeof(word));
		found[nr_found].offset = at;
		found[nr_found].bytes = peek(word, found[nr_found].data, AT_BYTES);
		nr_found += !!found[nr_found].bytes;
	}
}

static void dump(const unsigned char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i += 32) {
		printf("  %03zx", i);
		for (size_t j = i; j < len && j < i + 32; j++)
			printf("%s%02x", j % 4 ? "" : " ", bytes[j]);
		printf("\n");
	}
}

static int failed(const char *what, int result)
{
	fprintf(stderr, "launch_dump: %s: %d\n", what, result);
	return 1;
}

#define TRY(call) do { \
	CU r_ = (call); \
	if (r_) \
		return failed(#call, r_); \
} while (0)

static int launch(const struct shape *s, P work, uint64_t out)
{
	struct attribute attribute = { .id = s->attribute };
	struct config config = {
		.shared = s->shared, .attributes = &attribute, .nr_attributes = 1,
	};
	P args[] = { &out };
	CU result;

	memcpy(config.grid, s->grid, sizeof(config.grid));
	memcpy(config.block, s->block, sizeof(config.block));
	memcpy(attribute.words, s->value, sizeof(s->value));
	nr_calls = nr_found = params_bytes = 0;
	printf("\n[launch]\nshape = %s\ngrid = %u %u %u\n", s->name, s->grid[0], s->grid[1],
	       s->grid[2]);
	printf("block = %u %u %u\ndynamic-shared = %u\n", s->block[0], s->block[1], s->block[2],
	       s->shared);
	if (s->attribute && !cuLaunchKernelEx) {
		printf("result = this driver has no cuLaunchKernelEx\n");
		return 0;
	}
	if (s->attribute)
		result = cuLaunchKernelEx(&config, work, args, NULL);
	else
		result = cuLaunchKernel(work, s->grid[0], s->grid[1], s->grid[2], s->block[0],
					s->block[1], s->block[2], s->shared, NULL, args, NULL);
	printf("result = %d\n", result);
	TRY(cuCtxSynchronize());
	printf("callbacks = %u\nparameters = %zu\n", nr_calls, params_bytes);
	dump(params, params_bytes);
	for (U i = 0; i < nr_found; i++) {
		printf("at-parameter = 0x%02x\n", found[i].offset);
		dump(found[i].data, found[i].bytes);
	}
	return 0;
}

/* The prefix "GPU-" of the UUID is optional. */
static int uuid_find(const char *wanted, int *device)
{
	unsigned char uuid[16];
	char text[40];
	int nr;

	TRY(cuDeviceGetCount(&nr));
	for (*device = 0; *device < nr; ++*device) {
		size_t at = 0;

		TRY(cuDeviceGetUuid(uuid, *device));
		for (int i = 0; i < 16; i++)
			at += sprintf(text + at, "%s%02x",
				      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
		if (!strcasecmp(wanted + (strncasecmp(wanted, "GPU-", 4) ? 0 : 4), text))
			return 0;
	}
	fprintf(stderr, "launch_dump: no GPU has the UUID %s\n", wanted);
	return 1;
}

static int driver_open(const char *gpu, int *device)
{
	P lib = dlopen("libcuda.so.1", RTLD_NOW);
	int index;
	char end;

	if (!lib)
		return failed("no libcuda.so.1", 0);
#define FIND(name, args) \
	if (!(*(void **)&name = dlsym(lib, #name))) \
		return failed("no " #name, 0);
	FUNCTIONS(FIND)
	*(void **)&cuLaunchKernelEx = dlsym(lib, "cuLaunchKernelEx");
	/* Let CUDA list all GPUs, with the numbers that gpupart uses. */
	setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
	unsetenv("CUDA_VISIBLE_DEVICES");
	TRY(cuInit(0));
	if (sscanf(gpu, "%d%c", &index, &end) == 1)
		TRY(cuDeviceGet(device, index));
	else if (strchr(gpu, ':'))
		TRY(cuDeviceGetByPCIBusId(device, gpu));
	else
		return uuid_find(gpu, device);
	return 0;
}

int main(int argc, char **argv)
{
	static const unsigned char id[16] = { 0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
					      0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b };
	CU (*subscribe)(U *, void (*)(void *, int, int, const void *), void *);
	CU (*unsubscribe)(U);
	int device, major, minor, version, value[5] = { 0 };
	unsigned char table[MAX_TABLE];
	CU (*enable)(U, U, int, int);
	char name[128], pci[32];
	P ctx, module, work;
	uint64_t out, bytes = 0;
	const void *at = NULL;
	U handle;

	if (argc > 2) {
		fprintf(stderr,
			"usage: launch_dump [GPU]: an index in PCI order, a PCI address or a UUID\n");
		return 2;
	}
	if (driver_open(argc > 1 ? argv[1] : "0", &device))
		return 1;
	TRY(cuDriverGetVersion(&version));
	TRY(cuDeviceGetName(name, sizeof(name), device));
	TRY(cuDeviceGetPCIBusId(pci, sizeof(pci), device));
	TRY(cuDeviceGetAttribute(&major, ATTRIBUTE_MAJOR, device));
	TRY(cuDeviceGetAttribute(&minor, ATTRIBUTE_MINOR, device));
	printf("# launches of known shape, and what the driver's callback gets\n\n");
	printf("[gpu]\nname = %s\npci = %s\n", name, pci);
	printf("compute-capability = %d.%d\ncuda = %d.%d\n", major, minor, version / 1000,
	       version % 1000 / 10);
	TRY(cuGetExportTable(&at, id));
	peek((uintptr_t)at, &bytes, sizeof(bytes));
	printf("table = %llu\n", (unsigned long long)bytes);
	if (bytes < 7 * 8 || bytes > MAX_TABLE || peek((uintptr_t)at, table, bytes) != bytes)
		return failed("a table of another size, bytes", (int)bytes);
	memcpy(&subscribe, table + SUBSCRIBE * 8, 8);
	memcpy(&unsubscribe, table + UNSUBSCRIBE * 8, 8);
	memcpy(&enable, table + ENABLE * 8, 8);
	TRY(subscribe(&handle, on_launch, NULL));
	TRY(enable(1, handle, DOMAIN_LAUNCH, CBID_BUILT));
	TRY(cuDevicePrimaryCtxRetain(&ctx, device));
	TRY(cuCtxSetCurrent(ctx));
	TRY(cuModuleLoadData(&module, ptx));
	TRY(cuModuleGetFunction(&work, module, "work"));
	TRY(cuMemAlloc_v2(&out, 4096));
	for (int i = FUNC_SHARED; i <= FUNC_REGS; i++)
		TRY(cuFuncGetAttribute(&value[i], i, work));
	printf("registers = %d\nstatic-shared = %d\nconstant = %d\nlocal = %d\n",
	       value[FUNC_REGS], value[FUNC_SHARED], value[FUNC_CONST], value[FUNC_LOCAL]);
	for (U i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		if (shapes[i].attribute == LAUNCH_CLUSTER && major < CLUSTER_MAJOR)
			continue;
		if (launch(&shapes[i], work, out))
			return 1;
	}
	TRY(unsubscribe(handle));
	return 0;
}
