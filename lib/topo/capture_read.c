// SPDX-License-Identifier: MIT
/* Reads captures: every byte is checked before any is believed, and what is wrong has its line. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/core/hash.h"
#include "lib/topo/capture.h"

#define FILE_MAX   (4u << 20)
#define SOURCE_LEN sizeof(((struct gpupart_topology *)0)->text_rm)
#define MAX_VALUES 11 /* of a section */

/* NVIDIA's PTOP registers of the design maxima; a capture with them needs no key for these. */
#define REG_MAX_GPCS	     0x22430
#define REG_MAX_TPCS_PER_GPC 0x22434

struct rows {
	void *at;		/* in the section's struct */
	unsigned int *line;	/* of each; 0: this row was left out */
	unsigned int nr;
};

struct reader {
	struct gpupart *gp;
	const char *path;
	unsigned int line, nr_lines; /* counts from 1 */
	int section;
	bool has_source[NR_SECTIONS], has_columns[NR_SECTIONS], seen_key[MAX_VALUES];
	unsigned int section_line[NR_SECTIONS];	/* 0: it was not seen */
	struct capture_gpu gpu;
	char source[NR_SECTIONS][SOURCE_LEN];
	struct rows rows[NR_SECTIONS];
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
	static const char digits[] = "0123456789abcdef";
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
		const char *digit = memchr(digits, piece.text[i], base);

		if (!digit)
			return false;
		sum = sum * base + (digit - digits);
		if (sum > UINT32_MAX)
			return false;
	}
	*value = sum;
	return true;
}

static bool read_number(const struct value *v, struct piece text, void *field)
{
	uint32_t number = v->none_is;

	if (!(v->none && piece_is(text, v->none)) &&
	    (!read_u32(text, v->form == FORM_HEX ? 16 : 10, &number) || number < v->min ||
	     number > v->max || (v->multiple_of && number % v->multiple_of)))
		return false;
	memcpy(field, &number, sizeof(number));
	return true;
}

/* A text that is shorter than its member: as it stands, or in the one spelling it has there. */
static bool read_text(const struct value *v, struct piece piece, char *field)
{
	char text[sizeof(((struct gpupart_gpu_info *)0)->origin)] = "";

	if (piece_is(piece, UNKNOWN))
		return true;
	memcpy(text, piece.text, piece.len);
	if (v->form == FORM_PCI)
		return topo_address_read(text, field);
	memcpy(field, text, piece.len);
	return v->form == FORM_TEXT || topo_is_uuid(text);
}

/* Takes what is in @column of a line, counted from 1, into its member of @row. */
static int read_value(struct reader *r, const struct value *v, unsigned int column,
		      struct piece text, void *row)
{
	void *field = (char *)row + v->offset;
	bool good = true;

	switch (v->form) {
	case FORM_TEXT:
	case FORM_PCI:
	case FORM_UUID:
		if (text.len >= v->size)
			return refuse(r, -EINVAL, "%s is longer than %zu bytes: \"%.*s\"", v->name,
				      v->size - 1, SHOWN(text));
		good = read_text(v, text, field);
		break;
	case FORM_MIG:
		*(int *)field = piece_is(text, UNKNOWN) ? -1 : piece_is(text, "on");
		good = *(int *)field || piece_is(text, "off");
		break;
	case FORM_YES:
		*(bool *)field = piece_is(text, "yes");
		good = *(bool *)field || piece_is(text, "no");
		break;
	case FORM_DECIMAL:
	case FORM_HEX:
		good = read_number(v, text, field);
		break;
	case FORM_ROW:
		break;
	}
	if (good)
		return 0;
	if (!v->name)
		return refuse(r, -EINVAL, "\"%.*s\" in column %u is not a number or \"-\"",
			      SHOWN(text), column);
	return refuse(r, -EINVAL, "%s \"%.*s\" %s", v->name, SHOWN(text), v->wrong);
}

static int read_gpu_key(struct reader *r, struct piece key, struct piece value)
{
	const struct section *gpu = &capture_sections[IN_GPU];
	unsigned int i;

	for (i = 0; i < gpu->nr_values && !piece_is(key, gpu->values[i].name); i++)
		;
	if (i == gpu->nr_values)
		return refuse(r, -EINVAL, "[gpu] has no key \"%.*s\"", SHOWN(key));
	if (r->seen_key[i])
		return refuse(r, -EINVAL, "a second \"%s\"", gpu->values[i].name);
	r->seen_key[i] = true;
	return read_value(r, &gpu->values[i], 1, value, &r->gpu);
}

static int read_key(struct reader *r, struct piece key, struct piece value)
{
	const struct section *section = &capture_sections[r->section];

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

/* The number of the row that has these fields, or -EINVAL. */
static int find_row(struct reader *r, const struct piece *field)
{
	const struct section *section = &capture_sections[r->section];
	const struct rows *rows = &r->rows[r->section];
	uint32_t row;

	if (section->sparse) {
		if (!read_u32(field[0], 10, &row) || row >= section->max_rows)
			return refuse(r, -EINVAL, "SM \"%.*s\" is not a number below %u",
				      SHOWN(field[0]), section->max_rows);
		if (rows->line[row])
			return refuse(r, -EINVAL, "a second bit of SM %u, the first is in line %u",
				      row, rows->line[row]);
		return row;
	}
	if (section->max_rows && rows->nr == section->max_rows)
		return refuse(r, -EINVAL, "more than %u %s", section->max_rows, section->noun);
	if (section->values[0].form == FORM_ROW &&
	    (!read_u32(field[0], 10, &row) || row != rows->nr))
		return refuse(r, -EINVAL, "SM \"%.*s\" stands where SM %u is due", SHOWN(field[0]),
			      rows->nr);
	return rows->nr;
}

static int read_fields(struct reader *r, const struct piece *field)
{
	const struct section *section = &capture_sections[r->section];
	struct rows *rows = &r->rows[r->section];
	const struct topo_register *reg = rows->at;
	int row = find_row(r, field), err = 0;

	if (row < 0)
		return row;
	for (unsigned int i = 0; !err && i < section->nr_values; i++)
		err = read_value(r, &section->values[i], i + 1, field[i],
				 (char *)rows->at + row * section->row_size);
	if (err)
		return err;
	if (r->section == IN_REGISTERS && row && reg[row].offset <= reg[row - 1].offset)
		return refuse(r, -EINVAL, "register 0x%06x does not come after 0x%06x",
			      reg[row].offset, reg[row - 1].offset);
	rows->line[row] = r->line;
	rows->nr = row + 1;
	return 0;
}

static int read_row(struct reader *r, struct piece line)
{
	const struct section *section = &capture_sections[r->section];
	struct piece field[MAX_VALUES];
	unsigned int nr = 0;
	size_t at = 0;

	if (!section->columns)
		return refuse(r, -EINVAL, "[%s] has lines \"key = value\" only, not \"%.*s\"",
			      section->name, SHOWN(line));
	while (at < line.len) {
		size_t start = at;

		while (at < line.len && line.text[at] != ' ' && line.text[at] != '\t')
			at++;
		if (nr < MAX_VALUES)
			field[nr] = (struct piece){ line.text + start, at - start };
		nr++;
		while (at < line.len && (line.text[at] == ' ' || line.text[at] == '\t'))
			at++;
	}
	if (nr != section->nr_values)
		return refuse(r, -EINVAL, "%u fields where [%s] has %u: %s", nr, section->name,
			      section->nr_values, section->columns);
	if (!r->has_columns[r->section])
		return refuse(r, -EINVAL, "a row of [%s] before its line \"columns = %s\"",
			      section->name, section->columns);
	return read_fields(r, field);
}

static int read_header(struct reader *r, struct piece line)
{
	struct piece name = { line.text + 1, line.len - 2 };
	unsigned int nr;
	struct rows *rows;
	int i;

	if (line.text[line.len - 1] != ']')
		return refuse(r, -EINVAL, "\"%.*s\" is not a section, which ends in \"]\"",
			      SHOWN(line));
	for (i = 0; i < NR_SECTIONS && !piece_is(name, capture_sections[i].name); i++)
		;
	if (i == NR_SECTIONS)
		return refuse(r, -EINVAL,
			      "there is no section [%.*s]; this version knows gpu, rm, gpc-map, registers and measured-bits",
			      SHOWN(name));
	if (r->section_line[i])
		return refuse(r, -EINVAL, "a second [%s], the first is in line %u",
			      capture_sections[i].name, r->section_line[i]);
	r->section_line[i] = r->line;
	r->section = i;
	nr = capture_sections[i].max_rows ? capture_sections[i].max_rows : r->nr_lines;
	rows = &r->rows[i];
	rows->at = calloc(nr, capture_sections[i].row_size);
	rows->line = calloc(nr, sizeof(rows->line[0]));
	if (!rows->at || !rows->line)
		return refuse(r, -ENOMEM, "no memory for %u rows", nr);
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
				      "\"%.*s\" is not \"key = value\" with one blank on each side",
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
				      "a carriage return: the line ends were changed to CR LF, a capture has LF alone");
		if (!c)
			return refuse(r, -EBADMSG, "a NUL byte: this is not a text file");
		if ((c < 0x20 && c != '\n' && c != '\t') || c >= 0x7f)
			return refuse(r, -EBADMSG, "byte 0x%02x: a capture is plain ASCII text", c);
		r->line += c == '\n';
	}
	r->nr_lines = r->line - (text[len - 1] == '\n');
	r->line = 1;
	if (len < strlen(FIRST_WORDS) || memcmp(text, FIRST_WORDS, strlen(FIRST_WORDS)))
		return refuse(r, -EBADMSG, "this is not a capture, which starts with \"%s\"",
			      FIRST_LINE);

	r->line = r->nr_lines;
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
			      "the checksum is not that of the %u lines before: the file was changed or damaged",
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
	const struct topo_register *reg = r->rows[IN_REGISTERS].at;
	unsigned int i;

	for (i = 0; i < r->rows[IN_REGISTERS].nr && !*maximum; i++)
		if (reg[i].offset == offset && reg[i].value <= most)
			*maximum = reg[i].value;
}

/* What only the whole file can show to be wrong. */
static int check_whole(struct reader *r)
{
	const struct rows *rm = &r->rows[IN_RM], *bits = &r->rows[IN_BITS];
	struct topo_sm *sms = rm->at, *with_bits = bits->at;
	unsigned int i;

	for (i = 0; i < NR_SECTIONS; i++) {
		r->line = r->section_line[i];
		if (r->line && capture_sections[i].columns && !r->has_source[i])
			return refuse(r, -EINVAL, "[%s] does not name its source",
				      capture_sections[i].name);
	}
	if (!rm->nr)
		return ctx_fail(r->gp, -ENODATA,
				"%s: no SM order ([rm]) is in it, so there is no topology to show",
				r->path);
	for (i = 0; i < rm->nr; i++)
		sms[i].measured_bit = -1;
	for (i = 0; with_bits && i < TOPO_MAX_SMS; i++) {
		r->line = bits->line[i];
		if (!r->line)
			continue;
		if (i >= rm->nr)
			return refuse(r, -EINVAL, "a bit of SM %u, but the SM order has SMs 0-%u",
				      i, rm->nr - 1);
		sms[i].measured_bit = with_bits[i].measured_bit;
	}
	take_maximum(r, REG_MAX_GPCS, GPUPART_MAX_GPCS, &r->gpu.info.max_gpcs);
	take_maximum(r, REG_MAX_TPCS_PER_GPC, GPUPART_MAX_TPCS, &r->gpu.info.max_tpcs_per_gpc);
	return 0;
}

void topo_source_set(struct gpupart_gpu_info *info, const char *path)
{
	size_t len = strlen(path), room = sizeof(info->source);

	snprintf(info->source, room, "%s%s", len < room ? "" : "...",
		 len < room ? path : path + len - room + 4);
}

static int blame_line(struct reader *r, const struct topo_blame *blame, int err)
{
	unsigned int line = r->section_line[IN_RM];

	if (blame->sm >= 0)
		line = r->rows[IN_RM].line[blame->sm];
	else if (blame->gpc_row >= 0)
		line = r->rows[IN_GPC_MAP].line[blame->gpc_row];
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
	r->gpu.info.mig = -1;
	err = check_bytes(r, text, len);
	if (!err)
		err = read_all(r, text, len);
	if (!err)
		err = check_whole(r);
	if (err)
		goto free_reader;
	topo_source_set(&r->gpu.info, path);
	err = topo_build_blame(gp, &r->gpu.info, r->rows[IN_RM].at, r->rows[IN_RM].nr,
			       r->rows[IN_GPC_MAP].at, r->rows[IN_GPC_MAP].nr, topo, &blame);
	if (err) {
		err = blame_line(r, &blame, err);
		goto free_reader;
	}
	(*topo)->compute_class = r->gpu.compute_class;
	for (i = 0; i < NR_SECTIONS; i++)
		if (capture_sections[i].columns)
			memcpy((char *)*topo + capture_sections[i].source, r->source[i],
			       SOURCE_LEN);
	(*topo)->registers = r->rows[IN_REGISTERS].at;
	(*topo)->nr_registers = r->rows[IN_REGISTERS].nr;
	r->rows[IN_REGISTERS].at = NULL;

free_reader:
	for (i = 0; i < NR_SECTIONS; i++) {
		free(r->rows[i].at);
		free(r->rows[i].line);
	}
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
	int fd = open_regular(gp, path), err = 0;
	ssize_t got = 0;

	if (fd < 0)
		return fd;
	*len = 0;
	*text = malloc(FILE_MAX + 1);
	if (!*text)
		err = ctx_fail(gp, -ENOMEM, "%s: no memory to read it", path);
	while (!err && *len <= FILE_MAX) {
		got = read(fd, *text + *len, FILE_MAX + 1 - *len);
		if (!got)
			break;
		if (got > 0)
			*len += got;
		else if (errno != EINTR)
			err = ctx_fail(gp, -errno, "%s: %s", path, strerror(errno));
	}
	if (!err && *len > FILE_MAX)
		err = ctx_fail(gp, -EFBIG, "%s: larger than %u MiB, which no capture is", path,
			       FILE_MAX >> 20);
	if (err)
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
