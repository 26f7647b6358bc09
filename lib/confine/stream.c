// SPDX-License-Identifier: MIT
/*
 * Identifies streams, kernel functions and threads, and finds the TMD of a stream. The code reads
 * the driver's objects in a safe way. With a bad handle, the read fails without a fault.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include "lib/confine/probe.h"
#include "lib/confine/stream.h"
#include "lib/core/peek.h"

/*
 * The mark of a thread is the address of a thread-local variable. When the thread ends, the
 * destructor of this key reports the end.
 */
static pthread_key_t thread_key;
static bool thread_key_made;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;
static _Thread_local char thread_mark;

static void no_user(const void *thread)
{
	(void)thread;
}

static void (*on_thread_end)(const void *thread) = no_user;

void stream_on_thread_end(void (*fn)(const void *thread))
{
	on_thread_end = fn;
}

static void thread_ends(void *mark)
{
	on_thread_end(mark);
	scope_thread_free();
}

static void thread_key_make(void)
{
	thread_key_made = !pthread_key_create(&thread_key, thread_ends);
}

int stream_mark_thread(struct gpupart *gp)
{
	pthread_once(&thread_once, thread_key_make);
	/* Without the mark, a later thread at the same address would get this thread's set. */
	if (!thread_key_made || pthread_setspecific(thread_key, &thread_mark))
		return ctx_fail(gp, -EAGAIN,
			"a thread cannot have a set: this process has used all its thread-specific keys");
	return 0;
}

int stream_identify(struct gpupart *gp, const struct cuda_api *cuda, void *stream,
		    struct scope_id *id)
{
	*id = (struct scope_id){ .handle = stream ? stream : CUDA_STREAM_LEGACY };
	if (id->handle != CUDA_STREAM_LEGACY && id->handle != CUDA_STREAM_PER_THREAD)
		return 0;
	if (cuda->ctx_current(&id->ctx) || !id->ctx)
		return ctx_fail(gp, -EINVAL,
			"a default stream belongs to a context, and this thread has no current context");
	if (id->handle == CUDA_STREAM_PER_THREAD) {
		id->thread = &thread_mark;
		return stream_mark_thread(gp);
	}
	return 0;
}

void stream_identify_in_call(void *stream, bool per_thread, void *ctx, struct scope_id *id)
{
	if (!stream)
		stream = per_thread ? CUDA_STREAM_PER_THREAD : CUDA_STREAM_LEGACY;
	*id = (struct scope_id){ .handle = stream };
	if (stream == CUDA_STREAM_LEGACY || stream == CUDA_STREAM_PER_THREAD)
		id->ctx = ctx;
	if (stream == CUDA_STREAM_PER_THREAD)
		id->thread = &thread_mark;
}

/*
 * If a thread has no current context, the driver answers no queries about objects. So this
 * function then pushes a context of @gpu. If it returns true, the caller must pop this context.
 */
static bool lend_context(struct gpupart *gp, const struct cuda_api *cuda,
			 const struct gpupart_gpu *gpu)
{
	struct probe *probe;
	void *ctx;

	if ((!cuda->ctx_current(&ctx) && ctx) || gpu->driver.device < 0)
		return false;
	return !probe_get(gp, cuda, gpu, gpu->driver.device, &probe) && !cuda->ctx_push(probe->ctx);
}

bool stream_is_captured(const struct cuda_api *cuda, void *stream)
{
	int capturing = 0;

	return cuda->stream_capturing(stream, &capturing) || capturing;
}

int stream_not_captured(struct gpupart *gp, const struct cuda_api *cuda, void *stream)
{
	if (stream_is_captured(cuda, stream))
		return ctx_fail(gp, -EBUSY,
			"stream %p does not exist, or it is being captured, or waits for such a stream",
			stream);
	return 0;
}

/*
 * To learn the TMD of a default stream, the library needs a launch. So the function makes an
 * empty launch.
 */
__attribute__((cold))
static int default_stream_tmd(struct gpupart *gp, struct gpupart_gpu *gpu,
			      const struct cuda_api *cuda, const struct scope_id *id,
			      uint64_t *tmd)
{
	struct scope_own own = { .mode = OWN_UNTOUCHED, .gpu = gpu };
	struct probe_launch launch = {
		.kernel = PROBE_EMPTY, .stream = id->handle, .blocks = 1, .threads = 32,
	};
	int err, mode, device;
	struct probe *probe;

	if (cuda->ctx_device(&device) || device != gpu->driver.device)
		return ctx_fail(gp, -EINVAL, "the current context is not on the GPU at %s",
				gpu->driver.topo->info.pci);
	err = stream_not_captured(gp, cuda, id->handle);
	if (err)
		return ctx_fail_because(gp, err,
			"gpupart must make an empty launch before a default stream can have a set");
	err = probe_begin(gp, gpu, &probe, &mode);
	if (err)
		return err;
	err = probe_start(gp, probe, &launch, &own);
	probe_leave(probe, mode);
	if (!err && !own.seen)
		err = ctx_fail(gp, -EOPNOTSUPP,
			       "the driver did not call the launch callback for a launch on a default stream");
	*tmd = (uintptr_t)own.tmd;
	return err;
}

static int created_stream_tmd(struct gpupart *gp, struct gpupart_gpu *gpu,
			      const struct cuda_api *cuda, const struct scope_id *id,
			      uint64_t *object, void **ctx, uint64_t *tmd)
{
	uint64_t unused;
	int device, result;
	bool lent;

	if (!peek_word(id->handle, object) ||
	    !peek_word((char *)(uintptr_t)*object + gpu->stream_tmd_offset, tmd) ||
	    !peek_word((void *)(uintptr_t)*tmd, &unused))
		return ctx_fail(gp, -EINVAL, "%p is not a stream", id->handle);
	lent = lend_context(gp, cuda, gpu);
	result = cuda->stream_ctx ? cuda->stream_ctx(id->handle, ctx) : CUDA_ERROR_NOT_FOUND;
	if (lent)
		cuda->ctx_pop(&(void *){ NULL });
	if (result || cuda->ctx_push(*ctx))
		return ctx_fail(gp, -EINVAL, "%p is not an existing stream", id->handle);
	if (cuda->ctx_device(&device))
		device = -1;
	cuda->ctx_pop(&(void *){ NULL });
	driver_context_on(*ctx, device);
	if (device != gpu->driver.device)
		return ctx_fail(gp, -EINVAL, "stream %p is not on the GPU at %s", id->handle,
				gpu->driver.topo->info.pci);
	return 0;
}

__attribute__((cold))
int stream_set_first(struct gpupart *gp, struct gpupart_gpu *gpu,
			    const struct cuda_api *cuda, const struct scope_id *id,
			    const struct gpupart_tpcset *set)
{
	uint64_t object = 0, tmd = 0;
	void *ctx = id->ctx;
	int err;

	if (!gpu->streams_known)
		return ctx_fail(gp, -EOPNOTSUPP,
				"streams cannot have sets: %s",
				gpu->check.streams);
	if (ctx)
		err = default_stream_tmd(gp, gpu, cuda, id, &tmd);
	else
		err = created_stream_tmd(gp, gpu, cuda, id, &object, &ctx, &tmd);
	if (err)
		return err;
	return scope_add(gp, gpu, &gpu->streams, "streams", id, object, ctx, tmd, set);
}

int stream_module(const struct cuda_api *cuda, void **function, void **module)
{
	void *handle = *function;
	int result = cuda->func_module(module, handle);

	/* If the handle is a CUkernel, use the kernel's function in the current context. */
	if (result && cuda->kernel_function && !cuda->kernel_function(function, handle))
		result = cuda->func_module(module, *function);
	return result;
}

int stream_function(struct gpupart *gp, const struct cuda_api *cuda,
		    const struct gpupart_gpu *gpu, void *handle, void **function, void **module)
{
	uint64_t unused;
	bool lent;
	int result;

	if (!cuda->func_module)
		return ctx_fail(gp, -EOPNOTSUPP,
				"functions cannot have sets: this driver has no cuFuncGetModule");
	/* The driver dereferences every address without a check. So check the address here. */
	if (!handle || !peek_word(handle, &unused))
		return ctx_fail(gp, -EINVAL, "%p is not a kernel function", handle);
	*function = handle;
	lent = lend_context(gp, cuda, gpu);
	result = stream_module(cuda, function, module);
	if (lent)
		cuda->ctx_pop(&(void *){ NULL });
	return result ? ctx_fail(gp, -EINVAL, "%p is not a kernel function", handle) : 0;
}
