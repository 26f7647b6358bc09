// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Reads registers and checks the values. Recognizes refusals. Reads fuses, design maxima and the
 * timer. Only this file inverts fuse bits.
 */
#include "topo.h"
#include "regs.h"

/* ---------------------------------------------------------------- bad reads */

/*
 * Error codes of the priv ring. A code is in bits 31:8. Sources: nvgpu priv_ring_{gp10b,ga10b};
 * OGKM's ringstation.
 */
static const struct {
	u32 code;
	const char *meaning;
} bad_codes[] = {
	{ 0xbad001, "host timeout" },
	{ 0xbad002, "host decode error" },
	{ 0xbad00f, "host FECS error" },
	{ 0xbad0b0, "frame buffer acknowledge timeout" },
	{ 0xbadf10, "client timeout" },
	{ 0xbadf11, "address not in any range" },
	{ 0xbadf12, "client in reset" },
	{ 0xbadf13, "client floorswept" },
	{ 0xbadf14, "client stuck acknowledging" },
	{ 0xbadf15, "client expected acknowledge" },
	{ 0xbadf16, "fence error" },
	{ 0xbadf17, "sub-id error" },
	{ 0xbadf18, "read data wait" },
	{ 0xbadf19, "byte enable error" },
	{ 0xbadf20, "orphan: the GPC or FBP is floorswept" },
	{ 0xbadf21, "power not good in time" },
	{ 0xbadf22, "orphan: power gated" },
	{ 0xbadf23, "power gated" },
	{ 0xbadf24, "orphan: GC GPC" },
	{ 0xbadf25, "target GC GPC" },
	{ 0xbadf26, "local decode error" },
	{ 0xbadf27, "poisoned" },
	{ 0xbadf28, "transaction type error" },
	{ 0xbadf30, "ring dead" },
	{ 0xbadf31, "ring dead, low power" },
	{ 0xbadf40, "trap" },
	{ 0xbadf41, "target mask violation" },
	{ 0xbadf51, "privilege level violation" },
	{ 0xbadf52, "indirect access error" },
	{ 0xbadf53, "local ring error" },
	{ 0xbadf54, "falcon memory access error" },
	{ 0xbadf55, "route error" },
	{ 0xbadf56, "custom error" },
	{ 0xbadf57, "source enable violation" },
	{ 0xbadf59, "indirect source violation" },
	{ 0xbadf60, "security sensor lock" },
};

/*
 * The code 0xbadf50 means "client error". Bits 7:0 contain the number of the error. Source: nvgpu
 * priv_ring_ga10b.
 */
static const struct {
	u32 extra;
	const char *meaning;
} client_errors[] = {
	{ 0x40, "no such address" },
	{ 0x41, "task protection" },
	{ 0x42, "external error" },
	{ 0x43, "index out of range" },
	{ 0x44, "reset" },
	{ 0x45, "register in reset" },
	{ 0x46, "power gated" },
	{ 0x47, "unit floorswept" },
	{ 0x48, "unit's clock is off" },
};

const char *gp_topo_bad_read(u32 value)
{
	unsigned int i;

	if (value == 0xffffffff)
		return "off the bus, in reset or asleep";
	/* OGKM and nvdebug use the same test. No register in regs.h can have such a value. */
	if ((value & 0xfff00000) != 0xbad00000)
		return NULL;
	/* From OGKM gb100/dev_nv_xal_ep_zb.h. This value is a bit pattern and not an error code. */
	if (value == 0xbadf0200)
		return "locked after a security fault";
	if (value >> 8 == 0xbadf50) {
		for (i = 0; i < ARRAY_SIZE(client_errors); i++)
			if (client_errors[i].extra == (value & 0xff))
				return client_errors[i].meaning;
		return "client error";
	}
	for (i = 0; i < ARRAY_SIZE(bad_codes); i++)
		if (bad_codes[i].code == value >> 8)
			return bad_codes[i].meaning;
	return "refused, reason not known";
}

bool gp_topo_bad_for_good(u32 value)
{
	return value == 0xbadf5040;	/* no such address */
}

/* Records why a read failed. Returns @err. */
static int fail(struct topo_reader *reader, int err, u32 offset, u32 value)
{
	reader->fault.err = err;
	reader->fault.offset = offset;
	reader->fault.value = value;
	return err;
}

int gp_topo_rd32(struct topo_reader *reader, u32 offset, u32 *value)
{
	int err = reader->rd32(reader, offset, value);

	if (err)
		return fail(reader, err, offset, 0);
	if (!gp_topo_bad_read(*value))
		return 0;
	/* If the reader is not live, its rd32 keeps every value, even refusals. */
	if (reader->live && reader->keep)
		reader->keep(reader, offset, *value, false);
	return fail(reader, -EIO, offset, *value);
}

void gp_topo_keep(struct topo_reader *reader, u32 offset, u32 value)
{
	if (reader->keep)
		reader->keep(reader, offset, value, true);
}

int gp_topo_nonsense(struct topo_reader *reader, u32 offset, u32 value)
{
	return fail(reader, -ERANGE, offset, value);
}

void gp_topo_fault_text(const struct topo_fault *fault, char *text, size_t len)
{
	if (fault->err == -EIO)
		snprintf(text, len, "0x%x reads 0x%x: %s", fault->offset, fault->value,
			 gp_topo_bad_read(fault->value));
	else if (fault->err == -ERANGE)
		snprintf(text, len, "0x%x reads 0x%x, which cannot be", fault->offset,
			 fault->value);
	else
		snprintf(text, len, "%s", gp_topo_unreadable(fault->err));
}

const char *gp_topo_unreadable(int err)
{
	switch (err) {
	case -ENODEV:
		return "gone";
	case -EAGAIN:
		return "asleep and being woken: ask again";
	case -EHOSTDOWN:
		return "asleep, and could not be woken";
	case -ENXIO:
		return "not enabled: its registers are not decoded";
	case -EBUSY:
		return "being reset or configured: ask again";
	case -EPERM:
		return "reserved for a virtual machine: it is not read";
	case -EOPNOTSUPP:
		return "not published for this chip";
	case -ENOMEM:
		return "no memory to read it with";
	default:
		return "could not be read";
	}
}

/* ------------------------------------------------------------ fuses, maxima */

int gp_topo_read_present(struct topo_reader *reader, const struct chip_cell *fuse,
			 unsigned int index, unsigned int nr, u32 *present)
{
	u32 floorswept, by_software = 0;
	int err;

	err = gp_topo_rd32(reader, fuse->at + 4 * index, &floorswept);
	if (!err && fuse->at2)
		err = gp_topo_rd32(reader, fuse->at2 + 4 * index, &by_software);
	if (err)
		return err;
	*present = ~(floorswept | by_software) & topo_mask(nr);
	/* A unit whose parts are all floorswept would be floorswept itself. */
	if (!*present)
		return gp_topo_nonsense(reader, fuse->at + 4 * index, floorswept);
	gp_topo_keep(reader, fuse->at + 4 * index, floorswept);
	if (fuse->at2)
		gp_topo_keep(reader, fuse->at2 + 4 * index, by_software);
	return 0;
}

int gp_topo_read_maximum(struct topo_reader *reader, u32 offset, u32 limit, u32 *value)
{
	u32 word;
	int err = gp_topo_rd32(reader, offset, &word);

	if (err)
		return err;
	*value = NV_PTOP_SCAL_VALUE(word);
	if (*value == 0 || *value > limit)
		return gp_topo_nonsense(reader, offset, word);
	gp_topo_keep(reader, offset, word);
	return 0;
}

/* ------------------------------------------------------------------- timer */

/*
 * In every 4.3 seconds, the low word looks like a refusal for one millisecond. So read the low word
 * twice. The time changes between two reads, but a refusal does not change.
 */
static int read_timer_low(struct topo_reader *reader, u32 at, u32 *low)
{
	u32 before;
	int err = reader->rd32(reader, at, &before);

	if (!err && !gp_topo_bad_read(before)) {
		*low = before;
		return 0;
	}
	if (!err)
		err = reader->rd32(reader, at, low);
	if (!err && *low != before && *low != 0xffffffff)
		return 0;
	return err ? fail(reader, err, at, 0) : fail(reader, -EIO, at, *low);
}

int gp_topo_read_timer(const struct chip *chip, struct topo_reader *reader, u64 *ns)
{
	const struct chip_cell *cell = gp_chip_cell(chip, CHIP_TIMER);
	u32 low, high, again;
	unsigned int tries;
	int err;

	if (!cell)
		return -EOPNOTSUPP;
	reader->live = true;
	err = gp_topo_rd32(reader, NV_PTIMER_TIME_1, &high);
	/*
	 * The high word changes every 4.3 s. If the high word changed in several consecutive reads,
	 * the timer is broken.
	 */
	for (tries = 0; !err && tries < 4; tries++) {
		err = read_timer_low(reader, cell->at, &low);
		if (!err)
			err = gp_topo_rd32(reader, NV_PTIMER_TIME_1, &again);
		if (!err && again == high) {
			*ns = (u64)NV_PTIMER_TIME_1_NSEC(high) << 32 | NV_PTIMER_TIME_0_NSEC(low);
			goto out;
		}
		high = again;
	}
	if (!err)
		err = gp_topo_nonsense(reader, NV_PTIMER_TIME_1, again);
	if (err == -EIO && reader->keep)
		reader->keep(reader, reader->fault.offset, reader->fault.value, false);
out:
	reader->live = false;
	return err;
}
