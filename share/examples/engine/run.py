#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the engine over loads and ways, all in one process, into a JSON lines file.

run.py --slice            one prompt length, all ways, in 8 minutes on an H200
run.py --map              the whole map
run.py --check-decode     decode alone against the bandwidth of DRAM
Called again it does what is not in the file yet.
"""
import argparse
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import policy

OPTIONS = (("out", "runs.jsonl", "the JSON lines file to continue"),
           ("ways", ",".join(policy.WAYS), None), ("rates", "", "requests a second"),
           ("prompts", "", "medians, tokens"), ("seeds", "1,2,3", "numbers"),
           ("time", 0.0, "seconds: begin nothing that would end later"),
           ("seconds", 0.0, "of counted arrivals"), ("warm", 0.0, "s of arrivals before those"),
           ("drain", 0.0, "s after them, more than the goal of a first token"),
           ("ttft", 1.0, "goal, s"), ("tbt", 0.03, "goal, s"), ("model", "8b", None),
           ("device", "cuda", "or cpu"), ("shares", "75,50,25", "of decode, per cent"),
           ("shape", "balanced", None), ("chunk", 512, "the most prompt tokens of a step"))
CHOICES = {"device": ("cuda", "cpu"), "model": tuple(policy.SHAPES),
           "shape": ("packed", "gpcs", "balanced", "spread")}
# The types and limits of the numbers in lists.
LISTS = {"rates": (float, 0.001, 1e6), "prompts": (float, 1, 1e6), "seeds": (int, 0, 1e9),
         "shares": (int, 1, 99)}
# The values for --slice and --map.
DEFAULTS = {"rates": ("6,9,12", "4,6,8,10,12,14"), "prompts": ("1020", "512,1020,2048,4096"),
            "time": (475.0, 1e9), "seconds": (5.0, 12.0), "warm": (1.5, 3.0), "drain": (1.1, 2.0)}


def check(parse: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Ends the program if a value is impossible, because a model needs minutes to start."""
    for name, (kind, least, most) in LISTS.items():
        for word in getattr(options, name).split(","):
            try:
                good = least <= kind(word) <= most
            except ValueError:
                good = False
            if not good:
                parse.error(f"--{name}: {word!r}: must be a number from {least:g} to {most:g}")
    for way in options.ways.split(","):
        if way not in policy.WAYS:
            parse.error(f"--ways: {way!r}: must be one of {', '.join(policy.WAYS)}")
    for name, default, _ in OPTIONS:
        if not isinstance(default, str) and not 0 <= getattr(options, name) < float("inf"):
            parse.error(f"--{name}: {getattr(options, name)}: must be at least 0")
    if options.drain <= options.ttft:       # the last requests could not miss the goal
        parse.error(f"--drain: {options.drain}: must be more than --ttft: {options.ttft}")
    place = options.out if os.path.exists(options.out) else os.path.dirname(options.out) or "."
    if os.path.isdir(options.out) or not os.access(place, os.W_OK):
        parse.error(f"--out {options.out}: must be a file that can be written")


def arguments() -> argparse.Namespace:
    parse = argparse.ArgumentParser(description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parse.add_mutually_exclusive_group(required=True)
    for name in ("slice", "map", "check-decode"):
        what.add_argument(f"--{name}", dest="what", action="store_const", const=name)
    for name, default, words in OPTIONS:
        parse.add_argument(f"--{name}", default=default, type=type(default), help=words,
                           choices=CHOICES.get(name))
    parse.add_argument("--trace", choices=policy.TRACES, default="conversation")
    parse.add_argument("--eager", dest="mode", action="store_const", const="eager",
                       default="compiled", help="without torch.compile")
    options = parse.parse_args()
    for name, values in DEFAULTS.items():
        setattr(options, name, getattr(options, name) or values[options.what == "map"])
    check(parse, options)
    options.each = options.warm + options.seconds + options.drain
    options.machine = {name: getattr(options, name) for name in policy.MACHINE}
    return options


def read(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Reads the lines; an incomplete line of a killed process is ignored."""
    lines = []
    if os.path.exists(options.out):
        with open(options.out, encoding="utf-8") as file:
            for line in file:
                try:
                    lines.append(json.loads(line))
                except ValueError:
                    print(f"{options.out}: ignored: {line[:60]!r}", file=sys.stderr)
    return lines


def append(options: argparse.Namespace, line: dict[str, Any]) -> None:
    with open(options.out, "a+b") as file:
        file.seek(-min(1, file.tell()), os.SEEK_END)
        # The last line of a killed process may be incomplete.
        file.write(b"\n" * (file.read() not in (b"", b"\n")) + json.dumps(line).encode() + b"\n")


def missing(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Points that are not in the file; all ways of a point side by side, and seeds last, so that
    what a call leaves out are seeds."""
    setting = f"{options.trace} shares {options.shares} {options.shape} chunk {options.chunk}"
    axes = [[float(x) for x in words.split(",")] for words in (options.prompts, options.rates)]
    points = [{"seed": int(seed), "way": way, "prompt": prompt, "rate": rate, "setting": setting,
               **{name: getattr(options, name) for name in ("ttft", "tbt", "seconds", "warm",
                                                            "drain")}, **options.machine}
              for seed, prompt, rate, way in itertools.product(
                  options.seeds.split(","), *axes, options.ways.split(","))]
    done = read(options)
    return [p for p in points if not any(p.items() <= line.items() for line in done)]


def main(options: argparse.Namespace) -> None:
    begun, took = time.monotonic(), {}
    # With --slice or --time, the alarm ends a run even if it hangs in the driver. The next call
    # continues.
    signal.alarm(int(min(options.time + 2 * options.each, 1e6)))

    def stage(name: str) -> None:
        took[name] = round(time.monotonic() - begun - sum(took.values()), 2)
        print(f"# {name}: {took[name]:.1f} s", flush=True)
    try:
        import torch

        from engine import Cpu, Cuda, Engine, Graphs, check_decode, gpupart_module
        from model import Model
        device = {"cuda": Cuda, "cpu": Cpu}[options.device]()
    except (AssertionError, ImportError, RuntimeError) as error:
        sys.exit(f"run.py --device {options.device}: PyTorch: {error}")
    torch.set_grad_enabled(False)
    stage("import")
    shape, goals = policy.SHAPES[options.model].limited(options.chunk), policy.Goals(
        options.ttft, options.tbt)
    model = Model(shape, device.name, fuse=options.mode != "eager")
    device.finish()
    stage("model")
    shares = tuple(map(int, options.shares.split(",")))
    points = [] if options.what == "check-decode" else missing(options)
    engines = {}

    def guarded(way: str, work: Callable[[], Any]) -> None:
        """An unavailable way is recorded and left out."""
        try:
            engines[way] = work() or engines[way]
        except (ImportError, OSError, RuntimeError) as error:
            engines.pop(way, None)
            append(options, {"error": str(error), "way": way})
            print(f"{way}: {error}", file=sys.stderr)
    for way in dict.fromkeys(p["way"] for p in points):
        guarded(way, lambda: Engine(model, device, way, goals, shares, options.shape))
    stage("parts")
    graphs = Graphs(model, device)
    if not points or not any(options.machine.items() <= line.get("check", {}).items()
                             for line in read(options)):
        for check in check_decode(graphs):
            append(options, {"check": {**check, **options.machine}})
            print("decode alone, {rows} rows, {pages} pages: {ms:.2f} ms, {part:.0%} of "
                  "{bandwidth:.3g} B/s".format(**check), flush=True)
        stage("check")
    for way in list(engines):
        guarded(way, lambda: engines[way].prepare(graphs))
        stage(way)
    append(options, {"ready": {**took, "torch": torch.__version__, "gpu": device.title()}})
    points, longest = [p for p in points if p["way"] in engines], shape.contexts[-1]
    for nr, point in enumerate(points):
        if time.monotonic() - begun + options.each > options.time:
            print(f"{len(points) - nr} points are left for the next call")
            break
        engine, built = engines[point["way"]], None
        load = policy.requests(point["seed"], point["rate"], options.seconds, options.warm,
                               options.trace, point["prompt"], (longest, min(512, longest)))
        counters = gpupart_module().counters if "gpupart" in sys.modules else None
        before = counters().graphs_reapplied if counters else 0
        engine.serve(load, options.each)
        if counters:                        # graphs that were rebuilt for another set
            built = counters().graphs_reapplied - before
        of = policy.summary(load, goals, options.seconds, options.warm, options.each)
        append(options, {**point, **of, "why": engine.why, "steps": engine.counts, "built": built,
                         "lanes": {name: lane.words for name, lane in engine.lanes.items()}})
        print(f"seed {point['seed']} prompt {point['prompt']:5.0f} rate {point['rate']:4.1f} "
              f"{point['way']:14} {of['goodput']:6.2f} of {of['offered']:6.2f} requests/s",
              engine.why or "", flush=True)


if __name__ == "__main__":
    main(arguments())
