// SPDX-License-Identifier: MIT
/*
 * Parses the text form of sets. A set is written as a list of TPC numbers, as a mask of TPC
 * numbers, or as a sum of terms. Each term describes a part of a GPU.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "lib/core/ctx.h"

/*
 * The kind of units that a list contains, such as TPCs. The code needs it for bounds and error
 * messages.
 */
struct list_kind {
	const char *noun; /* "TPC" */
	unsigned int nr; /* numbers 0 .. nr-1 exist */
	bool of_gpu; /* true: @nr is this GPU's number of units; false: @nr is the limit of the
		      * format */
};

static const struct list_kind any_tpc = { "TPC", GPUPART_MAX_TPCS, false };

/*
 * A piece of the user's text for an error message. The piece is shortened, printable and in
 * quotes.
 */
struct quoted {
	char text[64];
};

static struct quoted quote(const char *text, size_t len)
{
	static const char more[] = "...";
	struct quoted q;
	size_t at = 0, i;

	q.text[at++] = '"';
	for (i = 0; i < len; i++) {
		unsigned char c = text[i];

		if (at + 4 + sizeof(more) + 1 > sizeof(q.text)) {
			memcpy(q.text + at, more, sizeof(more) - 1);
			at += sizeof(more) - 1;
			break;
		}
		if (c >= 0x20 && c < 0x7f)
			q.text[at++] = c;
		else
			at += snprintf(q.text + at, 5, "\\x%02x", c);
	}
	q.text[at++] = '"';
	q.text[at] = 0;
	return q;
}

/* Reads the digits that begin at offset @at. If the number is too large, stores the largest int. */
static size_t read_number(const char *text, size_t len, size_t at, unsigned int *number)
{
	unsigned int value = 0;

	for (; at < len && isdigit((unsigned char)text[at]); at++) {
		unsigned int digit = text[at] - '0';

		value = value > (INT32_MAX - digit) / 10 ? INT32_MAX : value * 10 + digit;
	}
	*number = value;
	return at;
}

/* @number: the digits that the user wrote. The number may be too large for an integer. */
static int not_there(struct gpupart *gp, const struct list_kind *kind, const char *number,
		     size_t len)
{
	int shown = len > 40 ? 40 : len;
	const char *more = len > 40 ? "..." : "";

	if (!kind->of_gpu)
		return ctx_fail(gp, -EINVAL, "%s %.*s%s is too large: %s numbers are 0-%u",
				kind->noun, shown, number, more, kind->noun, kind->nr - 1);
	if (kind->nr == 1)
		return ctx_fail(gp, -EINVAL, "%s %.*s%s does not exist: this GPU has only %s 0",
				kind->noun, shown, number, more, kind->noun);
	return ctx_fail(gp, -EINVAL, "%s %.*s%s does not exist: this GPU has %ss 0-%u", kind->noun,
			shown, number, more, kind->noun, kind->nr - 1);
}

static int tpc_not_there(struct gpupart *gp, const struct list_kind *kind, unsigned int tpc)
{
	char number[16];
	int len = snprintf(number, sizeof(number), "%u", tpc);

	return not_there(gp, kind, number, len);
}

/* Explains the error at offset @at in @piece, where the parser stopped. */
static int stray(struct gpupart *gp, const struct list_kind *kind, const char *piece, size_t len,
		 size_t at)
{
	char c = piece[at];

	if (c == ' ' || c == '\t' || c == '\n')
		return ctx_fail(gp, -EINVAL,
				"%s has a blank: write the list without blanks, as in \"0,5,8-11\"",
				quote(piece, len).text);
	if (c == '-' && at == 0)
		return ctx_fail(gp, -EINVAL,
				"%s: %s numbers start at 0; a range is written \"0-7\"",
				quote(piece, len).text, kind->noun);
	if (c == ':')
		return ctx_fail(gp, -EINVAL, "%s: a stride must follow a range, as in \"0-10:2\"",
				quote(piece, len).text);
	return ctx_fail(
		gp, -EINVAL,
		"%s in %s is not valid: write a list of %s numbers as \"0,5,8-11\" or \"0-10:2\"",
		quote(&c, 1).text, quote(piece, len).text, kind->noun);
}

/* Parses one piece between commas. Its form is N, N-M or N-M:S. */
static int parse_piece(struct gpupart *gp, const struct list_kind *kind, const char *piece,
		       size_t len, struct gpupart_tpcset *set)
{
	unsigned int first, last, stride = 1;
	size_t at, from;

	at = read_number(piece, len, 0, &first);
	if (at == 0)
		return stray(gp, kind, piece, len, 0);
	if (first >= kind->nr)
		return not_there(gp, kind, piece, at);
	last = first;
	if (at < len && piece[at] == '-') {
		from = at + 1;
		at = read_number(piece, len, from, &last);
		if (at == from && at == len)
			return ctx_fail(gp, -EINVAL, "%s: the range has no end, write \"%u-%u\"",
					quote(piece, len).text, first, kind->nr - 1);
		if (at == from)
			return stray(gp, kind, piece, len, at);
		if (last < first)
			return ctx_fail(gp, -EINVAL, "%s: the range is reversed, write \"%u-%u\"",
					quote(piece, len).text, last, first);
		if (last >= kind->nr)
			return not_there(gp, kind, piece + from, at - from);
		if (at < len && piece[at] == ':') {
			from = at + 1;
			at = read_number(piece, len, from, &stride);
			if (at == from && at == len)
				return ctx_fail(
					gp, -EINVAL,
					"%s: there is no stride after the colon, write \"%u-%u:2\"",
					quote(piece, len).text, first, last);
			if (at == from)
				return stray(gp, kind, piece, len, at);
			if (stride == 0)
				return ctx_fail(gp, -EINVAL, "%s: a stride must be at least 1",
						quote(piece, len).text);
		}
	}
	if (at < len)
		return stray(gp, kind, piece, len, at);
	for (; first <= last; first += stride)
		gpupart_tpcset_add(set, first);
	return 0;
}

static int parse_list(struct gpupart *gp, const struct list_kind *kind, const char *text,
		      size_t len, struct gpupart_tpcset *set)
{
	struct gpupart_tpcset members = { 0 };
	size_t at = 0, end;
	int err;

	if (!len)
		return ctx_fail(gp, -EINVAL, "the list of %ss is empty: write it as \"0,5,8-11\"",
				kind->noun);
	for (;;) {
		for (end = at; end < len && text[end] != ','; end++)
			;
		if (end == at)
			return ctx_fail(gp, -EINVAL,
					"there is nothing %s in %s: write \"0,5,8-11\"",
					at == len ? "after the last comma"
					: at	  ? "between two commas"
						  : "before the first comma",
					quote(text, len).text);
		err = parse_piece(gp, kind, text + at, end - at, &members);
		if (err)
			return err;
		if (end == len)
			break;
		at = end + 1;
	}
	*set = members;
	return 0;
}

/*
 * Commas must separate groups of 8 digits, like in the kernel's masks. The groups are counted from
 * the right. If other groups were allowed, "1,1" could mean 0x11 or 0x100000001.
 */
static int parse_hex(struct gpupart *gp, const struct list_kind *kind, const char *text, size_t len,
		     struct gpupart_tpcset *set)
{
	struct gpupart_tpcset members = { 0 };
	static const char digits[] = "0123456789abcdef";
	unsigned int tpc = 0, bit;
	size_t start = 0, group = 0, at;
	bool grouped = false;

	if (len >= 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		start = 2;
	if (start == len)
		return ctx_fail(
			gp, -EINVAL,
			"%s has no digits: write a mask as \"0x3f\", where bit i stands for %s i",
			quote(text, len).text, kind->noun);
	for (at = len; at-- > start;) {
		const char *digit = memchr(digits, tolower((unsigned char)text[at]), 16);

		if (text[at] == ',') {
			if (group != 8)
				goto bad_comma;
			group = 0;
			grouped = true;
			continue;
		}
		if (!digit)
			return ctx_fail(gp, -EINVAL, "%s in %s is not a hexadecimal digit",
					quote(text + at, 1).text, quote(text, len).text);
		group++;
		for (bit = 0; bit < 4; bit++) {
			if (!((digit - digits) >> bit & 1))
				continue;
			if (tpc + bit >= kind->nr)
				return tpc_not_there(gp, kind, tpc + bit);
			gpupart_tpcset_add(&members, tpc + bit);
		}
		/* There may be any number of leading zeros. */
		if (tpc < GPUPART_MAX_TPCS)
			tpc += 4;
	}
	if (grouped && (group == 0 || group > 8))
		goto bad_comma;
	*set = members;
	return 0;

bad_comma:
	return ctx_fail(gp, -EINVAL,
			"%s has a misplaced comma: commas separate groups of 8 digits, as in "
			"\"0x3,ffffffff\"",
			quote(text, len).text);
}

int gpupart_tpcset_parse_list(struct gpupart *gp, const char *text, struct gpupart_tpcset *set)
{
	if (!text)
		return ctx_fail(gp, -EINVAL, "the list of TPCs is missing");
	return parse_list(gp, &any_tpc, text, strlen(text), set);
}

int gpupart_tpcset_parse_hex(struct gpupart *gp, const char *text, struct gpupart_tpcset *set)
{
	if (!text)
		return ctx_fail(gp, -EINVAL, "the mask of TPCs is missing");
	return parse_hex(gp, &any_tpc, text, strlen(text), set);
}

/* Adds to @set the TPCs of the GPCs or uGPUs whose numbers are in @units. */
static int add_units(struct gpupart *gp, const struct gpupart_topology *topo, bool ugpus,
		     const struct gpupart_tpcset *units, struct gpupart_tpcset *set)
{
	int unit;

	for (unit = gpupart_tpcset_next(units, 0); unit >= 0;
	     unit = gpupart_tpcset_next(units, unit + 1)) {
		struct gpupart_tpcset tpcs = ugpus ? gpupart_topology_ugpu(topo, unit)
						   : gpupart_topology_gpc(topo, unit)->tpcs;

		if (gpupart_tpcset_empty(&tpcs))
			return ctx_fail(gp, -EINVAL, "%s %d has no TPC on this GPU",
					ugpus ? "uGPU" : "GPC", unit);
		*set = gpupart_tpcset_or(set, &tpcs);
	}
	return 0;
}

/* Parses one term between plus signs, and adds the TPCs of the term to @set. */
static int parse_term(struct gpupart *gp, const struct gpupart_topology *topo, const char *term,
		      size_t len, struct gpupart_tpcset *set)
{
	struct list_kind tpcs = { "TPC", gpupart_topology_nr_tpcs(topo), true };
	struct list_kind gpcs = { "GPC", gpupart_topology_nr_gpcs(topo), true };
	struct list_kind ugpus = { "uGPU", gpupart_topology_nr_ugpus(topo), true };
	struct gpupart_tpcset numbers;
	int err;

	if (!strncmp(term, "gpc:", 4)) {
		err = parse_list(gp, &gpcs, term + 4, len - 4, &numbers);
		return err ? err : add_units(gp, topo, false, &numbers, set);
	}
	if (!strncmp(term, "ugpu:", 5)) {
		if (!ugpus.nr)
			return ctx_fail(gp, -EINVAL,
					"%s: the uGPUs of this GPU are unknown (source: %s): use TPCs or GPCs",
					quote(term, len).text, gpupart_topology_info(topo)->source);
		err = parse_list(gp, &ugpus, term + 5, len - 5, &numbers);
		return err ? err : add_units(gp, topo, true, &numbers, set);
	}
	if (!strncmp(term, "hex:", 4))
		err = parse_hex(gp, &tpcs, term + 4, len - 4, &numbers);
	else if (!strncmp(term, "tpc:", 4))
		err = parse_list(gp, &tpcs, term + 4, len - 4, &numbers);
	else if (!strncasecmp(term, "0x", 2))
		return ctx_fail(gp, -EINVAL, "%s: a mask is written \"hex:0x3f\"",
				quote(term, len).text);
	else if (isalpha((unsigned char)term[0]))
		return ctx_fail(gp, -EINVAL,
				"%s: a term is a list of TPCs, or starts with "
				"\"tpc:\", \"gpc:\", \"ugpu:\" or \"hex:\"",
				quote(term, len).text);
	else
		err = parse_list(gp, &tpcs, term, len, &numbers);
	if (!err)
		*set = gpupart_tpcset_or(set, &numbers);
	return err;
}

int gpupart_set_parse(struct gpupart *gp, const struct gpupart_topology *topo, const char *words,
		      struct gpupart_tpcset *set)
{
	struct gpupart_tpcset members = { 0 };
	const char *term = words;
	size_t len;
	int err;

	if (!words)
		return ctx_fail(gp, -EINVAL, "the text of the set is missing");
	if (!*words)
		return ctx_fail(gp, -EINVAL,
				"the set is empty: write it as \"0-7\" or \"gpc:1,2\"");
	for (;;) {
		len = strcspn(term, "+");
		if (!len)
			return ctx_fail(gp, -EINVAL,
					"there is nothing %s in %s: terms are joined as in "
					"\"gpc:1,2+40-43\"",
					!term[0]	? "after the last plus sign"
					: term == words ? "before the first plus sign"
							: "between two plus signs",
					quote(words, strlen(words)).text);
		err = parse_term(gp, topo, term, len, &members);
		if (err)
			return err;
		if (!term[len])
			break;
		term += len + 1;
	}
	err = gpupart_set_check(gp, topo, &members);
	if (!err)
		*set = members;
	return err;
}

int gpupart_set_check(struct gpupart *gp, const struct gpupart_topology *topo,
		      const struct gpupart_tpcset *set)
{
	struct list_kind tpcs = { "TPC", gpupart_topology_nr_tpcs(topo), true };
	int tpc;

	if (!set)
		return ctx_fail(gp, -EINVAL, "the set is missing");
	if (gpupart_tpcset_empty(set))
		return ctx_fail(gp, -EINVAL, "the set is empty: at least one TPC must be allowed");
	tpc = gpupart_tpcset_next(set, tpcs.nr);
	if (tpc >= 0)
		return tpc_not_there(gp, &tpcs, tpc);
	return 0;
}
