// SPDX-License-Identifier: MIT
/*
 * Reads captures. The code checks the whole file before it uses any part of the file. Each error
 * message contains the number of a line.
 */
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
#define MAX_VALUES 11 /* maximum number of values of a section */

/*
 * NVIDIA's PTOP registers contain the design maxima of a chip. A capture with these registers needs
 * no keys for the maxima.
 */
#define REG_MAX_GPCS	     0x22430
#define REG_MAX_TPCS_PER_GPC 0x22434

struct rows {
	void *at;		/* address of the first row in the section's struct */
	unsigned int *line;	/* line number of each row; 0: the row was omitted */
	unsigned int nr;
};

struct reader {
	struct gpupart *gp;
	const char *path;
	unsigned int line, nr_lines; /* counted from 1 */
	int section;
	bool has_columns[NR_SECTIONS], seen_key[MAX_VALUES];
	unsigned int section_line[NR_SECTIONS];	/* 0: the section was not seen */
	struct capture_gpu gpu;
	char source[NR_SECTIONS][SOURCE_LEN];
	struct rows rows[NR_SECTIONS];
};

/* Reports an error in the most recently read line. */
#define refuse(r, err, fmt, ...) \
	ctx_fail((r)->gp, err, "%s: line %u: " fmt, (r)->path, (r)->line, ##__VA_ARGS__)

/* Parses decimal digits, or 0x and hexadecimal digits. The number has at most 32 bits. */
static bool read_u32(const char *text, int base, uint32_t *value)
{
	unsigned long long number = strtoull(text, NULL, base);
	const char *digits = "0123456789";

	if (base == 16 ? strncmp(text, "0x", 2) != 0 : text[0] == '0' && text[1])
		return false;
	if (base == 16) {
		digits = "0123456789abcdef";
		text += 2;
	}
	if (!*text || text[strspn(text, digits)] || number > UINT32_MAX)
		return false;
	*value = number;
	return true;
}

static bool read_number(const struct value *v, const char *text, void *field)
{
	uint32_t number = v->none_is;

	if (!(v->none && !strcmp(text, v->none)) &&
	    (!read_u32(text, v->form == FORM_HEX ? 16 : 10, &number) || number < v->min ||
	     number > v->max || (v->multiple_of && number % v->multiple_of)))
		return false;
	memcpy(field, &number, sizeof(number));
	return true;
}

/*
 * Stores a text, either unchanged or in its canonical spelling. The text must be shorter than
 * its member.
 */
static bool read_text(const struct value *v, const char *text, char *field)
{
	if (!strcmp(text, UNKNOWN))
		return true;
	if (v->form == FORM_PCI)
		return topo_address_read(text, field);
	strcpy(field, text);
	return v->form == FORM_TEXT || topo_is_uuid(text);
}

/*
 * Stores field number @column of a line. The field is stored in the column's member of @row.
 * Columns are counted from 1.
 */
static int read_value(struct reader *r, const struct value *v, unsigned int column,
		      const char *text, void *row)
{
	void *field = (char *)row + v->offset;
	bool good = true;

	switch (v->form) {
	case FORM_TEXT:
	case FORM_PCI:
	case FORM_UUID:
		if (strlen(text) >= v->size)
			return refuse(r, -EINVAL, "%s is longer than %zu bytes: \"%.60s\"", v->name,
				      v->size - 1, text);
		good = read_text(v, text, field);
		break;
	case FORM_MIG:
		*(int *)field = !strcmp(text, UNKNOWN) ? -1 : !strcmp(text, "on");
		good = *(int *)field || !strcmp(text, "off");
		break;
	case FORM_YES:
		*(bool *)field = !strcmp(text, "yes");
		good = *(bool *)field || !strcmp(text, "no");
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
		return refuse(r, -EINVAL, "\"%.60s\" in column %u is not a number or \"-\"", text,
			      column);
	return refuse(r, -EINVAL, "%s \"%.60s\" %s", v->name, text, v->wrong);
}

static int read_gpu_key(struct reader *r, const char *key, const char *value)
{
	const struct section *gpu = &capture_sections[IN_GPU];
	unsigned int i;

	for (i = 0; i < gpu->nr_values && strcmp(key, gpu->values[i].name); i++)
		;
	if (i == gpu->nr_values)
		return refuse(r, -EINVAL, "[gpu] has no key \"%.60s\"", key);
	if (r->seen_key[i])
		return refuse(r, -EINVAL, "\"%s\" appears twice", gpu->values[i].name);
	r->seen_key[i] = true;
	return read_value(r, &gpu->values[i], 1, value, &r->gpu);
}

static int read_key(struct reader *r, const char *key, const char *value)
{
	const struct section *section = &capture_sections[r->section];

	if (r->section == IN_GPU)
		return read_gpu_key(r, key, value);
	if (!strcmp(key, "source")) {
		if (*r->source[r->section])
			return refuse(r, -EINVAL, "\"source\" appears twice in [%s]",
				      section->name);
		if (strlen(value) >= SOURCE_LEN)
			return refuse(r, -EINVAL, "source is longer than %zu bytes",
				      SOURCE_LEN - 1);
		strcpy(r->source[r->section], value);
		return 0;
	}
	if (!strcmp(key, "columns")) {
		if (r->has_columns[r->section])
			return refuse(r, -EINVAL, "\"columns\" appears twice in [%s]",
				      section->name);
		if (strcmp(value, section->columns))
			return refuse(r, -EINVAL, "the columns of [%s] are \"%s\", not \"%.60s\"",
				      section->name, section->columns, value);
		r->has_columns[r->section] = true;
		return 0;
	}
	return refuse(r, -EINVAL, "[%s] has no key \"%.60s\"", section->name, key);
}

/* Returns the number of the row with these fields, or -EINVAL. */
static int find_row(struct reader *r, char *const *field)
{
	const struct section *section = &capture_sections[r->section];
	const struct rows *rows = &r->rows[r->section];
	uint32_t row;

	if (section->sparse) {
		if (!read_u32(field[0], 10, &row) || row >= section->max_rows)
			return refuse(r, -EINVAL, "SM \"%.60s\" is not a number below %u",
				      field[0], section->max_rows);
		if (rows->line[row])
			return refuse(r, -EINVAL,
				      "SM %u appears twice in this section, first in line %u", row,
				      rows->line[row]);
		return row;
	}
	if (section->max_rows && rows->nr == section->max_rows)
		return refuse(r, -EINVAL, "there are more than %u %s", section->max_rows,
			      section->noun);
	if (section->values[0].form == FORM_ROW &&
	    (!read_u32(field[0], 10, &row) || row != rows->nr))
		return refuse(r, -EINVAL,
			      "this line describes SM \"%.60s\" but must describe SM %u", field[0],
			      rows->nr);
	return rows->nr;
}

static int read_fields(struct reader *r, char *const *field)
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
		return refuse(
			r, -EINVAL,
			"register 0x%06x must be listed before register 0x%06x, and only once",
			reg[row].offset, reg[row - 1].offset);
	rows->line[row] = r->line;
	rows->nr = row + 1;
	return 0;
}

static int read_row(struct reader *r, char *line)
{
	const struct section *section = &capture_sections[r->section];
	char *field[MAX_VALUES], *rest, *at;
	unsigned int nr = 0;

	if (!section->columns)
		return refuse(
			r, -EINVAL,
			"[%s] can contain only lines of the form \"key = value\", not \"%.60s\"",
			section->name, line);
	for (at = strtok_r(line, " \t", &rest); at; at = strtok_r(NULL, " \t", &rest), nr++)
		if (nr < MAX_VALUES)
			field[nr] = at;
	if (nr != section->nr_values)
		return refuse(r, -EINVAL, "this line has %u fields, but a row of [%s] has %u: %s",
			      nr, section->name, section->nr_values, section->columns);
	if (!r->has_columns[r->section])
		return refuse(r, -EINVAL, "a row of [%s] is above the line \"columns = %s\"",
			      section->name, section->columns);
	return read_fields(r, field);
}

static int read_header(struct reader *r, char *line)
{
	char *name = line + 1, *end = line + strlen(line) - 1;
	unsigned int nr;
	struct rows *rows;
	int i;

	if (*end != ']')
		return refuse(r, -EINVAL,
			      "\"%.60s\" is not a section, because it does not end in \"]\"", line);
	*end = 0;
	for (i = 0; i < NR_SECTIONS && strcmp(name, capture_sections[i].name); i++)
		;
	if (i == NR_SECTIONS)
		return refuse(r, -EINVAL,
			      "there is no section [%.60s]; the sections are gpu, rm, gpc-map, registers and measured-bits",
			      name);
	if (r->section_line[i])
		return refuse(r, -EINVAL, "section [%s] appears twice, first in line %u",
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

static int read_line(struct reader *r, char *line)
{
	char *value;

	if (!*line || *line == '#')
		return 0;
	if (strchr(" \t", *line) || strchr(" \t", line[strlen(line) - 1]))
		return refuse(r, -EINVAL, "the line starts or ends with a blank");
	if (*line == '[')
		return read_header(r, line);
	if (r->section == IN_NONE)
		return refuse(r, -EINVAL, "\"%.60s\" is before the first section", line);
	value = strstr(line, " = ");
	if (!value)
		return !strchr(line, '=') ? read_row(r, line) :
		       refuse(r, -EINVAL,
			      "\"%.60s\" is not \"key = value\" with one blank on each side", line);
	if (value[3] == ' ' || strchr(line, '\t'))
		return refuse(r, -EINVAL, "\"%.60s\" has a tab, or more than one blank after \"=\"",
			      line);
	*value = 0;
	return read_key(r, line, value + 3);
}

/* Checks the size, the encoding and the checksum of the file. These checks need no parsing. */
static int check_bytes(struct reader *r, const char *text, size_t len)
{
	const char *sum = text + len - CHECKSUM_LEN, *version = text + strlen(FIRST_WORDS);
	char expected[CHECKSUM_LEN + 1];
	size_t i;

	r->line = 1;
	if (!len)
		return refuse(r, -EBADMSG, "the file is empty");
	for (i = 0; i < len; i++) {
		unsigned char c = text[i];

		if (c == '\r')
			return refuse(r, -EBADMSG,
				      "the line has a carriage return: the lines of a capture must end in LF, not in CR LF");
		if (!c)
			return refuse(r, -EBADMSG,
				      "the line has a NUL byte, so this is not a text file");
		if ((c < 0x20 && c != '\n' && c != '\t') || c >= 0x7f)
			return refuse(r, -EBADMSG,
				      "the line has byte 0x%02x, but a capture is plain ASCII text",
				      c);
		r->line += c == '\n';
	}
	r->nr_lines = r->line - (text[len - 1] == '\n');
	r->line = 1;
	if (len < strlen(FIRST_WORDS) || memcmp(text, FIRST_WORDS, strlen(FIRST_WORDS)))
		return refuse(r, -EBADMSG, "this is not a capture: a capture starts with \"%s\"",
			      FIRST_LINE);

	r->line = r->nr_lines;
	if (text[len - 1] != '\n')
		return refuse(r, -EBADMSG,
			      "the file ends inside this line, so the file was truncated");
	if (len < CHECKSUM_LEN + strlen(FIRST_LINE) + 1 || sum[-1] != '\n' ||
	    memcmp(sum, CHECKSUM_KEY, strlen(CHECKSUM_KEY)))
		return refuse(
			r, -EBADMSG,
			"the last line is not \"%s\" followed by 16 digits: the file was "
			"truncated or changed",
			CHECKSUM_KEY);
	snprintf(expected, sizeof(expected), CHECKSUM_KEY "%016llx\n",
		 (unsigned long long)hash_bytes(HASH_INIT, text, len - CHECKSUM_LEN));
	if (memcmp(sum, expected, CHECKSUM_LEN))
		return refuse(r, -EBADMSG,
			      "the checksum does not match the %u lines above it: the file was changed or damaged",
			      r->line - 1);

	r->line = 1;
	i = strcspn(version, "\n");
	if (i != 1 || *version != '1')
		return refuse(r, -EINVAL,
			      "version \"%.*s\" of the capture format is unknown: must be 1",
			      i > 60 ? 60 : (int)i, version);
	return 0;
}

static int read_all(struct reader *r, const char *text, size_t len)
{
	char *copy = strndup(text, len - CHECKSUM_LEN), *rest = copy, *line;
	int err = copy ? 0 : ctx_fail(r->gp, -ENOMEM, "%s: no memory to read this file", r->path);

	for (r->line = 1; !err && (line = strsep(&rest, "\n")); r->line++)
		err = read_line(r, line);
	free(copy);
	return err;
}

/* If a register cannot be read, its value begins with 0xbad. No chip has such a large maximum. */
static void take_maximum(const struct reader *r, uint32_t offset, unsigned int most,
			 unsigned int *maximum)
{
	const struct topo_register *reg = r->rows[IN_REGISTERS].at;
	unsigned int i;

	for (i = 0; i < r->rows[IN_REGISTERS].nr && !*maximum; i++)
		if (reg[i].offset == offset && reg[i].value <= most)
			*maximum = reg[i].value;
}

/* These checks need the whole parsed file. */
static int check_whole(struct reader *r)
{
	const struct rows *rm = &r->rows[IN_RM], *bits = &r->rows[IN_BITS];
	struct topo_sm *sms = rm->at, *with_bits = bits->at;
	unsigned int i;

	for (i = 0; i < NR_SECTIONS; i++) {
		r->line = r->section_line[i];
		if (r->line && capture_sections[i].columns && !*r->source[i])
			return refuse(r, -EINVAL, "[%s] does not name its source",
				      capture_sections[i].name);
	}
	if (!rm->nr)
		return ctx_fail(r->gp, -ENODATA,
				"%s: the file has no SM order (section [rm]), so it contains no topology",
				r->path);
	for (i = 0; i < rm->nr; i++)
		sms[i].measured_bit = -1;
	for (i = 0; with_bits && i < TOPO_MAX_SMS; i++) {
		r->line = bits->line[i];
		if (!r->line)
			continue;
		if (i >= rm->nr)
			return refuse(
				r, -EINVAL,
				"this line describes SM %u, but the SM order has only SMs 0-%u", i,
				rm->nr - 1);
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
		return ctx_fail(gp, -ENOMEM, "%s: no memory to read this file", path);
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

/*
 * Opens the file only if it is a regular file. A regular file has an end, reading it does not
 * block, and opening it has no side effects.
 */
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
			"%s: is a %s, not a file with a capture", path,
			S_ISDIR(st.st_mode)  ? "folder" :
			S_ISFIFO(st.st_mode) ? "pipe" :
					       "device or socket");
}

static int read_file(struct gpupart *gp, const char *path, char **text, size_t *len)
{
	int fd = open_regular(gp, path), err = 0;
	FILE *file;

	if (fd < 0)
		return fd;
	file = fdopen(fd, "r");
	*text = malloc(FILE_MAX + 1);
	if (!file || !*text)
		err = ctx_fail(gp, -ENOMEM, "%s: no memory to read this file", path);
	*len = file && *text ? fread(*text, 1, FILE_MAX + 1, file) : 0;
	if (file && ferror(file))
		err = ctx_fail(gp, -errno, "%s: %s", path, strerror(errno));
	else if (*len > FILE_MAX)
		err = ctx_fail(gp, -EFBIG, "%s is larger than %u MiB, the limit for a capture",
			       path, FILE_MAX >> 20);
	if (err)
		free(*text);
	if (file)
		fclose(file);
	else
		close(fd);
	return err;
}

int topo_file_open(struct gpupart *gp, const char *path, struct gpupart_topology **topo)
{
	char *text = NULL;
	size_t len = 0;
	int err;

	err = read_file(gp, path, &text, &len);
	if (err)
		return err;
	err = topo_file_parse(gp, path, text, len, topo);
	free(text);
	return err;
}
