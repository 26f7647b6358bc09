/* SPDX-License-Identifier: MIT */
/*
 * Release slots of a TMD: when a grid has ended, the hardware writes a record for each enabled
 * slot. Slot 0 is the driver's. Functions on different TMDs need no lock; the caller must make
 * sure that no other thread writes the same TMD.
 */
#ifndef GPUPART_LIB_TMD_RELEASE_H
#define GPUPART_LIB_TMD_RELEASE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define TMD_RELEASES	3	/* no layout has more slots */

struct tmd_map;

enum tmd_release_kind {
	/*
	 * Four words, aligned to 16 bytes: payload low, high, time low, high. The time is
	 * %globaltimer in nanoseconds and is written before the payload. With a 32-bit payload,
	 * see tmd_release_payload_bits(), the second word is 0.
	 */
	TMD_RELEASE_TIME,
	/* One word of 32 bits, aligned to 4 bytes: the payload is added atomically. */
	TMD_RELEASE_ADD,
	TMD_RELEASE_KINDS,
};

struct tmd_release {
	uint64_t address;	/* virtual, of the launch's context */
	uint64_t payload;	/* bits that the slot has no room for are dropped */
	enum tmd_release_kind kind;
};

/* A slot decoded. Fields that the layout does not have are 0. */
struct tmd_release_seen {
	bool enabled;
	unsigned int words;	/* of the record: 4, 1, 2; 0: a value without a meaning */
	bool membar, reduction, payload64;
	unsigned int operation, format, trap;	/* raw values */
	uint64_t address, payload;
	bool zero;		/* all bits of the slot are 0 */
};

/* The words of a slot for one kind of record. Only release.c reads it. */
struct tmd_release_place {
	uint16_t version_byte, control_byte, address_byte, payload_byte;
	uint8_t version;
	bool payload64;
	uint32_t enable;		/* its bit in the 32-bit word at control_byte */
	uint32_t control_keep, control;	/* bits to keep, and the value of the others */
	uint64_t address_keep, address;	/* the same for the 64-bit word at address_byte */
	uint64_t refused;		/* bits that must be 0 in an address */
};

/* Words of a TMD. An address can start at any multiple of 4 bytes. */
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

/* Fills in the places of a map whose layout is set. */
void release_places(struct tmd_map *map);

/* The number of slots in a TMD of the map's layout. */
unsigned int tmd_release_slots(const struct tmd_map *map);

/* The bits of a payload: 64 or 32; 0 if the layout has no slots. */
unsigned int tmd_release_payload_bits(const struct tmd_map *map);

/*
 * The bits of an address: 57, or 40 before V04_00, which is too few for addresses that mmap()
 * chooses; 0 if the layout has no slots.
 */
unsigned int tmd_release_address_bits(const struct tmd_map *map);

/* The GPU and driver on which the layout's slots were tried, or NULL: untried. */
const char *tmd_release_tested_on(const struct tmd_map *map);

/* Whether the slot exists and its enable bit is 0. */
bool tmd_release_is_free(const struct tmd_map *map, const void *tmd, unsigned int slot);

/*
 * Writes and enables a free slot, without a membar: if a layout has one membar bit for all
 * slots, the driver's value is kept. Returns false, and changes nothing, if the slot is enabled
 * or does not exist, the TMD has another version, or the address is misaligned or too large.
 * Does not allocate, lock or loop.
 */
bool tmd_release_write(const struct tmd_map *map, void *tmd, unsigned int slot,
		       const struct tmd_release *release);

/*
 * The same in fewer instructions, for the launch callback. tmd_release_place() can be called
 * beforehand and returns NULL if the slot does not exist. The place is valid until the map is
 * built again.
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
	/* The address word may contain the control word, so read it after writing that. */
	place = (char *)tmd + p->address_byte;
	release_put64(place, (release_get64(place) & p->address_keep) | p->address | address);
	place = (char *)tmd + p->payload_byte;
	if (__builtin_expect(p->payload64, 1))
		release_put64(place, payload);
	else
		release_put32(place, payload);
	return true;
}

/* Returns false, and zeros, if the slot does not exist or the TMD has another version. */
bool tmd_release_read(const struct tmd_map *map, const void *tmd, unsigned int slot,
		      struct tmd_release_seen *seen);

/*
 * Sets the slot's bits to 0 if it is enabled and has this address. After tmd_release_write() on
 * a slot of zeros this restores the TMD.
 */
bool tmd_release_clear(const struct tmd_map *map, void *tmd, unsigned int slot, uint64_t address);

#endif
