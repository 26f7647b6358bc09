#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the engine over loads and ways, a process a way, into a JSON lines file; makes map.json.

run.py --slice            one prompt length, all ways, in 8 minutes on an H200
run.py --map              the whole map; called again it does what is not in the file yet
run.py --check-decode     decode alone against the bandwidth of DRAM
"""
import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from typing import Any

import policy

OPTIONS = (("out", "runs.jsonl", "the JSON lines file to continue"), ("write", "map.json", None),
           ("ways", ",".join(policy.WAYS), None), ("rates", "", "requests a second"),
           ("prompts", "", "medians, tokens"), ("seeds", "", "numbers"),
           ("minutes", 0.0, "begin nothing that would end later"),
           ("seconds", 12.0, "of counted arrivals"), ("warm", 3.0, "s of arrivals before those"),
           ("drain", 8.0, "s that the last have to end"), ("ttft", 1.0, "goal, s"),
           ("tbt", 0.03, "goal, s"), ("model", "8b", None), ("device", "cuda", "or cpu"),
           ("shares", "75,50,25", "of decode, per cent"), ("shape", "balanced", None),
           ("chunk", 512, "the most prompt tokens of a step"))


def arguments() -> argparse.Namespace:
    parse = argparse.ArgumentParser(description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parse.add_mutually_exclusive_group(required=True)
    for name in ("slice", "map", "check-decode"):
        what.add_argument(f"--{name}", dest="what", action="store_const", const=name)
    for name, default, words in OPTIONS:
        parse.add_argument(f"--{name}", default=default, type=type(default), help=words)
    parse.add_argument("--trace", choices=policy.TRACES, default="conversation")
    parse.add_argument("--eager", dest="mode", action="store_const", const="eager",
                       default="compiled", help="without torch.compile")
    options = parse.parse_args()
    for name, few, many in (("rates", "12", "4,8,12,16,20,24"), ("seeds", "1", "1,2,3"),
                            ("prompts", "1020", "512,1020,2048,4096"), ("minutes", 8.0, 1e9)):
        few = many if options.what == "map" else few
        setattr(options, name, getattr(options, name) or few)
    options.each = options.warm + options.seconds + options.drain
    options.machine = {name: getattr(options, name) for name in policy.MACHINE}
    return options


def read(options: argparse.Namespace) -> list[dict[str, Any]]:
    """A line that a killed process left unfinished is ignored."""
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
    with open(options.out, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def missing(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Points that are not in the file; those of one process, a seed and a way, side by side."""
    setting = f"{options.trace} shares {options.shares} {options.shape} chunk {options.chunk}"
    axes = [[float(x) for x in words.split(",")] for words in (options.prompts, options.rates)]
    points = [{"seed": int(seed), "way": way, "prompt": prompt, "rate": rate, "setting": setting,
               "ttft": options.ttft, "tbt": options.tbt, "seconds": options.seconds,
               **options.machine} for seed, way, prompt, rate in itertools.product(
                   options.seeds.split(","), options.ways.split(","), *axes)]
    done = read(options)
    return [p for p in points if not any(p.items() <= line.items() for line in done)]


def child(options: argparse.Namespace, most: float, **more: Any) -> int:
    """This program again, in a process that can hang or die without this one."""
    given = json.dumps({**vars(options), **more})
    try:
        return subprocess.run([sys.executable, os.path.realpath(__file__), given],
                              timeout=most).returncode
    except subprocess.TimeoutExpired:
        return 124


def parent(options: argparse.Namespace) -> None:
    end, each = time.monotonic() + options.minutes * 60, options.each
    if not any(options.machine.items() <= line.get("check", {}).items() for line in read(options)):
        child(options, 300, what="check-decode")
    for (seed, way), group in itertools.groupby(missing(options), lambda p: (p["seed"], p["way"])):
        todo, left = len(list(group)), end - time.monotonic()
        if left < each + 30:
            print(f"{way}, seed {seed}: {todo} points are left for the next call")
            continue
        print(f"{way}, seed {seed}: {todo} points, at most {todo * each + 60:.0f} s", flush=True)
        status = child(options, min(left, todo * each + 240), what="points", ways=way,
                       seeds=str(seed), minutes=left / 60)
        if status:
            append(options, {"error": f"status {status}", "way": way, "seed": seed})
    made = policy.make_map(read(options))
    with open(options.write, "w", encoding="utf-8") as file:
        json.dump(made, file, indent=1)
    for p in made["points"]:
        print("prompt {prompt:5.0f} rate {rate:4.1f} {way:14} {goodput:6.2f} requests/s "
              "({low:.2f} to {high:.2f})".format(**p), *p["fallback"])
    print("valid" if made["valid"] else "INVALID: decode alone is below 70 % of DRAM bandwidth, "
          "or was not measured", f"- {options.write}")


def work(options: argparse.Namespace) -> None:
    """The points of one way and seed, or the check of what decode alone reads a second."""
    import torch

    from engine import Cpu, Cuda, Engine, check_decode
    from model import SHAPES, Model
    torch.set_grad_enabled(False)
    begun, device = time.monotonic(), {"cuda": Cuda, "cpu": Cpu}[options.device]()
    shape = SHAPES[options.model].limited(options.chunk)
    model = Model(shape, device.name, fuse=options.mode != "eager")
    if options.what == "check-decode":
        for check in check_decode(model, device):
            append(options, {"check": {**check, **options.machine}})
            print("decode alone, {rows} rows, {pages} pages: {ms:.2f} ms, {part:.0%} of "
                  "{bandwidth:.3g} B/s".format(**check), flush=True)
        return
    engine = Engine(model, device, options.ways, policy.Goals(options.ttft, options.tbt),
                    tuple(int(s) for s in options.shares.split(",")), options.shape)
    engine.prepare()
    print(f"# {options.ways}: ready after {time.monotonic() - begun:.1f} s; {engine.why or ''}",
          flush=True)
    longest = shape.contexts[-1]
    for point in missing(options):
        if time.monotonic() - begun + options.each > options.minutes * 60:
            break
        load = policy.requests(point["seed"], point["rate"], options.seconds, options.warm,
                               options.trace, point["prompt"], (longest, min(512, longest)))
        engine.serve(load, options.each)
        append(options, {
            **point, **policy.summary(load, engine.goals, options.seconds, options.warm),
            "why": engine.why, "steps": engine.counts,
            "lanes": {name: lane.words for name, lane in engine.lanes.items()}})


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1].startswith("{"):
        work(argparse.Namespace(**json.loads(sys.argv[1])))
    elif (given := arguments()).what == "check-decode":
        work(given)
    else:
        parent(given)
