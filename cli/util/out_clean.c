// SPDX-License-Identifier: MIT
/* See out_clean.h. */
#include <stdint.h>
#include "cli/util/out_clean.h"

/* How many bytes at @c are one character of UTF-8 that steers no terminal; 0 none. */
static int printable(const unsigned char *c)
{
	static const struct { unsigned char mask, lead; uint32_t lowest; } forms[] = {
		{ 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 },
	};

	if (*c < 0x80)
		return *c >= ' ' && *c != 0x7f;
	for (int i = 0; i < 3; i++) {
		uint32_t code = *c & ~forms[i].mask;

		if ((*c & forms[i].mask) != forms[i].lead)
			continue;
		for (int j = 1; j <= i + 1; j++) {
			if ((c[j] & 0xc0) != 0x80)
				return 0;
			code = code << 6 | (c[j] & 0x3f);
		}
		/* Longer than need be, a half of a pair, no character at all, or a control. */
		if (code < forms[i].lowest || (code >= 0xd800 && code < 0xe000) ||
		    code > 0x10ffff || code < 0xa0)
			return 0;
		return i + 2;
	}
	return 0;
}

char *out_clean(char *text)
{
	for (unsigned char *c = (unsigned char *)text; *c;) {
		int len = printable(c);

		if (!len)
			*c = '?';
		c += len ? len : 1;
	}
	return text;
}
