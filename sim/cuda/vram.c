// SPDX-License-Identifier: MIT
/*
 * Counts the memory of a GPU. As measured on an H200, allocations are rounded up. Allocations of
 * up to 1 MiB come from slabs of 2 MiB. Larger allocations are multiples of 2 MiB.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include "sim/cuda/callback_numbers.h"

#define UNIT	(2ull << 20)
#define SMALL	(1ull << 20)
#define PIECE	512
#define PIECES	(UNIT / PIECE)

struct vram_slab {
	struct vram_slab *next;
	struct sim_ctx *ctx;
	uint64_t address;
	unsigned int used;
	uint8_t taken[PIECES];
};

static struct vram_slab *slabs;

uint64_t vram_round(uint64_t bytes)
{
	return bytes > UINT64_MAX - UNIT ? bytes : (bytes + UNIT - 1) / UNIT * UNIT;
}

bool room_charge(struct sim_gpu *gpu, uint64_t bytes)
{
	if (bytes > gpu->memory - gpu->memory_taken)
		return false;
	gpu->memory_taken += bytes;
	return true;
}

void room_discharge(struct sim_gpu *gpu, uint64_t bytes)
{
	gpu->memory_taken -= bytes;
}

/*
 * Reserves address space that begins at a multiple of the unit. The space uses no host memory
 * until a program writes to it. If no address space is left, returns 0.
 */
static uint64_t map_space(uint64_t space)
{
	char *start, *at;

	start = mmap(NULL, space + UNIT, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (start == MAP_FAILED)
		return 0;
	at = start + (UNIT - (uintptr_t)start % UNIT) % UNIT;
	if (at > start)
		munmap(start, at - start);
	munmap(at + space, start + UNIT - at);
	return (uintptr_t)at;
}

static unsigned int free_pieces(const struct vram_slab *slab, unsigned int nr)
{
	unsigned int at, run = 0;

	for (at = 0; at < PIECES; at++) {
		run = slab->taken[at] ? 0 : run + 1;
		if (run == nr)
			return at + 1 - nr;
	}
	return PIECES;
}

static struct vram_slab *slab_make(struct sim_ctx *ctx)
{
	struct vram_slab *slab = calloc(1, sizeof(*slab));

	if (!slab || !room_charge(ctx->gpu, UNIT))
		goto free_slab;
	slab->address = map_space(UNIT);
	if (!slab->address)
		goto discharge;
	slab->ctx = ctx;
	slab->next = slabs;
	slabs = slab;
	return slab;

discharge:
	room_discharge(ctx->gpu, UNIT);
free_slab:
	free(slab);
	return NULL;
}

static bool take_small(struct sim_ctx *ctx, uint64_t bytes, struct room *room)
{
	unsigned int nr = (bytes + PIECE - 1) / PIECE, at = PIECES, i;
	struct vram_slab *slab;

	for (slab = slabs; slab; slab = slab->next) {
		at = slab->ctx == ctx ? free_pieces(slab, nr) : PIECES;
		if (at < PIECES)
			break;
	}
	if (!slab) {
		slab = slab_make(ctx);
		at = 0;
	}
	if (!slab)
		return false;
	for (i = 0; i < nr; i++)
		slab->taken[at + i] = 1;
	slab->used += nr;
	room->slab = slab;
	room->address = slab->address + (uint64_t)at * PIECE;
	room->space = (uint64_t)nr * PIECE;
	return true;
}

static void give_small(struct room *room)
{
	struct vram_slab *slab = room->slab, **link = &slabs;
	uint64_t at = (room->address - slab->address) / PIECE, i;

	for (i = 0; i < room->space / PIECE; i++)
		slab->taken[at + i] = 0;
	slab->used -= room->space / PIECE;
	if (slab->used)
		return;
	while (*link != slab)
		link = &(*link)->next;
	*link = slab->next;
	munmap((void *)(uintptr_t)slab->address, UNIT);
	room_discharge(room->gpu, UNIT);
	free(slab);
}

bool vram_take(struct sim_ctx *ctx, enum vram_kind kind, uint64_t bytes, struct room *room)
{
	*room = (struct room){ .gpu = ctx->gpu, .space = vram_round(bytes) };
	if (kind == ROOM_LINEAR && bytes <= SMALL)
		return take_small(ctx, bytes, room);
	/*
	 * Managed memory is in host memory until the GPU uses it, so the driver's figures do not
	 * include it.
	 */
	room->bytes = kind == ROOM_LINEAR ? room->space : 0;
	if (room->space > 1ull << 46 || !room_charge(ctx->gpu, room->bytes))
		return false;
	room->address = map_space(room->space);
	if (!room->address)
		room_discharge(ctx->gpu, room->bytes);
	return room->address;
}

void room_give(struct room *room)
{
	if (room->slab) {
		give_small(room);
		return;
	}
	munmap((void *)(uintptr_t)room->address, room->space);
	room_discharge(room->gpu, room->bytes);
}

CUresult room_info(size_t *free_bytes, size_t *total)
{
	struct sim_ctx *ctx;
	CUresult error;

	if (!free_bytes || !total)
		return CUDA_ERROR_INVALID_VALUE;
	sim_enter();
	ctx = ctx_current(&error);
	if (ctx) {
		*free_bytes = ctx->gpu->memory - ctx->gpu->memory_taken;
		*total = ctx->gpu->memory;
	}
	return sim_leave_with(error);
}
