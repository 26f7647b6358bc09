// SPDX-License-Identifier: MIT
/*
 * Extracts the qualified name from a mangled C++ name. See kernel_name.h. The grammar is in
 * itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling. The code skips template arguments. The
 * letters I and E are their opening and closing brackets.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/confine/kernel_name.h"

#define MAX_DEPTH 64

/*
 * Parses the name at @p. The text at @p begins with the length of the name. Sets *name and
 * returns the end of the name. If there is no name at @p, returns NULL.
 */
static const char *source_name(const char *p, const char **name, size_t *len)
{
	char *end;

	*len = strtoul(p, &end, 10);
	*name = end;
	return *len && strnlen(end, *len) == *len ? end + *len : NULL;
}

/* Skips a sequence number, such as the 3_ in A3_. */
static const char *past_number(const char *p)
{
	while (isdigit((unsigned char)*p) || isupper((unsigned char)*p))
		p++;
	return *p == '_' ? p + 1 : NULL;
}

/* Skips the rest of "S_", "S1_", "St", "Sa" and so on. */
static const char *past_substitution(const char *p)
{
	return islower((unsigned char)p[1]) ? p + 2 : past_number(p + 1);
}

/* Skips the value of a literal and the E after the value. */
static const char *past_value(const char *p)
{
	p += strcspn(p, "E");
	return *p ? p + 1 : NULL;
}

/*
 * Skips the template arguments at @p, including the E at their end. If the arguments have an
 * unknown form, returns NULL.
 */
static const char *past_arguments(const char *p)
{
	char open[MAX_DEPTH] = "I", *top = open;
	const char *name;
	size_t len;

	while (p && *p) {
		bool whole = true;	/* the current item ends after this token; an item is,
					 * for example, the type of a literal */

		if (isdigit((unsigned char)*p)) {
			p = source_name(p, &name, &len);
		} else if (*p == 'E') {
			p = *top == 'U' ? past_number(p + 1) : p + 1;
			if (top == open)
				return p;
			top--;
		} else if (*p == 'L' && p[1] == '_' && p[2] == 'Z') {
			whole = false;
			p += 3;
			*++top = 'Z';
		} else if (*p == 'L' && islower((unsigned char)p[1])) {
			p = past_value(p + 2);
		} else if (strchr("LINXJFZ", *p) || (*p == 'U' && p[1] == 'l')) {
			whole = false;
			*++top = *p;
			p += *p == 'U' ? 2 : 1;
		} else if (*p == 'S') {
			p = past_substitution(p);
		} else if (*p == 'T' || *p == 'A') {
			p = past_number(p + 1);
		} else if (*p == 'D' && p[1] == 'v') {
			p = past_number(p + 2);
		} else if (*p == 'D' && (p[1] == 't' || p[1] == 'T')) {
			whole = false;
			*++top = 'D';
			p += 2;
		} else if (*p == 'U' && p[1] == 't') {
			p = past_number(p + 2);
		} else if (islower((unsigned char)*p)) {
			p++;
		} else if (strchr("PROKVGCMD", *p)) {
			whole = false;
			p += *p == 'D' && p[1] ? 2 : 1;
		} else {
			return NULL;
		}
		if (p && whole && *top == 'L') {
			p = past_value(p);
			top--;
		}
		if (top == open + MAX_DEPTH - 1)
			return NULL;
	}
	return NULL;
}

/*
 * Parses "std" or a source name at @p. Stores the name in *part and returns the end of the name.
 * For any other text at @p, returns NULL.
 */
static const char *name_part(const char *p, const char **part, size_t *len)
{
	static const char anonymous[] = "(anonymous namespace)";

	if (p[0] == 'S' && p[1] == 't') {
		*part = "std";
		*len = 3;
		return p + 2;
	}
	if (*p == 'L')		/* has internal linkage */
		p++;
	if (!isdigit((unsigned char)*p))
		return NULL;
	p = source_name(p, part, len);
	if (p && *len >= 10 && !memcmp(*part, "_GLOBAL__N", 10)) {
		*part = anonymous;
		*len = sizeof(anonymous) - 1;
	}
	return p;
}

bool kernel_name_read(const char *mangled, char *name, size_t len)
{
	bool nested = !strncmp(mangled, "_ZN", 3), more = true;
	const char *p = mangled + (nested ? 3 : 2), *part;
	size_t used = 0, part_len;

	if (strncmp(mangled, "_Z", 2))
		return false;
	if (nested)
		p += strspn(p, "KVRO");
	while (more && p) {
		if (nested && *p == 'I' && used) {
			p = past_arguments(p + 1);
		} else {
			p = name_part(p, &part, &part_len);
			if (!p || used + part_len + 3 > len)
				return false;
			used += sprintf(name + used, "%s%.*s", used ? "::" : "", (int)part_len,
					part);
		}
		/* A name can be in the namespace std even if it is not nested. */
		more = nested ? p && *p != 'E' : used == 3 && p == mangled + 4;
	}
	return p;
}
