// SPDX-License-Identifier: MIT
/*
 * Loads modules and finds functions. Finds the entry points in PTX text, and the resources of
 * their blocks.
 */
#include <ctype.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include "sim/cuda/callback_numbers.h"

/*
 * For each kernel, a cubin has a section of constants. The name of the section is this prefix and
 * the name of the kernel.
 */
#define CONSTANTS ".nv.constant0."

/* modules are never freed, so that a stale handle is recognized */
static struct sim_module *modules;

static bool module_valid(const struct sim_module *module)
{
	const struct sim_module *m;

	for (m = modules; m; m = m->next)
		if (m == module)
			return m->live;
	return false;
}

bool function_valid(const struct sim_function *function)
{
	const struct sim_module *m;
	const struct sim_function *f;

	for (m = modules; m; m = m->next)
		for (f = m->live ? m->functions : NULL; f; f = f->next)
			if (f == function)
				return true;
	return false;
}

static struct sim_function *function_make(struct sim_module *module, const char *name,
					  size_t len)
{
	struct sim_function *function = calloc(1, sizeof(*function));

	if (!function)
		return NULL;
	function->name = strndup(name, len);
	if (!function->name) {
		free(function);
		return NULL;
	}
	function->module = module;
	function->code = kernels_find(function->name);
	function->registers = function->code->registers;
	function->shared_dynamic = SIM_SHARED_DEFAULT;
	function->next = module->functions;
	module->functions = function;
	return function;
}

static struct sim_module *module_make(struct sim_ctx *ctx)
{
	struct sim_module *module = calloc(1, sizeof(*module));

	if (!module)
		return NULL;
	module->ctx = ctx;
	module->live = true;
	module->next = modules;
	modules = module;
	return module;
}

bool module_make_builtin(struct sim_ctx *ctx)
{
	struct sim_module *module = module_make(ctx);

	if (!module)
		return false;
	ctx->builtin_set = function_make(module, "memset", 6);
	ctx->builtin_copy = function_make(module, "memcpy", 6);
	return ctx->builtin_set && ctx->builtin_copy;
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/*
 * Finds the name of the first entry point in @text. Returns the length of the name, or 0 if there
 * is no entry point.
 */
static size_t find_entry(const char *text, const char **name)
{
	const char *entry = strstr(text, ".entry");
	size_t len = 0;

	*name = text;
	if (!entry)
		return 0;
	*name = entry + strlen(".entry");
	*name += strspn(*name, " \t\r\n");
	while (is_name((*name)[len]))
		len++;
	return len;
}

/*
 * Like the driver, makes a binary from @text. The binary has only the parts that tools read: the
 * head of a binary, a section for each kernel, and the names in the text. NULL: out of memory.
 */
static void *image_of_text(const char *text, size_t *size)
{
	Elf64_Ehdr head = { .e_ident = ELFMAG "\2\1\1" };
	const char *name;
	size_t len = find_entry(text, &name);
	char *image, *at;

	*size = sizeof(head) + sizeof(CONSTANTS) + len + strlen(text) + 1;
	head.e_shoff = *size;
	image = calloc(1, *size);
	if (!image)
		return NULL;
	at = mempcpy(image, &head, sizeof(head));
	at = mempcpy(at, CONSTANTS, strlen(CONSTANTS));
	at = mempcpy(at, name, len);
	strcpy(at + 1, text);
	return image;
}

/* The size of a binary is not given, but the binary ends with its section table. */
static size_t binary_size(const unsigned char *image)
{
	Elf64_Ehdr head;
	size_t end;

	if (image[EI_CLASS] != ELFCLASS64)
		return SELFMAG;
	memcpy(&head, image, sizeof(head));
	end = head.e_shoff + (size_t)head.e_shnum * head.e_shentsize;
	return end > sizeof(head) ? end : sizeof(head);
}

void module_report_builtin(const struct sim_ctx *ctx)
{
	size_t size;
	/* In NVIDIA's driver, the driver's own module contains the device runtime. */
	void *image = image_of_text("__cudaCDP2LaunchDeviceV2", &size);

	if (image)
		hook_module(ctx->builtin_set->module, image, size, HOOK_MODULE_DRIVER);
	free(image);
}

static void module_end(struct sim_module *module)
{
	module->live = false;
	free(module->image);
	module->image = NULL;
	room_discharge(module->ctx->gpu, module->bytes);
	module->bytes = 0;
}

void module_unload_all(struct sim_ctx *ctx)
{
	struct sim_module *module;

	for (module = modules; module; module = module->next)
		if (module->ctx == ctx && module->live) {
			module_end(module);
			module->unreported = true;
		}
}

void module_report_unloaded(struct sim_ctx *ctx)
{
	struct sim_module *module;

	sim_enter();
	for (module = modules; module; module = module->next) {
		if (module->ctx != ctx || !module->unreported)
			continue;
		module->unreported = false;
		sim_leave();
		hook_resource(ctx, module, HOOK_MODULE_DYING);
		hook_resource(ctx, module, HOOK_MODULE_UNLOADED);
		sim_enter();
	}
	sim_leave();
}

/* ------------------------------------------------------------------------- PTX */

/* Replaces comments by blanks, so that a search finds no text in comments. */
static void strip_comments(char *text)
{
	char *end;

	while ((text = strchr(text, '/'))) {
		if (text[1] == '/')
			end = text + strcspn(text, "\n");
		else if (text[1] == '*' && (end = strstr(text + 2, "*/")))
			end += 2;
		else {
			text++;
			continue;
		}
		memset(text, ' ', end - text);
		text = end;
	}
}

/*
 * Returns the total size of all declarations such as ".shared .align 4 .b8 name[64];" between
 * @text and @end.
 */
static unsigned int count_shared(const char *text, const char *end)
{
	unsigned int bytes = 0, size;
	const char *semicolon, *bracket, *type;

	while ((text = strstr(text, ".shared ")) && text < end) {
		semicolon = strchr(text, ';');
		if (!semicolon || semicolon > end)
			break;
		for (type = text + 8; type < semicolon; type++)
			if (*type == '.' && strchr("bsuf", type[1]) &&
			    isdigit((unsigned char)type[2]))
				break;
		bracket = memchr(text, '[', semicolon - text);
		size = type < semicolon ? strtoul(type + 2, NULL, 10) / 8 : 0;
		bytes += bracket ? size * strtoul(bracket + 1, NULL, 10) : size;
		text = semicolon;
	}
	return bytes;
}

/*
 * Returns the total size of all declarations such as ".global .align 4 .b8 name[64];" in a
 * module.
 */
static uint64_t count_global(const char *text)
{
	uint64_t bytes = 0;
	const char *bracket, *end;

	while ((text = strstr(text, ".global .align "))) {
		end = text + strcspn(text, ";");
		bracket = memchr(text, '[', end - text);
		if (bracket)
			bytes += strtoull(bracket + 1, NULL, 10);
		text = end;
	}
	return bytes;
}

/*
 * Finds a directive such as ".maxnreg 40" between @text and @end. In the simulation, a kernel uses
 * as many registers as this directive allows.
 */
static unsigned int find_registers(const char *text, const char *end, unsigned int otherwise)
{
	const char *directive = strstr(text, ".maxnreg ");
	unsigned int registers;

	if (!directive || directive > end)
		return otherwise;
	registers = strtoul(directive + strlen(".maxnreg "), NULL, 10);
	return registers && registers < 256 ? registers : otherwise;
}

static bool module_scan(struct sim_module *module, char *text)
{
	struct sim_function *function;
	const char *name, *end, *next;
	size_t len;

	strip_comments(text);
	for (name = strstr(text, ".entry"); name; name = next) {
		name += strlen(".entry");
		next = strstr(name, ".entry");
		if (!isspace((unsigned char)*name))
			continue;
		name += strspn(name, " \t\r\n");
		for (len = 0; is_name(name[len]); len++)
			;
		if (!len)
			continue;
		function = function_make(module, name, len);
		if (!function)
			return false;
		end = next ? next : name + strlen(name);
		function->shared_static = count_shared(name, end);
		function->registers = find_registers(name, end, function->registers);
	}
	return true;
}

/* ---------------------------------------------------------------- entry points */

/* If @lazily is true, the driver reports the code only later. */
static CUresult load(CUmodule *out, const void *image, bool lazily)
{
	struct sim_module *module = NULL;
	bool elf;
	char *text = NULL;
	void *compiled = NULL;
	size_t size;
	struct sim_ctx *ctx;
	CUresult error;

	if (!out || !image)
		return CUDA_ERROR_INVALID_VALUE;
	elf = !memcmp(image, ELFMAG, SELFMAG);
	if (!elf && !strstr(image, ".version"))
		return CUDA_ERROR_INVALID_IMAGE;
	if (elf) {
		size = binary_size(image);
	} else {
		compiled = image_of_text(image, &size);
		if (!compiled)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	sim_enter();
	ctx = ctx_current(&error);
	if (!ctx)
		goto leave;
	error = CUDA_ERROR_OUT_OF_MEMORY;
	module = module_make(ctx);
	if (!module)
		goto leave;
	module->opaque = elf;
	text = elf ? NULL : strdup(image);
	if (!elf && (!text || !module_scan(module, text))) {
		module->live = false;
		goto leave;
	}
	module->bytes = text ? vram_round(count_global(text)) : 0;
	if (!room_charge(ctx->gpu, module->bytes)) {
		module->live = false;
		goto leave;
	}
	*out = module;
	error = CUDA_SUCCESS;
	module->image_size = size;
	module->image = lazily ? malloc(size) : NULL;
	if (module->image)
		memcpy(module->image, elf ? image : compiled, size);
leave:
	sim_leave();
	if (!error && !lazily)
		hook_module(module, elf ? image : compiled, size, HOOK_MODULE_PROGRAM);
	free(compiled);
	free(text);
	return error;
}

CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
	return API_CALL(cuModuleLoadData, load(out, image, false), (uintptr_t)out,
			(uintptr_t)image);
}

/*
 * In the simulation, a library is a module of the current context. No other context loads the
 * module. Since CUDA 12.0, the functions of a library are CUkernels.
 */
CUresult cuLibraryLoadData(CUmodule *out, const void *code, int *options, void **values,
			   unsigned int nr_options, int *library_options, void **library_values,
			   unsigned int nr_library_options)
{
	(void)options, (void)values, (void)nr_options, (void)library_options;
	(void)library_values, (void)nr_library_options;
	return API_CALL(cuLibraryLoadData, load(out, code, sim_faults()->lazy_libraries),
			(uintptr_t)out, (uintptr_t)code);
}

static CUresult unload(CUmodule module)
{
	struct sim_ctx *ctx;
	CUresult error;

	sim_enter();
	if (ctx_current(&error) && !module_valid(module))
		error = CUDA_ERROR_INVALID_HANDLE;
	ctx = error ? NULL : module->ctx;
	sim_leave();
	if (error)
		return error;
	hook_resource(ctx, module, HOOK_MODULE_DYING);
	sim_enter();
	if (ctx_current(&error)) {
		if (!module_valid(module)) {
			error = CUDA_ERROR_INVALID_HANDLE;
		} else {
			engine_finish_ctx(module->ctx);
			module_end(module);
		}
	}
	sim_leave();
	if (!error)
		hook_resource(ctx, module, HOOK_MODULE_UNLOADED);
	return error;
}

CUresult cuModuleUnload(CUmodule module)
{
	return API_CALL(cuModuleUnload, unload(module), (uintptr_t)module);
}

CUresult cuLibraryUnload(CUmodule library)
{
	return API_CALL(cuLibraryUnload, unload(library), (uintptr_t)library);
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name)
{
	struct sim_function *function = NULL;
	CUresult error;

	if (!out || !name || !*name)
		return CUDA_ERROR_INVALID_VALUE;
	sim_enter();
	if (!ctx_current(&error))
		goto leave;
	if (!module_valid(module)) {
		error = CUDA_ERROR_INVALID_HANDLE;
		goto leave;
	}
	for (function = module->functions; function; function = function->next)
		if (!strcmp(function->name, name))
			break;
	if (!function && module->opaque)
		function = function_make(module, name, strlen(name));
	if (function)
		*out = function;
	else
		error = CUDA_ERROR_NOT_FOUND;
leave:
	return sim_leave_with(error);
}

/* A CUkernel is the address of its function plus 1. */
static CUresult find_kernel(void **kernel, CUmodule library, const char *name)
{
	CUfunction function;
	CUresult error = kernel ? cuModuleGetFunction(&function, library, name) :
				  CUDA_ERROR_INVALID_VALUE;

	if (!error)
		*kernel = (char *)function + 1;
	return error;
}

CUresult cuLibraryGetKernel(void **kernel, CUmodule library, const char *name)
{
	return API_CALL(cuLibraryGetKernel, find_kernel(kernel, library, name),
			(uintptr_t)kernel, (uintptr_t)library, (uintptr_t)name);
}

struct sim_function *function_of(void *handle)
{
	struct sim_function *function = (void *)((uintptr_t)handle & ~(uintptr_t)1);
	struct sim_module *module;
	void *image = NULL;

	sim_enter();
	if (function == handle || !function_valid(function))
		function = handle;
	else {
		module = function->module;
		image = module->image;
		module->image = NULL;
	}
	sim_leave();
	if (image)
		hook_module(module, image, module->image_size, HOOK_MODULE_PROGRAM);
	free(image);
	return function;
}

struct sim_function *function_enter(CUfunction function, CUresult *error)
{
	sim_enter();
	if (!ctx_current(error))
		return NULL;
	if (function_valid(function))
		return function;
	*error = CUDA_ERROR_INVALID_HANDLE;
	return NULL;
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction handle)
{
	struct sim_function *function;
	CUresult error;

	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	function = function_enter(handle, &error);
	if (function)
		*module = function->module;
	return sim_leave_with(error);
}

CUresult cuFuncGetName(const char **name, CUfunction handle)
{
	struct sim_function *function;
	CUresult error;

	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	function = function_enter(handle, &error);
	if (function)
		*name = function->name;
	return sim_leave_with(error);
}

static CUresult get_function(CUfunction *function, void *kernel)
{
	struct sim_function *found;

	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	found = function_of(kernel);
	if (found == kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	*function = found;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *function, void *kernel)
{
	return API_CALL(cuKernelGetFunction, get_function(function, kernel),
			(uintptr_t)function, (uintptr_t)kernel);
}

CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction handle)
{
	const struct sim_faults *faults = sim_faults();
	struct sim_function *function;
	CUresult error;

	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	function = function_enter(handle, &error);
	if (!function)
		goto leave;
	switch ((enum cu_function_attribute)attribute) {
	case CU_FUNCTION_MAX_THREADS:
		*value = sim_chip()->block_threads;
		break;
	case CU_FUNCTION_STATIC_SHARED:
		*value = function->shared_static;
		break;
	case CU_FUNCTION_CONSTANT:
	case CU_FUNCTION_LOCAL:
	case CU_FUNCTION_CLUSTER_POLICY:
	case CU_FUNCTION_CLUSTER_WIDTH:
	case CU_FUNCTION_CLUSTER_HEIGHT:
	case CU_FUNCTION_CLUSTER_DEPTH:
		*value = 0;
		break;
	case CU_FUNCTION_REGISTERS:
		*value = function->registers;
		break;
	case CU_FUNCTION_PTX_VERSION:
	case CU_FUNCTION_BINARY_VERSION:
		*value = 10 * faults->cc[0] + faults->cc[1];
		break;
	case CU_FUNCTION_MAX_DYNAMIC_SHARED:
		*value = function->shared_dynamic;
		break;
	case CU_FUNCTION_CARVEOUT:
		*value = -1;
		break;
	case CU_FUNCTION_NON_PORTABLE_CLUSTER:
		*value = function->non_portable_cluster;
		break;
	default:
		error = CUDA_ERROR_INVALID_VALUE;
	}
leave:
	return sim_leave_with(error);
}

CUresult cuFuncSetAttribute(CUfunction handle, int attribute, int value)
{
	unsigned int most = sim_chip()->shared - sim_chip()->shared_reserved;
	struct sim_function *function;
	CUresult error;

	function = function_enter(handle, &error);
	if (!function)
		goto leave;
	switch ((enum cu_function_attribute)attribute) {
	case CU_FUNCTION_MAX_DYNAMIC_SHARED:
		if (value < 0 || value + function->shared_static > most)
			error = CUDA_ERROR_INVALID_VALUE;
		else
			function->shared_dynamic = value;
		break;
	case CU_FUNCTION_CARVEOUT:	/* a hint */
		break;
	case CU_FUNCTION_NON_PORTABLE_CLUSTER:
		function->non_portable_cluster = value;
		break;
	default:
		error = CUDA_ERROR_INVALID_VALUE;
	}
leave:
	return sim_leave_with(error);
}
