# SPDX-License-Identifier: MIT
"""Run by tests/gpu/lend.sh: a server and a batch program, with lending of the server's TPCs and
without.

lend.py cases FOLDER          starts both under `gpupart run`, takes them through all phases,
                              prints a table and checks
lend.py serve|batch FOLDER NAME   one of them: runs while FOLDER/NAME.go exists, until it is
                              ended, and writes one line per request, or per few kernels, to
                              FOLDER/NAME.times
$GPUPART is the command; $LIMIT the limit; $ELEMENTS the size of the batch program's kernels, which
the first program measures and the others use; $GPUPART_SIM: the simulated GPU.
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

PERIOD = 0.0125  # seconds from one request to the next
KERNELS = 40     # per request
REQUEST = 0.0028  # target time of a request in seconds, on its TPCs
LONG = 0.00027   # seconds of a kernel of the batch program on 66 TPCs
GROUP = 10       # kernels between two recorded times
AHEAD = 20       # queued groups
PATIENCE = 60    # maximum wait in seconds
SERVER, REST = "0-23", "24-65"
SIMULATED = bool(os.environ.get("GPUPART_SIM"))
SECONDS = 2 if SIMULATED else 12


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
    due = 0
    with open(f"{folder}/{name}.times", "w", buffering=1) as f:
        f.write("ready\n")
        while True:
            now = time.monotonic()
            if not os.path.exists(f"{folder}/{name}.go"):
                time.sleep(0.01)
                due = 0
                continue
            due = max(due + PERIOD, now - 1) if due else now
            if due > now:
                time.sleep(due - now)
            for _ in range(KERNELS):
                engine.launch()
            engine.sync()
            f.write(f"{due:.6f} {1000 * (time.monotonic() - due):.4f}\n")


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


def phase(server, other, seconds):
    """Runs both, or one of them (the other is None), for some time: a row of the table."""
    for p in (server, other):
        if p:
            p.runs(True)
    time.sleep(1)
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


def cases(folder):
    limit = os.environ.get("LIMIT", "600us")
    rows, said = {}, ""
    server = Program(folder, "serve", "serve", ["-t", SERVER])
    try:
        rows["alone, 24 TPCs"] = phase(server, None, SECONDS / 2)
        for name, options, seconds in (("fixed", ["-t", REST], SECONDS),
                                       ("lent", ["-t", REST, "--lend", "serve", "--lend-limit",
                                                 limit], SECONDS),
                                       ("whole", ["-t", "0-65"], SECONDS / 2)):
            other = Program(folder, name, "batch", options)
            with open(other.times) as f:
                os.environ["ELEMENTS"] = f.readline().split()[1]
            try:
                if name != "lent":
                    rows[f"alone, TPCs {options[1]}"] = phase(None, other, SECONDS / 4)
                if name != "whole":
                    rows["fixed sets" if name == "fixed" else f"lent, limit {limit}"] = \
                        phase(server, other, seconds)
            finally:
                text = other.end()
                said += text if name == "lent" else ""
    finally:
        server.end()
    lent, fixed, alone = rows[f"lent, limit {limit}"], rows["fixed sets"], rows["alone, 24 TPCs"]
    if SIMULATED:
        print("# simulated: the figures mean nothing")
    print("# | | requests | p50 ms | p99 ms | p99.9 ms | kernels/s |")
    for name, r in rows.items():
        cells = [name, str(r.get("requests", ""))]
        cells += [f"{r[k]:.3f}" if k in r else "" for k in ("p50", "p99", "p999")]
        cells.append(f"{r['kernels']:.0f}" if "kernels" in r else "")
        print("# | " + " | ".join(cells) + " |")
    for line in said.splitlines():
        print("# " + line)
    with open(f"{folder}/lend.json", "w") as f:
        json.dump({"simulated": SIMULATED, "rows": rows, "said": said}, f, indent=1)
    found = re.search(r"(\d+) launches could use idle TPCs", said)
    borrowed = int(found.group(1)) if found else 0
    ok(borrowed > 0, f"{borrowed} launches were lent TPCs")
    if SIMULATED:
        print("skip - what it is worth: processes have a simulated GPU each")
        return
    ok(lent["kernels"] > 1.1 * fixed["kernels"],
       f"{lent['kernels'] / fixed['kernels']:.2f} times the kernels/s of fixed sets")
    ok(lent["p99"] < alone["p99"] + 2,
       f"the server's p99 is {lent['p99']:.3f} ms, alone {alone['p99']:.3f}")


if __name__ == "__main__":
    if sys.argv[1] == "cases":
        cases(sys.argv[2])
    else:
        (serve if sys.argv[1] == "serve" else batch)(sys.argv[2], sys.argv[3])
