// SPDX-License-Identifier: MIT
/*
 * Parses the size of a memory quota, such as "20G", "512M", "1.5GiB" or "1000000". Any thread
 * may call this function.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include "lib/core/ctx.h"

#define MAX_SIZE ((uint64_t)1 << 60)

/*
 * Returns the number of bytes in a unit ("G", "GiB", "gb" and so on), or 0 if the text is not a
 * unit.
 */
static uint64_t unit_of(const char *text)
{
	static const char letters[] = "kmgt";
	uint64_t unit = 1, base = 1024;
	const char *letter = *text ? strchr(letters, tolower((unsigned char)*text)) : NULL;

	if (!strcasecmp(text, "") || !strcasecmp(text, "b"))
		return 1;
	if (!letter)
		return 0;
	if (!strcasecmp(text + 1, "b"))
		base = 1000;
	else if (text[1] && strcasecmp(text + 1, "ib"))
		return 0;
	for (long i = letter - letters; i >= 0; i--)
		unit *= base;
	return unit;
}

/*
 * Parses digits. If a unit follows, the digits may have a fraction. Stores the start of the
 * remaining text in *end. Returns the number of bytes, rounded down.
 */
static uint64_t read_size(const char *text, uint64_t *whole, const char **end)
{
	uint64_t part = 0, scale = 1;

	*whole = 0;
	for (; isdigit((unsigned char)*text); text++)
		*whole = *whole > MAX_SIZE ? *whole : *whole * 10 + (*text - '0');
	if (*text == '.' && isdigit((unsigned char)text[1]))
		for (text++; isdigit((unsigned char)*text); text++)
			if (scale < 1000000) {
				part = part * 10 + (*text - '0');
				scale *= 10;
			}
	*end = text;
	return part * (1000000 / scale);	/* in millionths */
}

int gpupart_memory_parse(struct gpupart *gp, const char *text, uint64_t *bytes)
{
	uint64_t whole, millionths, unit, size;
	const char *end;

	if (!text || !isdigit((unsigned char)*text))
		return ctx_fail(gp, -EINVAL, "'%.40s' is not a size such as 20G, 512M or 1.5GiB",
				text ? text : "");
	millionths = read_size(text, &whole, &end);
	unit = unit_of(end);
	if (!unit)
		return ctx_fail(gp, -EINVAL,
				"'%.40s' has an unknown unit: use K, M, G or T (powers of 1024), KB, MB, .. (powers of 1000), or no unit for bytes",
				text);
	if (unit == 1 && memchr(text, '.', end - text))
		return ctx_fail(gp, -EINVAL,
				"'%.40s' is a fraction of a byte: a fraction needs a unit, for example 1.5G",
				text);
	if (whole > MAX_SIZE / unit)
		return ctx_fail(gp, -EINVAL,
				"'%.40s' is too large: must be at most 2^60 bytes",
				text);
	size = whole * unit + unit / 1000000 * millionths + unit % 1000000 * millionths / 1000000;
	if (size > MAX_SIZE)
		return ctx_fail(gp, -EINVAL,
				"'%.40s' is too large: must be at most 2^60 bytes",
				text);
	if (!size)
		return ctx_fail(gp, -EINVAL, "'%.40s' is 0 bytes: must be at least 1 byte", text);
	*bytes = size;
	return 0;
}
