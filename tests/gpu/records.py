# SPDX-License-Identifier: MIT
"""Run by tests/gpu/records.sh inside `gpupart run`: completion records of PyTorch's launches.

records.py CASE [SECONDS]: counts, graphs, parts, times, profiler; train: a training loop for
SECONDS.
Prints lines "ok - ..." and "not ok - ...", figures as comments and as lines
"figure NAME JSON".
"""
import ctypes
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import gpupart
import torch
import torch.nn.functional as F

NR_LAUNCHES = 20000
NR_SINGLE = 300
OTHER = """
import dataclasses, json, sys, gpupart
print(json.dumps(dataclasses.asdict(gpupart.records(sys.argv[1], int(sys.argv[2])))))
"""
pci = ""


def ok(good, words):
    print(f"{'ok' if good else 'not ok'} - {words}", flush=True)


def figure(name, value):
    print(f"# {name}: {value}")
    print(f"figure {name} {json.dumps(value)}", flush=True)


def read():
    return gpupart.records(pci)


def begin():
    """Creates the context; the GPU is that of the state page."""
    global pci
    torch.ones(16, device="cuda").sum().item()
    pci = next(p.pci for p in gpupart.processes() if p.pid == os.getpid())
    on = read().on
    ok(on, f"records are on, {pci}")
    if not on:
        sys.exit(1)


def grown(before, after=None):
    """The growth of the counts, as a dict."""
    after = after or read()
    return {f.name: getattr(after, f.name) - getattr(before, f.name)
            for f in dataclasses.fields(after)
            if type(getattr(after, f.name)) is int and f.name != "last_end_ns"}


def by_function(before, after):
    """Launches and their ns, over all functions, because a name may have become known meanwhile."""
    return tuple(sum(getattr(f, what) for f in after.functions) -
                 sum(getattr(f, what) for f in before.functions) for what in ("count", "ns"))


def idle(words):
    """After a wait for the GPU."""
    torch.cuda.synchronize()
    now = read()
    ok(not now.outstanding and not now.unknown and now.ended == now.issued and not now.busy,
       f"{words}: idle: issued {now.issued} ended {now.ended} outstanding {now.outstanding} "
       f"unknown {now.unknown}")


def running(words):
    now = read()
    ok(now.outstanding >= 1 and now.busy, f"{words}: busy, {now.outstanding} outstanding")


# ------------------------------------------------------------------------------- counts

def counts():
    a = torch.ones(1024, device="cuda")
    streams = [torch.cuda.Stream() for _ in range(4)]
    outs = [torch.empty_like(a) for _ in streams]

    def add(i):
        with torch.cuda.stream(streams[i % 4]):
            torch.add(a, 1.0, out=outs[i % 4])

    torch.cuda.synchronize()
    for i in range(4):
        add(i)
    idle("four launches, and what made the context")
    before = read()
    for i in range(NR_LAUNCHES):
        add(i)
    torch.cuda.synchronize()
    after = read()
    d = grown(before, after)
    figure("counts", d)
    ok(d["issued"] == NR_LAUNCHES and d["ended"] == NR_LAUNCHES,
       f"issued {d['issued']} and ended {d['ended']} of {NR_LAUNCHES} on 4 streams")
    ok(not d["unrecorded"], f"{d['unrecorded']} unrecorded (a ring was full if there are any), "
       f"{after.unrecorded} in all")
    ok(not after.outstanding and not after.unknown and not after.busy,
       f"outstanding {after.outstanding} unknown {after.unknown}: not busy")
    of = by_function(before, after)[0]
    ok(of + d["untimed"] == NR_LAUNCHES, f"{of} told by function, {d['untimed']} untimed: "
       + ", ".join(f"{f.name[:40]} {f.count}" for f in after.functions[:3]))
    other = subprocess.run([sys.executable, "-c", OTHER, pci, str(os.getpid())], text=True,
                           capture_output=True, timeout=60)
    same = json.loads(other.stdout) if other.returncode == 0 else {}
    ok(same == dataclasses.asdict(read()),
       f"another process reads the same: {other.stderr.strip()[-200:] or same.get('ended')}")

    torch.cuda._sleep(1000)
    idle("a short sleep")
    torch.cuda._sleep(800_000_000)
    running("a long kernel")
    idle("after it")
    for stream in streams:
        with torch.cuda.stream(stream):
            torch.cuda._sleep(400_000_000)
    running("a long kernel on each stream")
    ok(read().outstanding == 4, f"{read().outstanding} outstanding on 4 streams")
    idle("after them")


# ------------------------------------------------------------------------------- graphs

def capture(work, stream):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        work()
    return graph


def replay(graph, stream, times):
    for _ in range(times):
        with torch.cuda.stream(stream):
            graph.replay()


def graphs():
    driver = ctypes.CDLL("libcuda.so.1")
    a = torch.ones(1024, device="cuda")
    outs = [torch.empty_like(a) for _ in range(3)]
    streams = [torch.cuda.Stream() for _ in range(2)]

    def adds(i):
        for _ in range(10):
            torch.add(a, 1.0, out=outs[i])

    def sleeps():
        for _ in range(20):
            torch.cuda._sleep(2_000_000)

    adds(0)
    torch.cuda._sleep(1000)
    idle("before")

    def replayed(name, times, work):
        """PyTorch may launch two kernels of its own for each replay, for random numbers."""
        torch.cuda.synchronize()
        before = read()
        work()
        torch.cuda.synchronize()
        d = grown(before)
        figure(name, d)
        ok(d["issued"] in (times, 3 * times) and d["ended"] == d["issued"],
           f"{name}: {times} replays: issued {d['issued']} ended {d['ended']}")
        ok(not d["graphs"] and not d["unrecorded"],
           f"{name}: {d['graphs']} without a record, {d['unrecorded']} unrecorded")
        idle(name)

    one, two = (capture(lambda i=i: adds(i), streams[i]) for i in range(2))
    replayed("graph_of_10", 500, lambda: replay(one, streams[0], 500))

    def both():
        for _ in range(200):
            replay(one, streams[0], 1)
            replay(two, streams[1], 1)

    replayed("two_graphs", 400, both)
    long = capture(sleeps, streams[0])
    replay(long, streams[0], 20)
    running("a graph of long kernels")
    idle("after it")

    before = read()
    for i in range(50):
        graph = capture(lambda: adds(2), streams[i % 2])
        replay(graph, streams[i % 2], 3)
        if i % 2:
            torch.cuda.synchronize()
        del graph
    torch.cuda.synchronize()
    d = grown(before)
    figure("captured_50_times", d)
    ok(d["issued"] >= 150 and not d["graphs"], f"captured and destroyed 50 times, 150 replays: "
       f"issued {d['issued']}, {d['graphs']} without a record")
    idle("captured and destroyed 50 times")

    # Launches that end without a kernel are never idle, because no later call shows their end.
    size = a.numel() * a.element_size()
    last = {
        "memcpy": lambda s: driver.cuMemcpyDtoDAsync_v2(
            ctypes.c_uint64(outs[1].data_ptr()), ctypes.c_uint64(outs[0].data_ptr()),
            ctypes.c_size_t(size), ctypes.c_void_p(s)),
        "memset": lambda s: driver.cuMemsetD8Async(
            ctypes.c_uint64(outs[1].data_ptr()), ctypes.c_ubyte(0), ctypes.c_size_t(size),
            ctypes.c_void_p(s)),
    }
    for name, call in last.items():
        results = []

        def work():
            torch.add(a, 1.0, out=outs[0])
            results.append(call(torch.cuda.current_stream().cuda_stream))

        graph = capture(work, streams[0])
        before = read()
        replay(graph, streams[0], 20)
        torch.cuda.synchronize()
        after = read()
        d = grown(before, after)
        figure(f"last_is_{name}", d)
        lost = d["graphs"] + d["unrecorded"]
        ok(results == [0] and lost == 20 and after.unknown >= 20 and after.busy and
           not after.all_known, f"a {name} is last (result {results}): {lost} of 20 "
           f"unknown, {after.unknown} in all: not idle")


# -------------------------------------------------------------------------------- parts

def spaced(part, work, nr):
    """Calls @work @nr times with idle times. Returns the part's busy time and that of events."""
    ns, before = 0, part.busy_ns
    for _ in range(nr):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.stream(part.stream):
            start.record()
            work()
            end.record()
        end.synchronize()
        ns += start.elapsed_time(end) * 1e6
        time.sleep(0.02)
    return part.busy_ns - before, ns


def other_busy():
    """The busy time of this process that another process reads."""
    text = subprocess.run([sys.executable, "-c", OTHER, pci, str(os.getpid())], check=True,
                          capture_output=True, text=True).stdout
    return json.loads(text)["busy_ns"]


def parts():
    a = torch.ones(4096, 4096, device="cuda", dtype=torch.float16)
    out = torch.empty_like(a)

    def multiply():
        for _ in range(20):
            torch.mm(a, a, out=out)

    def end_with_memset():
        torch.mm(a, a, out=out)
        ctypes.CDLL("libcuda.so.1").cuMemsetD8Async(
            ctypes.c_uint64(out.data_ptr()), ctypes.c_ubyte(0), ctypes.c_size_t(4096),
            ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))

    multiply()
    torch.cuda._sleep(1000)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    graph, odd = capture(multiply, side), capture(end_with_memset, side)
    with gpupart.split(decode="50%", prefill="rest") as split:
        decode, prefill = split.decode, split.prefill
        same = (decode.outstanding, decode.busy_ns, prefill.outstanding, prefill.busy_ns)
        ok(same == (0, 0, 0, 0), f"two new parts: {same}")
        replay(graph, decode.stream, 2)
        seen = (decode.outstanding, prefill.outstanding)
        ok(seen == (2, 0), f"two launches of a graph, outstanding: {seen}")
        torch.cuda.synchronize()
        for name, part, work in (("graph", decode, graph.replay),
                                 ("kernel", prefill, lambda: torch.cuda._sleep(5000000))):
            busy, ns = spaced(part, work, 20)
            figure(f"part_{name}", {"busy_by_events": busy / ns, "events_ns": ns / 20})
            ok(0.98 <= busy / ns <= 1.05, f"{name}: busy {busy / ns:.4f} of {ns / 20e6:.3f} ms "
               "by events, with idle times")
        first = (decode.busy_ns, prefill.busy_ns, other_busy())
        time.sleep(1)
        later = (decode.busy_ns, prefill.busy_ns, other_busy())
        ok(first == later, f"an idle second adds no busy time: {first} and {later}")
        replay(odd, prefill.stream, 3)
        torch.cuda.synchronize()
        seen = (decode.outstanding, prefill.outstanding)
        ok(seen == (0, None), f"a graph that ends with a memset, outstanding: {seen}")
        with torch.cuda.stream(prefill.stream):
            torch.cuda._sleep(1000)
        torch.cuda.synchronize()
        seen = (decode.outstanding, prefill.outstanding)
        ok(seen == (0, 0), f"and after a later kernel: {seen}")
    idle("parts")


# -------------------------------------------------------------------------------- times

def times():
    torch.cuda._sleep(1000)
    idle("before")
    # The number that takes half a second: the clocks of CPU and GPU are known to 1 or 2 ms.
    for us, nr in ((20, 25000), (100, 5000), (500, 1000)):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(20_000_000)       # the clocks rise
        torch.cuda.synchronize()
        before = read()
        start.record()
        for _ in range(nr):
            torch.cuda._sleep(us * 1800)
        end.record()
        torch.cuda.synchronize()
        after = read()
        ns = start.elapsed_time(end) * 1e6
        d = grown(before, after)
        count, kernels = by_function(before, after)
        values = {"events_ns": ns / nr, "busy_ns": d["busy_ns"] / nr,
                  "function_ns": kernels / max(count, 1), "count": count,
                  "untimed": d["untimed"], "late_ns": d["late_ns"]}
        figure(f"times_{us}us", values)
        ok(count + d["untimed"] == nr, f"{us} us: {count} of {nr} have a time")
        ok(abs(d["busy_ns"] / ns - 1) <= 0.02, f"{us} us: busy {d['busy_ns'] / ns:.4f} of the "
           f"events' time, {ns / nr:.0f} ns a kernel")
        ok(abs(values["function_ns"] * nr / ns - 1) <= 0.02,
           f"{us} us: {values['function_ns']:.0f} ns a kernel by function")
    # Streams that wait for each other: a kernel's time counts from its submission.
    streams = [torch.cuda.Stream() for _ in range(2)]
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    before = read()
    with torch.cuda.stream(streams[0]):
        start.record()
    for i in range(100):
        with torch.cuda.stream(streams[i % 2]):
            torch.cuda._sleep(180_000)
            done = torch.cuda.Event()
            done.record()
        streams[(i + 1) % 2].wait_event(done)
    with torch.cuda.stream(streams[0]):
        end.record()
    torch.cuda.synchronize()
    ns = start.elapsed_time(end) * 1e6
    d = grown(before)
    figure("times_waits", {"busy_by_events": d["busy_ns"] / ns, "sum_by_events":
                           d["kernels_ns"] / ns, "late_ns": d["late_ns"]})


# ----------------------------------------------------------------------------- profiler

def training():
    model = torch.nn.Sequential(
        torch.nn.Linear(4096, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 4096),
        torch.nn.GELU(), torch.nn.Linear(4096, 4096)).to("cuda", torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    x = torch.randn(16384, 4096, device="cuda", dtype=torch.bfloat16)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(10):
        step()
    torch.cuda.synchronize()
    return step


def train(seconds):
    step = training()
    print(f"training {os.getpid()}", flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        step()


def union(intervals, gap=0.0):
    """The time of all of them, including gaps of at most @gap between two."""
    total, last = 0.0, None
    for begin_at, end_at in sorted(intervals):
        if last is None or begin_at > last + gap:
            total += end_at - begin_at
            last = end_at
        elif end_at > last:
            total += end_at - last
            last = end_at
    return total


def residuals(x, y):
    """The residual of a line through the points, and its slope."""
    x, y = [v - x[0] for v in x], [v - y[0] for v in y]
    mx, my = statistics.fmean(x), statistics.fmean(y)
    slope = (sum((a - mx) * (b - my) for a, b in zip(x, y)) / sum((a - mx) ** 2 for a in x))
    return [abs(b - my - slope * (a - mx)) for a, b in zip(x, y)], slope


def events_of(prof):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        prof.export_chrome_trace(path)
        with open(path) as file:
            return json.load(file)["traceEvents"]


def compare_training(before, after, kernels, others):
    """kernels: those of the trace between the two reads; others: copies and memsets."""
    d = grown(before, after)
    spans = [(e["ts"] * 1000, (e["ts"] + e["dur"]) * 1000) for e in kernels]
    busy = union(spans)
    by_name = {}
    for e in kernels:
        by_name[e["name"]] = by_name.get(e["name"], 0) + 1
    was = {f.name: f.count for f in before.functions}
    of = sorted(c for c in (f.count - was.get(f.name, 0) for f in after.functions) if c)
    figure("profiler_training", {
        "trace_kernels": len(kernels), "trace_others": others, "records": d,
        "trace_busy_ns": busy, "busy_by_trace": d["busy_ns"] / busy,
        "busy_by_trace_gaps_5us": d["busy_ns"] / union(spans, 5000.0),
        "trace_counts": sorted(by_name.values()), "functions_counts": of,
        "same_counts": of == sorted(by_name.values())})
    launched = d["issued"] + d["unrecorded"]
    ok(len(kernels) <= launched <= len(kernels) + others,
       f"training: {len(kernels)} kernels and {others} copies and memsets in the trace, "
       f"issued {d['issued']}")
    ok(d["ended"] == d["issued"] and not d["unrecorded"], f"training: ended {d['ended']}, "
       f"{d['unrecorded']} unrecorded, {d['untimed']} untimed")
    ok(abs(d["busy_ns"] / busy - 1) <= 0.02,
       f"training: busy {d['busy_ns'] / busy:.4f} of the trace's {busy / 1e9:.3f} s")


def profiler():
    step = training()
    torch.cuda._sleep(1000)
    ends = []
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as prof:
        torch.cuda.synchronize()
        before = read()
        end = time.monotonic() + 3
        while time.monotonic() < end:
            step()
        torch.cuda.synchronize()
        after = read()
        for _ in range(NR_SINGLE):
            torch.cuda._sleep(20000)
            torch.cuda.synchronize()
            ends.append(read().last_end_ns)
            time.sleep(0.003)
    events = events_of(prof)
    kernels = sorted((e for e in events if e.get("cat") == "kernel"), key=lambda e: e["ts"])
    others = sum(e.get("cat") in ("gpu_memcpy", "gpu_memset") for e in events)
    ok(len(kernels) > NR_SINGLE, f"the trace has {len(kernels)} kernels")
    if len(kernels) <= NR_SINGLE:
        return
    single = kernels[-NR_SINGLE:]
    compare_training(before, after, kernels[:-NR_SINGLE], others)
    names = {e["name"] for e in single}
    ok(len(names) == 1 and "spin" in min(names), f"the last {NR_SINGLE} are of {min(names)[:60]}")
    ok(all(a < b for a, b in zip(ends, ends[1:])), "the last end grows with each")
    off, slope = residuals(ends, [(e["ts"] + e["dur"]) * 1000 for e in single])
    off.sort()
    median, p99 = statistics.median(off), off[len(off) * 99 // 100]
    figure("profiler_ends", {"median_ns": median, "p99_ns": p99, "max_ns": off[-1],
                             "drift_ppm": (slope - 1) * 1e6})
    ok(median <= 1000, f"ends: {median:.0f} ns from the trace's at the median, {p99:.0f} at p99")


if __name__ == "__main__":
    begin()
    if sys.argv[1] == "train":
        train(float(sys.argv[2]))
    else:
        {"counts": counts, "graphs": graphs, "parts": parts, "times": times,
         "profiler": profiler}[sys.argv[1]]()
