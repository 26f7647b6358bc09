# SPDX-License-Identifier: MIT
"""Run by tests/gpu/two_stages.sh: a text stage next to a vocoder-like stage, as two processes.

two_stages.py cases FOLDER    starts both under `gpupart run`, takes them through all phases by
                              `gpupart set`, prints a table and checks
two_stages.py text|vocoder FOLDER NAME    one of them: steps while FOLDER/NAME.go exists, until
                              it is ended; one line per step in FOLDER/NAME.times
Each set has 32 TPCs or more: with fewer, cuBLAS has been reported to wait forever.
"""
import json
import os
import subprocess
import sys
import time

from lend import SIMULATED, Program, Small, ok, part

SECONDS = 0.5 if SIMULATED else 3
WHOLE, REST = ["-a"], "rest"
SHAPES = ("packed", "spread", "balanced")
TOGETHER = [f"sets, {shape}" for shape in SHAPES]
LEAST = 32      # minimum TPCs of a set


class Text:
    """The decode loop of a model with 1.6 billion parameters, for 8 rows: the host waits for each
    step's token. Matrices and elementwise kernels in a CUDA graph; without attention."""
    LAYERS, HIDDEN, FFN, ROWS = 24, 2048, 8192, 8

    def __init__(self):
        import torch
        torch.set_grad_enabled(False)
        self.torch = torch

        def weight(*shape):
            return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * shape[0] ** -0.5
        self.layers = [(weight(self.HIDDEN, 3 * self.HIDDEN), weight(self.HIDDEN, self.HIDDEN),
                        weight(self.HIDDEN, 2 * self.FFN), weight(self.FFN, self.HIDDEN))
                       for _ in range(self.LAYERS)]
        self.x = weight(self.ROWS, self.HIDDEN)
        self.stream = torch.cuda.Stream()
        with torch.cuda.stream(self.stream):
            self.compute()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=self.stream):
            self.out = self.compute()

    def compute(self):
        torch, x = self.torch, self.x
        for qkv, out, up, down in self.layers:
            q, k, v = (x @ qkv).chunk(3, -1)
            x = torch.nn.functional.layer_norm(x + (q * torch.sigmoid(k) + v) @ out, (self.HIDDEN,))
            a, b = (x @ up).chunk(2, -1)
            x = torch.nn.functional.layer_norm(x + (torch.sigmoid(a) * b) @ down, (self.HIDDEN,))
        return x.float().sum(-1)

    def step(self):
        with self.torch.cuda.stream(self.stream):
            self.graph.replay()
            self.out.cpu()


class Vocoder:
    """Convolutions like those of a vocoder: 4 times longer and narrower at each of 4 stages, with
    blocks of three kernel sizes; 8 clips of 128 frames, 256 samples per frame."""

    def __init__(self):
        import torch
        torch.set_grad_enabled(False)
        self.torch = torch
        make, self.stages, channels = torch.nn, [], 512
        for _ in range(4):
            up = make.ConvTranspose1d(channels, channels // 2, 8, 4, 2)
            channels //= 2
            blocks = [make.Conv1d(channels, channels, k, padding=k // 2) for k in (3, 7, 11)]
            self.stages.append([m.to("cuda", torch.bfloat16) for m in (up, *blocks)])
        self.x = torch.randn(8, 512, 128, device="cuda", dtype=torch.bfloat16)
        for _ in range(3):
            self.step()

    def step(self):
        x, act = self.x, self.torch.nn.functional.leaky_relu
        for up, *blocks in self.stages:
            x = up(act(x, 0.1))
            x = sum(block(act(x, 0.1)) for block in blocks) + x
        x.float().mean().item()


class Substitute(Small):
    """A replacement for both on the simulated GPU."""

    def __init__(self):
        super().__init__(0.001, 0)

    def step(self):
        self.launch()
        self.sync()


def work(kind, folder, name):
    stage = Substitute() if SIMULATED else {"text": Text, "vocoder": Vocoder}[kind]()
    with open(f"{folder}/{name}.times", "w", buffering=1) as f:
        f.write("ready\n")
        while True:
            if not os.path.exists(f"{folder}/{name}.go"):
                time.sleep(0.01)
                continue
            for _ in range(10):
                begin = time.monotonic()
                stage.step()
                f.write(f"{begin:.6f} {1000 * (time.monotonic() - begin):.4f}\n")


def give(name, words):
    """Changes the set of a job; returns its TPCs, none if it failed."""
    done = subprocess.run([os.environ["GPUPART"], "set", name, "--json", *words],
                          stdout=subprocess.PIPE, text=True)
    tpcs = set()
    if not done.returncode:
        words = json.loads(done.stdout)["changes"][0]["set"]["list"]
        for one in words.split(","):
            first, _, last = one.partition("-")
            tpcs |= set(range(int(first), int(last or first) + 1))
        print(f"# {name}: {words}", flush=True)
    return tpcs


def phase(programs, words, text, vocoder):
    """Runs the stages that have a set at the same time: name to p50, p99 and steps per second.
    @vocoder may be all TPCs that @text leaves."""
    every, given = [give(name, WHOLE) for name in programs][0], {}
    if text:
        given["text"] = give("text", text)
    if vocoder == REST:
        vocoder = ["-t", ",".join(map(str, sorted(every - given["text"])))]
    if vocoder:
        given["vocoder"] = give("vocoder", vocoder)
    apart = words in TOGETHER
    good = all(len(tpcs) >= LEAST for tpcs in given.values()) and \
        not (apart and given["text"] & given["vocoder"])
    ok(good, f"{words}: " + ", ".join(f"{name} has {len(t)} TPCs" for name, t in given.items()) +
       (", disjoint" if apart else ""))
    if not good:
        return {}
    for name in given:
        programs[name].runs(True)
    time.sleep(0.7)
    begin = time.monotonic()
    time.sleep(SECONDS)
    end, rows = time.monotonic(), {}
    for name in given:
        programs[name].runs(False)
    time.sleep(0.2)
    for name in given:
        ms = programs[name].between(begin, end)
        rows[name] = {"p50": part(ms, 0.5), "p99": part(ms, 0.99),
                      "rate": len(ms) / (end - begin)}
    return rows


def cases(folder):
    phases = [("alone", WHOLE, None), ("alone", None, WHOLE),
              ("alone, 64 SMs", ["-n", "32"], None), ("alone, 96 SMs", None, ["-n", "48"]),
              ("plain MPS", WHOLE, WHOLE),
              *((f"sets, {shape}", ["-n", "32", "--shape", shape], REST) for shape in SHAPES)]
    programs, table = {}, []
    try:
        for name in ("text", "vocoder"):
            programs[name] = Program(folder, name, name, ["-u", "0,1"])
        for words, text, vocoder in phases:
            table.append((words, phase(programs, words, text, vocoder)))
    finally:
        for program in programs.values():
            program.end()
    alone = {name: row["p50"] for words, rows in table[:2] for name, row in rows.items()}
    if SIMULATED:
        print("# simulated: the figures mean nothing")
    print("# | | text p50 ms | p99 | of alone | vocoder p50 ms | p99 | of alone |")
    for words, rows in table:
        cells = [words]
        for name in ("text", "vocoder"):
            row = rows.get(name)
            of = row["p50"] / alone.get(name, float("nan")) if row else 0
            cells += [f"{row['p50']:.3f}", f"{row['p99']:.3f}", f"{of:.2f}"] if row else [""] * 3
        print("# | " + " | ".join(cells) + " |")
    print("# public: text at 64 SMs 1.09 times its time alone, vocoder at 96 SMs 1.18 times")
    with open(f"{folder}/two_stages.json", "w", encoding="utf-8") as f:
        json.dump({"simulated": SIMULATED, "phases": table}, f, indent=1)
    for words, rows in table:
        ok(rows and all(row["rate"] > 1 for row in rows.values()), f"{words}: each stage went on")
    if SIMULATED:
        print("skip - what it is worth: processes have a simulated GPU each")
        return
    plain = table[4][1].get("text", {}).get("p50", 0)
    best = min((rows["text"]["p50"] for _, rows in table[5:] if rows), default=plain)
    ok(best < plain, f"the text stage in sets: {best:.3f} ms a step at best, plain {plain:.3f}")


if __name__ == "__main__":
    if sys.argv[1] == "cases":
        cases(sys.argv[2])
    else:
        work(sys.argv[1], sys.argv[2], sys.argv[3])
