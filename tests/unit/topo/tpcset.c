// SPDX-License-Identifier: MIT
/*
 * Tests sets. The operations on sets are compared with the same operations on arrays of bools.
 * Also tests every text form and every error message.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "lib/core/ctx.h"
#include "tests/tap.h"

static struct gpupart *gp;

static void test_algebra(void)
{
	struct gpupart_tpcset a = { 0 }, b = { 0 }, and, or, andnot;
	bool in_a[GPUPART_MAX_TPCS], in_b[GPUPART_MAX_TPCS], good = true;
	unsigned int tpc, nr = 0, walked = 0, round;
	int next;

	srand(1);
	for (round = 0; round < 200; round++) {
		bool subset = true, intersects = false, equal = true;

		for (tpc = 0, nr = 0; tpc < GPUPART_MAX_TPCS; tpc++) {
			in_a[tpc] = rand() % (round % 5 + 1) == 0;
			in_b[tpc] = round % 3 ? in_a[tpc] || rand() % 7 == 0 : rand() % 2;
			(in_a[tpc] ? gpupart_tpcset_add : gpupart_tpcset_del)(&a, tpc);
			(in_b[tpc] ? gpupart_tpcset_add : gpupart_tpcset_del)(&b, tpc);
			nr += in_a[tpc];
			subset &= !in_a[tpc] || in_b[tpc];
			intersects |= in_a[tpc] && in_b[tpc];
			equal &= in_a[tpc] == in_b[tpc];
		}
		and = gpupart_tpcset_and(&a, &b);
		or = gpupart_tpcset_or(&a, &b);
		andnot = gpupart_tpcset_andnot(&a, &b);
		for (tpc = 0; tpc < GPUPART_MAX_TPCS; tpc++)
			good &= gpupart_tpcset_has(&a, tpc) == in_a[tpc] &&
				gpupart_tpcset_has(&and, tpc) == (in_a[tpc] && in_b[tpc]) &&
				gpupart_tpcset_has(& or, tpc) == (in_a[tpc] || in_b[tpc]) &&
				gpupart_tpcset_has(&andnot, tpc) == (in_a[tpc] && !in_b[tpc]);
		good &= gpupart_tpcset_count(&a) == nr;
		good &= gpupart_tpcset_subset(&a, &b) == subset;
		good &= gpupart_tpcset_intersects(&a, &b) == intersects;
		good &= gpupart_tpcset_equal(&a, &b) == equal;
		good &= gpupart_tpcset_empty(&a) == !nr;
		for (walked = 0, next = gpupart_tpcset_next(&a, 0); next >= 0;
		     next = gpupart_tpcset_next(&a, next + 1), walked++)
			good &= in_a[next];
		good &= walked == nr;
	}
	tap_ok(good, "algebra agrees with arrays of bools, 200 pairs of sets");

	a = gpupart_tpcset_first(66);
	tap_ok(gpupart_tpcset_count(&a) == 66 && gpupart_tpcset_has(&a, 65) &&
		       !gpupart_tpcset_has(&a, 66),
	       "first(66) is TPCs 0-65");
	b = gpupart_tpcset_first(1000);
	tap_ok(gpupart_tpcset_count(&b) == 256, "first(1000) is taken as 256");
	b = gpupart_tpcset_first(0);
	tap_ok(gpupart_tpcset_empty(&b) && gpupart_tpcset_next(&b, 0) == -1, "first(0) is empty");
	a = gpupart_tpcset_first(256);
	b = a;
	gpupart_tpcset_del(&b, 256);
	gpupart_tpcset_del(&b, UINT32_MAX);
	tap_ok(gpupart_tpcset_equal(&a, &b) && !gpupart_tpcset_has(&a, 256) &&
		       !gpupart_tpcset_has(&a, UINT32_MAX),
	       "TPC 256 and above change nothing");
	tap_ok(gpupart_tpcset_next(&a, 255) == 255 && gpupart_tpcset_next(&a, 256) == -1 &&
		       gpupart_tpcset_next(&a, UINT32_MAX) == -1,
	       "next at and after the end");
}

static const struct {
	const char *text, *canonical; /* NULL: refused */
	const char *words; /* the message must contain these words */
} lists[] = {
	{ "0", "0", NULL },
	{ "0,5,8-11", "0,5,8-11", NULL },
	{ "11,8-9,0", "0,8-9,11", NULL },
	{ "0-7,4-11", "0-11", NULL },
	{ "5,5,5", "5", NULL },
	{ "3-3", "3", NULL },
	{ "0-10:2", "0,2,4,6,8,10", NULL },
	{ "1-10:3", "1,4,7,10", NULL },
	{ "0-10:11", "0", NULL },
	{ "0-10:99999999999", "0", NULL },
	{ "0-255", "0-255", NULL },
	{ "255", "255", NULL },
	{ "007", "7", NULL },
	{ "62-65,126-129", "62-65,126-129", NULL },
	{ "", NULL, "empty" },
	{ ",", NULL, "before the first comma" },
	{ ",1", NULL, "before the first comma" },
	{ "1,", NULL, "after the last comma in \"1,\"" },
	{ "1,,2", NULL, "between two commas in \"1,,2\"" },
	{ "8-3", NULL, "\"8-3\": the range is reversed, write \"3-8\"" },
	{ "0,8-3,9", NULL, "\"8-3\": the range is reversed" },
	{ "256", NULL, "TPC 256 is too large: TPC numbers are 0-255" },
	{ "0-256", NULL, "TPC 256 is too large" },
	{ "99999999999999999999", NULL, "TPC 99999999999999999999 is too large" },
	{ "4294967296", NULL, "TPC 4294967296 is too large" },
	{ "4294967297", NULL, "TPC 4294967297 is too large" },
	{ "2147483648", NULL, "TPC 2147483648 is too large" },
	{ "0-18446744073709551616", NULL, "TPC 18446744073709551616 is too large" },
	{ "0-", NULL, "\"0-\": the range has no end" },
	{ "-3", NULL, "\"-3\": TPC numbers start at 0" },
	{ "-", NULL, "start at 0" },
	{ "0--3", NULL, "\"-\" in \"0--3\"" },
	{ "0-3-5", NULL, "\"-\" in \"0-3-5\"" },
	{ "0-10:0", NULL, "\"0-10:0\": a stride must be at least 1" },
	{ "0-10:", NULL, "no stride after the colon" },
	{ "0-10:-2", NULL, "\"-\" in \"0-10:-2\"" },
	{ "0-10:2:3", NULL, "\"0-10:2:3\": a stride must follow a range" },
	{ "5:2", NULL, "\"5:2\": a stride must follow a range" },
	{ ":2", NULL, "a stride must follow a range" },
	{ " 1", NULL, "\" 1\" has a blank" },
	{ "1 ", NULL, "\"1 \" has a blank" },
	{ "1, 2", NULL, "\" 2\" has a blank" },
	{ "1\n", NULL, "has a blank" },
	{ "1;2", NULL, "\";\" in \"1;2\"" },
	{ "0x3", NULL, "\"x\" in \"0x3\"" },
	{ "+1", NULL, "\"+\" in \"+1\"" },
	{ "1e3", NULL, "\"e\" in \"1e3\"" },
	{ "all", NULL, "\"a\" in \"all\"" },
	{ "\x1b[31m", NULL, "\"\\x1b\" in \"\\x1b[31m\"" },
	{ "\xff", NULL, "\"\\xff\"" },
};

static const struct {
	const char *text, *canonical, *words;
} masks[] = {
	{ "0", "0x0", NULL },
	{ "0x0", "0x0", NULL },
	{ "3f", "0x3f", NULL },
	{ "0x1FFFF", "0x1ffff", NULL },
	{ "0X3f", "0x3f", NULL },
	{ "0000000000000000000000000000000000000000000000000000000000000000000000003", "0x3",
	  NULL },
	{ "3,ffffffff", "0x3ffffffff", NULL },
	{ "0x3,00000000,00000001", "0x30000000000000001", NULL },
	{ "00000000,00000001", "0x1", NULL },
	{ "8000000000000000000000000000000000000000000000000000000000000000",
	  "0x8000000000000000000000000000000000000000000000000000000000000000", NULL },
	{ "10000000000000000000000000000000000000000000000000000000000000000", NULL,
	  "TPC 256 is too large" },
	{ "", NULL, "no digits" },
	{ "0x", NULL, "\"0x\" has no digits" },
	{ "0xg", NULL, "\"g\" in \"0xg\" is not a hexadecimal digit" },
	{ "0x0x1", NULL, "\"x\"" },
	{ " 1", NULL, "\" \" in \" 1\"" },
	{ "-1", NULL, "\"-\"" },
	{ "1,1", NULL, "groups of 8 digits" },
	{ ",11111111", NULL, "groups of 8 digits" },
	{ "11111111,", NULL, "groups of 8 digits" },
	{ "1,,11111111", NULL, "groups of 8 digits" },
	{ "111111111,11111111", NULL, "groups of 8 digits" },
};

static void try_text(const char *text, const char *canonical, const char *words,
		     int (*parse)(struct gpupart *, const char *, struct gpupart_tpcset *),
		     int (*format)(const struct gpupart_tpcset *, char *, size_t))
{
	struct gpupart_tpcset set, again, before;
	char written[GPUPART_TPCSET_STRLEN] = "?";
	int err;

	memset(&set, 0xa5, sizeof(set));
	before = set;
	err = parse(gp, text, &set);
	if (!canonical) {
		tap_ok(err == -EINVAL && strstr(gpupart_error(gp), words) &&
			       gpupart_tpcset_equal(&set, &before) &&
			       parse(NULL, text, &set) == -EINVAL,
		       "refused (%d): %s", err, gpupart_error(gp));
		return;
	}
	err = err ? err : format(&set, written, sizeof(written));
	tap_ok(err == (int)strlen(canonical) && !strcmp(written, canonical) &&
		       !parse(NULL, written, &again) && gpupart_tpcset_equal(&set, &again),
	       "\"%s\" is %s (%s)", text, written, canonical);
}

static void test_format(void)
{
	struct gpupart_tpcset set = { 0 };
	char text[GPUPART_TPCSET_STRLEN], exact[16];
	bool good = true;
	unsigned int tpc;
	size_t len;
	int longest = 0, nr;

	tap_ok(gpupart_tpcset_format_list(&set, text, sizeof(text)) == 0 && !text[0],
	       "the empty set is written as nothing");
	tap_ok(gpupart_tpcset_format_list(&set, text, 0) == -ENOSPC &&
		       gpupart_tpcset_format_list(&set, text, 1) == 0,
	       "its terminating 0 needs a byte");
	gpupart_tpcset_parse_list(NULL, "0-7,16", &set);
	for (len = 0; len < sizeof(exact); len++) {
		memset(exact, '!', sizeof(exact));
		nr = gpupart_tpcset_format_list(&set, exact, len);
		good &= len > 6 ? nr == 6 && !strcmp(exact, "0-7,16") : nr == -ENOSPC;
		good &= exact[len] == '!';
		memset(exact, '!', sizeof(exact));
		nr = gpupart_tpcset_format_hex(&set, exact, len);
		good &= len > 7 ? nr == 7 && !strcmp(exact, "0x100ff") : nr == -ENOSPC;
		good &= exact[len] == '!';
	}
	tap_ok(good,
	       "-ENOSPC exactly where the text does not fit, and nothing behind it is touched");
	/*
	 * Tests the sets with the longest text forms. One set has every second TPC, and another
	 * set has pairs of TPCs with a gap after each pair.
	 */
	set = gpupart_tpcset_first(0);
	for (tpc = 0; tpc < 256; tpc += 2)
		gpupart_tpcset_add(&set, tpc);
	longest = gpupart_tpcset_format_list(&set, text, sizeof(text));
	set = gpupart_tpcset_first(256);
	for (tpc = 2; tpc < 256; tpc += 3)
		gpupart_tpcset_del(&set, tpc);
	nr = gpupart_tpcset_format_list(&set, text, sizeof(text));
	tap_ok(longest > 0 && nr > 0, "the longest lists (%d, %d bytes) fit", longest, nr);
}

int main(void)
{
	char many[4096];
	struct gpupart_tpcset set;
	unsigned int i;

	gpupart_open(&gp);
	test_algebra();
	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		try_text(lists[i].text, lists[i].canonical, lists[i].words,
			 gpupart_tpcset_parse_list, gpupart_tpcset_format_list);
	for (i = 0; i < sizeof(masks) / sizeof(masks[0]); i++)
		try_text(masks[i].text, masks[i].canonical, masks[i].words,
			 gpupart_tpcset_parse_hex, gpupart_tpcset_format_hex);
	tap_ok(gpupart_tpcset_parse_list(gp, NULL, &set) == -EINVAL &&
		       strstr(gpupart_error(gp),
			      "list of TPCs is missing"), "no list: %s", gpupart_error(gp));
	tap_ok(gpupart_tpcset_parse_hex(gp, NULL, &set) == -EINVAL &&
		       strstr(gpupart_error(gp),

			      "mask of TPCs is missing"), "no mask: %s", gpupart_error(gp));
	memset(many, '9', sizeof(many) - 1);
	many[sizeof(many) - 1] = 0;
	tap_ok(gpupart_tpcset_parse_list(gp, many, &set) == -EINVAL &&
		       strlen(gpupart_error(gp)) < 120,
	       "4095 digits: %s", gpupart_error(gp));
	memset(many, 0x01, sizeof(many) - 1);
	tap_ok(gpupart_tpcset_parse_list(gp, many, &set) == -EINVAL &&
		       strlen(gpupart_error(gp)) < 250,
	       "4095 control bytes: %s", gpupart_error(gp));
	test_format();
	gpupart_close(gp);
	return tap_done();
}
