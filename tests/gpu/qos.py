# SPDX-License-Identifier: MIT
"""Run by tests/gpu/qos.sh: the two programs, and the evaluation of their recorded times.

qos.py infer TIMES MODE     inference without end: requests to a ResNet-50, one after another;
                            the file MODE has serve or idle
qos.py train TIMES MODE     training without end; the file MODE has train, idle or copy
qos.py phases MODE LOAD S   the load "steady", "bursts" or "bad" for S seconds
qos.py power FILE           without end: records power and clocks, from NVML
qos.py alone MARKS TIMES    requests per second in the segment "alone"
qos.py fits FOLDER GOAL NAME  exits with 0 if the goal is met in that segment
qos.py judge FOLDER GOAL    checks every segment against the goal, as TAP
"""
import bisect
import json
import os
import sys
import time

EPOCH = 0.2
SHORT = 0.85     # of the few epochs of a fixed split: all except one
CALM = 5         # epochs that a change of load may take; and epochs in a row that show its end
LONG = 50        # epochs, from which on the controller's requirement applies


def reporter():
    """Reports to the state page by one call; does nothing without gpupart."""
    import gpupart
    return gpupart.progress_add


class Mode:
    """The mode in a file, read 50 times per second."""

    def __init__(self, path):
        self.path, self.word, self.asked = path, "", 0.0

    def now(self):
        if time.monotonic() - self.asked > 0.02:
            self.asked = time.monotonic()
            with open(self.path) as f:
                self.word = f.read().strip() or self.word
        return self.word


def infer(times, mode_file):
    import torch
    import torchvision
    report = reporter()
    model = torchvision.models.resnet50().eval().half().cuda()
    model = model.to(memory_format=torch.channels_last)
    x = torch.randn(16, 3, 224, 224, device="cuda", dtype=torch.half)
    x = x.to(memory_format=torch.channels_last)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), open(times, "w", buffering=1) as f:
        for _ in range(5):
            model(x)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            model(x)
        f.write("ready\n")
        mode = Mode(mode_file)
        while True:
            if mode.now() == "idle":
                time.sleep(0.005)
                continue
            graph.replay()
            torch.cuda.synchronize()
            report()
            f.write("%.6f\n" % time.monotonic())


def train(times, mode_file):
    import torch
    report = reporter()
    width, layers = 2048, 4
    layer = torch.nn.TransformerEncoderLayer(width, 16, 4 * width, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, layers).cuda().bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    x = torch.randn(4, 512, width, device="cuda", dtype=torch.bfloat16)
    big = torch.empty(2, 1 << 30, device="cuda", dtype=torch.uint8)

    def step():
        optimizer.zero_grad()
        model(x).float().pow(2).mean().backward()
        optimizer.step()

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    modes = Mode(mode_file)
    with open(times, "w", buffering=1) as f:
        f.write("ready\n")
        while True:
            mode = modes.now()
            if mode == "idle":
                time.sleep(0.005)
                continue
            if mode == "copy":
                for _ in range(4):
                    big[1].copy_(big[0])
            else:
                step()
            torch.cuda.synchronize()
            report()
            f.write("%.6f %s\n" % (time.monotonic(), mode))


def set_mode(mode_file, mode):
    with open(mode_file + ".new", "w") as f:
        f.write(mode)
    os.rename(mode_file + ".new", mode_file)


def phases(mode_file, load, seconds):
    """The loads: steady; on for 10 s of every 20 s; copying from the middle on."""
    end = time.monotonic() + seconds
    start = time.monotonic()
    while time.monotonic() < end:
        t = time.monotonic() - start
        if load == "steady":
            mode = "train"
        elif load == "bursts":
            mode = "train" if t % 20 < 10 else "idle"
        else:
            mode = "train" if t < seconds / 2 else "copy"
        set_mode(mode_file, mode)
        time.sleep(0.01)


def power(path):
    """Time, mW, MHz of the SMs and of the memory, ten times per second."""
    import ctypes
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    device = ctypes.c_void_p()
    if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)):
        sys.exit("no NVML here")
    value = ctypes.c_uint()
    with open(path, "w", buffering=1) as f:
        while True:
            row = ["%.6f" % time.monotonic()]
            rc = nvml.nvmlDeviceGetPowerUsage(device, ctypes.byref(value))
            row.append("-" if rc else str(value.value))
            for clock in (1, 2):
                rc = nvml.nvmlDeviceGetClockInfo(device, clock, ctypes.byref(value))
                row.append("-" if rc else str(value.value))
            f.write(" ".join(row) + "\n")
            time.sleep(0.1)


def read_power(path, begin, end):
    """Means of a segment; NVML's power is an average over about one second."""
    try:
        with open(path) as f:
            rows = [line.split() for line in f if line.endswith("\n")]
    except OSError:
        return None
    rows = [r[1:] for r in rows if begin + 1.5 <= float(r[0]) < end and "-" not in r]
    return [sum(float(r[i]) for r in rows) / len(rows) for i in range(3)] if rows else None


def read_times(path):
    with open(path) as f:
        rows = [line.split() for line in f if line[0] != "r" and line.endswith("\n")]
    return [(float(r[0]), r[1] if len(r) > 1 else "") for r in rows]


def read_marks(path):
    with open(path) as f:
        rows = [line.split() for line in f]
    times = [float(r[0]) for r in rows]
    return [(r[1], t, times[i + 1]) for i, (r, t) in enumerate(zip(rows, times))
            if i + 1 < len(rows)]


def done(times, at):
    """
    Completed requests at @at, plus the fraction of the one in progress, so that the edge of an
    epoch does not add or remove one.
    """
    i = bisect.bisect_right(times, at)
    if not i or i == len(times):
        return float(i)
    return i + (at - times[i - 1]) / (times[i] - times[i - 1])


def epochs(times, begin, end):
    """How many of @times are in each whole epoch."""
    times = [t for t, _ in times]
    edges = [done(times, begin + i * EPOCH) for i in range(int((end - begin) / EPOCH + 1e-6) + 1)]
    return [b - a for a, b in zip(edges, edges[1:])]


def does(met, nr):
    """Whether a fixed split that met the goal in this fraction of @nr epochs is sufficient."""
    return met >= (0.99 if nr >= LONG else SHORT)


def is_met(counts, goal):
    """The share of epochs in which the goal was met."""
    return sum(c >= goal * EPOCH for c in counts) / max(len(counts), 1)


def alone(marks, times):
    for name, begin, end in read_marks(marks):
        if name == "alone":
            counts = epochs(read_times(times), begin + 0.4, end)
            print("%.1f" % (sum(counts) / len(counts) / EPOCH))


def fits(folder, goal, segment):
    times = read_times(f"{folder}/infer.times")
    found = [m for m in read_marks(f"{folder}/marks") if m[0] == segment]
    counts = epochs(times, *found[-1][1:])[1:]
    return 0 if does(is_met(counts, goal), len(counts)) else 1


class Log:
    """Epochs of a controller's log."""

    def __init__(self, path):
        with open(path) as f:
            rows = [json.loads(line) for line in f]
        rows = [r for r in rows if r["event"] == "epoch"]
        self.changed = [i for i, r in enumerate(rows) if r["decision"]["changed"]]
        self.scores = [r["decision"]["tenants"][0]["score_milli"] for r in rows]
        self.work = [r["measured"][-1]["work_milli"] for r in rows]
        self.reserved = [r["decision"]["reserved"] for r in rows]
        self.watts = [r["power_mw"] / 1000 for r in rows if "power_mw" in r]

    def flips(self, load):
        """Epochs in which the neighbour's load changed, by its own work."""
        w = self.work
        if load == "bursts":
            return [e for e in range(6, len(w) - 1) if (w[e] == 0) != (w[e - 1] == 0) and
                    (w[e] == 0) == (w[e + 1] == 0)]
        if load == "bad":
            # In the middle, plus some checks of draining TPCs before it.
            half = len(w) // 2
            return [e for e in range(max(20, half - 10), min(half + 11, len(w))) if
                    w[e] > 1.5 * sorted(w[e - 20:e])[10]][:1]
        return []

    def settled(self, flip):
        """How many epochs after @flip there are five in a row in which the goal is met and no set
        changes. most_changes() counts the changes after these."""
        calm = [s >= 1000 and i not in self.changed for i, s in enumerate(self.scores)]
        return next((i - flip for i in range(flip, len(calm)) if all(calm[i:i + CALM])), len(calm))

    def most_changes(self, flips):
        """In 20 epochs of one load, without its first five."""
        begins, most = [0] + flips, 0
        for begin, end in zip(begins, begins[1:] + [len(self.work)]):
            late = [i for i in self.changed if begin + CALM <= i < end]
            most = max([most] + [sum(i <= j < i + 20 for j in late) for i in late])
        return most


class Tap:
    def __init__(self):
        self.nr, self.good = 0, True

    def ok(self, holds, words):
        self.nr += 1
        self.good &= bool(holds)
        print(f"{'ok' if holds else 'not ok'} {self.nr} - {words}")


def measure(folder, goal):
    """For each segment, the fraction of epochs with the goal met, and the neighbour's work."""
    times = {name: read_times(f"{folder}/{name}.times") for name in ("infer", "train")}
    met, work, watts = {}, {}, {}
    for name, begin, end in read_marks(f"{folder}/marks"):
        if name == "-":
            continue
        counts = epochs(times["infer"], begin, end)[5 if name.startswith("qos") else 1:]
        rest = [x for x in times["train"] if begin <= x[0] < end]
        met[name] = is_met(counts, goal)
        work[name] = {m: sum(x[1] == m for x in rest) / (end - begin) for m in ("train", "copy")}
        work[name]["length"] = end - begin
        work[name]["does"] = does(met[name], len(counts))
        work[name]["infer"] = sum(counts) / max(len(counts), 1) / EPOCH
        watts[name] = read_power(f"{folder}/power", begin, end)
        said = "" if name.startswith("power") else f"goal met in {100 * met[name]:5.1f} %; "
        print("# %-18s %4d epochs, %sinference %6.1f/s; training %6.1f steps/s, "
              "%6.1f copies/s%s" % (name, len(counts), said, work[name]["infer"],
                                    work[name]["train"], work[name]["copy"],
                                    "; %.1f W, SMs at %.0f MHz, memory at %.0f MHz" % (
                                        watts[name][0] / 1000, *watts[name][1:])
                                    if watts[name] else ""))
    return met, work, watts


def part_of(load, length):
    """For a load of that many seconds, the part in which the neighbour's work does not change."""
    if load == "bursts":
        return (length // 20 * 10 + min(length % 20, 10)) / length
    return 0.5 if load == "bad" else 1.0


def judge_best_effort(tap, load, run, met, work):
    """Compared with one fixed split for the whole load: that of its worst part."""
    modes = ("train", "copy") if load == "bad" else ("train",)
    fixed = {m: {int(n.split("-")[2]): work[n][m] for n in work
                 if n.startswith(f"fixed-{m}-") and work[n]["does"]} for m in modes}
    fit = set.intersection(*(set(fixed[m]) for m in modes))
    if not fit:
        tap.ok(False, f"{load}: a fixed split meets the goal")
        return
    best = min(fit)
    factor = part_of(load, work[run]["length"])
    for m in modes:
        gain = work[run][m] / (fixed[m][best] * factor)
        tap.ok(gain >= 0.9, f"{load}: {m}: {gain:.3f} of what the best fixed split gives, "
               f"{best} TPCs for inference: {work[run][m]:.1f} and "
               f"{fixed[m][best] * factor:.1f} a second")


def judge_load(tap, folder, load, met, work):
    run, log = f"qos-{load}", Log(f"{folder}/{load}.log")
    share = sum(s >= 1000 for s in log.scores[5:]) / len(log.scores[5:])
    tap.ok(min(share, met[run]) >= 0.99,
           f"{load}: by the log the goal was met in {100 * share:.1f} % of "
           f"{len(log.scores) - 5} epochs, {100 * met[run]:.1f} % by the requests' own times")
    for other, words in ("none", "no control"), ("half", "half and half"):
        tap.ok(met[f"{other}-{load}"] < 0.99,
               f"{load}: not with {words}: {100 * met[f'{other}-{load}']:.1f} %, "
               f"{work[f'{other}-{load}']['infer']:.1f} requests a second")
    judge_best_effort(tap, load, run, met, work)
    flips = log.flips(load)
    print(f"# {load}: another load from epochs {flips} on; changes in epochs {log.changed}")
    for flip in flips:
        settled = log.settled(flip)
        tap.ok(settled <= CALM, f"{load}: settled {settled} epochs after epoch {flip}")
    if load == "bad":
        tap.ok(len(flips) == 1, f"{load}: the log shows when the load changed")
    most = log.most_changes(flips)
    tap.ok(most <= 1, f"{load}: while the load stays, at most {most} changes in 20 epochs")
    with open(f"{folder}/{load}.replay") as f:
        said = f.read().strip().split("\n")[-1]
    tap.ok(said.startswith("replayed:"), f"{load}: the log replays: {said}")
    with open(f"{folder}/{load}.cpu") as f:
        cpu = float(f.read())
    tap.ok(cpu < 0.01, f"{load}: the controller took {100 * cpu:.2f} % of one core")


def judge_power(tap, folder, work, watts):
    """Only reported, except that there are figures, and the controller's reserve."""
    names = [n for n in work if n.startswith("power-")]
    tap.ok(all(watts[n] for n in names), f"power: told in all of {len(names)} segments")
    log = Log(f"{folder}/power.log")
    tap.ok(log.reserved[-1], "power: the controller reserves what a memory-intensive tenant does "
           f"not need: {log.reserved[-1] or 'nothing'}")
    tap.ok(len(log.watts) >= len(log.work) / 3,
           f"power: in the controller's log in {len(log.watts)} of {len(log.work)} epochs, mean "
           f"{sum(log.watts) / max(len(log.watts), 1):.1f} W")
    print(f"# power: changes in epochs {log.changed}")


def judge(folder, goal):
    met, work, watts = measure(folder, goal)
    tap = Tap()
    for load in ("steady", "bursts", "bad"):
        if f"qos-{load}" in met:
            judge_load(tap, folder, load, met, work)
    if "power-alone-controlled" in work:
        judge_power(tap, folder, work, watts)
    print(f"1..{tap.nr}")
    return 0 if tap.good else 1


COMMANDS = {"infer": infer, "train": train, "alone": alone,
            "phases": lambda m, load, s: phases(m, load, float(s)),
            "power": power,
            "fits": lambda folder, goal, segment: fits(folder, float(goal), segment),
            "judge": lambda folder, goal: judge(folder, float(goal))}
if __name__ == "__main__":
    sys.exit(COMMANDS[sys.argv[1]](*sys.argv[2:]) or 0)
