// SPDX-License-Identifier: MIT
/*
 * Captures: the text form of a saved topology, its reader and writer, and where
 * the samples lie. Must not know how a live source learns what it tells.
 *
 * The form: a first line, sections, a last line with the checksum of every byte
 * before it. A section has "key = value" lines, then rows of as many fields as its
 * "columns" names, parted by blanks; "-" or "unknown" where not known. Lines that
 * start with '#' and empty lines are for people.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/core/hash.h"
#include "lib/topo/topology.h"

#define FIRST_WORDS  "# gpupart capture "
#define FIRST_LINE   FIRST_WORDS "1"
#define CHECKSUM_KEY "checksum = "
#define CHECKSUM_LEN (sizeof(CHECKSUM_KEY) - 1 + 16 + 1) /* with its newline */
#define FILE_MAX     (4u << 20)
#define UNKNOWN	     "unknown"

/* NVIDIA's PTOP registers of the design maxima; a capture with them needs no key for these. */
#define REG_MAX_GPCS	     0x22430
#define REG_MAX_TPCS_PER_GPC 0x22434

enum { IN_GPU, IN_RM, IN_GPC_MAP, IN_REGISTERS, IN_BITS, NR_SECTIONS, IN_NONE = NR_SECTIONS };

static const struct section {
	const char *name;
	const char *columns; /* NULL: keys only */
	unsigned int nr_columns;
	size_t source; /* where in the topology its source's text is */
} sections[NR_SECTIONS] = {
	[IN_GPU] = { "gpu", NULL, 0, 0 },
	[IN_RM] = { "rm", "sm gpc local_tpc local_sm tpc vgpc tpc_in_vgpc ugpu cpc virtual_tpc", 10,
		    offsetof(struct gpupart_topology, text_rm) },
	[IN_GPC_MAP] = { "gpc-map", "gpc_phys present_tpcs gpc", 3,
			 offsetof(struct gpupart_topology, text_gpc_map) },
	[IN_REGISTERS] = { "registers", "offset value", 2,
			   offsetof(struct gpupart_topology, text_registers) },
	[IN_BITS] = { "measured-bits", "sm bit", 2, offsetof(struct gpupart_topology, text_bits) },
};

#define SOURCE_LEN  sizeof(((struct gpupart_topology *)0)->text_rm)
#define MAX_COLUMNS 10

/* The columns of [rm] after its first, which counts the rows. */
static const size_t rm_columns[] = {
	offsetof(struct topo_sm, gpc), offsetof(struct topo_sm, local_tpc),
	offsetof(struct topo_sm, local_sm), offsetof(struct topo_sm, tpc),
	offsetof(struct topo_sm, vgpc), offsetof(struct topo_sm, tpc_in_vgpc),
	offsetof(struct topo_sm, ugpu), offsetof(struct topo_sm, cpc),
	offsetof(struct topo_sm, virtual_tpc),
};

#define NR_RM_COLUMNS (sizeof(rm_columns) / sizeof(rm_columns[0]))

static int *rm_value(struct topo_sm *sm, unsigned int column)
{
	return (int *)((char *)sm + rm_columns[column]);
}

/* The keys of [gpu]. Every one is written; what is absent or "unknown" is not known. */
enum key_form { KEY_TEXT, KEY_PCI, KEY_UUID, KEY_NUMBER, KEY_CHIP, KEY_MIG, KEY_YES };

static const struct key {
	const char *name;
	enum key_form form;
	size_t offset, size;
	uint32_t max; /* of a number */
} keys[] = {
#define KEY_UP_TO(name, form, member, max) \
	{ name, form, offsetof(struct gpupart_gpu_info, member), \
	  sizeof(((struct gpupart_gpu_info *)0)->member), max }
#define KEY(name, form, member) KEY_UP_TO(name, form, member, 0)
	KEY("name", KEY_TEXT, name),
	KEY("pci", KEY_PCI, pci),
	KEY("uuid", KEY_UUID, uuid),
	KEY("driver", KEY_TEXT, driver),
	KEY_UP_TO("chip-id", KEY_CHIP, chip_id, TOPO_MAX_CHIP_ID),
	KEY("mig", KEY_MIG, mig),
	KEY_UP_TO("max-gpcs", KEY_NUMBER, max_gpcs, GPUPART_MAX_GPCS),
	KEY_UP_TO("max-tpcs-per-gpc", KEY_NUMBER, max_tpcs_per_gpc, GPUPART_MAX_TPCS),
	KEY("simulated", KEY_YES, simulated),
	KEY("origin", KEY_TEXT, origin),
#undef KEY
#undef KEY_UP_TO
};

#define NR_KEYS (sizeof(keys) / sizeof(keys[0]))

/* ------------------------------------------------------------------- reading */

struct reader {
	struct gpupart *gp;
	const char *path;
	unsigned int line; /* counts from 1 */
	int section;
	bool seen[NR_SECTIONS], has_source[NR_SECTIONS], has_columns[NR_SECTIONS];
	unsigned int section_line[NR_SECTIONS];
	bool seen_key[NR_KEYS];
	struct gpupart_gpu_info info;
	char source[NR_SECTIONS][SOURCE_LEN];
	unsigned int nr_sms, sm_line[TOPO_MAX_SMS], bit_line[TOPO_MAX_SMS];
	struct topo_sm sms[TOPO_MAX_SMS];
	int bits[TOPO_MAX_SMS];
	unsigned int nr_gpc_map, gpc_line[GPUPART_MAX_GPCS];
	struct topo_gpc gpc_map[GPUPART_MAX_GPCS];
	unsigned int nr_registers, room_registers;
	struct topo_register *registers;
};

/* A piece of a line; not terminated. */
struct piece {
	const char *text;
	size_t len;
};

/* For "%.*s": long pieces are cut, and every line was checked to be printable. */
#define SHOWN(piece) ((piece).len > 60 ? 60 : (int)(piece).len), (piece).text

/* Refuses the line that was read last. */
#define refuse(r, err, fmt, ...) \
	ctx_fail((r)->gp, err, "%s: line %u: " fmt, (r)->path, (r)->line, ##__VA_ARGS__)

static bool piece_is(struct piece piece, const char *text)
{
	return piece.len == strlen(text) && !memcmp(piece.text, text, piece.len);
}

/* Decimal digits, or 0x and hexadecimal ones; at most 32 bits. */
static bool read_u32(struct piece piece, int base, uint32_t *value)
{
	uint64_t sum = 0;
	size_t i = 0;

	if (base == 16) {
		if (piece.len < 3 || piece.text[0] != '0' || piece.text[1] != 'x')
			return false;
		i = 2;
	} else if (piece.len > 1 && piece.text[0] == '0') {
		return false;
	}
	if (i == piece.len)
		return false;
	for (; i < piece.len; i++) {
		char c = piece.text[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
						   : 16;

		if (digit >= base)
			return false;
		sum = sum * base + digit;
		if (sum > UINT32_MAX)
			return false;
	}
	*value = sum;
	return true;
}

/* A decimal index, or "-" for one that is not known. */
static bool read_index(struct piece piece, int *index)
{
	uint32_t value;

	if (piece_is(piece, "-")) {
		*index = -1;
		return true;
	}
	if (!read_u32(piece, 10, &value) || value > INT_MAX)
		return false;
	*index = value;
	return true;
}

/* What is a text in the topology: as it stands, or in the one spelling it has there. */
static int read_gpu_text(struct reader *r, const struct key *k, struct piece value, char *field)
{
	char text[sizeof(((struct gpupart_gpu_info *)0)->origin)] = "";

	if (value.len >= k->size || value.len >= sizeof(text))
		return refuse(r, -EINVAL, "%s is longer than %zu bytes: \"%.*s\"", k->name,
			      k->size - 1, SHOWN(value));
	if (piece_is(value, UNKNOWN))
		return 0;
	memcpy(text, value.text, value.len);
	if (k->form == KEY_PCI && !topo_address_read(text, field))
		return refuse(r, -EINVAL,
			      "%s \"%s\" is not as 0000:0d:00.0, 17000000.gpu or unknown",
			      k->name, text);
	if (k->form == KEY_UUID && !topo_is_uuid(text))
		return refuse(r, -EINVAL,
			      "%s \"%s\" is not GPU- and 8-4-4-4-12 hexadecimal digits, or unknown",
			      k->name, text);
	if (k->form != KEY_PCI)
		memcpy(field, text, value.len);
	return 0;
}

static int read_gpu_key(struct reader *r, struct piece key, struct piece value)
{
	bool unknown = piece_is(value, UNKNOWN);
	const struct key *k;
	unsigned int i;
	uint32_t number = 0;
	char *field;

	for (i = 0; i < NR_KEYS && !piece_is(key, keys[i].name); i++)
		;
	if (i == NR_KEYS)
		return refuse(r, -EINVAL, "[gpu] has no key \"%.*s\"", SHOWN(key));
	if (r->seen_key[i])
		return refuse(r, -EINVAL, "a second \"%s\"", keys[i].name);
	r->seen_key[i] = true;
	k = &keys[i];
	field = (char *)&r->info + k->offset;
	switch (k->form) {
	case KEY_TEXT:
	case KEY_PCI:
	case KEY_UUID:
		return read_gpu_text(r, k, value, field);
	case KEY_NUMBER:
		if (!unknown && (!read_u32(value, 10, &number) || !number || number > k->max))
			return refuse(r, -EINVAL, "%s \"%.*s\" is not 1-%u or unknown", k->name,
				      SHOWN(value), k->max);
		*(unsigned int *)field = number;
		return 0;
	case KEY_CHIP:
		if (!unknown && (!read_u32(value, 16, &number) || !number || number > k->max))
			return refuse(r, -EINVAL, "%s \"%.*s\" is not 0x1-0x%x or unknown",
				      k->name, SHOWN(value), k->max);
		*(uint32_t *)field = number;
		return 0;
	case KEY_MIG:
		if (!unknown && !piece_is(value, "on") && !piece_is(value, "off"))
			return refuse(r, -EINVAL, "%s \"%.*s\" is not on, off or unknown", k->name,
				      SHOWN(value));
		*(int *)field = unknown ? -1 : piece_is(value, "on");
		return 0;
	case KEY_YES:
		if (!piece_is(value, "yes") && !piece_is(value, "no"))
			return refuse(r, -EINVAL, "%s \"%.*s\" is not yes or no", k->name,
				      SHOWN(value));
		*(bool *)field = piece_is(value, "yes");
		return 0;
	}
	return refuse(r, -EINVAL, "%s cannot be read", k->name);
}

static int read_key(struct reader *r, struct piece key, struct piece value)
{
	const struct section *section = &sections[r->section];

	if (r->section == IN_GPU)
		return read_gpu_key(r, key, value);
	if (piece_is(key, "source")) {
		if (r->has_source[r->section])
			return refuse(r, -EINVAL, "a second \"source\" in [%s]", section->name);
		if (value.len >= SOURCE_LEN)
			return refuse(r, -EINVAL, "source is longer than %zu bytes",
				      SOURCE_LEN - 1);
		memcpy(r->source[r->section], value.text, value.len);
		r->has_source[r->section] = true;
		return 0;
	}
	if (piece_is(key, "columns")) {
		if (r->has_columns[r->section])
			return refuse(r, -EINVAL, "a second \"columns\" in [%s]", section->name);
		if (!piece_is(value, section->columns))
			return refuse(r, -EINVAL, "the columns of [%s] are \"%s\", not \"%.*s\"",
				      section->name, section->columns, SHOWN(value));
		r->has_columns[r->section] = true;
		return 0;
	}
	return refuse(r, -EINVAL, "[%s] has no key \"%.*s\"", section->name, SHOWN(key));
}

static int read_rm_row(struct reader *r, const struct piece *field)
{
	struct topo_sm *sm = &r->sms[r->nr_sms];
	unsigned int i;
	uint32_t smid;

	if (r->nr_sms == TOPO_MAX_SMS)
		return refuse(r, -EINVAL, "more than %d SMs", TOPO_MAX_SMS);
	if (!read_u32(field[0], 10, &smid) || smid != r->nr_sms)
		return refuse(r, -EINVAL, "SM \"%.*s\" stands where SM %u is due", SHOWN(field[0]),
			      r->nr_sms);
	for (i = 0; i < NR_RM_COLUMNS; i++)
		if (!read_index(field[i + 1], rm_value(sm, i)))
			return refuse(r, -EINVAL, "\"%.*s\" in column %u is not a number or \"-\"",
				      SHOWN(field[i + 1]), i + 2);
	r->sm_line[r->nr_sms++] = r->line;
	return 0;
}

static int read_gpc_row(struct reader *r, const struct piece *field)
{
	struct topo_gpc *row = &r->gpc_map[r->nr_gpc_map];

	if (r->nr_gpc_map == GPUPART_MAX_GPCS)
		return refuse(r, -EINVAL, "more than %d GPCs", GPUPART_MAX_GPCS);
	if (!read_index(field[0], &row->gpc_phys))
		return refuse(r, -EINVAL, "physical GPC \"%.*s\" is not a number", SHOWN(field[0]));
	row->present_tpcs = 0;
	if (!piece_is(field[1], "-") &&
	    (!read_u32(field[1], 16, &row->present_tpcs) || !row->present_tpcs))
		return refuse(r, -EINVAL, "present TPCs \"%.*s\" are not as 0x1ff or \"-\"",
			      SHOWN(field[1]));
	if (!read_index(field[2], &row->gpc))
		return refuse(r, -EINVAL, "GPC \"%.*s\" is not a number or \"-\"", SHOWN(field[2]));
	r->gpc_line[r->nr_gpc_map++] = r->line;
	return 0;
}

static int read_register_row(struct reader *r, const struct piece *field)
{
	struct topo_register reg;

	if (!read_u32(field[0], 16, &reg.offset) || reg.offset % 4)
		return refuse(r, -EINVAL,
			      "register offset \"%.*s\" is not a multiple of 4 as 0x22430",
			      SHOWN(field[0]));
	if (!read_u32(field[1], 16, &reg.value))
		return refuse(r, -EINVAL, "register value \"%.*s\" is not 32 bits as 0x00000008",
			      SHOWN(field[1]));
	if (r->nr_registers && reg.offset <= r->registers[r->nr_registers - 1].offset)
		return refuse(r, -EINVAL, "register 0x%06x does not come after 0x%06x", reg.offset,
			      r->registers[r->nr_registers - 1].offset);
	if (r->nr_registers == r->room_registers) {
		unsigned int room = r->room_registers ? 2 * r->room_registers : 1024;
		struct topo_register *more = realloc(r->registers, room * sizeof(*more));

		if (!more)
			return refuse(r, -ENOMEM, "no memory for %u registers", room);
		r->registers = more;
		r->room_registers = room;
	}
	r->registers[r->nr_registers++] = reg;
	return 0;
}

static int read_bit_row(struct reader *r, const struct piece *field)
{
	uint32_t smid, bit;

	if (!read_u32(field[0], 10, &smid) || smid >= TOPO_MAX_SMS)
		return refuse(r, -EINVAL, "SM \"%.*s\" is not a number below %d", SHOWN(field[0]),
			      TOPO_MAX_SMS);
	if (!read_u32(field[1], 10, &bit) || bit >= GPUPART_MAX_TMD_BITS)
		return refuse(r, -EINVAL, "bit \"%.*s\" is not a number below %d", SHOWN(field[1]),
			      GPUPART_MAX_TMD_BITS);
	if (r->bit_line[smid])
		return refuse(r, -EINVAL, "a second bit of SM %u, the first is in line %u", smid,
			      r->bit_line[smid]);
	r->bits[smid] = bit;
	r->bit_line[smid] = r->line;
	return 0;
}

static int read_row(struct reader *r, struct piece line)
{
	static int (*const read[NR_SECTIONS])(struct reader * r, const struct piece *field) = {
		[IN_RM] = read_rm_row,
		[IN_GPC_MAP] = read_gpc_row,
		[IN_REGISTERS] = read_register_row,
		[IN_BITS] = read_bit_row,
	};
	const struct section *section = &sections[r->section];
	struct piece field[MAX_COLUMNS];
	unsigned int nr = 0;
	size_t at = 0;

	if (!section->columns)
		return refuse(r, -EINVAL, "[%s] has lines \"key = value\" only, not \"%.*s\"",
			      section->name, SHOWN(line));
	while (at < line.len) {
		size_t start = at;

		while (at < line.len && line.text[at] != ' ' && line.text[at] != '\t')
			at++;
		if (nr < MAX_COLUMNS)
			field[nr] = (struct piece){ line.text + start, at - start };
		nr++;
		while (at < line.len && (line.text[at] == ' ' || line.text[at] == '\t'))
			at++;
	}
	if (nr != section->nr_columns)
		return refuse(r, -EINVAL, "%u fields where [%s] has %u: %s", nr, section->name,
			      section->nr_columns, section->columns);
	if (!r->has_columns[r->section])
		return refuse(r, -EINVAL, "a row of [%s] before its line \"columns = %s\"",
			      section->name, section->columns);
	return read[r->section](r, field);
}

static int read_header(struct reader *r, struct piece line)
{
	struct piece name = { line.text + 1, line.len - 2 };
	int i;

	if (line.text[line.len - 1] != ']')
		return refuse(r, -EINVAL, "\"%.*s\" is not a section, which ends in \"]\"",
			      SHOWN(line));
	for (i = 0; i < NR_SECTIONS && !piece_is(name, sections[i].name); i++)
		;
	if (i == NR_SECTIONS)
		return refuse(r, -EINVAL,
			      "there is no section [%.*s]; this version knows gpu, rm, "
			      "gpc-map, registers and measured-bits",
			      SHOWN(name));
	if (r->seen[i])
		return refuse(r, -EINVAL, "a second [%s], the first is in line %u",
			      sections[i].name, r->section_line[i]);
	r->seen[i] = true;
	r->section_line[i] = r->line;
	r->section = i;
	return 0;
}

static int read_line(struct reader *r, struct piece line)
{
	const char *equals;
	struct piece key, value;

	if (!line.len || line.text[0] == '#')
		return 0;
	if (strchr(" \t", line.text[0]) || strchr(" \t", line.text[line.len - 1]))
		return refuse(r, -EINVAL, "a blank at its start or end");
	if (line.text[0] == '[')
		return read_header(r, line);
	if (r->section == IN_NONE)
		return refuse(r, -EINVAL, "\"%.*s\" stands before the first section", SHOWN(line));
	equals = memmem(line.text, line.len, " = ", 3);
	if (!equals) {
		equals = memchr(line.text, '=', line.len);
		if (equals)
			return refuse(r, -EINVAL,
				      "\"%.*s\" is not \"key = value\" with one blank "
				      "on each side",
				      SHOWN(line));
		return read_row(r, line);
	}
	key = (struct piece){ line.text, equals - line.text };
	value = (struct piece){ equals + 3, line.len - key.len - 3 };
	if (value.text[0] == ' ' || memchr(line.text, '\t', line.len))
		return refuse(r, -EINVAL, "\"%.*s\" has a tab, or more than one blank after \"=\"",
			      SHOWN(line));
	return read_key(r, key, value);
}

static unsigned int count_lines(const char *text, size_t len)
{
	unsigned int nr = 0;
	size_t i;

	for (i = 0; i < len; i++)
		nr += text[i] == '\n';
	return nr;
}

/* What can be said of the bytes before any is believed. */
static int check_bytes(struct reader *r, const char *text, size_t len)
{
	struct piece sum = { text + len - CHECKSUM_LEN, CHECKSUM_LEN };
	struct piece version;
	char expected[CHECKSUM_LEN + 1];
	size_t i;

	r->line = 1;
	if (!len)
		return refuse(r, -EBADMSG, "the file is empty");
	for (i = 0; i < len; i++) {
		unsigned char c = text[i];

		if (c == '\r')
			return refuse(r, -EBADMSG,
				      "a carriage return: the line ends were changed to "
				      "CR LF, a capture has LF alone");
		if (!c)
			return refuse(r, -EBADMSG, "a NUL byte: this is not a text file");
		if ((c < 0x20 && c != '\n' && c != '\t') || c >= 0x7f)
			return refuse(r, -EBADMSG, "byte 0x%02x: a capture is plain ASCII text", c);
		r->line += c == '\n';
	}
	r->line = 1;
	if (len < strlen(FIRST_WORDS) || memcmp(text, FIRST_WORDS, strlen(FIRST_WORDS)))
		return refuse(r, -EBADMSG, "this is not a capture, which starts with \"%s\"",
			      FIRST_LINE);

	r->line = count_lines(text, len - 1) + 1;
	if (text[len - 1] != '\n')
		return refuse(r, -EBADMSG, "the file ends inside this line: it was cut");
	if (len < CHECKSUM_LEN + strlen(FIRST_LINE) + 1 || sum.text[-1] != '\n' ||
	    memcmp(sum.text, CHECKSUM_KEY, strlen(CHECKSUM_KEY)))
		return refuse(r, -EBADMSG,
			      "the last line is not \"%s\" and 16 digits: the file was "
			      "cut or changed",
			      CHECKSUM_KEY);
	snprintf(expected, sizeof(expected), CHECKSUM_KEY "%016llx\n",
		 (unsigned long long)hash_bytes(HASH_INIT, text, len - CHECKSUM_LEN));
	if (memcmp(sum.text, expected, CHECKSUM_LEN))
		return refuse(r, -EBADMSG,
			      "the checksum is not that of the %u lines before: the file "
			      "was changed or damaged",
			      r->line - 1);

	r->line = 1;
	version.text = text + strlen(FIRST_WORDS);
	version.len = strcspn(version.text, "\n");
	if (!piece_is(version, "1"))
		return refuse(r, -EINVAL,
			      "version \"%.*s\" of the capture format is not known, 1 is",
			      SHOWN(version));
	return 0;
}

static int read_all(struct reader *r, const char *text, size_t len)
{
	const char *at = text, *end = text + len - CHECKSUM_LEN, *newline;
	int err;

	/* check_bytes() has seen that a newline stands right before @end. */
	for (r->line = 1; at < end; r->line++, at = newline + 1) {
		newline = memchr(at, '\n', end - at);
		err = read_line(r, (struct piece){ at, newline - at });
		if (err)
			return err;
	}
	return 0;
}

/* A register that could not be read shows as 0xbad.....; no chip has so many. */
static void take_maximum(const struct reader *r, uint32_t offset, unsigned int most,
			 unsigned int *maximum)
{
	unsigned int i;

	for (i = 0; i < r->nr_registers && !*maximum; i++)
		if (r->registers[i].offset == offset && r->registers[i].value <= most)
			*maximum = r->registers[i].value;
}

/* What only the whole file can show to be wrong. */
static int check_whole(struct reader *r)
{
	unsigned int i;

	for (i = 0; i < NR_SECTIONS; i++) {
		r->line = r->section_line[i];
		if (r->seen[i] && sections[i].columns && !r->has_source[i])
			return refuse(r, -EINVAL, "[%s] does not name its source",
				      sections[i].name);
	}
	if (!r->nr_sms)
		return ctx_fail(r->gp, -ENODATA,
				"%s: no SM order ([rm]) is in it, so there is no "
				"topology to show",
				r->path);
	for (i = 0; i < TOPO_MAX_SMS; i++) {
		r->line = r->bit_line[i];
		if (!r->line)
			continue;
		if (i >= r->nr_sms)
			return refuse(r, -EINVAL, "a bit of SM %u, but the SM order has SMs 0-%u",
				      i, r->nr_sms - 1);
		r->sms[i].measured_bit = r->bits[i];
	}
	take_maximum(r, REG_MAX_GPCS, GPUPART_MAX_GPCS, &r->info.max_gpcs);
	take_maximum(r, REG_MAX_TPCS_PER_GPC, GPUPART_MAX_TPCS, &r->info.max_tpcs_per_gpc);
	return 0;
}

static int blame_line(struct reader *r, const struct topo_blame *blame, int err)
{
	unsigned int line = r->section_line[IN_RM];

	if (blame->sm >= 0)
		line = r->sm_line[blame->sm];
	else if (blame->gpc_row >= 0)
		line = r->gpc_line[blame->gpc_row];
	return ctx_fail_because(r->gp, err, "%s: line %u", r->path, line);
}

int topo_file_parse(struct gpupart *gp, const char *path, const char *text, size_t len,
		    struct gpupart_topology **topo)
{
	struct topo_blame blame;
	struct reader *r;
	unsigned int i;
	int err;

	r = calloc(1, sizeof(*r));
	if (!r)
		return ctx_fail(gp, -ENOMEM, "%s: no memory to read it", path);
	r->gp = gp;
	r->path = path;
	r->section = IN_NONE;
	r->info.mig = -1;
	for (i = 0; i < TOPO_MAX_SMS; i++)
		r->sms[i].measured_bit = -1;

	err = check_bytes(r, text, len);
	if (!err)
		err = read_all(r, text, len);
	if (!err)
		err = check_whole(r);
	if (err)
		goto free_reader;
	if (strlen(path) < sizeof(r->info.source))
		strcpy(r->info.source, path);
	else
		snprintf(r->info.source, sizeof(r->info.source), "...%s",
			 path + strlen(path) - sizeof(r->info.source) + 4);
	err = topo_build_blame(gp, &r->info, r->sms, r->nr_sms, r->gpc_map, r->nr_gpc_map, topo,
			       &blame);
	if (err) {
		err = blame_line(r, &blame, err);
		goto free_reader;
	}
	for (i = 0; i < NR_SECTIONS; i++)
		if (sections[i].columns)
			memcpy((char *)*topo + sections[i].source, r->source[i], SOURCE_LEN);
	(*topo)->registers = r->registers;
	(*topo)->nr_registers = r->nr_registers;
	r->registers = NULL;

free_reader:
	free(r->registers);
	free(r);
	return err;
}

/* Nothing that may wait for ever, has no end, or does something when it is opened. */
static int open_regular(struct gpupart *gp, const char *path)
{
	struct stat st;
	int fd = -1, err = 0;

	if (stat(path, &st)) {
		err = -errno;
	} else if (S_ISREG(st.st_mode)) {
		fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		err = fd < 0 || fstat(fd, &st) ? -errno : 0;
	}
	if (!err && S_ISREG(st.st_mode))
		return fd;
	if (fd >= 0)
		close(fd);
	if (err)
		return ctx_fail(gp, err, "%s: %s", path, strerror(-err));
	return ctx_fail(gp, S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL,
			"%s: a %s, and no file that a capture can be in", path,
			S_ISDIR(st.st_mode)  ? "folder" :
			S_ISFIFO(st.st_mode) ? "pipe" :
					       "device or socket");
}

static int read_file(struct gpupart *gp, const char *path, char **text, size_t *len)
{
	size_t room = 64 << 10;
	ssize_t got;
	int fd, err;
	char *more;

	fd = open_regular(gp, path);
	if (fd < 0)
		return fd;
	*len = 0;
	*text = malloc(room);
	if (!*text) {
		err = ctx_fail(gp, -ENOMEM, "%s: no memory to read it", path);
		goto free_text;
	}
	do {
		if (*len == room) {
			room *= 4;
			more = realloc(*text, room);
			if (!more) {
				err = ctx_fail(gp, -ENOMEM, "%s: no memory to read it", path);
				goto free_text;
			}
			*text = more;
		}
		got = read(fd, *text + *len, room - *len);
		if (got < 0 && errno != EINTR) {
			err = -errno;
			ctx_fail(gp, err, "%s: %s", path, strerror(-err));
			goto free_text;
		}
		*len += got > 0 ? got : 0;
		if (*len > FILE_MAX) {
			err = ctx_fail(gp, -EFBIG, "%s: larger than %u MiB, which no capture is",
				       path, FILE_MAX >> 20);
			goto free_text;
		}
	} while (got);
	close(fd);
	return 0;

free_text:
	free(*text);
	close(fd);
	return err;
}

int topo_file_open(struct gpupart *gp, const char *path, const char *gpu,
		   struct gpupart_topology **topo)
{
	struct gpupart_topology *t;
	char *text = NULL;
	size_t len = 0;
	int err;

	err = read_file(gp, path, &text, &len);
	if (err)
		return err;
	err = topo_file_parse(gp, path, text, len, &t);
	free(text);
	if (err)
		return err;
	if (gpu && !topo_selects(gpu, &t->info, 0)) {
		err = ctx_fail(gp, -ENODEV,
			       "%s holds one GPU (PCI %s, UUID %s), which is not \"%s\"", path,
			       t->info.pci[0] ? t->info.pci : UNKNOWN,
			       t->info.uuid[0] ? t->info.uuid : UNKNOWN, gpu);
		gpupart_topology_close(t);
		return err;
	}
	*topo = t;
	return 0;
}

/* ------------------------------------------------------------------- samples */

#define SAMPLE_END ".capture"

/* The whole path of the file that @address was mapped from; false where it does not fit. */
static bool mapped_file(const void *address, char *path, size_t len)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	size_t room = 0;
	char *line = NULL;
	bool found = false;

	while (maps && getline(&line, &room, maps) > 0) {
		unsigned long start, end;
		int at = 0;

		if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &start, &end, &at) < 2 || !at ||
		    (uintptr_t)address < start || (uintptr_t)address >= end)
			continue;
		line[strcspn(line, "\n")] = 0;
		found = line[at] == '/' && strlen(line + at) < len;
		if (found)
			strcpy(path, line + at);
		break;
	}
	free(line);
	if (maps)
		fclose(maps);
	return found;
}

/*
 * The folder of this library, or of the program that it was linked into. The loader's word
 * for either may be relative, to a folder that was the current one then.
 */
static bool library_folder(char *folder, size_t len)
{
	const void *own = (void *)(uintptr_t)library_folder;
	Dl_info info;

	if (dladdr(own, &info) && info.dli_fname[0] == '/' && strlen(info.dli_fname) < len)
		strcpy(folder, info.dli_fname);
	else if (!mapped_file(own, folder, len))
		return false;
	*strrchr(folder, '/') = 0;
	return true;
}

/* The @nr'th folder that samples may lie in; false after the last. */
static bool sample_folder(unsigned int nr, char *folder, size_t len)
{
	static const char *const below_library[] = {
		"/../share/gpupart/captures",
		"/../../share/gpupart/captures",
	};
	char library[PATH_MAX];
	int wrote;

	if (nr > 2)
		return false;
	if (nr == 2)
		wrote = snprintf(folder, len, "%s", GPUPART_DATADIR "/captures");
	else if (library_folder(library, sizeof(library)))
		wrote = snprintf(folder, len, "%s%s", library, below_library[nr]);
	else
		wrote = 0;
	if (wrote <= 0 || (size_t)wrote >= len)
		folder[0] = 0;
	return true;
}

static bool is_sample_name(const char *name)
{
	return *name && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == strlen(name);
}

static int is_sample_file(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return len > strlen(SAMPLE_END) &&
	       !strcmp(entry->d_name + len - strlen(SAMPLE_END), SAMPLE_END);
}

static void name_samples(const char *folder, char *names, size_t len)
{
	struct dirent **entries;
	size_t at = 0;
	int nr, i;

	names[0] = 0;
	nr = scandir(folder, &entries, is_sample_file, alphasort);
	for (i = 0; i < nr; i++) {
		int shown = strlen(entries[i]->d_name) - strlen(SAMPLE_END);

		if (at + shown + 3 < len)
			at += sprintf(names + at, "%s%.*s", at ? ", " : "", shown,
				      entries[i]->d_name);
		free(entries[i]);
	}
	if (nr >= 0)
		free(entries);
}

int topo_file_sample(struct gpupart *gp, const char *name, char *path, size_t len)
{
	char folder[PATH_MAX], names[300];
	unsigned int i;
	int wrote;

	for (i = 0; is_sample_name(name) && sample_folder(i, folder, sizeof(folder)); i++) {
		wrote = snprintf(path, len, "%s/%s" SAMPLE_END, folder, name);
		if (folder[0] && wrote > 0 && (size_t)wrote < len && !access(path, F_OK))
			return 0;
	}
	for (i = 0; sample_folder(i, folder, sizeof(folder)); i++) {
		name_samples(folder, names, sizeof(names));
		if (names[0])
			return ctx_fail(gp, -ENOENT, "there is no sample \"%s\"; there are %s",
					name, names);
	}
	return ctx_fail(gp, -ENOENT, "there is no sample \"%s\": no samples are installed in %s",
			name, GPUPART_DATADIR "/captures");
}

/* ------------------------------------------------------------------- writing */

/* A text that grows in memory; one failure and it stays failed. */
struct text {
	char *at;
	size_t len, room;
	bool failed;
};

__attribute__((format(printf, 2, 3)))
static void text_add(struct text *text, const char *fmt, ...)
{
	va_list ap;
	char *more;
	int nr;

	va_start(ap, fmt);
	nr = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (nr < 0 || text->failed)
		goto fail;
	if (text->len + nr + 1 > text->room) {
		more = realloc(text->at, 2 * text->room + nr + 4096);
		if (!more)
			goto fail;
		text->at = more;
		text->room = 2 * text->room + nr + 4096;
	}
	va_start(ap, fmt);
	vsnprintf(text->at + text->len, text->room - text->len, fmt, ap);
	va_end(ap);
	text->len += nr;
	return;
fail:
	text->failed = true;
}

/* Whether the reader would take @text back as it is. */
static bool is_value(const char *text)
{
	size_t len = strlen(text), i;

	for (i = 0; i < len; i++)
		if (text[i] < 0x20 || text[i] >= 0x7f)
			return false;
	return !len || (text[0] != ' ' && text[len - 1] != ' ');
}

static int write_gpu(struct gpupart *gp, struct text *out, const struct gpupart_gpu_info *info)
{
	unsigned int i;

	text_add(out, "\n[%s]\n", sections[IN_GPU].name);
	for (i = 0; i < NR_KEYS; i++) {
		const struct key *key = &keys[i];
		const char *field = (const char *)info + key->offset;
		bool text = key->form == KEY_TEXT || key->form == KEY_PCI || key->form == KEY_UUID;
		unsigned int number = 0;

		if (key->form == KEY_NUMBER || key->form == KEY_CHIP)
			memcpy(&number, field, sizeof(number));
		text_add(out, "%s = ", key->name);
		if (text && !is_value(field))
			return ctx_fail(gp, -EINVAL,
					"the GPU's %s cannot be written into a capture: "
					"it is not one line of plain ASCII text",
					key->name);
		if (text)
			text_add(out, "%s", field[0] ? field : UNKNOWN);
		else if (key->form == KEY_MIG)
			text_add(out, "%s", info->mig < 0 ? UNKNOWN : info->mig ? "on" : "off");
		else if (key->form == KEY_YES)
			text_add(out, "%s", info->simulated ? "yes" : "no");
		else if (!number)
			text_add(out, UNKNOWN);
		else if (key->form == KEY_CHIP)
			text_add(out, "0x%x", number);
		else
			text_add(out, "%u", number);
		text_add(out, "\n");
	}
	return 0;
}

static int write_header(struct gpupart *gp, struct text *out, const struct gpupart_topology *topo,
			int section)
{
	const char *source = (const char *)topo + sections[section].source;

	if (!source[0])
		source = topo->info.source[0] ? topo->info.source : UNKNOWN;
	if (!is_value(source))
		return ctx_fail(gp, -EINVAL,
				"the source of [%s] cannot be written into a capture: it is "
				"not one line of plain ASCII text",
				sections[section].name);
	text_add(out, "\n[%s]\nsource = %s\ncolumns = %s\n", sections[section].name, source,
		sections[section].columns);
	return 0;
}

static void write_index(struct text *out, int index)
{
	if (index < 0)
		text_add(out, "\t-");
	else
		text_add(out, "\t%d", index);
}

static int write_rm(struct gpupart *gp, struct text *out, const struct gpupart_topology *topo)
{
	unsigned int smid, i;
	int err = write_header(gp, out, topo, IN_RM);

	for (smid = 0; !err && smid < topo->nr_sms; smid++) {
		struct topo_sm sm = topo->sms[smid];

		text_add(out, "%u", smid);
		for (i = 0; i < NR_RM_COLUMNS; i++)
			write_index(out, *rm_value(&sm, i));
		text_add(out, "\n");
	}
	return err;
}

static int write_gpc_map(struct gpupart *gp, struct text *out, const struct gpupart_topology *topo)
{
	unsigned int i;
	int err = write_header(gp, out, topo, IN_GPC_MAP);

	for (i = 0; !err && i < topo->nr_gpc_map; i++) {
		const struct topo_gpc *row = &topo->gpc_map[i];

		text_add(out, "%d", row->gpc_phys);
		if (row->present_tpcs)
			text_add(out, "\t0x%x", row->present_tpcs);
		else
			text_add(out, "\t-");
		write_index(out, row->gpc);
		text_add(out, "\n");
	}
	return err;
}

static int write_registers(struct gpupart *gp, struct text *out,
			   const struct gpupart_topology *topo)
{
	unsigned int i;
	int err = write_header(gp, out, topo, IN_REGISTERS);

	for (i = 0; !err && i < topo->nr_registers; i++)
		text_add(out, "0x%06x\t0x%08x\n", topo->registers[i].offset,
			topo->registers[i].value);
	return err;
}

static int write_bits(struct gpupart *gp, struct text *out, const struct gpupart_topology *topo)
{
	unsigned int smid;
	int err = write_header(gp, out, topo, IN_BITS);

	for (smid = 0; !err && smid < topo->nr_sms; smid++)
		if (topo->sms[smid].measured_bit >= 0)
			text_add(out, "%u\t%d\n", smid, topo->sms[smid].measured_bit);
	return err;
}

static bool has_bits(const struct gpupart_topology *topo)
{
	unsigned int smid;

	for (smid = 0; smid < topo->nr_sms; smid++)
		if (topo->sms[smid].measured_bit >= 0)
			return true;
	return false;
}

int gpupart_topology_capture(struct gpupart *gp, const struct gpupart_topology *topo,
			     const char *captured_by, char **text)
{
	struct gpupart_gpu_info info = topo->info;
	struct text out = { 0 };
	int err;

	if (captured_by && (strlen(captured_by) >= sizeof(info.origin) || !is_value(captured_by)))
		return ctx_fail(gp, -EINVAL,
				"who captured it must be one line of plain ASCII text, at "
				"most %zu bytes",
				sizeof(info.origin) - 1);
	if (captured_by)
		snprintf(info.origin, sizeof(info.origin), "%s", captured_by);
	text_add(&out, FIRST_LINE "\n");
	err = write_gpu(gp, &out, &info);
	if (!err)
		err = write_rm(gp, &out, topo);
	if (!err && topo->nr_gpc_map)
		err = write_gpc_map(gp, &out, topo);
	if (!err && topo->nr_registers)
		err = write_registers(gp, &out, topo);
	if (!err && has_bits(topo))
		err = write_bits(gp, &out, topo);
	text_add(&out, "\n");
	if (!err && !out.failed)
		text_add(&out, CHECKSUM_KEY "%016llx\n",
			(unsigned long long)hash_bytes(HASH_INIT, out.at, out.len));
	if (out.failed && !err)
		err = ctx_fail(gp, -ENOMEM, "no memory for a capture");
	if (err) {
		free(out.at);
		return err;
	}
	*text = out.at;
	return 0;
}
