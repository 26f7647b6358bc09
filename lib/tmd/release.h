/* SPDX-License-Identifier: MIT */
/*
 * The release slots of a TMD. When a grid has ended, the hardware writes a record for each
 * enabled slot. Slot 0 belongs to the driver. The functions take no lock. The caller must make
 * sure that no other thread writes to the same TMD.
 */
#ifndef GPUPART_LIB_TMD_RELEASE_H
#define GPUPART_LIB_TMD_RELEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TMD_RELEASES	3	/* maximum number of slots in a layout */

struct tmd_map;

enum tmd_release_kind {
	/*
	 * A record of four 32-bit words, aligned to 16 bytes. The first two words are the
	 * payload, with the low word first. If payloads have 32 bits, the second word is 0. The
	 * other two words are the time, with the low word first. The time is %globaltimer in
	 * nanoseconds. The hardware writes the time before the payload.
	 */
	TMD_RELEASE_TIME,
	/*
	 * A record of one 32-bit word, aligned to 4 bytes. The hardware atomically adds the
	 * payload to this word.
	 */
	TMD_RELEASE_ADD,
	TMD_RELEASE_KINDS,
};

struct tmd_release {
	uint64_t address;	/* virtual address in the context of the launch */
	uint64_t payload;	/* if a slot has fewer bits, it drops the upper bits */
	enum tmd_release_kind kind;
};

/* A decoded slot. Fields that the layout does not have are 0. */
struct tmd_release_seen {
	bool enabled;
	unsigned int words;	/* size of the record in words: 1, 2 or 4; 0: unknown size */
	bool membar, reduction, payload64;
	unsigned int operation, format, trap;	/* raw values */
	uint64_t address, payload;
	bool zero;		/* all bits of the slot are 0 */
};

/* The words of a slot for one kind of record. The members are private to release.c. */
struct tmd_release_place {
	uint16_t version_byte, control_byte, address_byte, payload_byte;
	uint8_t version;
	bool payload64;
	uint32_t enable;		/* enable bit of the slot in the 32-bit word at
					 * control_byte */
	uint32_t control_keep, control;	/* for the word at control_byte: the bits that stay
					 * unchanged, and the value of the other bits */
	uint64_t address_keep, address;	/* for the 64-bit word at address_byte: the bits that
					 * stay unchanged, and the value of the other bits */
	uint64_t refused;		/* bits that must be 0 in an address */
};

/*
 * A slot of one TMD. Its records have four words and a payload of 64 bits. The caller has an
 * array of records, and an array of notes with the same size. The members are private to this
 * header and release.c.
 */
struct tmd_release_target {
	const uint8_t *version_at;
	char *control_at, *address_at, *payload_at;
	uint64_t address_keep, address;	/* for the address word: the bits that stay unchanged;
					 * the other bits plus the distance from a note to its
					 * record */
	uint32_t taken;			/* bits of the slot's control fields */
	uint32_t control;
	uint8_t version;
};

/*
 * Functions that access words of a TMD. In a TMD, an address field can start at any multiple of 4
 * bytes.
 */
static inline uint32_t release_get32(const char *byte)
{
	uint32_t word;

	memcpy(&word, byte, sizeof(word));
	return word;
}

static inline uint64_t release_get64(const char *byte)
{
	uint64_t word;

	memcpy(&word, byte, sizeof(word));
	return word;
}

static inline void release_put32(char *byte, uint32_t word)
{
	memcpy(byte, &word, sizeof(word));
}

static inline void release_put64(char *byte, uint64_t word)
{
	memcpy(byte, &word, sizeof(word));
}

static inline bool release_is_version(const struct tmd_release_place *p, const void *tmd)
{
	return ((const uint8_t *)tmd)[p->version_byte] == p->version;
}

/* Computes the places of the slots of @map. The layout of @map must be set. */
void release_places(struct tmd_map *map);

/* Returns how many slots a TMD of the map's layout has. */
unsigned int tmd_release_slots(const struct tmd_map *map);

/*
 * Writes and enables a free slot. The function does not set a membar bit. If all slots of a
 * layout share one membar bit, this bit keeps the driver's value. If the slot is already enabled
 * or does not exist, the function returns false and changes nothing. It also returns false and
 * changes nothing if the TMD's version is wrong, or if the address is misaligned or too large.
 * The function allocates no memory, acquires no lock and has no loop.
 */
bool tmd_release_write(const struct tmd_map *map, void *tmd, unsigned int slot,
		       const struct tmd_release *release);

/*
 * The function tmd_release_put() is like tmd_release_write(), but has fewer instructions, because
 * the launch callback calls it. The caller must pass the place of the slot. The function
 * tmd_release_place() returns this place. If the slot does not exist, the function returns NULL.
 * The place is valid until the map is built again.
 */
const struct tmd_release_place *tmd_release_place(const struct tmd_map *map, unsigned int slot,
						  enum tmd_release_kind kind);
static inline __attribute__((always_inline))
bool tmd_release_put(const struct tmd_release_place *p, void *tmd, uint64_t address,
		     uint64_t payload)
{
	char *place = (char *)tmd + p->control_byte;
	uint32_t control = release_get32(place);

	if (__builtin_expect(!release_is_version(p, tmd), 0) || control & p->enable ||
	    __builtin_expect(address & p->refused, 0))
		return false;
	release_put32(place, (control & p->control_keep) | p->control);
	/*
	 * The address word may contain the control word. So first write the control word, and
	 * then read the address word.
	 */
	place = (char *)tmd + p->address_byte;
	release_put64(place, (release_get64(place) & p->address_keep) | p->address | address);
	place = (char *)tmd + p->payload_byte;
	if (__builtin_expect(p->payload64, 1))
		release_put64(place, payload);
	else
		release_put32(place, payload);
	return true;
}

/*
 * Returns the target for one slot of @tmd and an array of records. The slot has the place @p. The
 * array has @size bytes and begins at @address. If the slot's payload has 32 bits,
 * tmd_release_aim() always returns false for this target. It also returns false if the address of
 * a record is misaligned or too large.
 */
struct tmd_release_target tmd_release_target(const struct tmd_release_place *p, void *tmd,
					     const void *notes, uint64_t address, size_t size);

/*
 * After this call, tmd_release_aim() always returns false for @t. Another thread may be in
 * tmd_release_aim() with this target.
 */
void tmd_release_target_close(struct tmd_release_target *t);

/*
 * Does the same as tmd_release_put() for the record that belongs to @note. If a control field of
 * the slot is not 0, also returns false.
 */
static inline __attribute__((always_inline))
bool tmd_release_aim(const struct tmd_release_target *t, const void *note, uint64_t payload)
{
	uint32_t control;

	if (__builtin_expect(*t->version_at != t->version, 0))
		return false;
	control = release_get32(t->control_at);
	if (__builtin_expect(control & t->taken, 0))
		return false;
	release_put32(t->control_at, control | t->control);
	release_put64(t->address_at, (release_get64(t->address_at) & t->address_keep) +
				     t->address + (uintptr_t)note);
	release_put64(t->payload_at, payload);
	return true;
}

/*
 * Reads a slot. If the slot does not exist, or if the version of the TMD is wrong, returns false
 * and sets *seen to zeros.
 */
bool tmd_release_read(const struct tmd_map *map, const void *tmd, unsigned int slot,
		      struct tmd_release_seen *seen);

/*
 * If the slot is enabled and has this address, sets all bits of the slot to 0. If the slot was
 * all zeros before tmd_release_write(), this call restores the whole TMD.
 */
bool tmd_release_clear(const struct tmd_map *map, void *tmd, unsigned int slot, uint64_t address);

#endif
