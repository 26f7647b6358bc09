# SPDX-License-Identifier: MIT
"""Compares a drawing of gpupart sim with its JSON and prints the differences.

sim_picture.py RUN.json PICTURE.svg [sums]: for a run with one drawing, every block once, on an SM
of its launch, at its times, without overlap; with "sums" no single blocks.
"""
import collections
import json
import re
import sys
import xml.etree.ElementTree as ET

run = json.load(open(sys.argv[1]))["runs"][0]
root = ET.parse(sys.argv[2]).getroot()
svg = "{http://www.w3.org/2000/svg}"
words = " ".join(t.text or "" for t in root.iter(svg + "text"))


def wrong(what, *details):
    print(what, *details)
    sys.exit(1)


def members(text):
    for piece in text.split(","):
        first, _, last = piece.partition("-")
        yield from range(int(first), int(last or first) + 1)


if "(simulated)" not in words or "time in " not in words:
    wrong("simulated, or no axis")
for kernel in run["kernels"]:
    if kernel["launches"] and kernel["name"] not in words:
        wrong("no name in the legend", kernel["name"])
swatches = [r for r in root.iter(svg + "rect") if r.get("class") == "tenant"]
kinds = [k for k in run["kernels"] if k["launches"]] + ([1] if run["copies"]["launches"] else [])
if len(swatches) != len(kinds):
    wrong("swatches", len(swatches), len(kinds))
boxes = [r for r in root.iter(svg + "rect") if r.get("class") == "block"]
sums = [r for r in root.iter(svg + "rect") if r.get("class") == "sum"]
if len(sys.argv) > 3:
    if boxes or not sums or "too many" not in words:
        wrong("sums", len(boxes), len(sums))
    sys.exit(0)

title = re.compile(r"^(?:SM (\d+), TPC \d+|copy engine (\d+)): (.*), launch (\d+), block (\d+): "
                   r"(\d+) to (\d+) ns$")
seen = collections.defaultdict(set)
used = collections.defaultdict(set)
scale = None
by_row = collections.defaultdict(list)
for box in boxes:
    sm, engine, name, launch, block, start, end = title.match(box.find(svg + "title").text).groups()
    launch, block, start, end = int(launch), int(block), int(start), int(end)
    x, y, width, height = (float(box.get(k)) for k in ("x", "y", "width", "height"))
    if block in seen[launch]:
        wrong("twice", launch, block)
    seen[launch].add(block)
    if sm is not None:
        used[launch].add(int(sm))
    # Two distant boxes give the scale; all others must agree.
    if scale is None and start > run["end_ns"] / 2:
        scale = (x - 166) / start
    if scale and (abs(166 + start * scale - x) > 0.5 or
                  abs(max((end - start) * scale - 0.8, 0.6) - width) > 0.5):
        wrong("not where its times are", box.attrib, start, end)
    by_row[(box.get("data-gpu"), sm, engine)].append((x, y, x + width, y + height))
for row, rects in by_row.items():
    rects.sort()
    for i, a in enumerate(rects):
        for b in rects[i + 1:]:
            if b[0] >= a[2] - 0.61:
                break
            if b[1] < a[3] - 0.05 and a[1] < b[3] - 0.05:
                wrong("one over the other", row, a, b)
for launch in run["launches"]:
    nr = launch["launch"]
    if len(seen[nr]) != (launch["blocks"] or 1):
        wrong("blocks of a launch", nr, len(seen[nr]), launch["blocks"])
    if launch["kernel"] and used[nr] != set(members(launch["sms"])):
        wrong("SMs of a launch", nr, used[nr], launch["sms"])
if set(seen) != {launch["launch"] for launch in run["launches"]}:
    wrong("launches")
