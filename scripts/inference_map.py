#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Creates a map of the runs of share/examples/engine/run.py: scripts/inference_map.py RUNS FOLDER

RUNS is its JSON lines file. Writes map.json and map.svg to FOLDER and prints the tables of a page.
Intervals are 95 % confidence intervals over seeds: Student's t of the seeds' values, or for two
ways of the differences at equal seeds, which have equal requests. A point is small if it has fewer
than three seeds or 100 counted requests. If a way was run with several chunk sizes, the best of
those with most seeds is compared with the other ways. A way that could not run as its name says
is marked "fallback" and is not compared. Tables and panels name only the prompt and the rate of a
point. So runs that differ in anything else, for example in an objective, need separate files.
"""
import html
import itertools
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)),
                                "../share/examples/engine"))
import palette  # noqa: E402
from policy import MACHINE, WAYS  # noqa: E402

ROW = ("prompt", "rate", "setting", "ttft", "tbt", "seconds", *MACHINE)
PLACE = (*ROW, "warm", "drain")     # equal for all rows of a map, so its rows do not have them
PARTED = ("green", "gpupart-fixed", "gpupart")
# Two-sided 95 % quantiles of Student's t, by degrees of freedom.
STUDENT = (0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
COLOURS = palette.TENANTS


def mean(values):
    return sum(values) / len(values)


def interval(values):
    """The interval of the mean of @values, one for each seed; None for a single value."""
    if len(values) < 2:
        return None
    middle, nr = mean(values), len(values)
    spread = (sum((v - middle) ** 2 for v in values) / (nr - 1)) ** 0.5
    half = STUDENT[min(nr - 1, len(STUDENT) - 1)] * spread / nr ** 0.5
    return middle - half, middle + half


def compare(a, b):
    """The difference of goodputs @a and @b by seed; None without a common seed."""
    seeds = sorted(a.keys() & b.keys())
    if not seeds:
        return None
    low, high = interval([a[s] - b[s] for s in seeds]) or (None, None)
    of_b = mean([b[s] for s in seeds])
    return {"difference": mean([a[s] - b[s] for s in seeds]), "low": low, "high": high,
            "ratio": mean([a[s] for s in seeds]) / of_b if of_b else None, "seeds": seeds,
            "significant": low is not None and (low > 0 or high < 0)}


def verdict(by_seed):
    """The criteria for the engine at one place of the map."""
    def better(a, b):
        got = compare(by_seed[a], by_seed[b]) if a in by_seed and b in by_seed else None
        return bool(got and got["significant"] and got["difference"] > 0)

    def best(ways):
        return max((mean(list(by_seed[w].values())) for w in ways if w in by_seed), default=None)

    def ratio(other):
        ours, theirs = best(("gpupart-fixed", "gpupart")), best((other,))
        return ours / theirs if ours is not None and theirs else None
    return {"parted_better": [w for w in PARTED if better(w, "chunked")],
            "to_chunked": ratio("chunked"), "to_green": ratio("green"),
            "gpupart_below": [w for w in WAYS if w != "gpupart" and better(w, "gpupart")]}


def with_chunk(run):
    """@run with the chunk size separate from the rest of the setting."""
    setting, _, chunk = run.get("setting", "").partition(" chunk ")
    return {**run, "setting": setting, "chunk": chunk}


def goodput_of(run):
    """Its last second may be a part of one."""
    return sum(run["met_by_second"]) / seconds_of(run)


def seconds_of(run):
    return run.get("seconds") or len(run["met_by_second"])


def best_chunk(runs):
    """The runs with the chunk size at which most requests met the objectives. Ignores chunk sizes
    with fewer seeds than others."""
    by_chunk = {}
    for run in runs:
        by_chunk.setdefault(run["chunk"], []).append(run)
    return max(by_chunk.values(), key=lambda of: (len(of), mean([goodput_of(run) for run in of])))


def make_map(lines):
    """Converts the lines of a file to points (over all seeds), pairs of ways, and verdicts."""
    lines = list(lines)
    checks = [line["check"] for line in lines if "check" in line]
    made = {"schema": "gpupart/1", "valid": False, "checks": checks, "points": [], "pairs": [],
            "verdicts": [], "ready": [line["ready"] for line in lines if "ready" in line],
            "failed": [line for line in lines if "error" in line]}

    def place(run):
        return [run.get(name) for name in PLACE]
    runs = sorted((with_chunk(line) for line in lines if "met_by_second" in line),
                  key=lambda run: str(place(run)))
    for where, here in itertools.groupby(runs, place):
        where, here, by_seed = dict(zip(ROW, where)), list(here), {}
        parts = [c["part"] for c in checks if all(c.get(n) == where[n] for n in MACHINE)]
        for way in [w for w in WAYS if any(run["way"] == w for run in here)]:
            of = best_chunk([run for run in here if run["way"] == way])
            goodput = by_seed[way] = {run["seed"]: goodput_of(run) for run in of}
            counted = sum(round(run["offered"] * seconds_of(run)) for run in of)
            low, high = interval(list(goodput.values())) or (None, None)
            point = {**where, "way": way, "chunk": of[0]["chunk"],
                     "goodput": mean(list(goodput.values())), "low": low, "high": high,
                     "by_seed": goodput, "seeds": sorted(goodput),
                     "offered": mean([run["offered"] for run in of]), "counted": counted,
                     "small": len(goodput) < 3 or counted < 100,
                     "valid": min(parts, default=0.0) >= 0.7,
                     "fallback": sorted({run["why"] for run in of if run.get("why")})}
            for name in ("ttft_p50", "ttft_p99", "tbt_p50", "tbt_p99"):
                values = [run[name] for run in of if run.get(name) is not None]
                point[name] = mean(values) if values else None
            made["points"].append(point)
            if point["fallback"]:
                del by_seed[way]
        for a, b in itertools.combinations(reversed(list(by_seed)), 2):
            both = compare(by_seed[a], by_seed[b])
            made["pairs"].append({**where, "a": a, "b": b, **(both or {})})
        made["verdicts"].append({**where, **verdict(by_seed)})
    for name in ("points", "pairs", "verdicts"):
        made[name].sort(key=lambda row: (row["prompt"], row["rate"]))
    made["valid"] = bool(made["points"]) and all(p["valid"] for p in made["points"])
    return made


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def tables(made):
    """Markdown tables of the points and the criteria."""
    yield "| prompt | rate | " + " | ".join(("offered", *WAYS)) + " |"
    yield "|" + "---|" * (3 + len(WAYS))
    for (prompt, rate, *_), here in itertools.groupby(
            made["points"], lambda p: tuple(p[name] for name in ROW)):
        of = {p["way"]: p for p in here}
        cells = [f"{number(p['goodput'])} ({number(p['low'])} to {number(p['high'])})"
                 f"{' small' if p['small'] else ''}{' fallback' if p['fallback'] else ''}"
                 if p else "" for p in map(of.get, WAYS)]
        offered = mean([p["offered"] for p in of.values()])
        yield f"| {prompt:g} | {rate:g} | {offered:.1f} | " + " | ".join(cells) + " |"
    yield ""
    yield ("| prompt | rate | parted ways significantly above chunked | gpupart's best / chunked "
           "| / green | significantly above gpupart |")
    yield "|---|---|---|---|---|---|"
    for v in made["verdicts"]:
        yield (f"| {v['prompt']:g} | {v['rate']:g} | {', '.join(v['parted_better']) or 'none'} | "
               f"{number(v['to_chunked'])} | {number(v['to_green'])} | "
               f"{', '.join(v['gpupart_below']) or 'none'} |")


def draw(made):
    """Goodput over arrival rate: a panel for each prompt length, a line for each way."""
    points = made["points"]
    panels = sorted({p["prompt"] for p in points})
    width, height, top = max(380, 920 // max(1, len(panels))), 280, 94
    xmax = max((p["rate"] for p in points), default=1) * 1.08
    ymax = max((max(p["goodput"], p["offered"], p["high"] or 0) for p in points), default=1) * 1.05
    title = "Requests per second that meet both objectives"
    out = palette.begin(max(width * len(panels) + 20, 940), height + top + 90, title)

    def text(x, y, words, more=""):
        out.append(f'<text x="{x:.1f}" y="{y:.1f}" {more}>{html.escape(words)}</text>')

    def line(places, colour, more=""):
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        out.append(f'<path d="M{path}" stroke="{colour}" fill="none" {more}/>')

    def thick(places, i):       # a dark outline around a light colour
        line(places, palette.INK, 'stroke-width="2.8"')
        line(places, COLOURS[i], 'stroke-width="1.8"')
    text(16, 26, title, 'font-size="15" font-weight="bold"')
    place = 16
    for i, way in enumerate(WAYS):
        if not any(p["way"] == way for p in points):
            continue
        out.append(f'<rect x="{place}" y="40" width="24" height="12" fill="{COLOURS[i]}" '
                   f'stroke="{palette.INK}" stroke-width="0.5"/>{palette.tag(place + 12, 46, i)}')
        text(place + 30, 50, way)
        place += 46 + 7 * len(way)
    for n, prompt in enumerate(panels):
        def at(rate, value, left=50 + n * width):
            return left + rate / xmax * (width - 60), top + height - value / ymax * height
        here = [p for p in points if p["prompt"] == prompt]
        for value in range(0, int(ymax) + 1, max(1, round(ymax / 6))):
            x, y = at(0, value)
            line((at(0, value), at(xmax, value)), palette.EDGE, 'stroke-width="0.5"')
            text(x - 6, y + 4, f"{value}", 'text-anchor="end"')
        for rate in sorted({p["rate"] for p in here}):
            x, y = at(rate, 0)
            line((at(rate, 0), at(rate, ymax)), palette.EDGE,
                 'stroke-width="0.5" stroke-dasharray="2 3"')
            text(x, y + 18, f"{rate:g}", 'text-anchor="middle"')
        text(16 + n * width, 80, f"requests per second, prompts of {prompt:g} tokens at the median",
             'font-weight="bold"')
        text(at(xmax / 2, 0)[0], top + height + 40, "arrival rate, requests per second",
             'text-anchor="middle"')
        offered = sorted({0: 0, **{p["rate"]: p["offered"] for p in here}}.items())
        line([at(*o) for o in offered], palette.EDGE, 'stroke-dasharray="4 4"')
        tags = []
        for i, way in enumerate(WAYS):
            of = sorted((p for p in here if p["way"] == way), key=lambda p: p["rate"])
            aside = (i - 2.5) * 13      # letters and bars side by side
            places = [at(p["rate"], p["goodput"]) for p in of]
            places = [(x + aside, y) for x, y in places]
            for p, (x, y) in zip(of, places):
                if p["low"] is not None:
                    thick([(x, at(0, max(0.0, p["low"]))[1]), (x, at(0, p["high"])[1])], i)
                tags.append(palette.tag(x, y, i, p["small"] or not p["valid"]))
            if len(places) > 1:
                thick(places, i)
        out += tags
    text(16, top + height + 64, "bars: 95 % intervals over seeds, cut off at 0; dashed: all "
         "requests that arrived; hollow: fewer than 3 seeds or 100 requests,")
    text(16, top + height + 78, "or decode alone read less than 70 % of the bandwidth of a copy")
    return "\n".join([*out, "</svg>"]) + "\n"


def read(runs):
    """The lines of a file. Reports and ignores other lines, such as the last of a killed run."""
    lines = []
    try:
        with open(runs, encoding="utf-8", errors="replace") as file:
            for nr, line in enumerate(file, 1):
                try:
                    lines.append(dict(json.loads(line)))
                except (TypeError, ValueError):
                    print(f"{runs}:{nr}: ignored: {line[:60]!r}", file=sys.stderr)
    except OSError as error:
        sys.exit(f"{runs}: {error.strerror}")
    return lines


def check_alike(file, lines):
    """Ends the program if runs differ in something that tables and panels do not name."""
    runs = [with_chunk(line) for line in lines if "met_by_second" in line]
    for name in PLACE[2:]:
        values = sorted({str(run.get(name)) for run in runs})
        if len(values) > 1:
            sys.exit(f"{file}: runs with {name} {' and '.join(values)}: put each of these into a "
                     "separate file")


def main(runs, folder):
    lines = read(runs)
    check_alike(runs, lines)
    made = make_map(lines)
    if not made["points"]:
        sys.exit(f"{runs}: there are no runs in this file")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "map.json"), "w", encoding="utf-8") as file:
        json.dump(made, file, indent=1)
        file.write("\n")
    with open(os.path.join(folder, "map.svg"), "w", encoding="utf-8") as file:
        file.write(draw(made))
    print("\n".join(tables(made)))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
