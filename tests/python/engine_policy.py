# SPDX-License-Identifier: MIT
"""The example engine's load, objectives, intervals and choice of a split, without torch."""
import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile

from tap import ROOT, done, ok, same

ENGINE = os.path.join(ROOT, "share/examples/engine")
sys.path.insert(0, ENGINE)
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import inference_map  # noqa: E402
import policy  # noqa: E402
from policy import ALONE, MIXED, Estimate, Goals, Request, choose  # noqa: E402

GOALS = Goals(1.0, 0.03)
# A decode step takes 1 ms per 100 bytes. In the order of preference: fewer TPCs for decode make
# prefill faster.
MANY = {MIXED: Estimate(0.0, 1e-5, 0.02), "75%": Estimate(1e-5, 4e-5), "50%": Estimate(2e-5, 3e-5),
        "25%": Estimate(4e-5, 2e-5)}


def load():
    made = policy.requests(7, 20.0, 100.0, warm=10.0)
    same(made, policy.requests(7, 20.0, 100.0, warm=10.0), "a seed gives the same requests again")
    ok(made != policy.requests(8, 20.0, 100.0, warm=10.0), "another seed gives others")
    ok(abs(len(made) / 110 - 20) < 2, f"the rate is the asked one: {len(made) / 110:.1f}")
    median = policy.quantile((r.prompt for r in made), 0.5)
    ok(920 < median < 1120, f"the median prompt is that of the trace: {median}")
    median = policy.quantile((r.output for r in made), 0.5)
    ok(110 < median < 150, f"the median output is that of the trace: {median}")
    median = policy.quantile((r.prompt for r in policy.requests(7, 20.0, 100.0, prompt=300)), 0.5)
    ok(260 < median < 340, f"another median may be asked for: {median}")
    short = policy.requests(7, 20.0, 100.0, most=(50, 5))
    same((max(r.prompt for r in short), max(r.output for r in short)), (50, 5),
         "lengths end at the limit")
    same([r.counted for r in made], [r.arrival >= 10.0 for r in made], "the first do not count")


def objectives():
    def met(*times, output=None):
        return policy.meets(Request(1.0, 5, output or len(times), times=list(times)), GOALS)
    ok(met(2.0, 2.03 - 1e-9), "first token after exactly the goal, gap within it")
    ok(not met(2.01, 2.02), "first token too late")
    ok(not met(1.5, 1.54), "a gap too long")
    ok(not met(1.5, 1.51, output=3), "a request that did not end")
    ok(not met(output=3), "a request that did not begin")
    steps = [1.5 + 0.01 * i for i in range(201)]
    late = [t + (0.05 if i > 100 else 0.0) for i, t in enumerate(steps)]
    ok(met(*late), "one gap of 200 may be long")
    later = [t + (0.05 if i > 50 else 0.0) + (0.05 if i > 100 else 0.0) + (0.05 if i > 150 else 0.0)
             for i, t in enumerate(steps)]
    ok(not met(*later), "three of 200 may not")
    def open_at(end, *times):
        return policy.meets(Request(1.0, 5, 9, times=list(times)), GOALS, end)
    ok(open_at(2.02, 1.98, 2.0), "one that has not ended is judged by what it has")
    ok(not open_at(2.05, 1.98, 2.0), "its open gap is one")
    ok(not open_at(1.9) and not open_at(2.1), "one without a first token does not")
    run = [Request(0.5, 5, 1, False, times=[0.6]), Request(1.2, 5, 1, times=[1.3]),
           Request(2.9, 5, 1, times=[3.0]), Request(2.5, 5, 1, times=[9.0]), Request(2.6, 5, 2)]
    of = policy.summary(run, GOALS, 2.0, 1.0)
    same((of["goodput"], of["offered"], of["unfinished"], of["met_by_second"]),
         (1.0, 2.0, 1, [1, 1]), "a summary counts what counts")


def intervals():
    same(inference_map.interval([3.0]), None, "one seed leaves all in doubt")
    same(inference_map.interval([4.0, 4.0, 4.0]), (4.0, 4.0), "seeds that are all alike, nothing")
    low, high = inference_map.interval([4.0, 5.0, 6.0])
    ok(abs(low - (5 - 4.303 / 3 ** 0.5)) < 1e-9 and abs(low + high - 10) < 1e-9,
       f"three seeds: Student's t with two degrees of freedom: {low} to {high}")

    def compare(a, b):
        return inference_map.compare(dict(enumerate(a)), dict(enumerate(b)))
    got = compare([8.0, 9.1, 10.0], [6.0, 7.0, 8.1])
    ok(got["significant"] and abs(got["ratio"] - 27.1 / 21.1) < 1e-9, "the same seeds are a pair")
    ok(not compare([8.0, 9.0, 7.0], [7.0, 7.0, 8.0])["significant"], "differences that differ")
    ok(not compare([9.0], [1.0])["significant"], "one seed is never significant")

    def line(seed, met, way="chunked", **more):
        return {"prompt": 1020, "rate": 8, "way": way, "setting": "", "seed": seed,
                "met_by_second": met, "offered": 8.0, **more}
    check = {"check": {"part": 0.72}}
    made = inference_map.make_map([check, line(2, [4, 4]), line(1, [6, 6]),
                                   line(1, [2], "green", why="-"),
                                   {"error": "status 124", "way": "streams"}])
    same([(p["way"], p["goodput"], p["seeds"], p["fallback"]) for p in made["points"]],
         [("chunked", 5.0, [1, 2], []), ("green", 2.0, [1], ["-"])], "seeds become one point")
    same((made["valid"], len(made["failed"])), (True, 1), "failures are reported")
    ok(all(p["small"] for p in made["points"]), "few requests are marked")
    many = inference_map.make_map([check, *(line(n, [n + add] * 40, way) for way, add in (
        ("chunked", 4), ("green", 6), ("gpupart", 6), ("streams", 7)) for n in range(3))])
    ok(not any(p["small"] for p in many["points"]), "many are not")
    same([many["verdicts"][0][n] for n in ("parted_better", "to_green", "gpupart_below")],
         [["green", "gpupart"], 1.0, ["streams"]], "what is above what")
    fell = inference_map.make_map([check, *(line(1, [met], way, **more) for way, met, more in (
        ("chunked", 1, {}), ("green", 1, {"why": "no"}), ("gpupart", 3, {"why": "no"})))])
    same(([fell["verdicts"][0][n] for n in ("to_chunked", "to_green")], fell["pairs"],
          list(inference_map.tables(fell))[2].count(" small fallback |")), ([None, None], [], 2),
         "a way that fell back is marked and not compared")
    same([(p["a"], p["b"], p["difference"]) for p in many["pairs"]][:2],
         [("gpupart", "green", 0.0), ("gpupart", "streams", -1.0)], "each pair is there")
    chunks = inference_map.make_map([
        check, line(1, [2, 2], "green", setting="a chunk 512"),
        line(1, [4, 4], setting="a chunk 32"),
        *(line(seed, [met, met], setting=f"a chunk {chunk}")
          for chunk, met in ((512, 1), (128, 3), (64, 2)) for seed in (1, 2))])
    same([(p["way"], p["chunk"], p["setting"], p["goodput"], p["seeds"]) for p in chunks["points"]],
         [("chunked", "128", "a", 3.0, [1, 2]), ("green", "512", "a", 2.0, [1])],
         "of several chunk sizes with equally many seeds, the best is compared")
    half = inference_map.make_map([check, line(1, [6, 2], seconds=1.5, offered=6.0)])["points"][0]
    ok(abs(half["goodput"] - 8 / 1.5) < 1e-9 and half["counted"] == 9,
       f"a second that is not a whole one: {half['goodput']}, {half['counted']}")
    for name in ("warm", "drain"):
        two = inference_map.make_map([check, line(1, [2], **{name: 1.5}),
                                      line(1, [3], **{name: 2.0})])
        same([p["goodput"] for p in two["points"]], [2.0, 3.0], f"two of {name}: two points")
    for why, checks in (("no check", []), ("one is bad", [check, {"check": {"part": 0.69}}])):
        ok(not inference_map.make_map([*checks, line(1, [1])])["valid"], f"invalid: {why}")

    def valid(point, *checks):
        return inference_map.make_map(
            [*({"check": check} for check in checks), line(1, [1], **point)])
    here = {"device": "cuda", "model": "8b", "mode": "compiled"}
    for name, other in (("device", "cpu"), ("mode", "eager"), ("model", "tiny")):
        good, bad = ({**here, "part": part} for part in (0.72, 0.3))
        ok(valid(here, good, {**bad, name: other})["valid"], f"a bad check, {other}, is another's")
        ok(not valid(here, {**good, name: other})["valid"], f"and so is a good one, {other}")
    ok(not valid(here, bad)["points"][0]["valid"], "a point tells whether its own check was good")


def split():
    same(choose(MANY, 4, 100.0, [], GOALS), ALONE, "nothing to prefill: decode has the GPU")
    same(choose(MANY, 0, 100.0, [(500, 0.5)], GOALS), ALONE, "nothing to decode: prefill has it")
    same(choose(MANY, 4, 100.0, [(500, 0.5)], GOALS), MIXED, "light load: off")
    same(choose(MANY, 4, 100.0, [(1000, 0.01)], GOALS), MIXED, "not in time: fastest prefill")
    same(choose(MANY, 4, 100.0, [(1000, 0.5), (10, -1.0)], GOALS), MIXED, "what is late anyway")
    slow = {**MANY, MIXED: Estimate(0.0, 1e-5, 0.04)}
    same(choose(slow, 4, 100.0, [(500, 0.5)], GOALS), "25%",
         "a mixed step too long: fastest prefill, also if there is time")
    same(choose(slow, 4, 1000.0, [(500, 0.5)], GOALS), "50%", "of those with the other goal")
    same(choose(slow, 4, 1300.0, [(500, 0.5)], GOALS), "75%", "and of those")
    same(choose(slow, 4, 9000.0, [(10000, 0.03)], GOALS), MIXED, "none does: the shortest step")
    busy = {**MANY, MIXED: Estimate(0.0, 3e-5, 0.02)}
    same(choose(busy, 4, 100.0, [(500, 0.5)], GOALS), MIXED, "both goals: no split")
    same(choose(busy, 4, 100.0, [(500, 0.01)], GOALS), "25%", "not in time: a faster split")
    same(choose(busy, 4, 100.0, [(300, 0.5), (700, 0.02)], GOALS), "25%", "a backlog adds up")
    same(choose(busy, 4, 100.0, [(500, -1.0)], GOALS), MIXED, "what is late changes nothing")
    estimate = Estimate(1.0, 1.0)
    estimate.learn("decode_per_byte", 2.0)
    estimate.learn("step", 3.0)
    same((estimate.decode_per_byte, estimate.step), (1.2, 3.0), "estimates follow")


def bad_options():
    place = tempfile.mkdtemp()
    for words, wanted in (
            ("--ways chunked,foo", "--ways: 'foo': must be one of chunked, streams"),
            ("--rates 4,x", "--rates: 'x': must be a number from 0.001 to"),
            ("--rates -1", "--rates: '-1': must be a number"),
            ("--seeds 1.5", "--seeds: '1.5': must be a number"),
            ("--shares 50,100", "--shares: '100': must be a number from 1 to 99"),
            ("--shape foo", "--shape: invalid choice: 'foo'"),
            ("--device foo", "--device: invalid choice: 'foo'"),
            ("--ttft -1", "--ttft: -1.0: must be at least 0"),
            ("--seconds nan", "--seconds: nan: must be at least 0"),
            ("--ttft 1.1", "--drain: 1.1: must be more than --ttft: 1.1"),
            ("--drain 0.5", "--drain: 0.5: must be more than --ttft: 1.0"),
            ("--model foo", "--model: invalid choice: 'foo'"),
            (f"--out {place}", f"--out {place}: must be a file that can be written"),
            (f"--out {place}/no/x", f"--out {place}/no/x: must be a file that can be written")):
        got = subprocess.run([sys.executable, f"{ENGINE}/run.py", "--slice", "--out",
                              f"{place}/runs", *words.split()], capture_output=True, text=True)
        ok(got.returncode == 2 and wanted in got.stderr, f"run.py {words}: {got.stderr[-90:]!r}")
    with open(f"{place}/torch.py", "w", encoding="utf-8") as file:
        file.write("raise ImportError('no torch here')")
    got = subprocess.run([sys.executable, "-B", f"{ENGINE}/run.py", "--slice", "--out",
                          f"{place}/runs"], capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": place})
    same((got.returncode, got.stderr, os.path.exists(f"{place}/runs")),
         (1, "run.py --device cuda: PyTorch: no torch here\n", False), "no PyTorch: one line")
    for name, text, wanted in (("none", None, ": No such file or directory"),
                               ("bad", '{"way": "chunked"}\nfoo\n3\n', ":2: ignored: 'foo"),
                               ("empty", "", ": there are no runs in this file")):
        if text is not None:
            with open(f"{place}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        got = map_of(f"{place}/{name}", f"{place}/map")
        ok(got.returncode == 1 and f"{place}/{name}{wanted}" in got.stderr and
           not os.path.exists(f"{place}/map"), f"inference_map.py: {name}: {got.stderr[-90:]!r}")
    shutil.rmtree(place)


def map_of(runs, folder):
    return subprocess.run([sys.executable, os.path.join(ROOT, "scripts/inference_map.py"), runs,
                           folder], capture_output=True, text=True)


def maps():
    """The published maps, and files whose runs cannot be in one map."""
    published = os.path.join(ROOT, "Documentation/results/inference")
    with tempfile.TemporaryDirectory() as place:
        for folder in (published, f"{published}/15ms"):
            got = map_of(f"{folder}/runs.jsonl", place)
            same((got.returncode, [filecmp.cmp(f"{folder}/{name}", f"{place}/{name}", False)
                                   for name in ("map.json", "map.svg")]), (0, [True, True]),
                 f"{os.path.basename(folder)}: the map of these runs: {got.stderr[-90:]!r}")
        run = {"prompt": 1020, "rate": 8, "way": "chunked", "setting": "a chunk 512", "seed": 1,
               "met_by_second": [1], "offered": 8.0, "ttft": 1.0, "tbt": 0.03, "seconds": 1.0,
               "warm": 1.5, "drain": 1.1, "device": "cuda", "model": "8b", "mode": "compiled"}
        for name, value in (("tbt", 0.015), ("ttft", 2.0), ("warm", 3.0), ("drain", 2.0),
                            ("setting", "b chunk 512"), ("mode", "eager")):
            with open(f"{place}/two", "w", encoding="utf-8") as file:
                file.write(f"{json.dumps(run)}\n{json.dumps({**run, name: value, 'seed': 2})}\n")
            got = map_of(f"{place}/two", f"{place}/map")
            first, second = sorted(str(v).replace(" chunk 512", "") for v in (run[name], value))
            ok(got.returncode == 1 and not os.path.exists(f"{place}/map") and
               got.stderr.startswith(f"{place}/two: runs with {name} {first} and {second}: "),
               f"inference_map.py: two of {name}: {got.stderr[-120:]!r}")
        with open(f"{place}/two", "w", encoding="utf-8") as file:
            file.write(f"{json.dumps(run)}\n{json.dumps({**run, 'setting': 'a chunk 128'})}\n")
        same(map_of(f"{place}/two", f"{place}/map").returncode, 0, "two chunk sizes are one map")


load()
objectives()
intervals()
split()
bad_options()
maps()
done()
