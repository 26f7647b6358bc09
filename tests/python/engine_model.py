# SPDX-License-Identifier: MIT
"""The example engine on a CPU: in each mode its tokens equal those of a plain transformer."""
import itertools
import json
import os
import subprocess
import sys
import tempfile

from tap import ROOT, done, ok, same

sys.path.insert(0, os.path.join(ROOT, "share/examples/engine"))
import engine as module  # noqa: E402
import torch  # noqa: E402
from engine import WAYS, Cpu, Engine  # noqa: E402
from model import SHAPES, Model  # noqa: E402
from policy import ALONE, MIXED, Goals, Request  # noqa: E402

torch.set_grad_enabled(False)
torch.set_num_threads(1)
# With pages of 8 and chunks of 16 tokens: below, at and above both sizes.
LENGTHS = [(1, 3), (7, 12), (8, 9), (9, 1), (15, 2), (16, 17), (17, 20), (40, 24), (63, 1), (33, 9)]


def reference(model, prompt, output):
    """Without pages, chunks or a batch: computes all tokens again for each new one."""
    s = model.shape
    tokens = [(i * 7919 + prompt) % s.vocab for i in range(prompt)]

    def normal(x):
        return x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()

    def turn(x):
        a, b = x[..., :s.head // 2], x[..., s.head // 2:]
        angle = torch.arange(len(x)).float()[:, None] * 500000.0 ** (
            -torch.arange(0, s.head, 2).float() / s.head)
        cos, sin = angle.cos()[:, None], angle.sin()[:, None]
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
    for _ in range(output):
        x = model.embed[torch.tensor(tokens)]
        for wqkv, wo, wup, wdown in model.layers:
            q, k, v = (normal(x) @ wqkv).view(len(x), -1, s.head).split(
                (s.heads, s.kv_heads, s.kv_heads), 1)
            q, k = turn(q), turn(k)
            k, v = (t.repeat_interleave(s.heads // s.kv_heads, 1) for t in (k, v))
            scores = torch.einsum("qhd,khd->hqk", q, k) / s.head ** 0.5
            scores = scores.masked_fill(torch.ones(len(x), len(x)).triu(1).bool(), float("-inf"))
            x = x + torch.einsum("hqk,khd->qhd", scores.softmax(-1), v).flatten(1) @ wo
            a, b = (normal(x) @ wup).chunk(2, -1)
            x = x + (a * torch.sigmoid(a) * b) @ wdown
        tokens.append(int((normal(x[-1]) @ model.unembed).argmax()))
    return tokens[prompt:]


def in_turn():
    """Replaces choose(): each candidate in turn, if there are several."""
    turns = itertools.count()

    def choose(candidates, nr_decoding, _nr_bytes, waiting, _goals):
        names = list(candidates)
        return names[next(turns) % len(names)] if waiting and nr_decoding else ALONE
    return choose


class Watched(Engine):
    """Stores the tokens of each request."""

    tokens: dict

    def _collect(self, zero):
        for step in self.steps.values():
            for running in step.rows:
                self.tokens[id(running.request)].append(int(self.model.last[running.row]))
            if step.chunk and step.chunk.request.done + step.size == step.chunk.request.prompt:
                self.tokens[id(step.chunk.request)].append(int(self.model.first[step.chunk.row]))
        super()._collect(zero)


def serve(model, way, wanted):
    engine = Watched(model, Cpu(), way, Goals(1.0, 0.03))
    engine.prepare()
    for again in range(2):
        load = [Request(0.001 * i, *lengths) for i, lengths in enumerate(LENGTHS * 2)]
        engine.tokens = {id(r): [] for r in load}
        engine.serve(load, 120.0)
        got = [engine.tokens[id(r)] for r in load]
        same(got, wanted * 2, f"{way}, {again}: each request's tokens")
        ok(all(len(r.times) == r.output and sorted(r.times) == r.times for r in load) and
           sorted(engine.free_rows) == list(range(model.shape.rows[-1])) and
           sorted(engine.free_pages) == list(range(1, model.shape.pages)),
           f"{way}, {again}: all ended, and gave back rows and pages")
    return engine


class Parts:
    """Replaces gpupart: records its calls."""

    def __init__(self, *_names):
        self.asked, self.why, self.prepared = [], None, {}
        self.decode = self.prefill = self

    stream = set = property(lambda self: self.asked[-1] if self.asked else None)
    split = attach = lambda self, *_args, **sizes: self

    def change(self, **sizes):
        self.asked.append(sizes["decode"])

    def graph_prepare(self, graph, sets, _stream):
        self.prepared[graph] = sets


class Recorded(Cpu):
    """A device whose graphs are objects, like PyTorch's."""
    name = "recorded"

    class Graph:
        def __init__(self, work):
            self.work = work

        def replay(self):
            self.work()

    def graph(self, work, stream):
        return self.Graph(work).replay


def prepared(model):
    parts, known = Parts(), module.gpupart_module
    module.gpupart_module = lambda: parts
    engine = Watched(model, Recorded(), "gpupart", Goals(1.0, 0.03))
    engine.prepare()
    s = model.shape
    nr = len(s.rows) * len(s.used) + sum(c <= l for c in s.chunks for l in s.contexts)
    same([len(parts.prepared), list(map(tuple, parts.prepared.values()))],
         [nr, [("75%", "50%", "25%")] * nr], "each graph is prepared for all sets of its part")
    ok(all(lane.graphs[key] == engine.lanes["75%"].graphs[key]
           for lane in engine.lanes.values() for key in lane.graphs
           if key in engine.lanes["75%"].graphs), "captured once for all splits")
    engine.tokens, load = {}, [Request(0.001 * i, *lengths) for i, lengths in enumerate(LENGTHS)]
    engine.tokens.update((id(r), []) for r in load)
    taken, step = [], engine._step

    def watched(*given):
        step(*given)
        taken.append((engine.lane, parts.asked[-1]))
    engine._step = watched
    engine.serve(load, 120.0)
    ok(all(at == lane for lane, at in taken if lane not in (ALONE, MIXED)) and
       len({lane for lane, _ in taken}) == 5, "each step takes its split first")
    parts.graph_prepare = None          # not a function: TypeError, as of an older PyTorch
    engine = Watched(model, Recorded(), "gpupart", Goals(1.0, 0.03))
    engine.prepare()
    ok(engine.why is None and "graphs are not prepared" in engine.lanes["75%"].words,
       f"graphs that cannot be prepared are no fallback: {engine.lanes['75%'].words}")
    module.gpupart_module = known


def program():
    """run.py, without a GPU and with a gpupart that cannot be imported."""
    with tempfile.TemporaryDirectory() as place:
        out = f"{place}/runs.jsonl"

        def run(*words):
            path = os.pathsep.join([place, os.environ.get("PYTHONPATH", "")])
            return subprocess.run(
                [sys.executable, "-B", os.path.join(ROOT, "share/examples/engine/run.py"), "--out",
                 out, *words], capture_output=True, text=True,
                env={**os.environ, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": ""})
        got = run("--slice")
        ok(got.returncode == 1 and got.stderr.startswith("run.py --device cuda: PyTorch: ") and
           got.stderr.count("\n") == 1 and not os.path.exists(out),
           f"no GPU: {got.stderr[-200:]!r}")
        with open(f"{place}/gpupart.py", "w", encoding="utf-8") as file:
            file.write("raise ImportError('no gpupart here')")
        with open(out, "w", encoding="utf-8") as file:
            file.write('{"seed": 1}\n{"seed": 2, "wa')
        words = ("--map --eager --model tiny --device cpu --rates 5 --prompts 20 --seeds 1 "
                 "--warm 0 --seconds 0.5 --drain 1.1 --ways chunked,gpupart").split()
        got = run(*words)
        with open(out, encoding="utf-8") as file:
            lines = file.read().splitlines()
        same((got.returncode, lines[1], json.loads(lines[2])),
             (0, '{"seed": 2, "wa', {"error": "no gpupart here", "way": "gpupart"}),
             f"a line after an incomplete one, and no gpupart: {got.stderr[-200:]!r}")
        same([line["way"] for line in map(json.loads, lines[3:]) if "goodput" in line], ["chunked"],
             "the other way ran")


def main():
    model = Model(SHAPES["tiny"], "cpu")
    wanted = [reference(model, *lengths) for lengths in LENGTHS]
    ok(len({t for tokens in wanted for t in tokens}) > 20, "the model says more than one thing")
    module.choose = in_turn()
    for way in WAYS:
        engine = serve(model, way, wanted)
        same(engine.why, {"green": "a CPU has no green contexts"}.get(
            way, "a CPU has no TPCs" if way.startswith("gpupart") else None), f"{way}: why not")
        parted = sum(n for name, n in engine.counts.items() if name not in (ALONE, MIXED))
        ok((engine.counts[MIXED] > 0) == engine.mixes and
           (parted > 0) == (way in ("green", "gpupart", "gpupart-fixed")),
           f"{way}: took the steps that it stands for: {engine.counts}")
    prepared(model)
    small = Model(SHAPES["tiny"].limited(4), "cpu")
    same(serve(small, "chunked", wanted).model.shape.chunks, (4,), "smaller chunks")
    model.values.fill_(0.5)
    model.keys.fill_(0.5)
    serve(model, "streams", wanted)


main()
program()
done()
