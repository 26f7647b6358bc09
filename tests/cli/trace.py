# SPDX-License-Identifier: MIT
"""Compares the JSON of gpupart trace with that of gpupart topology and prints the errors of the
first.

trace.py TRACE.json TOPOLOGY.json [TRACE.svg]: with the last, the drawing has the same blocks, each
at its times.
"""
import json
import sys
import xml.etree.ElementTree as ET

trace = json.load(open(sys.argv[1]))
sms = {sm: t["tpc"] for t in json.load(open(sys.argv[2]))["tpcs"] for sm in t["smids"]}
blocks = trace["blocks"]


def members(text):
    for piece in text.split(","):
        first, _, last = piece.partition("-")
        yield from range(int(first), int(last or first) + 1)


def wrong(what, block=None):
    print(what, block or "")
    sys.exit(1)


sets = [set(members(s["set"]["list"])) for s in trace["sets"]]
if list(trace)[0] != "schema" or trace["schema"] != "gpupart/1" or trace["simulated"] is not True:
    wrong("schema, simulated")
want = [(s, n, b) for s, one in enumerate(trace["sets"]) for n in range(trace["launches"])
        for b in range(one["nr_blocks"])]
if [(b["set"], b["launch"], b["block"]) for b in blocks] != want:
    wrong("each block of each launch is there once, in order")
for b in blocks:
    if sms.get(b["smid"]) != b["tpc"]:
        wrong("the TPC is not the SM's", b)
    if b["tpc"] not in sets[b["set"]]:
        wrong("outside of its set", b)
    if not 0 <= b["start_ns"] < b["end_ns"] <= trace["span_ns"]:
        wrong("times", b)
    if trace["kernel"] == "timed" and b["end_ns"] - b["start_ns"] < trace["ns"]:
        wrong("shorter than asked for", b)
if min(b["start_ns"] for b in blocks) != 0 or max(b["end_ns"] for b in blocks) != trace["span_ns"]:
    wrong("the span is not the blocks'")
for i, one in enumerate(sets):
    if {b["tpc"] for b in blocks if b["set"] == i} - one:
        wrong("a set's TPCs")
    ends = [max(b["end_ns"] for b in blocks if (b["set"], b["launch"]) == (i, n))
            for n in range(trace["launches"])]
    starts = [min(b["start_ns"] for b in blocks if (b["set"], b["launch"]) == (i, n))
              for n in range(trace["launches"])]
    if any(s < e for s, e in zip(starts[1:], ends)):
        wrong("a launch began before the one before it on its stream ended")
for sm in sms:
    mine = sorted((b["start_ns"], b["end_ns"]) for b in blocks if b["smid"] == sm)
    if any(a[1] > b[0] for a, b in zip(mine, mine[1:])):
        wrong("two blocks at a time on SM %d" % sm)

if len(sys.argv) > 3:
    svg = "{http://www.w3.org/2000/svg}"
    root = ET.parse(sys.argv[3]).getroot()
    drawn = [e for e in root.iter(svg + "rect") if e.get("class") == "block"]
    if sorted((int(e.get("data-sm")), int(e.get("data-set"))) for e in drawn) != \
            sorted((b["smid"], b["set"]) for b in blocks):
        wrong("the drawing has other blocks")
    key = [(float(e.get("x")), float(e.get("width")), int(e.get("data-sm"))) for e in drawn]
    left, right = min(k[0] for k in key), max(k[0] + k[1] for k in key)
    scale = trace["span_ns"] / (right - left)
    for at, b in zip(sorted((k[2], k[0]) for k in key),
                     sorted((b["smid"], b["start_ns"]) for b in blocks)):
        if abs((at[1] - left) * scale - b[1]) > trace["span_ns"] / 200:
            wrong("drawn at another time", b)
    rows = {}
    for e in drawn:
        rows.setdefault(int(e.get("data-sm")), set()).add(e.get("y"))
    tops = [y for row in rows.values() for y in row]
    if len(tops) != len(set(tops)) or any(len(row) > 1 for row in rows.values()):
        wrong("an SM is not one row, or two SMs are")
print("good")
