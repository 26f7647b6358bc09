# SPDX-License-Identifier: MIT
"""The step loop: which step is launched on which stream, and when its tokens were there.

One thread. At most one step of each kind is under way, so that a buffer, a page or a row that the
host changes is never one that the GPU may still read. Only events are asked; nothing is waited for.
"""
import ctypes
import dataclasses
import functools
import gc
import heapq
import os
import sys
import time
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional

import torch

from model import TRASH, Model
from policy import ALONE, MIXED, WAYS, Estimate, Goals, Request, choose


class Cpu:
    """A device without streams: a step has ended when its launch returns."""
    name = "cpu"
    stream = staticmethod(lambda priority=0: None)
    graph = staticmethod(lambda work, stream: work)
    finish = staticmethod(lambda: None)

    def launch(self, stream: Any, *works: Callable[[], Any]) -> Callable[[], bool]:
        """All of @works, in order; returns what tells whether they ended."""
        for work in works:
            work()
        return lambda: True


class Cuda(Cpu):
    name = "cuda"
    stream = torch.cuda.Stream
    finish = staticmethod(torch.cuda.synchronize)

    def __init__(self) -> None:
        torch.cuda.init()
        # Its plans depend on the shape: too slow for masks of many sizes.
        getattr(torch.backends.cuda, "enable_cudnn_sdp", lambda on: None)(False)
        self._pools: dict[int, Any] = {}

    def launch(self, stream: Any, *works: Callable[[], Any]) -> Callable[[], bool]:
        event = torch.cuda.Event()
        with torch.cuda.stream(stream):
            super().launch(stream, *works)
            event.record(stream)
        return event.query

    def graph(self, work: Callable[[], None], stream: Any) -> Callable[[], None]:
        """Captured on the stream that it will be launched on: cuBLAS has a workspace a stream, and
        graphs that may run at the same time must not share one, nor a memory pool."""
        pool = self._pools.setdefault(stream.cuda_stream, torch.cuda.graph_pool_handle())
        torch.cuda.synchronize()
        self.launch(stream, work, work)     # what is compiled, tuned and allocated at first
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
            work()
        self.launch(stream, graph.replay)   # gpupart builds its nodes for a set at the first one
        torch.cuda.synchronize()
        return graph.replay


@dataclasses.dataclass
class Lane:
    """Two streams that a split gives their TPCs, and the graphs captured on them."""
    decode: Any
    prefill: Any
    words: str = ""
    why: Optional[str] = None           # why it is not the split that was asked for
    parts: Any = None                   # these have to stay for as long as their streams
    graphs: dict[Any, Callable[[], None]] = dataclasses.field(default_factory=dict)


def make_lane(device: Cpu, way: str, share: int, shape: str) -> Lane:
    """Streams in green contexts of @share % of the SMs, about, and of the rest; or of gpupart."""
    if way != "green":
        # As installed, or of the source tree that this example lies in.
        sys.path.append(os.path.dirname(os.path.realpath(__file__)) + "/../../../python")
        import gpupart
        parts = gpupart.split(shape, decode=f"{share}%", prefill="rest")
        return Lane(parts.decode.stream, parts.prefill.stream, repr(parts), parts.why, parts)
    if device.name == "cpu":
        return Lane(None, None, why="a CPU has no green contexts")
    cuda, gpu, byref = ctypes.CDLL("libcuda.so.1"), torch.cuda.current_device(), ctypes.byref
    nr_all, nr = torch.cuda.get_device_properties(gpu).multi_processor_count, ctypes.c_uint(1)
    # CUdevResource of cuda.h: 144 bytes, of which those at 96 are the number of SMs.
    everything, part, rest = ((ctypes.c_uint * 36)() for _ in range(3))
    streams = []

    def call(name: str, *args: Any) -> None:
        result = getattr(cuda, name)(*args)
        if result:
            raise RuntimeError(f"{name}: CUDA error {result}")
    call("cuDeviceGetDevResource", gpu, byref(everything), 1)
    call("cuDevSmResourceSplitByCount", byref(part), byref(nr), byref(everything), byref(rest), 0,
         max(8, round(nr_all * share / 800) * 8))
    for resource in (part, rest):
        description, context, stream = (ctypes.c_void_p() for _ in range(3))
        call("cuDevResourceGenerateDesc", byref(description), byref(resource), 1)
        call("cuGreenCtxCreate", byref(context), description, gpu, 1)
        call("cuGreenCtxStreamCreate", byref(stream), context, 1, 0)
        streams.append(torch.cuda.ExternalStream(stream.value))
    return Lane(*streams, f"{part[24]} of {nr_all} SMs for decode")


def seconds(device: Cpu, stream: Any, work: Callable[[], Any], times: int) -> float:
    """The mean time of @work, that runs @times in a row after a first time."""
    device.launch(stream, work)
    device.finish()
    start = time.perf_counter()
    device.launch(stream, *[work] * times)
    device.finish()
    return (time.perf_counter() - start) / times


def least(sizes: Sequence[int], wanted: int) -> int:
    """The first of the ascending @sizes that is large enough."""
    return next(size for size in sizes if size >= wanted)


Running = namedtuple("Running", "request row pages")
#: @size: tokens of the chunk that are real. @learns: what the time of the step, divided by these,
#: tells @estimate.
Step = namedtuple("Step", "ended start rows chunk size estimate learns")


class Engine:
    """One way to serve, on one model. .why: why it is not the way that was asked for."""

    def __init__(self, model: Model, device: Cpu, way: str, goals: Goals,
                 shares: tuple[int, ...] = (75, 50, 25), shape: str = "balanced") -> None:
        assert way in WAYS, way
        self.model, self.device, self.goals = model, device, goals
        self.mixes = way in ("chunked", "green", "gpupart")
        self.lanes: dict[str, Lane] = {}
        if way == "gpupart-fixed":
            shares = shares[:1] if len(shares) < 3 else (50,)
        else:
            self.lanes[ALONE] = Lane(device.stream(priority=-(way == "priority")), device.stream())
        if way == "green" or way.startswith("gpupart"):
            for share in shares:
                self.lanes[f"{share}%"] = make_lane(device, way, share, shape)
        self.why = next((lane.why for lane in self.lanes.values() if lane.why), None)
        self.estimates: dict[str, Estimate] = {}
        self._reset()

    def _reset(self) -> None:
        s, decode = self.model.shape, self.model.decode
        self.rows: dict[int, Running] = {}
        self.free_rows, self.free_pages = list(range(s.rows[-1])), list(range(TRASH + 1, s.pages))
        self.queue, self.filling, self.begun = [], None, []
        self.steps: dict[str, Step] = {}
        self.lane, self.counts = next(iter(self.lanes)), dict.fromkeys((MIXED, *self.lanes), 0)
        decode.host.zero_()
        decode.of["owner"][:] = [s.rows[-1]] * s.pages

    def prepare(self) -> None:
        """Captures all graphs, for each pair of streams, and measures each split once."""
        s = self.model.shape
        self.model.decode.upload()
        self.model.prefill.upload()
        gc.freeze()                     # torch collects garbage at each capture
        pairs = [(c, l) for c in s.chunks for l in s.contexts if c <= l]
        keys = [*((rows, 0, 0, pages) for pages in s.used for rows in s.rows),
                *((0, *pair, 0) for pair in pairs)]
        # Every second number of pages: the greatest is one of those.
        mixed = [(rows, *pair, pages) for pair in pairs for pages in s.used[1::2]
                 for rows in s.rows[1:]]
        for name, lane in self.lanes.items():
            for key in keys + mixed if self.mixes and name == ALONE else keys:
                lane.graphs[key] = self.device.graph(
                    functools.partial(self.model.forward, *key),
                    lane.decode if key[0] else lane.prefill)
        if self.mixes:
            self._measure()

    def _measure(self) -> None:
        """The mixed batch, and of each split decode beside prefill; all with empty rows."""
        s, device = self.model.shape, self.device
        rows, chunk, pages, lane = s.rows[-1], s.chunks[-1], s.used[0], self.lanes[ALONE]
        context = least(s.contexts, chunk)
        step = seconds(device, lane.decode, lane.graphs[rows, chunk, context, s.used[1]], 3)
        self.estimates[MIXED] = Estimate(0.0, step / chunk, step)
        for name in [name for name in self.lanes if name != ALONE]:
            lane, nr, start = self.lanes[name], 0, time.perf_counter()
            ended = device.launch(lane.prefill, *[lane.graphs[0, chunk, context, 0]] * 4)
            while not nr or not ended():
                each = device.launch(lane.decode, lane.graphs[rows, 0, 0, pages])
                while not each():
                    pass
                nr += 1
            took = time.perf_counter() - start
            device.finish()
            step = took / nr / self.model.step_bytes(pages)
            self.estimates[name] = Estimate(step, took / 4 / chunk)

    def serve(self, load: list[Request], until: float) -> None:
        """Serves @load, whose times become those since now; gives up @until s after it."""
        self._reset()
        pending, zero = sorted(load, key=lambda r: r.arrival)[::-1], time.perf_counter()
        while ((now := time.perf_counter() - zero) <= until and
               (pending or self.queue or self.filling or self.begun or self.rows or self.steps)):
            while pending and pending[-1].arrival <= now:
                self.queue.append(pending.pop())
            self._collect(zero)
            self._launch(time.perf_counter() - zero)
            if not self.steps:
                time.sleep(min(0.001, max(0.0, pending[-1].arrival - now)) if pending else 0.0)
        self.device.finish()

    def _collect(self, zero: float) -> None:
        for kind in [k for k, step in self.steps.items() if step.ended()]:
            now, step = time.perf_counter() - zero, self.steps.pop(kind)
            for running in step.rows:
                running.request.times.append(now)
                self._place(running, 0)
            if step.chunk:
                request = step.chunk.request
                request.done += step.size
                if request.done == request.prompt:
                    request.times.append(now)
                    self.filling = None
                    self.begun.append(step.chunk)
            if step.estimate:
                for name, per in step.learns.items():
                    step.estimate.learn(name, (now - step.start) / per)

    def _launch(self, now: float) -> None:
        """Starts what can start. The split changes where no prefill is under way."""
        if len(self.steps) == 2 or MIXED in self.steps:
            return
        if "decode" not in self.steps:      # which may still be about to copy the host's buffer
            while self.begun:
                self._place(self.begun.pop(), 1)
        if "prefill" not in self.steps:
            if not self.filling and self.queue and self.free_rows:
                # The lowest pages: a decode step reads all up to the highest that is in use.
                nr = -(-(self.queue[0].prompt + self.queue[0].output) // self.model.shape.page)
                if nr <= len(self.free_pages):
                    self.filling = Running(self.queue.pop(0), heapq.heappop(self.free_rows),
                                           [heapq.heappop(self.free_pages) for _ in range(nr)])
            if self.mixes:
                first = [self.filling.request, *self.queue[:64]] if self.filling else []
                waiting = [(r.prompt - r.done, r.arrival + self.goals.ttft - now) for r in first]
                self.lane = choose(self.estimates, len(self.rows),
                                   self.model.step_bytes(self._pages()), waiting, self.goals)
                if self.lane == MIXED and not self.steps:
                    self._step(now, True, True)
                if self.lane == MIXED or (self.lane == ALONE and self.steps and waiting):
                    return                  # not beside a decode step that is under way
            if self.filling:
                self._step(now, False, True)
        if "decode" not in self.steps and self.rows:
            self._step(now, True, False)

    def _pages(self) -> int:
        top = max((max(r.pages) for r in self.rows.values()), default=0)
        return least(self.model.shape.used, top + 1)

    def _step(self, now: float, decode: bool, prefill: bool) -> None:
        s, mixed, learns, works = self.model.shape, decode and prefill, {}, []
        lane = self.lanes[ALONE if mixed else self.lane]
        rows = chunk = context = pages = size = 0
        if decode:
            rows = least(s.rows[1:] if mixed else s.rows, max(self.rows) + 1)
            pages = least(s.used[1::2] if mixed else s.used, self._pages())
            learns = {"decode_per_byte": self.model.step_bytes(pages)}
            works.append(self.model.decode.upload)
        if prefill:
            size, chunk, context = self._fill(self.filling)
            learns = {"prefill_per_token": size, **({"step": 1} if mixed else {})}
            works.append(self.model.prefill.upload)
        ended = self.device.launch(lane.decode if decode else lane.prefill, *works,
                                   lane.graphs[rows, chunk, context, pages])
        self.counts[self.lane] += 1
        # A step alone tells nothing of a split, nor does a small chunk of a whole one.
        if (not mixed and not self.steps) or (prefill and 2 * size <= s.chunks[-1]):
            learns = {}
        self.steps[MIXED if mixed else "decode" if decode else "prefill"] = Step(
            ended, now, list(self.rows.values()) if decode else [],
            self.filling if prefill else None, size, self.estimates.get(self.lane), learns)

    def _fill(self, running: Running) -> tuple[int, int, int]:
        """The next chunk into the host's buffer: its tokens, and the sizes of its graph."""
        s, pre, request = self.model.shape, self.model.prefill.of, running.request
        start, page, pages = request.done, s.page, running.pages
        size = min(request.prompt - start, s.chunks[-1])
        chunk = least(s.chunks, size)
        context = least(s.contexts, max(chunk, start + size))
        at, nr = [start + min(i, size - 1) for i in range(chunk)], context // page
        pre["position"][:chunk] = at
        pre["token"][:chunk] = [(i * 7919 + request.prompt) % s.vocab for i in at]
        pre["write"][:chunk] = [pages[i // page] * page + i % page for i in at[:size]] + \
            [TRASH] * (chunk - size)
        pre["table"][:nr] = (pages + [TRASH] * nr)[:nr]
        pre["final"][0], pre["row"][0] = size - 1, running.row
        return size, chunk, context

    def _place(self, running: Running, fresh: int) -> None:
        """Where the next token of a row will be, after its prompt if @fresh; or the row's end."""
        dec, s, (request, row, pages) = self.model.decode.of, self.model.shape, running
        ended = len(request.times) >= request.output
        if fresh or ended:
            for i, number in enumerate(pages):
                dec["owner"][number] = s.rows[-1] if ended else row
                fill = 0 if ended else request.prompt - i * s.page
                dec["used"][number] = max(0, min(s.page, fill))
        if ended:
            self.rows.pop(row, None)
            heapq.heappush(self.free_rows, row)
            for number in pages:
                heapq.heappush(self.free_pages, number)
            dec["position"][row], dec["write"][row], dec["fresh"][row] = 0, TRASH, 0
        else:
            at = request.prompt + len(request.times) - 1
            number = pages[at // s.page]
            self.rows[row], dec["used"][number] = running, at % s.page + 1
            dec["position"][row], dec["fresh"][row] = at, fresh
            dec["write"][row] = number * s.page + at % s.page


def check_decode(model: Model, device: Cpu) -> Iterator[dict[str, Any]]:
    """Decode alone: bytes that it has to read a second, of what the DRAM gave a large copy."""
    s, stream = model.shape, device.stream()
    large, buffer = model.keys.flatten(), model.decode
    half = large.numel() // 2
    once = seconds(device, stream, lambda: large[:half].copy_(large[half:2 * half]), 5)
    bandwidth = 2 * half * large.element_size() / once
    for rows, pages in zip(s.rows[-2:] + s.rows[-1:], s.used[:1] + s.used[-2:]):
        buffer.of["owner"][:pages] = [i % rows for i in range(pages)]
        buffer.of["used"][:pages] = [s.page] * pages
        buffer.upload()
        graph = device.graph(functools.partial(model.forward, rows, 0, 0, pages), stream)
        took = seconds(device, stream, graph, 20)
        yield {"rows": rows, "pages": pages, "ms": took * 1e3, "bandwidth": bandwidth,
               "part": model.step_bytes(pages) / took / bandwidth}
