# SPDX-License-Identifier: MIT
"""The step loop: which step is launched on which stream, and when its tokens were there.

One thread. At most one step of each kind is under way, so that a buffer, a page or a row that the
host changes is never one that the GPU may still read. Only events are asked; nothing is waited for.
"""
from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import gc
import heapq
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Optional

import torch

from model import TRASH, Model
from policy import ALONE, MIXED, Estimate, Goals, Request, choose

WAYS = ("chunked", "streams", "priority", "green", "gpupart-fixed", "gpupart")


class Cpu:
    """A device without streams: a step has ended when its launch returns."""

    name = "cpu"

    def stream(self, priority: int = 0) -> Any:
        return object()

    def use(self, stream: Any) -> Any:
        return contextlib.nullcontext()

    def event(self, stream: Any) -> Callable[[], bool]:
        return lambda: True

    def graph(self, work: Callable[[], None], stream: Any) -> Callable[[], None]:
        return work

    def finish(self) -> None:
        pass


class Cuda(Cpu):
    name = "cuda"

    def __init__(self) -> None:
        torch.cuda.init()
        # Its plans depend on the shape: too slow for masks of many sizes.
        getattr(torch.backends.cuda, "enable_cudnn_sdp", lambda on: None)(False)
        self._pools: dict[int, Any] = {}

    def stream(self, priority: int = 0) -> Any:
        return torch.cuda.Stream(priority=priority)

    def use(self, stream: Any) -> Any:
        return torch.cuda.stream(stream)

    def event(self, stream: Any) -> Callable[[], bool]:
        event = torch.cuda.Event()
        event.record(stream)
        return event.query

    def graph(self, work: Callable[[], None], stream: Any) -> Callable[[], None]:
        """
        Captured on the stream that it will be launched on: cuBLAS has a workspace a stream, and
        graphs that may run at the same time must not share one, nor a memory pool.
        """
        pool = self._pools.setdefault(stream.cuda_stream, torch.cuda.graph_pool_handle())
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            work()          # what is compiled, tuned and allocated at first
            work()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
            work()
        with torch.cuda.stream(stream):
            graph.replay()  # gpupart builds a graph's nodes for a set at its first launch
        torch.cuda.synchronize()
        return graph.replay

    def finish(self) -> None:
        torch.cuda.synchronize()


class _SmResource(ctypes.Structure):
    """CUdevResource of cuda.h, 144 bytes."""

    _fields_ = [("type", ctypes.c_int), ("padding", ctypes.c_char * 92),
                ("nr_sms", ctypes.c_uint), ("room", ctypes.c_char * 44)]


def green_streams(nr_sms: int) -> tuple[Any, Any, int]:
    """A stream in a green context of @nr_sms or a little more, one in the rest, and how many."""
    cuda = ctypes.CDLL("libcuda.so.1")
    everything, part, rest = _SmResource(), _SmResource(), _SmResource()
    nr, byref = ctypes.c_uint(1), ctypes.byref

    def call(name: str, *args: Any) -> None:
        result = getattr(cuda, name)(*args)
        if result:
            raise RuntimeError(f"{name}: CUDA error {result}")
    device = torch.cuda.current_device()
    call("cuDeviceGetDevResource", device, byref(everything), 1)
    call("cuDevSmResourceSplitByCount", byref(part), byref(nr), byref(everything), byref(rest), 0,
         nr_sms)
    made = []
    for resource in (part, rest):
        description, context, stream = (ctypes.c_void_p() for _ in range(3))
        call("cuDevResourceGenerateDesc", byref(description), byref(resource), 1)
        call("cuGreenCtxCreate", byref(context), description, device, 1)
        call("cuGreenCtxStreamCreate", byref(stream), context, 1, 0)
        made.append(torch.cuda.ExternalStream(stream.value))
    return made[0], made[1], part.nr_sms


def gpupart_module() -> Any:
    """gpupart.py as installed, or of the source tree that this example lies in."""
    try:
        import gpupart
    except ImportError:
        here = os.path.dirname(os.path.realpath(__file__))
        sys.path.append(os.path.join(here, "..", "..", "..", "python"))
        import gpupart
    return gpupart


@dataclasses.dataclass
class Lane:
    """Two streams that a split gives their TPCs, and the graphs captured on them."""

    decode: Any
    prefill: Any
    words: str = ""
    graphs: dict[Any, Callable[[], None]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Running:
    request: Request
    row: int
    pages: list[int]


@dataclasses.dataclass
class Step:
    ended: Callable[[], bool]
    start: float
    lane: str
    rows: list[Running]
    chunk: Optional[Running] = None
    size: int = 0                       # tokens of the chunk that are real
    whole: bool = False                 # the largest chunk, or nearly
    alone: bool = False                 # nothing else ran when it was launched
    nr_bytes: float = 0.0


class Engine:
    """One way to serve, on one model. .why: why it is not the way that was asked for."""

    def __init__(self, model: Model, device: Cpu, way: str, goals: Goals,
                 shares: tuple[int, ...] = (75, 50, 25), shape: str = "balanced") -> None:
        self.model, self.device, self.way, self.goals = model, device, way, goals
        self.why: Optional[str] = None
        self.gpus: list[Any] = []       # what has to stay for as long as its streams
        high = -1 if way == "priority" else 0
        self.lanes = {ALONE: Lane(device.stream(high), device.stream())}
        if way == "gpupart-fixed":
            shares = shares[:1] if len(shares) < 3 else (50,)
        if way.startswith("gpupart"):
            self._gpupart_lanes(shares, shape)
        elif way == "green":
            self._green_lanes(shares)
        self.mixes = way in ("chunked", "green", "gpupart")
        self.estimates: dict[str, Estimate] = {}
        self._reset()

    def _gpupart_lanes(self, shares: tuple[int, ...], shape: str) -> None:
        gpupart = gpupart_module()
        for share in shares:
            parts = gpupart.split(shape, decode=f"{share}%", prefill="rest")
            self.gpus.append(parts)
            if parts.why:
                self.why = parts.why
            lane = Lane(parts.decode.stream, parts.prefill.stream, f"{parts!r}")
            if self.device.name == "cpu":
                lane = Lane(self.device.stream(), self.device.stream(), lane.words)
            self.lanes[f"{share}%"] = lane

    def _green_lanes(self, shares: tuple[int, ...]) -> None:
        if self.device.name == "cpu":
            self.why = "a CPU has no green contexts"
            self.lanes.update({f"{share}%": Lane(self.device.stream(), self.device.stream())
                               for share in shares})
            return
        nr = torch.cuda.get_device_properties(0).multi_processor_count
        for share in shares:
            decode, prefill, got = green_streams(max(8, round(nr * share / 800) * 8))
            self.lanes[f"{share}%"] = Lane(decode, prefill, f"{got} of {nr} SMs for decode")

    def _reset(self) -> None:
        s = self.model.shape
        self.rows, self.free_rows = {}, list(range(s.rows[-1]))
        self.free_pages = list(range(TRASH + 1, s.pages))
        self.queue: list[Request] = []
        self.filling: Optional[Running] = None
        self.begun: list[Running] = []
        self.steps: dict[str, Step] = {}
        self.lane, self.counts = ALONE, {name: 0 for name in (MIXED, *self.lanes)}
        decode = self.model.decode.of
        for page in range(s.pages):
            decode["owner"][page], decode["used"][page] = s.rows[-1], 0
        for row in range(s.rows[-1]):
            decode["write"][row] = decode["position"][row] = decode["fresh"][row] = 0

    # ------------------------------------------------------------------------ preparation

    def prepare(self) -> None:
        """Captures all graphs, for each pair of streams, and measures each split once."""
        s, used = self.model.shape, self._lanes_used()
        self.model.decode.upload()
        self.model.prefill.upload()
        gc.freeze()                     # torch collects garbage at each capture
        pairs = [(c, l) for c in s.chunks for l in s.contexts if c <= l]
        for name in used:
            lane = self.lanes[name]
            for pages in s.used:
                for rows in s.rows:
                    self._capture(lane, lane.decode, rows, 0, 0, pages)
            for chunk, context in pairs:
                self._capture(lane, lane.prefill, 0, chunk, context, 0)
        if self.mixes:
            for chunk, context in pairs:
                for pages in s.used[::-2][::-1]:
                    for rows in s.rows[1:]:
                        self._capture(self.lanes[ALONE], self.lanes[ALONE].decode, rows, chunk,
                                      context, pages)
        self._measure(used)

    def _lanes_used(self) -> list[str]:
        return [n for n in self.lanes if n != ALONE or self.way != "gpupart-fixed"]

    def _capture(self, lane: Lane, stream: Any, *key: int) -> None:
        try:
            lane.graphs[key] = self.device.graph(lambda: self.model.forward(*key), stream)
        except Exception as error:
            if self.model.op is self.model.plain or len(lane.graphs):
                raise
            print(f"# torch.compile does not work here: {error}", file=sys.stderr)
            self.model.op = self.model.plain
            lane.graphs[key] = self.device.graph(lambda: self.model.forward(*key), stream)

    def _measure(self, used: list[str]) -> None:
        """Of each split: decode beside a prefill of whole chunks, both with empty rows."""
        s = self.model.shape
        rows, chunk, pages = s.rows[-1], s.chunks[-1], s.used[0]
        context = next(c for c in s.contexts if c >= chunk)
        nr_bytes = self._bytes(pages)
        for name in used:
            lane, nr = self.lanes[name], 0
            start = time.perf_counter()
            with self.device.use(lane.prefill):
                for _ in range(4):
                    lane.graphs[0, chunk, context, 0]()
                ended = self.device.event(lane.prefill)
            while not nr or not ended():
                with self.device.use(lane.decode):
                    lane.graphs[rows, 0, 0, pages]()
                    each = self.device.event(lane.decode)
                while not each():
                    pass
                nr += 1
            took = time.perf_counter() - start
            self.device.finish()
            self.estimates[name] = Estimate(took / nr / nr_bytes, took / 4 / chunk)
        if self.mixes:
            lane, pages = self.lanes[ALONE], s.used[::-2][-1]
            start = time.perf_counter()
            with self.device.use(lane.decode):
                for _ in range(3):
                    lane.graphs[rows, chunk, context, pages]()
            self.device.finish()
            took = (time.perf_counter() - start) / 3
            self.estimates = {MIXED: Estimate(0.0, took / chunk, took), **self.estimates}

    def _bytes(self, pages: int) -> float:
        return self.model.weight_bytes + pages * self.model.shape.page * self.model.token_bytes

    # ------------------------------------------------------------------------------ steps

    def serve(self, load: list[Request], until: float) -> None:
        """Serves @load, whose times become those since now; gives up @until s after it."""
        self._reset()
        pending, zero = sorted(load, key=lambda r: r.arrival)[::-1], time.perf_counter()
        while pending or self.queue or self.filling or self.begun or self.rows or self.steps:
            now = time.perf_counter() - zero
            if now > until:
                break
            while pending and pending[-1].arrival <= now:
                self.queue.append(pending.pop())
            self._collect(zero)
            self._launch(time.perf_counter() - zero)
            if not self.steps:
                time.sleep(min(0.001, max(0.0, pending[-1].arrival - now)) if pending else 0.0)
        self.device.finish()
        self.steps = {}

    def _collect(self, zero: float) -> None:
        for kind in [k for k, step in self.steps.items() if step.ended()]:
            now, step = time.perf_counter() - zero, self.steps.pop(kind)
            for running in step.rows:
                running.request.times.append(now)
                self._advance(running)
            if step.chunk:
                request = step.chunk.request
                request.done += step.size
                if request.done == request.prompt:
                    request.times.append(now)
                    self.filling = None
                    self.begun.append(step.chunk)
            self._learn(step, now - step.start)

    def _learn(self, step: Step, took: float) -> None:
        estimate = self.estimates.get(step.lane)
        if estimate is None or step.alone:
            return
        if step.lane == MIXED:
            if step.whole:
                estimate.learn("step", took)
                estimate.learn("prefill_per_token", took / step.size)
        elif step.chunk:
            if step.whole:
                estimate.learn("prefill_per_token", took / step.size)
        else:
            estimate.learn("decode_per_byte", took / step.nr_bytes)

    def _waiting(self, now: float) -> list[tuple[int, float]]:
        first = [self.filling.request] if self.filling else []
        return [(r.prompt - r.done, r.arrival + self.goals.ttft - now)
                for r in first + self.queue[:64]]

    def _launch(self, now: float) -> None:
        """Starts what can start. The split changes where no prefill is under way."""
        if len(self.steps) == 2 or MIXED in self.steps:
            return
        if "decode" not in self.steps:      # which may still be about to copy the host's buffer
            while self.begun:
                self._begin(self.begun.pop())
        if "prefill" not in self.steps:
            if not self.filling:
                self._admit()
            waiting = self._waiting(now) if self.filling else []
            if self.way == "chunked":
                self.lane = MIXED if waiting and self.rows else ALONE
            elif self.way == "gpupart-fixed":
                self.lane = next(name for name in self.lanes if name != ALONE)
            elif self.mixes:
                candidates = {n: e for n, e in self.estimates.items() if n != ALONE}
                self.lane = choose(candidates, len(self.rows), self._bytes(self._pages()),
                                   waiting, self.goals)
            if self.mixes and self.lane == ALONE and self.steps and waiting:
                return                  # not beside a decode step that is under way
            if self.lane == MIXED:
                if not self.steps:
                    self._step(now, MIXED, True, True)
                return
            if self.filling:
                self._step(now, "prefill", False, True)
        if "decode" not in self.steps and self.rows:
            self._step(now, "decode", True, False)

    def _pages(self) -> int:
        top = max((max(r.pages) for r in self.rows.values()), default=0)
        return self._size(self.model.shape.used, top + 1)

    @staticmethod
    def _size(sizes: Any, least: int) -> int:
        return next(size for size in sizes if size >= least)

    def _step(self, now: float, kind: str, decode: bool, prefill: bool) -> None:
        s, name = self.model.shape, ALONE if kind == MIXED else self.lane
        lane, mixed = self.lanes[name], kind == MIXED
        stream = lane.prefill if kind == "prefill" else lane.decode
        rows = chunk = context = pages = size = 0
        running = list(self.rows.values()) if decode else []
        if decode:
            rows = self._size(s.rows[1:] if mixed else s.rows, max(self.rows) + 1)
            pages = self._pages()
            if mixed:
                pages = self._size(s.used[::-2][::-1], pages)
        if prefill:
            assert self.filling
            request = self.filling.request
            size = min(request.prompt - request.done, s.chunks[-1])
            chunk = self._size(s.chunks, size)
            context = self._size(s.contexts, max(chunk, request.done + size))
            self._fill(self.filling, size, chunk, context)
        with self.device.use(stream):
            if decode:
                self.model.decode.upload()
            if prefill:
                self.model.prefill.upload()
            lane.graphs[rows, chunk, context, pages]()
            ended = self.device.event(stream)
        self.counts[MIXED if mixed else name] += 1
        alone = not mixed and not self.steps
        self.steps[kind] = Step(ended, now, MIXED if mixed else name, running,
                                self.filling if prefill else None, size,
                                2 * size > s.chunks[-1], alone,
                                self._bytes(pages) if decode else 0.0)

    # --------------------------------------------------------------------- rows and pages

    def _admit(self) -> None:
        """The next request gets a row, and pages for all that it will have."""
        page = self.model.shape.page
        if not self.queue or not self.free_rows:
            return
        nr = -(-(self.queue[0].prompt + self.queue[0].output) // page)
        if nr > len(self.free_pages):
            return
        # The lowest ones: a decode step reads all pages up to the highest that is in use.
        self.filling = Running(self.queue.pop(0), heapq.heappop(self.free_rows),
                               [heapq.heappop(self.free_pages) for _ in range(nr)])

    def _fill(self, running: Running, size: int, chunk: int, context: int) -> None:
        pre, page, start = self.model.prefill.of, self.model.shape.page, running.request.done
        vocab, pages, nr = self.model.shape.vocab, running.pages, context // page
        at = [start + min(i, size - 1) for i in range(chunk)]
        pre["position"][:chunk] = at
        pre["token"][:chunk] = [(i * 7919 + running.request.prompt) % vocab for i in at]
        pre["write"][:chunk] = [pages[i // page] * page + i % page for i in at[:size]] + \
            [TRASH] * (chunk - size)
        pre["table"][:nr] = (pages + [TRASH] * nr)[:nr]
        pre["final"][0], pre["row"][0] = size - 1, running.row

    def _begin(self, running: Running) -> None:
        """Its prompt is done: from the next decode step on its row is one of that."""
        dec, page, prompt = self.model.decode.of, self.model.shape.page, running.request.prompt
        self.rows[running.row] = running
        for i, number in enumerate(running.pages):
            dec["owner"][number] = running.row
            dec["used"][number] = max(0, min(page, prompt - i * page))
        dec["fresh"][running.row] = 1
        self._place(running)

    def _advance(self, running: Running) -> None:
        self.model.decode.of["fresh"][running.row] = 0
        self._place(running)

    def _place(self, running: Running) -> None:
        """Where the next token of a row will be; or the end of the row."""
        dec, page, request = self.model.decode.of, self.model.shape.page, running.request
        if len(request.times) >= request.output:
            del self.rows[running.row]
            heapq.heappush(self.free_rows, running.row)
            for number in running.pages:
                dec["owner"][number], dec["used"][number] = self.model.shape.rows[-1], 0
                heapq.heappush(self.free_pages, number)
            dec["write"][running.row] = TRASH
            dec["position"][running.row] = dec["fresh"][running.row] = 0
            return
        at = request.prompt + len(request.times) - 1
        number = running.pages[at // page]
        dec["position"][running.row] = at
        dec["write"][running.row] = number * page + at % page
        dec["used"][number] = at % page + 1


def check_decode(model: Model, device: Cpu) -> Iterator[dict[str, Any]]:
    """Decode alone: bytes that it has to read a second, of what the DRAM gave a large copy."""
    s, stream = model.shape, device.stream()
    large = model.keys.flatten()

    def took(work: Callable[[], Any], times: int) -> float:
        with device.use(stream):
            work()
            device.finish()
            start = time.perf_counter()
            for _ in range(times):
                work()
            device.finish()
        return (time.perf_counter() - start) / times
    half = large.numel() // 2
    once = took(lambda: large[:half].copy_(large[half:2 * half]), 5)
    bandwidth = 2 * half * large.element_size() / once
    for rows, pages in zip(s.rows[-2:] + s.rows[-1:], s.used[:1] + s.used[-2:]):
        page = model.decode.of
        for i in range(pages):
            page["owner"][i], page["used"][i] = i % rows, s.page
        model.decode.upload()
        seconds = took(device.graph(lambda: model.forward(rows, 0, 0, pages), stream), 20)
        nr_bytes = model.weight_bytes + pages * s.page * model.token_bytes
        yield {"rows": rows, "pages": pages, "ms": seconds * 1e3, "bandwidth": bandwidth,
               "part": nr_bytes / seconds / bandwidth, "device": device.name}
