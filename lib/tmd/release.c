// SPDX-License-Identifier: MIT
/* Reads and writes the release slots of a TMD. See release.h. */
#include <string.h>
#include "lib/tmd/field.h"
#include "lib/tmd/layouts.h"
#include "lib/tmd/release.h"
#include "lib/tmd/tmd.h"

/* ------------------------------------------------------------------- map */

static uint64_t field_mask(struct tmd_field f)
{
	return f.width ? ~0ull >> (64 - f.width) : 0;
}

/*
 * Adds a field to the word that contains all bits of this field. If no word contains all bits,
 * returns false.
 */
static bool place_field(struct tmd_release_place *p, struct tmd_field f, unsigned int value)
{
	unsigned int shift = f.lo - p->control_byte * 8;

	if (!f.width)
		return !value;
	if (f.lo >= p->control_byte * 8 && shift + f.width <= 32) {
		p->control_keep &= ~(field_mask(f) << shift);
		p->control |= value << shift;
		return true;
	}
	shift = f.lo - p->address_byte * 8;
	if (f.lo < p->address_byte * 8 || shift + f.width > 64)
		return false;
	p->address_keep &= ~(field_mask(f) << shift);
	p->address |= (uint64_t)value << shift;
	return true;
}

static bool place_slot(struct tmd_release_place *p, const struct tmd_layout *layout,
		       const struct tmd_release_fields *f, bool add)
{
	if (!f->address.width || f->address.lo % 8 || f->payload.lo % 8)
		return false;
	*p = (struct tmd_release_place){
		.version_byte = layout->version_byte,
		.version = layout->version,
		.control_byte = f->enable.lo / 32 * 4,
		.address_byte = f->address.lo / 8,
		.payload_byte = f->payload.lo / 8,
		.payload64 = f->payload.width == 64,
		.enable = 1u << f->enable.lo % 32,
		.control_keep = ~0u,
		.address_keep = ~field_mask(f->address),
		.refused = ~field_mask(f->address) | (add ? 3 : 15),
	};
	return place_field(p, f->enable, 1) &&
	       place_field(p, f->size, add ? TMD_RELEASE_ONE_WORD : TMD_RELEASE_FOUR_WORDS) &&
	       place_field(p, f->membar, 0) && place_field(p, f->reduction, add) &&
	       place_field(p, f->operation, TMD_RELEASE_RED_ADD) &&
	       place_field(p, f->format, TMD_RELEASE_UNSIGNED_32) &&
	       place_field(p, f->trap, 0) &&
	       place_field(p, f->payload64, !add && p->payload64);
}

static inline const struct tmd_release_place *place_of(const struct tmd_map *map, unsigned int slot,
						       enum tmd_release_kind kind)
{
	return &map->release[slot * TMD_RELEASE_KINDS + kind];
}

__attribute__((cold))
void release_places(struct tmd_map *map)
{
	const struct tmd_layout *layout = map->layout;
	unsigned int nr = 0;

	while (nr < TMD_RELEASES) {
		struct tmd_release_place *p = &map->release[nr * TMD_RELEASE_KINDS];

		if (!place_slot(&p[TMD_RELEASE_TIME], layout, &layout->release[nr], false) ||
		    !place_slot(&p[TMD_RELEASE_ADD], layout, &layout->release[nr], true))
			break;
		nr++;
	}
	map->nr_releases = nr;
}

unsigned int tmd_release_slots(const struct tmd_map *map)
{
	return map->nr_releases;
}

/* --------------------------------------------------------------- launches */

const struct tmd_release_place *tmd_release_place(const struct tmd_map *map, unsigned int slot,
						  enum tmd_release_kind kind)
{
	return slot < map->nr_releases ? place_of(map, slot, kind) : NULL;
}

__attribute__((cold))
void tmd_release_target_close(struct tmd_release_target *t)
{
	static const uint8_t no_version = 0;

	__atomic_store_n(&t->version_at, &no_version, __ATOMIC_RELAXED);
	__atomic_store_n(&t->version, 1, __ATOMIC_RELAXED);
}

__attribute__((cold))
struct tmd_release_target tmd_release_target(const struct tmd_release_place *p, void *tmd,
					     const void *notes, uint64_t address, size_t size)
{
	struct tmd_release_target t = {
		.version_at = (uint8_t *)tmd + p->version_byte, .version = p->version,
		.control_at = (char *)tmd + p->control_byte,
		.address_at = (char *)tmd + p->address_byte,
		.payload_at = (char *)tmd + p->payload_byte,
		.address_keep = p->address_keep,
		.address = p->address + address - (uintptr_t)notes,
		.taken = ~p->control_keep, .control = p->control,
	};

	if (!p->payload64 || (address | ((address + size - 1) & ~15ull)) & p->refused)
		tmd_release_target_close(&t);
	return t;
}

bool tmd_release_write(const struct tmd_map *map, void *tmd, unsigned int slot,
		       const struct tmd_release *release)
{
	const struct tmd_release_place *p = tmd_release_place(map, slot, release->kind);

	return p && tmd_release_put(p, tmd, release->address, release->payload);
}

__attribute__((cold))
bool tmd_release_read(const struct tmd_map *map, const void *tmd, unsigned int slot,
		      struct tmd_release_seen *seen)
{
	static const uint8_t words[4] = { 4, 1, 2, 0 };
	const struct tmd_release_fields *f = &map->layout->release[slot];

	memset(seen, 0, sizeof(*seen));
	if (slot >= map->nr_releases ||
	    !release_is_version(place_of(map, slot, TMD_RELEASE_TIME), tmd))
		return false;
	seen->enabled = field_read(tmd, f->enable);
	seen->words = words[field_read(tmd, f->size)];
	seen->membar = f->membar.width && field_read(tmd, f->membar);
	seen->reduction = field_read(tmd, f->reduction);
	seen->operation = field_read(tmd, f->operation);
	seen->format = field_read(tmd, f->format);
	seen->trap = f->trap.width ? field_read(tmd, f->trap) : 0;
	seen->payload64 = f->payload64.width && field_read(tmd, f->payload64);
	seen->address = release_get64((const char *)tmd + f->address.lo / 8) &
			field_mask(f->address);
	seen->payload = release_get64((const char *)tmd + f->payload.lo / 8) &
			field_mask(f->payload);
	seen->zero = !seen->enabled && seen->words == 4 && !seen->membar && !seen->reduction &&
		     !seen->operation && !seen->format && !seen->trap && !seen->payload64 &&
		     !seen->address && !seen->payload;
	return true;
}

bool tmd_release_clear(const struct tmd_map *map, void *tmd, unsigned int slot, uint64_t address)
{
	const struct tmd_release_place *p = place_of(map, slot, TMD_RELEASE_TIME);
	struct tmd_release_seen seen;
	char *place;

	if (!tmd_release_read(map, tmd, slot, &seen) || !seen.enabled || seen.address != address)
		return false;
	place = (char *)tmd + p->address_byte;
	release_put64(place, release_get64(place) & p->address_keep);
	place = (char *)tmd + p->control_byte;
	release_put32(place, release_get32(place) & p->control_keep);
	memset((char *)tmd + p->payload_byte, 0, p->payload64 ? 8 : 4);
	return true;
}
