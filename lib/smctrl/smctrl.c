// SPDX-License-Identifier: MIT
/*
 * Implements libsmctrl's masks with gpupart's public interface. In these masks a set bit forbids
 * its TPC. Only this file and its header use this polarity, and allowed_by() converts it. Each
 * error is printed as a line on stderr. The original libsmctrl does the same, because its functions
 * return nothing.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/private.h"
#pragma GCC visibility push(default)
#include <libsmctrl.h>
#pragma GCC visibility pop
#include "lib/smctrl/smctrl.h"

/* This file defines the functions, so the header's selection macros must be off here. */
#undef libsmctrl_set_global_mask
#undef libsmctrl_set_next_mask

/* Bit (n % 64) of word (n / 64) forbids TPC n. TPC 128 and later TPCs are always forbidden. */
struct mask {
	uint64_t forbidden[2];
};

#define MASK_TPCS 128

static struct mask mask_of_64(uint64_t mask)
{
	return (struct mask){ { mask, ~0ull } };
}

static struct mask mask_of_128(uint128_t mask)
{
	return (struct mask){ { (uint64_t)mask, (uint64_t)(mask >> 64) } };
}

/* Returns the TPCs of the GPU that the mask allows. All TPCs of the GPU are in @all. */
static struct gpupart_tpcset allowed_by(struct mask mask, const struct gpupart_tpcset *all)
{
	struct gpupart_tpcset allowed = { { ~mask.forbidden[0], ~mask.forbidden[1] } };

	return gpupart_tpcset_and(all, &allowed);
}

static bool disabled;

static void disabled_read(void)
{
	const char *disable = getenv("GPUPART_DISABLE");

	disabled = disable && !strcmp(disable, "1");
}

bool smctrl_stands_aside(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, disabled_read);
	return disabled;
}

/* A thread can hold ready_lock, but not cap_lock, during calls of gpupart and the driver. */
static pthread_mutex_t cap_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t ready_lock = PTHREAD_MUTEX_INITIALIZER;

/* During the fork, another thread may have held the locks, so initialise them again. */
static void in_child(void)
{
	pthread_mutex_init(&cap_lock, NULL);
	pthread_mutex_init(&ready_lock, NULL);
}

__attribute__((constructor))
static void guard_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

/* ---------------------------------------------------------------- LIBSMCTRL_MASK */

/* Returns false if the variable is missing or invalid. An invalid value causes an error message. */
static bool cap_parse(struct mask *cap)
{
	const char *text = getenv("LIBSMCTRL_MASK"), *c = text;
	uint128_t mask = 0;
	bool invert, any = false;

	if (!text || !text[0])
		return false;
	invert = *c == '~';
	c += invert;
	if (c[0] == '0' && (c[1] == 'x' || c[1] == 'X'))
		c += 2;
	for (; *c || !any; c++) {
		const char digits[] = "0123456789abcdef0123456789ABCDEF";
		const char *digit = *c ? strchr(digits, *c) : NULL;

		if (!digit || mask >> (MASK_TPCS - 4)) {
			smctrl_say(
				"LIBSMCTRL_MASK=%.100s is not a mask of %d hexadecimal digits, so it is ignored",
				text, MASK_TPCS / 4);
			return false;
		}
		mask = mask << 4 | (digit - digits) % 16;
		any = true;
	}
	*cap = mask_of_128(invert ? ~mask : mask);
	return true;
}

/* Marks the mask as applied to @gpu. Returns true if the mask already had this mark. */
static bool cap_done(const struct gpupart_gpu *gpu)
{
	static const struct gpupart_gpu *done[SMCTRL_MAX_GPUS];
	bool was = false;
	int nr = 0;

	pthread_mutex_lock(&cap_lock);
	while (nr < SMCTRL_MAX_GPUS && done[nr] && !was)
		was = done[nr++] == gpu;
	if (!was && nr < SMCTRL_MAX_GPUS)
		done[nr] = gpu;
	pthread_mutex_unlock(&cap_lock);
	return was;
}

/*
 * Reduces the outer limit to its intersection with the mask, so GPUPART_SET also applies. This
 * happens one time. If another program sets the outer limit later, the later limit applies.
 */
static void cap_apply(struct gpupart *gp, struct gpupart_gpu *gpu)
{
	const struct gpupart_topology *topo = gpupart_gpu_topology(gpu);
	const char *pci = gpupart_topology_info(topo)->pci;
	struct gpupart_tpcset all = gpupart_topology_all(topo), allowed;
	struct mask cap;
	int err;

	if (cap_done(gpu) || !cap_parse(&cap))
		return;
	allowed = allowed_by(cap, &all);
	if (gpupart_tpcset_empty(&allowed)) {
		smctrl_say(
			"LIBSMCTRL_MASK=%.100s enables no TPC of the GPU at %s, so it is ignored on this GPU",
			getenv("LIBSMCTRL_MASK"), pci);
		return;
	}
	err = gpupart_limit_cap(gp, gpu, &allowed);
	if (err == -EPERM)
		smctrl_say(
			"LIBSMCTRL_MASK=%.100s enables no TPC that the GPU at %s may use, so it is ignored on this GPU: %s",
			getenv("LIBSMCTRL_MASK"), pci, gpupart_error(gp));
	else if (err)
		smctrl_say("LIBSMCTRL_MASK is not in force on the GPU at %s: %s", pci,
				   gpupart_error(gp));
}

static void cap_early_on(struct gpupart *gp, const char *selector)
{
	struct gpupart_gpu *gpu;

	if (gpupart_attach_early(gp, selector, NULL, &gpu))
		smctrl_say(
				"LIBSMCTRL_MASK has no effect until the program sets its first mask: %s",
		    gpupart_error(gp));
	else
		cap_apply(gp, gpu);
}

void smctrl_cap_early(void)
{
	static struct gpupart_gpu_info list[SMCTRL_MAX_GPUS];
	struct gpupart *gp;
	char number[16];
	int nr;

	if (!smctrl_driver_there() || gpupart_open(&gp))
		return;
	if (smctrl_driver.sim_capture) {
		for (int device = 0; smctrl_driver.sim_capture(device); device++) {
			snprintf(number, sizeof(number), "cuda:%d", device);
			cap_early_on(gp, number);
		}
	} else {
		nr = gpupart_gpu_list(gp, NULL, list, SMCTRL_MAX_GPUS, sizeof(list[0]));
		if (nr < 0)
			smctrl_say(
				"LIBSMCTRL_MASK has no effect until the program sets its first mask: %s",
				gpupart_error(gp));
		for (int i = 0; i < nr && i < SMCTRL_MAX_GPUS; i++)
			cap_early_on(gp, list[i].pci);
	}
	gpupart_close(gp);
}

/* ------------------------------------------------------------------- making ready */

/* The GPUs of the process. The index is CUDA's number. */
static struct device {
	char pci[20];
	atomic_bool attached;		/* device_gpu() has found the GPU, so the following members
					 * do not change any more */
	struct gpupart_gpu *gpu;	/* NULL: the GPU was refused, and the error was printed */
	int err;			/* the reason */
	struct gpupart_tpcset all;
	atomic_bool tells_streams;	/* the GPU is fully attached, with a context */
} devices[SMCTRL_MAX_GPUS];

static atomic_bool ready;	/* the addresses in devices[] are filled in */
static int nr_devices;		/* a negative value is the error */

/*
 * Attaches a GPU. If the mask bits were checked before, creates no context, because programs often
 * do not use all their GPUs. Otherwise creates a context and makes the launches that check the mask
 * bits.
 */
static void device_attach(struct gpupart *gp, struct device *device)
{
	struct gpupart_gpu *gpu;

	device->err = gpupart_attach_early(gp, device->pci, NULL, &gpu);
	if (device->err) {
		device->err = gpupart_attach(gp, device->pci, NULL, &gpu);
		device->tells_streams = !device->err;
	}
	if (device->err) {
		smctrl_say("no mask is applied on the GPU at %s: %s", device->pci,
			   gpupart_error(gp));
		return;
	}
	cap_apply(gp, gpu);
	device->all = gpupart_topology_all(gpupart_gpu_topology(gpu));
	device->gpu = gpu;
}

/* Attaches the GPU when the first mask is set on it, so that unused GPUs are never attached. */
static struct gpupart_gpu *device_gpu(struct gpupart *gp, struct device *device)
{
	if (atomic_load_explicit(&device->attached, memory_order_acquire))
		return device->gpu;
	pthread_mutex_lock(&ready_lock);
	if (!atomic_load_explicit(&device->attached, memory_order_relaxed)) {
		device_attach(gp, device);
		atomic_store_explicit(&device->attached, true, memory_order_release);
	}
	pthread_mutex_unlock(&ready_lock);
	return device->gpu;
}

static int devices_fill(struct gpupart *gp)
{
	const char *cap = getenv("LIBSMCTRL_MASK");
	int count;

	if (!smctrl_driver_there()) {
		smctrl_say(
			"no mask is applied: NVIDIA's driver library cannot be opened, or is too old");
		return -ENOENT;
	}
	if (smctrl_driver.init(0) || smctrl_driver.device_count(&count) || count < 1) {
		smctrl_say("no mask is applied: CUDA shows no GPU to this process");
		return -ENODEV;
	}
	if (count > SMCTRL_MAX_GPUS)
		count = SMCTRL_MAX_GPUS;
	for (int i = 0; i < count; i++) {
		smctrl_device_pci(i, devices[i].pci);
		/* From the first call on, the mask of the variable applies to each GPU. */
		if (cap && *cap) {
			device_attach(gp, &devices[i]);
			devices[i].attached = true;
		}
	}
	return count;
}

/*
 * Every function that sets a mask calls this function first. If another thread is in this function,
 * this thread waits for that thread. So a mask is in force when the function that sets the mask
 * returns. Returns the number of devices, or a negative errno. The error is printed only once.
 */
static int make_ready(struct gpupart *gp)
{
	if (atomic_load_explicit(&ready, memory_order_acquire))
		return nr_devices;
	pthread_mutex_lock(&ready_lock);
	if (!atomic_load_explicit(&ready, memory_order_relaxed)) {
		nr_devices = devices_fill(gp);
		atomic_store_explicit(&ready, true, memory_order_release);
	}
	pthread_mutex_unlock(&ready_lock);
	return nr_devices;
}

static int make_ready_for_streams(struct gpupart *gp, struct device *device)
{
	struct gpupart_gpu *gpu;
	int err = 0;

	if (atomic_load_explicit(&device->tells_streams, memory_order_acquire))
		return 0;
	pthread_mutex_lock(&ready_lock);
	if (!atomic_load_explicit(&device->tells_streams, memory_order_relaxed)) {
		err = gpupart_attach(gp, device->pci, NULL, &gpu);
		atomic_store_explicit(&device->tells_streams, !err, memory_order_release);
	}
	pthread_mutex_unlock(&ready_lock);
	return err;
}

/* Returns CUDA's number of the thread's GPU. If the thread has no GPU yet, returns 0. */
static int current_device(void)
{
	int device;

	return smctrl_driver.ctx_device(&device) || device < 0 || device >= nr_devices ? 0 : device;
}

/* ------------------------------------------------------------------------ masks */

static pthread_key_t context_key;
static bool context_key_made;
/* The thread's gpupart context. It is kept, because programs set masks before every launch. */
static _Thread_local struct gpupart *kept;
static _Thread_local bool ending;

/*
 * Closes the gpupart context of a thread that ends. The destructors of other keys may run later
 * and set masks. Then each call opens a separate context.
 */
static void context_close(void *gp)
{
	ending = true;
	kept = NULL;
	gpupart_close(gp);
}

static void context_key_make(void)
{
	context_key_made = !pthread_key_create(&context_key, context_close);
}

/* Returns a context, or NULL if the call must change nothing. Pass the result to end(). */
static struct gpupart *begin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct gpupart *gp;

	if (kept || smctrl_stands_aside())
		return kept;
	pthread_once(&once, context_key_make);
	if (gpupart_open(&gp)) {
		smctrl_say("out of memory: nothing was changed");
		return NULL;
	}
	/*
	 * Keep the context only if the key will close it at the end of the thread. There may be no
	 * key, because a process has at most 1024 keys.
	 */
	if (context_key_made && !ending && !pthread_setspecific(context_key, gp))
		kept = gp;
	return gp;
}

static void end(struct gpupart *gp)
{
	if (gp != kept)
		gpupart_close(gp);
}

static int leaves_nothing(struct mask mask, const char *what, const struct device *device)
{
	smctrl_say(
		"%s mask 0x%llx%016llx enables no TPC of the GPU at %s: nothing was changed on this GPU",
		what, (unsigned long long)mask.forbidden[1],
		(unsigned long long)mask.forbidden[0], device->pci);
	return EINVAL;
}

static void set_global(struct mask mask)
{
	struct gpupart *gp = begin();
	int nr = gp ? make_ready(gp) : 0;

	for (int i = 0; i < nr; i++) {
		struct device *device = &devices[i];
		struct gpupart_tpcset set;

		if (!device_gpu(gp, device))
			continue;
		set = allowed_by(mask, &device->all);
		if (gpupart_tpcset_empty(&set))
			leaves_nothing(mask, "global", device);
		else if (gpupart_process_set(gp, device->gpu, &set))
			smctrl_say("the global mask is not applied: %s", gpupart_error(gp));
	}
	end(gp);
}

void libsmctrl_set_global_mask(uint64_t mask)
{
	set_global(mask_of_64(mask));
}

void libsmctrl_set_global_mask_ext(uint128_t mask)
{
	set_global(mask_of_128(mask));
}

void set_sm_mask(uint64_t mask)
{
	set_global(mask_of_64(mask));
}

static void set_next(struct mask mask)
{
	struct gpupart *gp = begin();
	struct gpupart_tpcset set;
	struct device *device;

	if (gp && make_ready(gp) > 0) {
		device = &devices[current_device()];
		if (device_gpu(gp, device)) {
			set = allowed_by(mask, &device->all);
			if (gpupart_tpcset_empty(&set))
				leaves_nothing(mask, "next", device);
			else if (gpupart_next_set(gp, device->gpu, &set))
				smctrl_say("the next mask is not applied: %s", gpupart_error(gp));
		}
	}
	end(gp);
}

void libsmctrl_set_next_mask(uint64_t mask)
{
	set_next(mask_of_64(mask));
}

void libsmctrl_set_next_mask_ext(uint128_t mask)
{
	set_next(mask_of_128(mask));
}

/* ---------------------------------------------------------------------- streams */

/*
 * Returns true for the handles of default streams. Each default stream belongs to a CUDA context.
 */
static bool is_default(const void *stream)
{
	return (uintptr_t)stream <= 2;
}

/* This struct tells context_leave() what context_enter() has done. */
struct entered {
	bool pushed;
	bool made;	/* context_enter() created the context, because the program had not
			 * created it */
};

/*
 * Prepares a call on @stream. If @stream is a default stream and the thread has no current context,
 * makes the first GPU's primary context current. The CUDA runtime uses the same context. If a
 * program with several GPUs has not created this context, it may never use the first GPU. In this
 * case, the function creates no context and returns EINVAL. Otherwise returns 0.
 */
static int context_enter(const void *stream, struct entered *entered)
{
	unsigned int flags;
	void *ctx = NULL;
	int active = 0;

	*entered = (struct entered){ .pushed = false };
	if (!is_default(stream) || (!smctrl_driver.ctx_current(&ctx) && ctx))
		return 0;
	if (smctrl_driver.primary_state(0, &flags, &active))
		active = 0;
	if ((active || nr_devices == 1) && !smctrl_driver.primary_retain(&ctx, 0)) {
		*entered = (struct entered){ .pushed = !smctrl_driver.ctx_push(ctx),
					     .made = !active };
		if (entered->pushed)
			return 0;
		smctrl_driver.primary_release(0);
	}
	smctrl_say(
		"stream %p: a default stream belongs to a context, and this thread has no current context: create one first, for example by cudaFree(0)",
		stream);
	return EINVAL;
}

/*
 * Undoes context_enter(). When a context is destroyed, its masks disappear. So if @keep is true and
 * context_enter() created the context, the first such call does not release the context.
 */
static void context_leave(const struct entered *entered, bool keep)
{
	static atomic_bool held;
	void *ctx;

	if (!entered->pushed)
		return;
	smctrl_driver.ctx_pop(&ctx);
	if (!entered->made || !keep || atomic_exchange(&held, true))
		smctrl_driver.primary_release(0);
}

/*
 * Sets a mask on a stream. The stream is usually on the thread's GPU, so this GPU is tried
 * first, and then all other GPUs. An error that does not depend on the GPU ends the search.
 */
static int set_stream_on(struct gpupart *gp, void *stream, struct mask mask)
{
	int first = current_device(), err = 0;
	struct device *left_nothing = NULL;
	const char *why = NULL;

	for (int i = 0; i < (is_default(stream) ? 1 : nr_devices); i++) {
		struct device *device = &devices[(first + i) % nr_devices];
		struct gpupart_tpcset set;

		if (!device_gpu(gp, device)) {
			err = err ? err : device->err;
			continue;
		}
		set = allowed_by(mask, &device->all);
		if (gpupart_tpcset_empty(&set)) {
			left_nothing = left_nothing ? left_nothing : device;
			continue;
		}
		err = make_ready_for_streams(gp, device);
		if (!err)
			err = gpupart_stream_set(gp, device->gpu, stream, &set);
		if (!err)
			return 0;
		why = gpupart_error(gp);
		if (err != -EINVAL)
			break;
	}
	if (left_nothing && (!err || err == -EINVAL))
		return leaves_nothing(mask, "stream", left_nothing);
	if (why)
		smctrl_say("the mask of stream %p is not applied: %s", stream, why);
	return -err;
}

static int set_stream(void *stream, struct mask mask)
{
	struct gpupart *gp = begin();
	struct entered entered;
	int err;

	if (!gp)
		return smctrl_stands_aside() ? 0 : ENOMEM;
	err = make_ready(gp);
	if (err > 0) {
		err = context_enter(stream, &entered);
		if (!err)
			err = set_stream_on(gp, stream, mask);
		context_leave(&entered, !err);
	} else {
		err = -err;
	}
	end(gp);
	return err;
}

int libsmctrl_set_stream_mask(void *stream, uint64_t mask)
{
	return set_stream(stream, mask_of_64(mask));
}

int libsmctrl_set_stream_mask_ext(void *stream, uint128_t mask)
{
	return set_stream(stream, mask_of_128(mask));
}

/* ---------------------------------------------------------------------- helpers */

static uint128_t first_bits(uint32_t nr)
{
	return nr == MASK_TPCS ? ~(uint128_t)0 : ((uint128_t)1 << nr) - 1;
}

int libsmctrl_make_mask_ext(uint128_t *mask, uint32_t low, uint32_t high_exclusive)
{
	if (low >= high_exclusive || high_exclusive > MASK_TPCS)
		return EINVAL;
	*mask = ~(first_bits(high_exclusive) & ~first_bits(low));
	return 0;
}

int libsmctrl_make_mask(uint64_t *mask, uint32_t low, uint32_t high_exclusive)
{
	uint128_t wide;

	if (high_exclusive > 64 || libsmctrl_make_mask_ext(&wide, low, high_exclusive))
		return EINVAL;
	*mask = (uint64_t)wide;
	return 0;
}

/*
 * Returns the GPU on which @stream has a mask. If there is no such GPU, returns the calling
 * thread's GPU.
 */
static struct device *device_of_stream(void *stream)
{
	struct gpupart_tpcset set;

	for (int i = 0; i < nr_devices; i++)
		if (devices[i].attached && devices[i].gpu &&
		    gpupart_stream_get(devices[i].gpu, stream, &set))
			return &devices[i];
	return &devices[current_device()];
}

static int validate(struct gpupart *gp, void *stream, int low, int high_exclusive, bool echo)
{
	char list[GPUPART_TPCSET_STRLEN] = "";
	struct gpupart_tpcset wanted = { { 0 } }, seen;
	struct device *device = device_of_stream(stream);
	int err = device_gpu(gp, device) ? make_ready_for_streams(gp, device) : -ENODEV;

	if (!err)
		err = gpupart_census(gp, device->gpu, stream, &seen);
	if (err) {
		smctrl_say("stream %p cannot be checked: %s", stream,
		    *gpupart_error(gp) ? gpupart_error(gp) : strerror(-err));
		return -1;
	}
	for (int tpc = low; tpc < high_exclusive && tpc < GPUPART_MAX_TPCS; tpc++)
		if (tpc >= 0)
			gpupart_tpcset_add(&wanted, tpc);
	if (echo) {
		gpupart_tpcset_format_list(&seen, list, sizeof(list));
		printf("stream %p: ran on TPCs %s, expected %d-%d\n", stream, list, low,
		       high_exclusive - 1);
	}
	return gpupart_tpcset_equal(&wanted, &seen) ? 0 : -1;
}

int libsmctrl_validate_stream_mask(void *stream, int low, int high_exclusive, bool echo)
{
	struct gpupart *gp;
	struct entered entered;
	int result = -1;

	if (gpupart_open(&gp))
		return -1;
	if (make_ready(gp) > 0 && !context_enter(stream, &entered)) {
		result = validate(gp, stream, low, high_exclusive, echo);
		context_leave(&entered, false);
	}
	gpupart_close(gp);
	return result;
}

/* ------------------------------------------------------------------- making ready */

int libsmctrl_init(void)
{
	struct gpupart *gp = begin();
	int nr, err = 0;

	if (!gp)
		return smctrl_stands_aside() ? 0 : ENOMEM;
	nr = make_ready(gp);
	for (int i = 0; i < nr; i++)
		if (!device_gpu(gp, &devices[i]))
			err = -devices[i].err;
	end(gp);
	return nr < 0 ? -nr : err;
}

/*
 * In the original library, this function and libsmctrl_init() find the GPUs in different ways.
 * In this library, both functions ask CUDA for the GPUs.
 */
int libsmctrl_init_from_cuda(void)
{
	return libsmctrl_init();
}

int libsmctrl_is_init(void)
{
	return atomic_load_explicit(&ready, memory_order_acquire) && nr_devices > 0;
}

const char *libsmctrl_get_version(void)
{
	return gpupart_version();
}
