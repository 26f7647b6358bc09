# SPDX-License-Identifier: MIT
"""Run by tests/gpu/protect.sh: a network next to other programs, with and without sets.

protect.py cases FOLDER          starts both tenants under `gpupart run`, takes them through all
                                 cases, prints a table and checks
protect.py tenant FOLDER NAME    a tenant: runs in the mode of the file FOLDER/NAME.mode, without
                                 end, and writes the times of each piece to FOLDER/NAME.times

A mode is idle, good (an inference, PAUSE for the host's part, the next) or faulty (work without
a pause).
$GPUPART is the command; $GPUPART_SIM: the simulated GPU.
"""
import collections
import ctypes
import json
import os
import signal
import statistics
import subprocess
import sys
import time

PAUSE = 0.001
ENOUGH = 300     # inferences per case
LEAST = 10       # minimum for a slow case
LONGEST = 5.0    # seconds of a case, once it has LEAST
WARM = 3         # inferences after a change that do not count
PATIENCE = 60    # maximum wait in seconds
IN_FLIGHT = 4    # queued pieces of a faulty tenant
SIMULATED = bool(os.environ.get("GPUPART_SIM"))


# ----------------------------------------------------------------------------- tenants

class Torch:
    """ResNet-50 as a graph; large matrix products that flood the GPU."""

    def __init__(self):
        import torch
        import torchvision
        self.torch = torch
        model = torchvision.models.resnet50().eval().half().cuda()
        model = model.to(memory_format=torch.channels_last)
        x = torch.randn(16, 3, 224, 224, device="cuda", dtype=torch.half)
        x = x.to(memory_format=torch.channels_last)
        self.graph = torch.cuda.CUDAGraph()
        self.a = torch.randn(8192, 8192, device="cuda", dtype=torch.half)
        self.b = torch.empty_like(self.a)
        with torch.no_grad():
            for _ in range(5):
                model(x)
            torch.mm(self.a, self.a, out=self.b)
            torch.cuda.synchronize()
            with torch.cuda.graph(self.graph):
                model(x)
        self.graph.replay()
        self.sync()

    def infer(self):
        self.graph.replay()

    def flood(self):
        """Starts a piece; returns a function that waits for its end."""
        self.torch.mm(self.a, self.a, out=self.b)
        event = self.torch.cuda.Event()
        event.record()
        return event.synchronize

    def sync(self):
        self.torch.cuda.synchronize()

    @staticmethod
    def ms(start):
        """The time of an inference that began at @start and has just ended."""
        return 1000 * (time.monotonic() - start)


class Small:
    """Kernels of counted work on the simulated driver."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context, module, self.work = (ctypes.c_void_p() for _ in range(3))
        self.events = [ctypes.c_void_p(), ctypes.c_void_p()]
        self.out = ctypes.c_uint64()
        here = os.path.dirname(os.path.abspath(__file__))
        with open(here + "/../../lib/confine/probe.ptx", "rb") as f:
            ptx = f.read()
        error = self.cuda.cuInit(0) or \
            self.cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) or \
            self.cuda.cuModuleLoadData(ctypes.byref(module), ptx) or \
            self.cuda.cuModuleGetFunction(ctypes.byref(self.work), module, b"gpupart_work") or \
            self.cuda.cuEventCreate(ctypes.byref(self.events[0]), 0) or \
            self.cuda.cuEventCreate(ctypes.byref(self.events[1]), 0) or \
            self.cuda.cuMemAlloc_v2(ctypes.byref(self.out), ctypes.c_size_t(1 << 20))
        if error:
            raise RuntimeError(f"the simulated driver: error {error}")
        self.infer()
        self.sync()

    def infer(self):
        iterations = ctypes.c_uint32(2000)
        params = (ctypes.c_void_p * 2)(ctypes.addressof(self.out), ctypes.addressof(iterations))
        if self.cuda.cuEventRecord(self.events[0], None) or \
                self.cuda.cuLaunchKernel(self.work, 264, 1, 1, 1024, 1, 1, 0, None, params, None) \
                or self.cuda.cuEventRecord(self.events[1], None):
            raise RuntimeError("no launch")

    def flood(self):
        self.infer()
        return self.sync

    def sync(self):
        if self.cuda.cuCtxSynchronize():
            raise RuntimeError("no end of a launch")

    def ms(self, _start):
        """Time on the simulated GPU's clock, which does not delay the host."""
        ms = ctypes.c_float()
        if self.cuda.cuEventElapsedTime(ctypes.byref(ms), *self.events):
            raise RuntimeError("no time of a launch")
        return ms.value


def word_in(path):
    """The mode in that file, or idle if the file does not exist yet."""
    try:
        with open(path) as f:
            return f.read().strip()
    except FileNotFoundError:
        return "idle"


def tenant(folder, name):
    """Runs until it is ended. One line per piece: begin, end, mode, duration in ms."""
    engine = Small() if SIMULATED else Torch()
    flooding = collections.deque()
    idle = False
    with open(f"{folder}/{name}.times", "w", buffering=1) as f:
        f.write("ready\n")
        while True:
            mode, start = word_in(f"{folder}/{name}.mode"), time.monotonic()
            if mode == "faulty":
                flooding.append((start, engine.flood()))
                if len(flooding) > IN_FLIGHT:
                    start, wait = flooding.popleft()
                    wait()
                    end = time.monotonic()
                    f.write(f"{start:.6f} {end:.6f} faulty {1000 * (end - start):.6f}\n")
                continue
            flooding.clear()
            engine.sync()
            if mode == "idle":
                if not idle:
                    f.write(f"{start:.6f} {time.monotonic():.6f} idle 0\n")
                time.sleep(0.005)
            else:
                start = time.monotonic()
                engine.infer()
                engine.sync()
                ms = engine.ms(start)
                f.write(f"{start:.6f} {time.monotonic():.6f} good {ms:.6f}\n")
                time.sleep(PAUSE)
            idle = mode == "idle"


# ------------------------------------------------------------------------------- cases

def ok(good, what):
    """One check."""
    print(("ok - " if good else "not ok - ") + what, flush=True)


def gpupart(*args):
    """The command's stdout; the command must succeed."""
    return subprocess.run([os.environ["GPUPART"], *args], check=True, stdout=subprocess.PIPE,
                          text=True, timeout=PATIENCE).stdout


class Tenant:
    """One of the two, as seen from outside."""

    def __init__(self, folder, name, tpcs):
        self.mode_file, self.times = f"{folder}/{name}.mode", f"{folder}/{name}.times"
        self.name, self.at = f"protect-{os.getpid()}-{name}", 0
        self.log = open(f"{folder}/{name}.err", "w")
        for path in (self.mode_file, self.times):
            if os.path.exists(path):
                os.remove(path)
        source = ["-i", os.environ["GPUPART_SIM"]] if SIMULATED else ["--mps"]
        self.process = subprocess.Popen(
            [os.environ["GPUPART"], "run", *source, "-t", tpcs, "--name", self.name, "--",
             sys.executable, __file__, "tenant", folder, name], stdout=self.log,
            stderr=self.log, start_new_session=True)

    def until(self, there, what):
        """Waits for a condition, with a time limit."""
        end = time.monotonic() + PATIENCE
        while not there():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{self.name}: {what}: it ended with {self.process.poll()}")
            time.sleep(0.002)

    def is_ready(self):
        return os.path.exists(self.times) and os.path.getsize(self.times) > 0

    def rows(self):
        """Complete lines since mark(): begin, end, mode, ms."""
        with open(self.times) as f:
            f.seek(self.at)
            lines = f.read().split("\n")[:-1]
        return [(float(a), float(b), word, float(ms)) for a, b, word, ms in
                (line.split() for line in lines if line != "ready")]

    def mark(self):
        """Only lines written from now on count."""
        self.at = os.path.getsize(self.times)

    def do(self, mode):
        """Changes the mode and waits until it is in effect."""
        now = time.monotonic()
        with open(self.mode_file + ".new", "w") as f:
            f.write(mode)
        os.rename(self.mode_file + ".new", self.mode_file)
        if mode != "idle" or any(True for _ in self.rows()):
            self.until(lambda: any(r[0] >= now and r[2] == mode for r in self.rows()) or
                       (mode == "idle" and self.rows()[-1][2] == "idle"), mode)

    def have(self, tpcs):
        gpupart("set", self.name, "-t", tpcs)

    def end(self):
        """Ends it and all processes that it started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait()
        self.log.close()


def eighths():
    """The TPCs of the GPU in eight parts: its GPCs if it has eight."""
    source = ["-i", os.environ["GPUPART_SIM"]] if SIMULATED else []
    gpcs = [g["tpcs"] for g in json.loads(gpupart("topology", "--json", *source))["gpcs"]
            if g["tpcs"]]
    if len(gpcs) == 8:
        return gpcs
    tpcs = sum(gpcs, [])
    return [tpcs[len(tpcs) * i // 8:len(tpcs) * (i + 1) // 8] for i in range(8)]


class Cases:
    """Both tenants, and the measurements of each case, in the order of the table."""

    def __init__(self, victim, other):
        self.victim, self.other, self.rows = victim, other, {}

    def measure(self, name, sets, mode):
        """Inferences of the victim while the other is in @mode."""
        victim, other = self.victim, self.other
        victim.have(sets[0])
        other.have(sets[1])
        other.do(mode)
        victim.mark()
        other.mark()
        begin = time.monotonic()
        victim.until(lambda: self.enough(begin), f"{name}: inferences")
        # Pieces that end after the last inference belong to another time.
        rows = [r for r in victim.rows() if r[0] >= begin][WARM:]
        until, since = rows[-1][1], rows[0][0]
        ms = [r[3] for r in rows]
        pieces = [r for r in other.rows() if since <= r[1] <= until and r[2] != "idle"]
        took = [r[3] for r in pieces]
        self.rows[name] = {
            "mean": statistics.fmean(ms), "sd": statistics.pstdev(ms), "min": min(ms),
            "median": statistics.median(ms), "max": max(ms), "nr": len(ms),
            "tpcs": sets, "other_per_second": len(pieces) / (until - since),
            "other_mean": statistics.fmean(took) if took else None,
        }

    def enough(self, begin):
        nr = len([r for r in self.victim.rows() if r[0] >= begin]) - WARM
        return nr >= ENOUGH or (nr >= LEAST and time.monotonic() - begin > LONGEST)

    def mean(self, name):
        return self.rows[name]["mean"]


def show(rows):
    """A table in Markdown."""
    lines = ["| case | mean ms | sd | min | median | max | inferences | times beside a good one "
             "without sets | other: pieces a second | mean ms |", "|---" * 10 + "|"]
    good = rows["no sets / good beside"]["mean"]
    for name, r in rows.items():
        mean = f"{r['other_mean']:.3f}" if r["other_mean"] is not None else "-"
        lines.append(f"| {name} | " + " | ".join(f"{r[k]:.3f}" for k in
                     ("mean", "sd", "min", "median", "max")) +
                     f" | {r['nr']} | {r['mean'] / good:.3f} | {r['other_per_second']:.1f} | "
                     f"{mean} |")
    return lines


def judge(c):
    """The checks; on the simulated GPU processes do not affect each other."""
    first, last = c.rows["split 1:7"], c.rows["split 7:1"]
    ok(first["mean"] > last["mean"] and first["other_mean"] < last["other_mean"],
       f"split 1:7 to 7:1: {first['mean']:.3f} to {last['mean']:.3f} ms, the other "
       f"{first['other_mean']:.3f} to {last['other_mean']:.3f}")
    if SIMULATED:
        print("skip - a neighbour's price: processes have a simulated GPU each")
        return
    ok(c.mean("no sets / faulty beside") > c.mean("no sets / good beside"),
       "without sets a faulty neighbour costs more than a good one")
    ok(c.mean("half each / faulty beside") < c.mean("no sets / faulty beside"),
       "beside a faulty one half of the GPU is better than all of it without sets")
    times = c.mean("half each / faulty beside") / c.mean("half each / alone")
    ok(times <= 1.5, f"in sets a faulty one makes it {times:.3f} times as long as alone in its set")


def cases(folder):
    """Runs all cases; both tenants live all the time."""
    parts = eighths()
    lists = [",".join(map(str, sorted(sum(parts[:i], [])))) for i in range(9)]
    rests = [",".join(map(str, sorted(sum(parts[i:], [])))) for i in range(9)]
    everything = lists[8]
    both = [Tenant(folder, name, everything) for name in ("victim", "other")]
    c = Cases(*both)
    try:
        for t in both:
            t.until(t.is_ready, "begins")
        c.victim.do("good")
        for where, sets in (("no sets", (everything, everything)),
                            ("half each", (lists[4], rests[4]))):
            for name, mode in (("alone", "idle"), ("good beside", "good"),
                               ("faulty beside", "faulty")):
                c.measure(f"{where} / {name}", sets, mode)
        for i in range(1, 8):
            c.measure(f"split {i}:{8 - i}", (lists[i], rests[i]), "good")
    finally:
        for t in both:
            t.end()
    table = show(c.rows)
    table += ["", '"no sets": a set of all TPCs each. A faulty piece has waited for those that '
              "were queued before it."]
    if SIMULATED:
        table.insert(0, "simulated: the figures mean nothing")
    for line in table:
        print("# " + line)
    with open(f"{folder}/protect.md", "w") as f:
        f.write("\n".join(table) + "\n")
    with open(f"{folder}/protect.json", "w") as f:
        json.dump({"simulated": SIMULATED, "cases": c.rows}, f, indent=1)
    ok(len(c.rows) == 13 and all(r["nr"] >= LEAST for r in c.rows.values()),
       f"{len(c.rows)} cases of {LEAST} inferences or more")
    judge(c)


if __name__ == "__main__":
    if sys.argv[1] == "tenant":
        tenant(sys.argv[2], sys.argv[3])
    else:
        cases(sys.argv[2])
