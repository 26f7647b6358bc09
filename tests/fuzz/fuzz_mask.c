// SPDX-License-Identifier: MIT
/*
 * Fuzz target: LIBSMCTRL_MASK. An accepted mask must consist of hexadecimal digits, and must not
 * be too long. Its bits must be the bits of these digits. For any other value, the library must
 * print a message of one line.
 */
#include <ctype.h>
/* The code that reads the variable is internal. */
#include "lib/smctrl/smctrl.c"
#include "tests/fuzz/fuzz.h"

static unsigned int said;

/*
 * libsmctrl writes messages to stderr with fputs(). The linker option --wrap replaces fputs() by
 * this function.
 */
int __wrap_fputs(const char *text, FILE *file);

int __wrap_fputs(const char *text, FILE *file)
{
	MUST(file == stderr && *text);
	said++;
	/* For any content of the variable, the message has one line. */
	MUST(strchr(text, '\n') == text + strlen(text) - 1);
	return 0;
}

/* Returns the digits of a mask without the prefix. If the text is not a mask, returns NULL. */
static const char *digits_of(const char *text)
{
	text += *text == '~';
	if (text[0] == '0' && tolower((unsigned char)text[1]) == 'x')
		text += 2;
	return *text && strspn(text, "0123456789abcdefABCDEF") == strlen(text) ? text : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mask cap, expected;
	char *text = fuzz_text(data, size);
	const char *digits = digits_of(text);
	uint128_t bits = 0;
	bool good;

	MUST(!setenv("LIBSMCTRL_MASK", text, 1));
	said = 0;
	good = cap_parse(&cap);
	while (digits && *digits == '0' && digits[1])
		digits++;
	MUST(good == (digits && strlen(digits) <= MASK_TPCS / 4));
	MUST(said == (*text && !good));
	if (good) {
		for (; *digits; digits++)
			bits = bits * 16 + (isdigit((unsigned char)*digits) ? *digits - '0' :
					    tolower((unsigned char)*digits) - 'a' + 10);
		expected = mask_of_128(*text == '~' ? ~bits : bits);
		MUST(!memcmp(&cap, &expected, sizeof(cap)));
	}
	free(text);
	return 0;
}
