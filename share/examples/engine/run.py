#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the engine over loads and ways, a process a way, into a JSON lines file; makes map.json.

run.py --slice            one prompt length, all ways, in 8 minutes on an H200
run.py --map              the whole map; called again it does what is not in the file yet
run.py --check-decode     decode alone against the bandwidth of DRAM
"""
from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from typing import Any

import policy

WAYS = "chunked,streams,priority,green,gpupart-fixed,gpupart"
KEY = ("way", "setting", "model", "prompt", "rate", "seed", "ttft", "tbt", "seconds")


def arguments() -> argparse.Namespace:
    parse = argparse.ArgumentParser(description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parse.add_mutually_exclusive_group(required=True)
    for name in ("slice", "map", "check-decode", "points"):
        what.add_argument(f"--{name}", action="store_true",
                          help=argparse.SUPPRESS if name == "points" else None)
    parse.add_argument("--out", default="runs.jsonl", help="the JSON lines file to continue")
    parse.add_argument("--write", default="map.json")
    parse.add_argument("--ways", default=WAYS)
    parse.add_argument("--rates", help="requests a second")
    parse.add_argument("--prompts", help="medians, tokens")
    parse.add_argument("--seeds", help="numbers")
    parse.add_argument("--minutes", type=float, help="begin nothing that would end later")
    parse.add_argument("--seconds", type=float, default=12.0, help="of counted arrivals")
    parse.add_argument("--warm", type=float, default=3.0, help="s of arrivals before those")
    parse.add_argument("--drain", type=float, default=8.0, help="s that the last have to end")
    parse.add_argument("--ttft", type=float, default=1.0, help="goal, s")
    parse.add_argument("--tbt", type=float, default=0.03, help="goal, s")
    parse.add_argument("--trace", choices=policy.TRACES, default="conversation")
    parse.add_argument("--model", default="8b")
    parse.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parse.add_argument("--shares", default="75,50,25", help="of decode, per cent")
    parse.add_argument("--shape", default="balanced")
    parse.add_argument("--chunk", type=int, default=512, help="the most prompt tokens of a step")
    parse.add_argument("--eager", action="store_true", help="without torch.compile")
    options = parse.parse_args()
    wide = options.map
    options.rates = options.rates or ("4,8,12,16,20,24" if wide else "12")
    options.prompts = options.prompts or ("512,1020,2048,4096" if wide else "1020")
    options.seeds = options.seeds or ("1,2,3" if wide else "1")
    options.minutes = options.minutes or (8.0 if options.slice else 1e9)
    return options


def points(options: argparse.Namespace) -> list[dict[str, Any]]:
    """All points of the map; those of one process, a seed and a way, follow each other."""
    setting = (f"{options.device} {options.trace} shares {options.shares} {options.shape} "
               f"chunk {options.chunk}")
    numbers = [[float(x) for x in words.split(",")] for words in (options.prompts, options.rates)]
    return [{"way": way, "setting": setting, "model": options.model, "prompt": prompt,
             "rate": rate, "seed": int(seed), "ttft": options.ttft, "tbt": options.tbt,
             "seconds": options.seconds}
            for seed, way, prompt, rate in itertools.product(
                options.seeds.split(","), options.ways.split(","), *numbers)]


def read(path: str) -> list[dict[str, Any]]:
    """A line that a killed process left unfinished is ignored."""
    lines = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                try:
                    lines.append(json.loads(line))
                except ValueError:
                    print(f"{path}: ignored: {line[:60]!r}", file=sys.stderr)
    return lines


def append(path: str, line: dict[str, Any]) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def missing(options: argparse.Namespace) -> list[dict[str, Any]]:
    done = {tuple(line.get(k) for k in KEY) for line in read(options.out) if "error" not in line}
    return [p for p in points(options) if tuple(p[k] for k in KEY) not in done]


def child(options: argparse.Namespace, *more: str, most: float) -> int:
    """This program again, in a process that can hang or die without this one."""
    process = subprocess.Popen([sys.executable, os.path.realpath(__file__), *more])
    try:
        return process.wait(most)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return 124


def passed_on(options: argparse.Namespace) -> list[str]:
    names = ("out", "rates", "prompts", "seconds", "warm", "drain", "ttft", "tbt", "trace",
             "model", "device", "shares", "shape", "chunk")
    given = [f"--{n}={getattr(options, n)}" for n in names if getattr(options, n) is not None]
    return given + ["--eager"] * options.eager


def parent(options: argparse.Namespace) -> None:
    end, tail = time.monotonic() + options.minutes * 60, passed_on(options)
    each = options.seconds + options.warm + options.drain
    if not any("check" in line for line in read(options.out)):
        child(options, "--check-decode", *tail, most=300)
    for (seed, way), group in itertools.groupby(missing(options),
                                                lambda p: (p["seed"], p["way"])):
        todo, left = len(list(group)), end - time.monotonic()
        if left < each + 30:
            print(f"{way}, seed {seed}: {todo} points are left for the next call")
            continue
        print(f"{way}, seed {seed}: {todo} points, at most {todo * each + 60:.0f} s", flush=True)
        status = child(options, "--points", f"--ways={way}", f"--seeds={seed}",
                       f"--minutes={left / 60}", *tail, most=min(left, todo * each + 240))
        if status:
            append(options.out, {"error": f"status {status}", "way": way, "seed": seed})
    made = policy.make_map(read(options.out))
    with open(options.write, "w", encoding="utf-8") as file:
        json.dump(made, file, indent=1)
    for p in made["points"]:
        print(f"prompt {p['prompt']:5.0f} rate {p['rate']:4.1f} {p['way']:14} "
              f"{p['goodput']:6.2f} requests/s ({p['low']:.2f} to {p['high']:.2f}) "
              f"{' '.join(p['fallback'])}")
    print("valid" if made["valid"] else "INVALID: decode alone is below 70 % of DRAM bandwidth, "
          "or was not measured", f"- {options.write}")


def build(options: argparse.Namespace) -> tuple[Any, Any]:
    import torch

    from engine import Cpu, Cuda
    from model import SHAPES, Model
    torch.set_grad_enabled(False)
    shape = SHAPES[options.model].limited(options.chunk)
    device = Cuda() if options.device == "cuda" else Cpu()
    return Model(shape, device.name, fuse=not options.eager), device


def run_points(options: argparse.Namespace) -> None:
    from engine import Engine
    model, device = build(options)
    way, begun = options.ways, time.monotonic()
    engine = Engine(model, device, way, policy.Goals(options.ttft, options.tbt),
                    tuple(int(s) for s in options.shares.split(",")), options.shape)
    engine.prepare()
    print(f"# {way}: ready after {time.monotonic() - begun:.1f} s; {engine.why or ''}", flush=True)
    longest = model.shape.contexts[-1]
    for point in missing(options):
        each = options.warm + options.seconds + options.drain
        if time.monotonic() - begun + each > options.minutes * 60:
            break
        load = policy.requests(point["seed"], point["rate"], options.seconds, options.warm,
                               options.trace, point["prompt"], (longest, min(512, longest)))
        engine.serve(load, each)
        append(options.out, {**point, **policy.summary(load, engine.goals, options.seconds,
                                                       options.warm),
                             "why": engine.why, "steps": engine.counts, "device": device.name,
                             "lanes": {n: lane.words for n, lane in engine.lanes.items()}})


def check_decode(options: argparse.Namespace) -> None:
    """What decode alone reads a second, of what reading a large tensor does."""
    from engine import check_decode as measure
    for check in measure(*build(options)):
        append(options.out, {"check": check})
        print(f"decode alone, {check['rows']} rows, {check['pages']} pages: {check['ms']:.2f} ms, "
              f"{check['part']:.0%} of {check['bandwidth'] / 1e9:.0f} GB/s", flush=True)


if __name__ == "__main__":
    given = arguments()
    if given.points:
        run_points(given)
    elif given.check_decode:
        check_decode(given)
    else:
        parent(given)
