# SPDX-License-Identifier: MIT
"""The typeface and colours of pictures that scripts draw. They are read from cli/draw/palette.[hc],
so that all pictures agree."""
import pathlib
import re

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_HEADER = (_ROOT / "cli/draw/palette.h").read_text(encoding="utf-8")
_SOURCE = (_ROOT / "cli/draw/palette.c").read_text(encoding="utf-8")
_NAMES = dict(re.findall(r'#define PALETTE_(\w+)\s+"([^"]*)"', _HEADER))

PAPER, BAND, EDGE, NOTE, INK = (_NAMES[name] for name in ("PAPER", "BAND", "EDGE", "NOTE", "INK"))
TENANTS, _INKS = zip(*re.findall(r'\{ "(#[0-9a-f]{6})", "(\w+)"', _SOURCE))


def _style():
    """The rules for a dark page."""
    lines = re.search(r"head\[\] =\n(.*?</style>)", _SOURCE, re.S)[1]
    for name, value in _NAMES.items():
        lines = lines.replace(f'" PALETTE_{name} "', value)
    return "".join(re.findall(r'^\t"(.*?)(?:\\n)?"?$', lines, re.M)).replace('\\"', '"')


def begin(width, height, title):
    """The first lines of a picture: its size, its title, and the rules for a dark page."""
    return [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
            f'viewBox="0 0 {width:g} {height:g}" font-family="{_NAMES["FONT"]}" font-size="11" '
            f'role="img">', f"<title>{title}</title>", _style(),
            f'<rect width="100%" height="100%" fill="{PAPER}"/>']


def tag(x, y, nr, hollow=False):
    """The letter of series @nr. The box behind it has the series' colour, or only its edge has."""
    fill, ink = (PAPER, INK) if hollow else (TENANTS[nr], _INKS[nr])
    return (f'<rect x="{x - 5.4:.1f}" y="{y - 6:.1f}" width="10.7" height="12" rx="2" '
            f'fill="{fill}" stroke="{TENANTS[nr]}"/><text x="{x:.1f}" y="{y + 4:.1f}" '
            f'text-anchor="middle" font-weight="bold" fill="{ink}">{chr(65 + nr)}</text>')
