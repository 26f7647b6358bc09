# SPDX-License-Identifier: MIT
"""Run by tests/gpu/qos.sh: the two programs, and what is made of the times they leave.

qos.py infer TIMES          inference without end: a ResNet-50's requests, one after another
qos.py train TIMES MODE     training without end; the file MODE says train, idle or copy
qos.py phases MODE LOAD S   the load "steady", "bursts" or "bad" for S seconds
qos.py alone MARKS TIMES    requests a second in the segment "alone"
qos.py judge FOLDER GOAL    every segment against the goal, as TAP
"""
import json
import os
import sys
import time

EPOCH = 0.2


def reporter():
    """Into the process's block, by one call; nothing where gpupart is not around."""
    import gpupart
    return gpupart.progress_add


def infer(times):
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
        while True:
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
    mode, asked = "train", 0.0
    with open(times, "w", buffering=1) as f:
        f.write("ready\n")
        while True:
            if time.monotonic() - asked > 0.02:
                asked = time.monotonic()
                with open(mode_file) as m:
                    mode = m.read().strip() or mode
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
    """The loads: one that stays; one that comes 10 s of 20; one that begins to copy half-way."""
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


def epochs(times, begin, end):
    """How many of @times are in each whole epoch."""
    counts = [0] * int((end - begin) / EPOCH)
    for t, _ in times:
        if begin <= t < begin + len(counts) * EPOCH:
            counts[int((t - begin) / EPOCH)] += 1
    return counts


def alone(marks, times):
    for name, begin, end in read_marks(marks):
        if name == "alone":
            counts = epochs(read_times(times), begin + 0.4, end)
            print("%.1f" % (sum(counts) / len(counts) / EPOCH))


def changes(log):
    """Epochs with a change of the log of a controller, and what it says of the goal."""
    rows = [json.loads(line) for line in open(log)]
    rows = [r["decision"] for r in rows if r["event"] == "epoch"]
    return [r["changed"] for r in rows], [r["tenants"][0]["score_milli"] for r in rows]


def judge(folder, goal):
    times = {name: read_times(f"{folder}/{name}.times") for name in ("infer", "train")}
    marks = read_marks(f"{folder}/marks")
    need, met, work = goal * EPOCH, {}, {}
    for name, begin, end in marks:
        if name == "-":
            continue
        counts = epochs(times["infer"], begin, end)
        rest = [x for x in times["train"] if begin <= x[0] < end]
        # Timestamps fall into epochs of their own: one request more or less is no miss.
        counts = counts[5:] if name.startswith("qos") else counts[1:]
        met[name] = sum(c + 1 > need for c in counts) / max(len(counts), 1)
        work[name] = {m: sum(x[1] == m for x in rest) / (end - begin) for m in ("train", "copy")}
        print("# %-18s %4d epochs, goal met in %5.1f %%; inference %6.1f/s; "
              "training %6.1f steps/s, %6.1f copies/s" % (name, len(counts), 100 * met[name],
                                  sum(counts) / max(len(counts), 1) / EPOCH,
                                  work[name]["train"], work[name]["copy"]))
    nr = 0

    def ok(holds, words):
        nonlocal nr
        nr += 1
        print(f"{'ok' if holds else 'not ok'} {nr} - {words}")
        return holds

    good = True
    fixed = {m: {int(n.split("-")[2]): work[n][m] for n in work
                 if n.startswith(f"fixed-{m}-") and met[n] >= 0.99} for m in ("train", "copy")}
    for load in ("steady", "bursts", "bad"):
        run = f"qos-{load}"
        if run not in met:
            continue
        changed, scores = changes(f"{folder}/{load}.log")
        share = sum(s >= 1000 for s in scores[5:]) / len(scores[5:])
        good &= ok(share >= 0.99, f"{load}: by the log the goal was met in {100 * share:.1f} % of "
                   f"{len(scores) - 5} epochs, {100 * met[run]:.1f} % by the requests' own times")
        for other in ("none", "half"):
            good &= ok(met[f"{other}-{load}"] < 0.99, f"{load}: not with "
                       f"{'no control' if other == 'none' else 'half and half'}: "
                       f"{100 * met[f'{other}-{load}']:.1f} %")
        # One split for all that the load does: that of its worst part.
        modes = ("train", "copy") if load == "bad" else ("train",)
        fit = set.intersection(*(set(fixed[m]) for m in modes))
        best = min(fit) if fit else None
        if best is None:
            good &= ok(False, f"{load}: a fixed split meets the goal")
            continue
        factor = {"steady": 1.0, "bursts": 0.5, "bad": 0.5}[load]
        for m in modes:
            gain = work[run][m] / (fixed[m][best] * factor)
            good &= ok(gain >= 0.9, f"{load}: {m}: {gain:.3f} of what the best fixed split gives, "
                       f"{best} TPCs for inference: {work[run][m]:.1f} and "
                       f"{fixed[m][best] * factor:.1f} a second")
        late = [i for i, c in enumerate(changed) if c]
        print(f"# {load}: changes in epochs {late}")
        if load == "steady":
            later = [i for i in late if i >= 5]
            most = max([sum(i <= j < i + 20 for j in later) for i in later] or [0])
            good &= ok(most <= 1, f"steady: after 5 epochs at most {most} changes in 20 epochs")
        cpu = float(open(f"{folder}/{load}.cpu").read())
        good &= ok(cpu < 0.01, f"{load}: the controller took {100 * cpu:.2f} % of one core")
    print(f"1..{nr}")
    return 0 if good else 1


COMMANDS = {"infer": infer, "train": train, "alone": alone,
            "phases": lambda m, load, s: phases(m, load, float(s)),
            "judge": lambda folder, goal: judge(folder, float(goal))}
if __name__ == "__main__":
    sys.exit(COMMANDS[sys.argv[1]](*sys.argv[2:]) or 0)
