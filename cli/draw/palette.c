// SPDX-License-Identifier: MIT
/* The font and the colours of all pictures, for light pages and for dark pages. */
#include "cli/draw/palette.h"

/*
 * The text colour of a tenant is a named colour. These rules do not match named colours. So the
 * text colour is the same on a dark page.
 */
static const char head[] =
	"<style>@media (prefers-color-scheme:dark){"
	"text:not([fill]),[fill=\"" PALETTE_INK "\"]{fill:#e6e6e6}"
	"[stroke=\"" PALETTE_INK "\"]{stroke:#e6e6e6}"
	"[fill=\"" PALETTE_NOTE "\"]{fill:#b4b4b4}"
	"[stroke=\"" PALETTE_EDGE "\"]{stroke:#8a8f98}"
	"[fill=\"" PALETTE_PAPER "\"]{fill:#16181c}"
	"[stroke=\"" PALETTE_PAPER "\"]{stroke:#16181c}"
	"[fill=\"" PALETTE_BAND "\"]{fill:#23262c}"
	"[fill=\"" PALETTE_BOX "\"]{fill:#333740}"
	"[fill=\"#004488\"]{fill:#2a6fc0}[stroke=\"#004488\"]{stroke:#2a6fc0}"
	"[fill=\"#222222\"]{fill:#5c5c5c}[stroke=\"#222222\"]{stroke:#8c8c8c}"
	"}</style>\n"
	"<pattern id=\"off\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\">"
	"<path fill=\"" PALETTE_PAPER "\" d=\"M0 0H7V7H0z\"/><path stroke=\"" PALETTE_EDGE "\" "
	"d=\"M-1 8L8 -1M-1 1L1 -1M6 8L8 6\"/></pattern>\n";

/*
 * Six of Paul Tol's "medium contrast" colours, a lighter colour, and a darker colour. Colour-blind
 * people can distinguish the six colours (personal.sron.nl/~pault). In grey, the six colours also
 * differ. Consecutive colours in this list have very different lightness.
 */
static const struct palette_colour tenants[PALETTE_TENANTS] = {
	{ "#004488", "white", 24, 231 }, { "#eecc66", "black", 221, 16 },
	{ "#994455", "white", 95, 231 }, { "#6699cc", "black", 68, 16 },
	{ "#bbeedd", "black", 158, 16 }, { "#997700", "black", 136, 16 },
	{ "#ee99aa", "black", 217, 16 }, { "#222222", "white", 235, 231 },
};

const struct palette_colour *palette_tenant(unsigned int tenant)
{
	return &tenants[tenant % PALETTE_TENANTS];
}

void palette_write(FILE *file, unsigned int nr_fills)
{
	static const char *const lines[] = {
		"", "M-1 7L7 -1M-1 1L1 -1M5 7L7 5", "M-1 -1L7 7M-1 5L1 7M5 -1L7 1", "M3 0V6",
		"M0 0L6 6M0 6L6 0",
	};

	fputs(head, file);
	for (unsigned int i = 0; i < nr_fills && i < PALETTE_FILLS; i++)
		fprintf(file, "<pattern id=\"k%u\" width=\"6\" height=\"6\" "
			"patternUnits=\"userSpaceOnUse\"><path fill=\"%s\" d=\"M0 0H6V6H0z\"/>"
			"<path stroke=\"%s\" stroke-width=\"0.7\" "
			"stroke-opacity=\"0.75\" d=\"%s\"/></pattern>\n", i,
			palette_tenant(i)->fill, palette_tenant(i)->ink,
			lines[i / PALETTE_TENANTS]);
}

const char *palette_fill(unsigned int tenant, char fill[16])
{
	snprintf(fill, 16, "url(#k%u)", tenant % PALETTE_FILLS);
	return fill;
}
