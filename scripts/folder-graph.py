#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Dependencies between folders of lib/, cli/, sim/, slurm/ and kubernetes/, by undefined symbols.

folder-graph.py [-g]: prints one line for each fault: a cycle between folders; a dependency in lib/
that goes up or sideways in LAYERS (also by includes, since macros and types leave no symbol); a
cycle of files in a folder that is not in CIRCLES. -g prints the graph instead. Run it at the top of
a built tree.
"""
import glob
import os
import re
import subprocess
import sys

# The layers from top to bottom. Folders in the same row do not use each other.
LAYERS = [
    ["inject"],
    ["memory", "stat", "verify", "smctrl", "nvml"],
    ["confine"],
    ["records"],
    ["state", "ledger", "driver"],
    ["tmd", "plan"],
    ["topo"],
    ["core"],
]
ROW = {"lib/" + folder: n for n, row in enumerate(LAYERS) for folder in row}

# The allowed cycles of files in one folder. There are at most three cycles, and each cycle has a
# reason.
CIRCLES = {
    "cli/sim": "a scenario has programs, whose steps name its kernels, sets and streams",
    "sim/cuda": "a context owns streams and memory, which wait for it and are charged to it",
    "sim/pipe": "stages of one model notify each other directly",
}

# The programs with which an object is linked. Symbols are searched in these programs, in this
# order.
LINKED = {
    "cli": ["cli", "sim", "slurm", "lib"],
    "lib": ["lib"],
    "lib/inject": ["lib/inject", "lib"],
    "lib/nvml": ["lib/nvml", "lib"],
    "lib/smctrl": ["lib/smctrl", "lib"],
    "sim": ["sim", "lib"],
    "slurm": ["slurm", "lib"],
    "kubernetes": ["kubernetes", "cli", "slurm", "lib"],
}


def program(path):
    folder = os.path.dirname(path)
    return folder if folder in LINKED else path.split("/")[0]


def symbol_arrows():
    """Maps (file, needed file) to symbols. Objects whose source was deleted are ignored."""
    needed, homes, arrows = {}, {}, {}
    for path in sorted(glob.glob("build/obj/**/*.o", recursive=True)):
        name = path[len("build/obj/") : -2]
        if program(name) not in LINKED or not os.path.exists(name + ".c"):
            continue
        out = subprocess.run(["nm", "-g", path], text=True, capture_output=True, check=True)
        for line in out.stdout.splitlines():
            kind, symbol = line.split()[-2:]
            if kind in "Uvw":
                needed.setdefault(name, set()).add(symbol)
            else:
                homes.setdefault((program(name), symbol), []).append(name)
    for name, symbols in needed.items():
        for symbol in symbols:
            parts = LINKED[program(name)]
            found = next((homes[p, symbol] for p in parts if (p, symbol) in homes), [])
            # If several programs of one folder define the same name, use the nearest definition.
            near = [h for h in found if os.path.dirname(h) == os.path.dirname(name)] or found
            if near and near[0] != name:
                arrows.setdefault((name, near[0]), set()).add(symbol)
    return arrows


def include_arrows():
    """The same for the library's includes."""
    arrows = {}
    for path in sorted(glob.glob("lib/*/*.[ch]")):
        with open(path, encoding="utf-8") as source:
            for header in re.findall(r'^#include "(lib/[^"]+)\.h"', source.read(), re.M):
                arrows.setdefault((path, header + ".h"), set()).add("its header")
    return arrows


def circles(edges):
    """Lists of nodes that reach each other (strongly connected)."""
    reach = {}
    for start in edges:
        todo, seen = [start], set()
        while todo:
            for near in edges.get(todo.pop(), ()):
                if near not in seen:
                    seen.add(near)
                    todo.append(near)
        reach[start] = seen
    found = []
    for node in sorted(reach):
        if node in reach[node] and not any(node in part for part in found):
            found.append(sorted(n for n in reach[node] if node in reach.get(n, ())))
    return found


def text(arrows, pairs):
    return "; ".join("%s needs %s for %s" % (a, b, " ".join(sorted(arrows[a, b])[:3]))
                     for a, b in sorted(pairs))


def faults(arrows, includes, folders):
    for part in circles(folders):
        inner = [(a, b) for a, b in arrows if os.path.dirname(a) != os.path.dirname(b)
                 and os.path.dirname(a) in part and os.path.dirname(b) in part]
        yield "a cycle of the folders %s: %s" % (" ".join(part), text(arrows, inner))
    for some in (arrows, includes):
        for a, b in sorted(some):
            up, down = os.path.dirname(a), os.path.dirname(b)
            if up in ROW and down in ROW and up != down and ROW[up] >= ROW[down]:
                yield text(some, [(a, b)])
    for folder in sorted({os.path.dirname(a) for a, _ in arrows}):
        edges = {}
        for a, b in arrows:
            if os.path.dirname(a) == folder == os.path.dirname(b):
                edges.setdefault(a, set()).add(b)
        parts = circles(edges)
        if folder in CIRCLES and not parts:
            yield "%s has no cycle: remove its reason from CIRCLES" % folder
        for part in parts if folder not in CIRCLES else []:
            inner = [(a, b) for a, b in arrows if a in part and b in part]
            yield "a cycle of files: " + text(arrows, inner)
    if len(CIRCLES) > 3:
        yield "CIRCLES names %d folders: three at most" % len(CIRCLES)


def main():
    arrows, folders = symbol_arrows(), {}
    for a, b in arrows:
        folders.setdefault(os.path.dirname(a), set())
        if os.path.dirname(a) != os.path.dirname(b):
            folders[os.path.dirname(a)].add(os.path.dirname(b))
    if sys.argv[1:] == ["-g"]:
        for folder in sorted(folders, key=lambda f: (ROW.get(f, -1), f)):
            print("%-14s -> %s" % (folder, " ".join(sorted(folders[folder])) or "nothing"))
        for folder, reason in CIRCLES.items():
            print("%-14s has a cycle: %s" % (folder, reason))
    else:
        for fault in faults(arrows, include_arrows(), folders):
            print(fault)


main()
