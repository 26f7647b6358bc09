# SPDX-License-Identifier: MIT
"""picture.py RECORD SVG: draws the pods of a run of cluster.sh over time, one row for each TPC.

RECORD is the record.json of KEEP=FOLDER: observations from outside, ten times per second."""
import json
import os
import sys

from peer import tpcs

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../scripts"))
import palette  # noqa: E402

record = json.load(open(sys.argv[1]))
colours = palette.TENANTS
gpus = sorted({span[0] for span in record["spans"].values()})
first = min(span[2] for span in record["spans"].values())
last = max(span[3] for span in record["spans"].values())
LEFT, TOP, ROW, ROWS, WIDTH, GAP = 70, 46, 4, 66, 1100, 34
height = TOP + len(gpus) * (ROWS * ROW + GAP) + 30


def x(t):
    return LEFT + (t - first) / (last - first) * WIDTH


title = "%d containers on two simulated GPUs: the TPCs of each one's processes"
title %= len(record["spans"])
out = palette.begin(LEFT + WIDTH + 20, height, title) + [
    '<text x="%d" y="18" font-size="14">%s</text>' % (LEFT, title),
    '<text x="%d" y="35" fill="%s">dashed line: kubelet was killed; dotted line: the plugin was'
    " killed</text>" % (LEFT, palette.NOTE),
]
for g, gpu in enumerate(gpus):
    top = TOP + g * (ROWS * ROW + GAP)
    out.append(
        '<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>'
        % (LEFT, top, WIDTH, ROWS * ROW, palette.BAND)
    )
    for t, words in (0, "TPC 0"), (65, "TPC 65"):
        out.append(
            '<text x="%d" y="%d" text-anchor="end">%s</text>' % (LEFT - 6, top + t * ROW + 6, words)
        )
    out.append('<text x="%d" y="%d">GPU %s</text>' % (LEFT, top + ROWS * ROW + 14, gpu))
    spans = sorted(record["spans"].values(), key=lambda span: span[2])
    for n, (of, text, begin, end) in enumerate(spans):
        rows = sorted(tpcs(text)) if of == gpu else []
        while rows:
            size = 1
            while size < len(rows) and rows[size] == rows[0] + size:
                size += 1
            # A pod that was seen once lasted a tenth of a second.
            out.append(
                '<rect x="%.1f" y="%d" width="%.1f" height="%.1f" fill="%s"/>'
                % (
                    x(begin),
                    top + rows[0] * ROW,
                    max(0.5, x(end + 0.1) - x(begin)),
                    size * ROW - 0.4,
                    colours[n % len(colours)],
                )
            )
            del rows[:size]
bottom = height - 30
for when, victim in record["kills"]:
    out.append(
        '<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="%s" stroke-dasharray="%s"/>'
        % (x(when), x(when), TOP - 4, bottom - 18, palette.INK,
           "6 3" if victim == "kubelet" else "1 3")
    )
for seconds in range(0, int(last - first) + 1, 60):
    out.append(
        '<text x="%.1f" y="%d" text-anchor="middle">%d s</text>'
        % (x(first + seconds), bottom, seconds)
    )
out.append("</svg>")
with open(sys.argv[2], "w") as file:
    file.write("\n".join(out) + "\n")
