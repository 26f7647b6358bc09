# SPDX-License-Identifier: MIT
"""The step loop: launches each step on a stream, and records when its tokens are ready.

One thread. At most one step of each kind is in progress, so that the host never changes a buffer,
a page or a row that the GPU may still read. Only events are polled; the loop never waits.
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
    """A device without streams: a step ends when its launch returns."""
    name = "cpu"
    stream = staticmethod(lambda priority=0: None)
    graph = staticmethod(lambda work, stream: work)
    finish = title = staticmethod(lambda: None)

    def launch(self, stream: Any, *works: Callable[[], Any]) -> Callable[[], bool]:
        """Launches all of @works in order; returns an object that shows whether they have ended."""
        for work in works:
            work()
        return lambda: True


class Cuda(Cpu):
    name = "cuda"
    stream = torch.cuda.Stream
    finish = staticmethod(torch.cuda.synchronize)
    title = staticmethod(torch.cuda.get_device_name)

    def __init__(self) -> None:
        torch.cuda.init()
        # cuDNN makes a plan for each shape. For masks of many sizes, this is too slow.
        getattr(torch.backends.cuda, "enable_cudnn_sdp", lambda on: None)(False)
        self._pools: dict[int, Any] = {}

    def launch(self, stream: Any, *works: Callable[[], Any]) -> Callable[[], bool]:
        event = torch.cuda.Event()
        with torch.cuda.stream(stream):
            super().launch(stream, *works)
            event.record(stream)
        return event.query

    def graph(self, work: Callable[[], None], stream: Any) -> Callable[[], None]:
        pool = self._pools.setdefault(stream.cuda_stream, torch.cuda.graph_pool_handle())
        self.launch(stream, work)           # compiles and allocates at the first launch
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(stream):     # torch.cuda.graph() empties the allocator's cache
            graph.capture_begin(pool, capture_error_mode="thread_local")
            work()
            graph.capture_end()
            graph.replay()                  # the driver uploads it at the first launch
        torch.cuda.synchronize()
        return graph.replay


class Graphs:
    """Graphs of a model's steps, each captured once, for all ways: a graph runs on any stream of
    its context. cuBLAS has a workspace a stream, and graphs that may run at the same time must not
    share one, nor a memory pool: those that decode are captured on another stream than the rest."""

    def __init__(self, model: Model, device: Cpu) -> None:
        self.model, self.device, self.decode, self.prefill = (
            model, device, device.stream(), device.stream())
        self._known: dict[Any, Callable[[], None]] = {}
        model.decode.upload()
        model.prefill.upload()
        gc.collect()
        gc.freeze()
        gc.disable()                        # not during a capture or a step

    def get(self, key: tuple[int, ...], stream: Any = None) -> Callable[[], None]:
        """Of the sizes @key, captured on @stream if that is not one of the two."""
        at = (key, stream or (self.decode if key[0] else self.prefill))
        if at not in self._known:
            self._known[at] = self.device.graph(functools.partial(self.model.forward, *key), at[1])
        return self._known[at]


@dataclasses.dataclass
class Lane:
    """Two streams; take() changes their TPCs, if they have sets, from the next launch on."""
    decode: Any
    prefill: Any
    words: str = ""
    why: Optional[str] = None           # why it is not the requested split
    take: Callable[[], Any] = lambda: None
    sets: tuple[Any, Any] = (None, None)    # of decode and prefill, for gpupart
    captured: tuple[Any, Any] = (None, None)    # streams for separate graphs
    graphs: dict[Any, Callable[[], None]] = dataclasses.field(default_factory=dict)


def gpupart_module() -> Any:
    """The installed module, or that of this source tree."""
    sys.path.append(os.path.dirname(os.path.realpath(__file__)) + "/../../../python")
    import gpupart
    return gpupart


def gpupart_lanes(device: Cpu, shares: Sequence[int], shape: str) -> Iterator[tuple[str, Lane]]:
    """Two streams; take() changes their split."""
    parts = gpupart_module().split(shape, decode=f"{shares[0]}%", prefill="rest")
    why = "a CPU has no TPCs" if device.name == "cpu" else parts.why
    for share in shares:
        take = functools.partial(parts.change, decode=f"{share}%", prefill="rest")
        take()
        yield f"{share}%", Lane(parts.decode.stream, parts.prefill.stream, repr(parts), why,
                                take, (parts.decode.set, parts.prefill.set))


def green_lane(device: Cpu, share: int) -> Lane:
    """Streams in green contexts of @share % of the SMs, about, and of the rest. A graph is bound to
    the context that it was captured in."""
    if device.name == "cpu":
        return Lane(None, None, why="a CPU has no green contexts")
    cuda, gpu, byref = ctypes.CDLL("libcuda.so.1"), torch.cuda.current_device(), ctypes.byref
    nr_all, nr = torch.cuda.get_device_properties(gpu).multi_processor_count, ctypes.c_uint(1)
    # CUdevResource of cuda.h: 144 bytes. The number of SMs is at byte 96.
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
    return Lane(*streams, f"{part[24]} of {nr_all} SMs for decode", captured=tuple(streams))


def seconds(device: Cpu, stream: Any, work: Callable[[], Any], times: int) -> float:
    """The mean time of @work in @times consecutive runs after a first one."""
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
    """One way to serve, on one model. .why: why it is not the way that was asked for. Make all
    engines of a process before its first graph: gpupart has to see how a graph is made."""

    def __init__(self, model: Model, device: Cpu, way: str, goals: Goals,
                 shares: tuple[int, ...] = (75, 50, 25), shape: str = "balanced") -> None:
        assert way in WAYS, way
        self.model, self.device, self.goals = model, device, goals
        self.mixes = way in ("chunked", "green", "gpupart")
        self.lanes: dict[str, Lane] = {}
        if way == "gpupart-fixed":
            shares = shares[:1] if len(shares) < 3 else (50,)
        else:
            first = way == "priority"
            alone = self.lanes[ALONE] = Lane(device.stream(priority=-first), device.stream())
            if first:                   # a PyTorch graph keeps the priority of its capture
                alone.captured = (alone.decode, None)
        if way == "green":
            self.lanes.update((f"{share}%", green_lane(device, share)) for share in shares)
        elif way.startswith("gpupart"):
            self.lanes.update(gpupart_lanes(device, shares, shape))
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

    def prepare(self, graphs: Optional[Graphs] = None) -> None:
        """Captures all graphs, builds gpupart's for its sets, and measures each split once."""
        s, graphs = self.model.shape, graphs or Graphs(self.model, self.device)
        pairs = [(c, l) for c in s.chunks for l in s.contexts if c <= l]
        keys = [*((rows, 0, 0, pages) for pages in s.used for rows in s.rows),
                *((0, *pair, 0) for pair in pairs)]
        # Every second number of pages, and always the largest number.
        mixed = [(rows, *pair, pages)
                 for pair in pairs for pages in s.used[1::2] for rows in s.rows]
        for name, lane in self.lanes.items():
            for key in keys + mixed if self.mixes and name == ALONE else keys:
                lane.graphs[key] = graphs.get(key, lane.captured[0 if key[0] else 1])
        parted = [l for l in self.lanes.values() if l.sets[0] and self.device.name != "cpu"]
        for key in keys if parted else ():
            lane, sets = parted[0], [lane.sets[0 if key[0] else 1] for lane in parted]
            try:
                gpupart_module().attach("cuda:0").graph_prepare(
                    lane.graphs[key].__self__, sets, lane.decode if key[0] else lane.prefill)
            except (OSError, TypeError) as error:   # then they are built at their first launch
                lane.words += f"; graphs are not prepared: {error}"
                break
        self.device.finish()
        if self.mixes:
            self._measure()

    def _measure(self) -> None:
        """Measures the mixed batch, and decode with prefill for each lane; with empty rows."""
        s, device = self.model.shape, self.device
        rows, chunk, pages, lane = s.rows[-1], s.chunks[-1], s.used[0], self.lanes[ALONE]
        context = least(s.contexts, chunk)
        # If there are other choices than one batch, the first choice is the whole GPU for each
        # phase.
        for name in [ALONE, MIXED, *list(self.lanes)[1:]] if len(self.lanes) > 1 else [MIXED]:
            if name == MIXED:
                step = seconds(device, lane.decode, lane.graphs[rows, chunk, context, s.used[1]], 3)
                self.estimates[MIXED] = Estimate(0.0, step / chunk, step)
                continue
            of, nr = self.lanes[name], 0
            of.take()
            start = time.perf_counter()
            ended = device.launch(of.prefill, *[of.graphs[0, chunk, context, 0]] * 4)
            while not nr or not ended():
                each = device.launch(of.decode, of.graphs[rows, 0, 0, pages])
                while not each():
                    pass
                nr += 1
            took = time.perf_counter() - start
            device.finish()
            self.estimates[name] = Estimate(took / nr / self.model.step_bytes(pages),
                                            took / 4 / chunk)

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
        """Starts all steps that can start. The split changes only without a running prefill."""
        if len(self.steps) == 2 or MIXED in self.steps:
            return
        if "decode" not in self.steps:      # a running step may still copy the host's buffer
            while self.begun:
                self._place(self.begun.pop(), 1)
        if "prefill" not in self.steps:
            if not self.filling and self.queue and self.free_rows:
                # Use the lowest pages, because a decode step reads all pages up to the highest
                # used page.
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
                if self.lane == MIXED:
                    return                  # not during a decode step
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
            rows = least(s.rows, max(self.rows) + 1)
            pages = least(s.used[1::2] if mixed else s.used, self._pages())
            learns = {"decode_per_byte": self.model.step_bytes(pages)}
            works.append(self.model.decode.upload)
        if prefill:
            size, chunk, context = self._fill(self.filling)
            learns = {"prefill_per_token": size, **({"step": 1} if mixed else {})}
            works.append(self.model.prefill.upload)
        lane.take()
        ended = self.device.launch(lane.decode if decode else lane.prefill, *works,
                                   lane.graphs[rows, chunk, context, pages])
        self.counts[self.lane] += 1
        # Ignore two kinds of steps, because they show nothing about a split: a step without the
        # other phase, and a step with a small chunk.
        if (not mixed and not self.steps) or (prefill and 2 * size <= s.chunks[-1]):
            learns = {}
        self.steps[MIXED if mixed else "decode" if decode else "prefill"] = Step(
            ended, now, list(self.rows.values()) if decode else [],
            self.filling if prefill else None, size, self.estimates.get(self.lane), learns)

    def _fill(self, running: Running) -> tuple[int, int, int]:
        """Writes the next chunk to the host's buffer; returns its tokens and graph sizes."""
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
        """The place of a row's next token, after its prompt if @fresh; or the end of the row."""
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


def check_decode(graphs: Graphs) -> Iterator[dict[str, Any]]:
    """Decode alone: the bytes that it reads per second, relative to a large copy."""
    model, device, s = graphs.model, graphs.device, graphs.model.shape
    stream, large, buffer = device.stream(), model.keys.flatten(), model.decode
    half = large.numel() // 2
    once = seconds(device, stream, lambda: large[:half].copy_(large[half:2 * half]), 5)
    bandwidth = 2 * half * large.element_size() / once
    for rows, pages in zip(s.rows[-2:] + s.rows[-1:], s.used[:1] + s.used[-2:]):
        buffer.of["owner"][:pages] = [i % rows for i in range(pages)]
        buffer.of["used"][:pages] = [s.page] * pages
        buffer.upload()
        took = seconds(device, stream, graphs.get((rows, 0, 0, pages)), 20)
        yield {"rows": rows, "pages": pages, "ms": took * 1e3, "bandwidth": bandwidth,
               "part": model.step_bytes(pages) / took / bandwidth}
