# SPDX-License-Identifier: MIT
"""Run by tests/gpu/lend.sh: a server and a batch program, with lending of the server's TPCs and
without, for each load of the server and each limit.

lend.py cases FOLDER          starts both under `gpupart run`, takes them through all phases,
                              prints a table and checks
lend.py serve|batch FOLDER NAME   one of them: runs while FOLDER/NAME.go exists, until it is
                              ended, and writes one line per request, or per few kernels, to
                              FOLDER/NAME.times
$GPUPART is the command; $LIMITS the limits, each with "/DEPTH" if its bound is not the default;
$KERNEL_US the length of the batch program's kernels on all TPCs; $DUTIES the shares of the time
in which the server is busy alone; $GOAL the goal of the server under qos run, relative to its p99
with fixed sets; $ELEMENTS the size of the batch program's kernels, which the first program
measures and the others use; $GPUPART_SIM: the simulated GPU. FOLDER/NAME.period has the seconds
from one request to the next.
"""
import collections
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time

PERIOD = 0.0125  # seconds from one request to the next, until the server was measured
KERNELS = 40     # per request
REQUEST = 0.0028  # target time of a request in seconds, on its TPCs
# seconds of a kernel of the batch program on 66 TPCs
LONG = float(os.environ.get("KERNEL_US", "270")) / 1e6
GROUP = 10       # kernels between two recorded times
AHEAD = 20       # queued groups
PATIENCE = 60    # maximum wait in seconds
SERVER, REST = "0-23", "24-65"
SIMULATED = bool(os.environ.get("GPUPART_SIM"))
SECONDS = 2 if SIMULATED else 10
SETTLE = 3       # seconds until the controller knows the latency without lending
DUTIES = [float(d) for d in os.environ.get("DUTIES", "0.3 0.55").split()]
LIMITS = os.environ.get("LIMITS", "400us 600us").split()
GOAL = float(os.environ.get("GOAL", "1.2"))


# ----------------------------------------------------------------------------- programs

class Torch:
    """Elementwise in double precision: bound by the SMs, and launched without a graph."""

    def __init__(self, seconds, tpcs, elements=0):
        import torch
        self.torch = torch
        if elements:
            self.take(elements)
            self.time()
            return
        # The number of elements that takes this long on @tpcs, measured on all TPCs of this
        # process.
        have = torch.cuda.get_device_properties(0).multi_processor_count // 2
        self.take(1 << 22)
        measured = min(self.time() for _ in range(5))
        sets = os.environ.get("GPUPART_SET", "")
        if "-" in sets:
            first, last = sets.split("-")
            have = int(last) - int(first) + 1
        self.take(max(1 << 14, int((1 << 22) * seconds / measured * tpcs / have)))
        self.time()

    def take(self, nr):
        self.elements = nr
        self.x = self.torch.rand(nr, device="cuda", dtype=self.torch.double) + 1
        self.y = self.torch.empty_like(self.x)

    def time(self):
        """Seconds of a kernel."""
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.launch()
        begin.record()
        for _ in range(10):
            self.launch()
        end.record()
        self.sync()
        return begin.elapsed_time(end) / 1e4

    def launch(self):
        self.torch.lgamma(self.x, out=self.y)

    def mark(self):
        """Returns a function that waits for all earlier launches."""
        event = self.torch.cuda.Event()
        event.record()
        return event.synchronize

    def sync(self):
        self.torch.cuda.synchronize()


class Small:
    """Kernels that occupy their SMs for some time, on the simulated driver."""

    def __init__(self, seconds, _tpcs, elements=0):
        self.elements = elements or 1
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context, module, self.kernel = (ctypes.c_void_p() for _ in range(3))
        self.out, self.ns = ctypes.c_uint64(), ctypes.c_uint32(int(seconds * 1e9))
        here = os.path.dirname(os.path.abspath(__file__))
        with open(here + "/../../lib/confine/probe.ptx", "rb") as f:
            ptx = f.read()
        error = self.cuda.cuInit(0) or \
            self.cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) or \
            self.cuda.cuModuleLoadData(ctypes.byref(module), ptx) or \
            self.cuda.cuModuleGetFunction(ctypes.byref(self.kernel), module, b"gpupart_census") \
            or self.cuda.cuMemAlloc_v2(ctypes.byref(self.out), ctypes.c_size_t(1 << 20))
        if error:
            raise RuntimeError(f"the simulated driver: error {error}")

    def launch(self):
        params = (ctypes.c_void_p * 2)(ctypes.addressof(self.out), ctypes.addressof(self.ns))
        if self.cuda.cuLaunchKernel(self.kernel, 16, 1, 1, 32, 1, 1, 0, None, params, None):
            raise RuntimeError("no launch")

    def mark(self):
        return self.sync

    def sync(self):
        if self.cuda.cuCtxSynchronize():
            raise RuntimeError("no end of a launch")


def serve(folder, name):
    """Periodic requests; a late one begins at once, and its time counts from its due time."""
    engine = (Small if SIMULATED else Torch)(REQUEST / KERNELS, 24)
    due, period = 0, PERIOD
    # The library that gpupart loaded into this process.
    library = ctypes.CDLL("libgpupart.so.0", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    report = library.gpupart_latency_report
    report.argtypes = [ctypes.c_uint64]
    with open(f"{folder}/{name}.times", "w", buffering=1) as f:
        f.write("ready\n")
        while True:
            now = time.monotonic()
            if not os.path.exists(f"{folder}/{name}.go"):
                time.sleep(0.01)
                due = 0
                if os.path.exists(f"{folder}/{name}.period"):
                    with open(f"{folder}/{name}.period") as g:
                        period = float(g.read() or period)
                continue
            due = max(due + period, now - 1) if due else now
            if due > now:
                time.sleep(due - now)
            for _ in range(KERNELS):
                engine.launch()
            engine.sync()
            took = time.monotonic() - due
            report(int(took * 1e9))
            f.write(f"{due:.6f} {1000 * took:.4f}\n")


def batch(folder, name):
    """As many kernels as fit into the queue."""
    engine = (Small if SIMULATED else Torch)(LONG, 66, int(os.environ.get("ELEMENTS", "0")))
    marks = collections.deque()
    with open(f"{folder}/{name}.times", "w", buffering=1) as f:
        f.write(f"ready {engine.elements}\n")
        while True:
            if not os.path.exists(f"{folder}/{name}.go"):
                time.sleep(0.01)
                continue
            for _ in range(GROUP):
                engine.launch()
            marks.append(engine.mark())
            if len(marks) >= AHEAD:
                marks.popleft()()
                f.write(f"{time.monotonic():.6f} {GROUP}\n")


# ----------------------------------------------------------------------------- cases

def ok(good, words):
    """A line of TAP without its number."""
    print(f"{'ok' if good else 'not ok'} - {words}", flush=True)


class Program:
    """One of the two, under gpupart run."""

    def __init__(self, folder, name, kind, options):
        self.times, self.go = f"{folder}/{name}.times", f"{folder}/{name}.go"
        self.err = f"{folder}/{name}.err"
        for path in (self.times, self.go):      # from an earlier run
            if os.path.exists(path):
                os.unlink(path)
        source = ["-i", os.environ["GPUPART_SIM"]] if SIMULATED else ["--mps"]
        with open(self.err, "w") as err:
            self.process = subprocess.Popen(
                [os.environ["GPUPART"], "run", "--name", name] + source + options +
                ["--", sys.executable, os.path.abspath(sys.argv[0]), kind, folder, name],
                stdout=err, stderr=err)
        end = time.monotonic() + PATIENCE
        while not (os.path.exists(self.times) and "ready" in open(self.times).readline()):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{name} does not begin: {open(self.err).read()[-600:]}")
            time.sleep(0.05)

    def runs(self, on):
        if on:
            open(self.go, "w").close()
        elif os.path.exists(self.go):
            os.unlink(self.go)

    def between(self, begin, end):
        """The second words of its lines in that interval."""
        with open(self.times) as f:
            rows = [line.split() for line in f if line.endswith("\n") and line[0].isdigit()]
        return [float(r[1]) for r in rows if begin <= float(r[0]) < end]

    def end(self):
        self.runs(False)
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        with open(self.err) as f:
            return f.read()


def part(values, share):
    """A percentile."""
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def phase(server, other, seconds, settle=1):
    """Runs both, or one of them (the other is None), for some time: a row of the table."""
    for p in (server, other):
        if p:
            p.runs(True)
    time.sleep(settle)
    begin = time.monotonic()
    time.sleep(seconds)
    end = time.monotonic()
    for p in (server, other):
        if p:
            p.runs(False)
    time.sleep(0.5)
    row = {}
    if server:
        ms = server.between(begin, end)
        row.update(requests=len(ms), p50=part(ms, 0.5), p99=part(ms, 0.99), p999=part(ms, 0.999))
    if other:
        row["kernels"] = sum(other.between(begin, end)) / (end - begin)
    return row


def controller(folder, goal_ms):
    """A `qos run` that gives the server a goal, so that its slack is the default limit."""
    source = ["-i", os.environ["GPUPART_SIM"]] if SIMULATED else []
    with open(f"{folder}/qos.err", "w") as err:
        return subprocess.Popen(
            [os.environ["GPUPART"], "qos", "run"] + source +
            ["--tenant", f"serve:job=serve,latency={goal_ms:.3f}ms,floor=24,ceiling=24",
             "--log", f"{folder}/qos.log"], stdout=err, stderr=err)


def limits_of(folder):
    """The limit above 0 that applies to the borrower with the default limit now, in ms."""
    process = json.loads(subprocess.run([os.environ["GPUPART"], "ps", "--json"], check=True,
                                        capture_output=True, text=True).stdout)["processes"]
    lent = [p["lending"] for p in process if p["name"] == "default" and p["lending"]]
    return [one["limit_ns"] / 1e6 for one in lent if one["limit_ns"]]


class Table:
    """The rows of each duty, and their ratios."""

    def __init__(self):
        self.rows = {duty: {} for duty in DUTIES}
        self.own = self.whole = 0   # kernels/s of the batch program alone, on its TPCs, on all

    def share(self, duty, row):
        """The part of the possible gain that @row has."""
        fixed = self.rows[duty]["fixed sets"]
        possible = (1 - duty) * (self.whole - fixed["kernels"])
        return (row["kernels"] - fixed["kernels"]) / possible if possible else float("nan")

    def show(self):
        print("# | duty | | requests | p50 ms | p99 ms | p99.9 ms | kernels/s | p99 to fixed | "
              "p99.9 to fixed | p99 to alone | p99.9 to alone | share of the possible gain |")
        for duty, rows in self.rows.items():
            for name, r in rows.items():
                cells = [f"{duty:.2f}", name, str(r["requests"])]
                cells += [f"{r[k]:.3f}" for k in ("p50", "p99", "p999")]
                cells.append(f"{r['kernels']:.0f}" if "kernels" in r else "")
                for base in ("fixed sets", "alone"):
                    cells += [f"{r[k] / rows[base][k]:.3f}" if name != base and name != "alone"
                              else "" for k in ("p99", "p999")]
                cells.append(f"{self.share(duty, r):.2f}"
                             if name.startswith("lent") else "")
                print("# | " + " | ".join(cells) + " |")


def set_duty(server, folder, duty, alone_ms):
    with open(f"{folder}/serve.period", "w") as f:
        f.write(f"{alone_ms / 1000 / duty:.6f}")
    time.sleep(0.1)


def lent_launches(said):
    """From the last message of run."""
    found = re.search(r"(\d+) launches could also use idle TPCs", said)
    return int(found.group(1)) if found else 0


def cases(folder):
    table, said, seen = Table(), {}, []
    server = Program(folder, "serve", "serve", ["-t", SERVER])
    qos = None
    try:
        alone_ms = phase(server, None, SECONDS / 4)["p50"]
        for duty in DUTIES:
            set_duty(server, folder, duty, alone_ms)
            table.rows[duty]["alone"] = phase(server, None, SECONDS / 2)
        variants = [("fixed sets", "fixed", ["-t", REST])]
        for limit in LIMITS:
            time_limit, _, depth = limit.partition("/")
            variants.append((f"lent, limit {limit}", "lent-" + limit.replace("/", "-"),
                             ["-t", REST, "--lend", "serve", "--lend-limit", time_limit] +
                             (["--depth", depth] if depth else [])))
        variants += [("lent, default limit", "default", ["-t", REST, "--lend", "serve"]),
                     ("whole", "whole", ["-t", "0-65"])]
        for name, job, options in variants:
            other = Program(folder, job, "batch", options)
            with open(other.times) as f:
                os.environ["ELEMENTS"] = f.readline().split()[1]
            try:
                if name == "whole":
                    table.whole = phase(None, other, SECONDS / 4)["kernels"]
                    continue
                if name == "fixed sets":
                    table.own = phase(None, other, SECONDS / 4)["kernels"]
                for duty in DUTIES:
                    set_duty(server, folder, duty, alone_ms)
                    if job == "default":
                        qos = controller(folder, GOAL * table.rows[duty]["fixed sets"]["p99"])
                    table.rows[duty][name] = phase(server, other, SECONDS,
                                                   SETTLE if qos else 1)
                    if qos:
                        seen += limits_of(folder)
                        qos.terminate()
                        qos.wait(30)
                        qos = None
            finally:
                said[name] = other.end()
    finally:
        if qos:
            qos.kill()
        server.end()
    if SIMULATED:
        print("# simulated: the figures mean nothing")
    table.show()
    print(f"# the batch program alone: {table.own:.0f} kernels/s on its TPCs, "
          f"{table.whole:.0f} on all")
    print(f"# default limits in ms, for a goal of {GOAL} times the p99 of fixed sets:",
          " ".join(f"{limit:.3f}" for limit in seen) or "none")
    for name, text in said.items():
        for line in text.splitlines():
            print(f"# {name}: {line}")
    with open(f"{folder}/lend.json", "w") as f:
        json.dump({"simulated": SIMULATED, "rows": {str(d): r for d, r in table.rows.items()},
                   "own": table.own, "whole": table.whole, "goal": GOAL, "limits_ms": seen,
                   "said": said}, f, indent=1)
    for name, text in said.items():
        if name.startswith("lent"):
            ok(lent_launches(text) > 0, f"{name}: {lent_launches(text)} launches used lent TPCs")
    if SIMULATED:
        print("skip - what it is worth: processes have a simulated GPU each")
        return
    for duty, rows in table.rows.items():
        best = max(table.share(duty, r) for name, r in rows.items() if name.startswith("lent"))
        ok(best >= 0.7, f"duty {duty}: {100 * best:.0f}% of the possible gain with the best limit")
        default = rows["lent, default limit"]
        ok(default["p99"] <= 1.05 * GOAL * rows["fixed sets"]["p99"],
           f"duty {duty}, default limit: p99 {default['p99'] / rows['fixed sets']['p99']:.3f} "
           f"times that of fixed sets; the goal was {GOAL}")


if __name__ == "__main__":
    if sys.argv[1] == "cases":
        cases(sys.argv[2])
    else:
        (serve if sys.argv[1] == "serve" else batch)(sys.argv[2], sys.argv[3])
