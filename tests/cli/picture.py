# SPDX-License-Identifier: MIT
"""Reads an SVG of gpupart with an independent parser and prints its contents as KEY VALUE.

picture.py FILE.svg [TOPOLOGY.json CAPTURE]: with those two, their values are printed as
want-KEY VALUE. Shares no code with the drawing code.
"""
import json
import sys
import xml.etree.ElementTree as ET

NS = "{http://www.w3.org/2000/svg}"
root = ET.parse(sys.argv[1]).getroot()
assert root.tag == NS + "svg", root.tag
page = [float(v) for v in root.get("viewBox").split()]
assert page == [0, 0, float(root.get("width")), float(root.get("height"))], page


def of_class(tag, name):
    return [e for e in root.iter(NS + tag) if (e.get("class") or "").split(" ")[0] == name]


def columns(text):
    return sum(2 if ord(c) >= 0x1100 else 1 for c in text)


def text_box(e):
    """The box of a text in a monospace font, with the metrics of the widest common fonts."""
    size = float(e.get("font-size"))
    width = columns(e.text) * size * 0.6
    x, y = float(e.get("x")), float(e.get("y"))
    x -= {"middle": width / 2, "end": width}.get(e.get("text-anchor"), 0)
    return x, y - 0.72 * size, x + width, y + 0.2 * size


def overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def grey(fill):
    """The brightness of a colour, or of the background of a pattern."""
    below = [e[0].get("fill") for e in root.iter(NS + "pattern")
             if fill == "url(#%s)" % e.get("id")]
    colour = (below + [fill])[0]
    return sum(int(colour[i:i + 2], 16) * w for i, w in ((1, .299), (3, .587), (5, .114)))


def ranges(numbers):
    return ",".join(map(str, sorted(numbers)))


texts = [(e, text_box(e)) for e in root.iter(NS + "text")]
tpcs = [int(e.get("data-tpc")) for e in of_class("g", "tpc")]
tenants = [e.get("fill") for e in of_class("rect", "tenant")]
print("font", ",".join(sorted({e.get("font-family") for e in root.iter() if e.get("font-family")})))
print("tpcs", ranges(tpcs))
print("off", len(of_class("rect", "off")))
print("off-gpcs", len(of_class("rect", "off-gpc")))
print("gpcs", len(of_class("rect", "gpc")))
print("ugpus", len(of_class("rect", "ugpu")))
print("tenants", len(tenants))
greys = sorted(grey(c) for c in set(tenants) | {"#f4f4f4"})
print("grey-steps", min((int(b - a) for a, b in zip(greys, greys[1:])), default="none"))
fills = {}
for e in of_class("g", "tpc"):
    for r in e.findall(NS + "rect"):
        if r.get("class") == "fill":
            fills.setdefault(r.get("fill"), []).append(int(e.get("data-tpc")))
for colour in dict.fromkeys(tenants):
    print("fill", colour, ranges(fills.get(colour, [])))
print("cut", [e.text for e, b in texts
              if b[0] < 0 or b[1] < 0 or b[2] > page[2] or b[3] > page[3]][:3])
print("small", [e.text for e, b in texts if float(e.get("font-size")) < 9][:3])
rows = {}
for e, b in texts:
    for row in range(int(b[1]) // 50, int(b[3]) // 50 + 1):
        rows.setdefault(row, []).append((e.text, b))
print("overlap", [(s, t) for row in rows.values() for i, (s, a) in enumerate(row)
                  for t, b in row[i + 1:] if overlap(a, b)][:3])
# Text in a TPC's box stays inside it.
for e in of_class("g", "tpc"):
    box = [float(e.find(NS + "rect").get(k)) for k in ("x", "y")]
    right = max(float(r.get("x")) + float(r.get("width")) for r in e.findall(NS + "rect"))
    for t in e.findall(NS + "text"):
        if text_box(t)[0] < box[0] or text_box(t)[2] > right:
            print("outside", e.get("data-tpc"), t.text)

if len(sys.argv) > 2:
    topology = json.load(open(sys.argv[2]))
    print("want-tpcs", ranges(t["tpc"] for t in topology["tpcs"]))
    print("want-ugpus", topology["nr_ugpus"] or 0)
    print("want-gpcs", topology["nr_gpcs"])
    section, off, gpu = "", 0, topology["gpu"]
    present = []
    for line in open(sys.argv[3]):
        if line.startswith("["):
            section = line.strip()
        row = line.rstrip("\n").split("\t")
        if section == "[gpc-map]" and len(row) == 3 and row[2] != "-":
            present.append((int(row[0]), int(row[1], 16)))
    if gpu["max_tpcs_per_gpc"]:
        off = sum(gpu["max_tpcs_per_gpc"] - bin(p).count("1") for _, p in present)
    print("want-off", off)
    print("want-off-gpcs", gpu["max_gpcs"] - topology["nr_gpcs"] if gpu["max_gpcs"] else 0)
