# SPDX-License-Identifier: MIT
"""Sizes, requests, objectives and the choice of a split, without torch. Times are s."""
import dataclasses
import math
import random
from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

WAYS = ("chunked", "streams", "priority", "green", "gpupart-fixed", "gpupart")
#: A check of decode is valid for all points with the same device, model and mode.
MACHINE = ("device", "model", "mode")

# Medians of the Azure LLM inference traces of 2023. Source: section III of "Splitwise: Efficient
# generative LLM inference using phase splitting" (ISCA 2024). The widths were chosen for this
# example. The example does not need the traces.
TRACES = {"conversation": ((1020, 0.7), (129, 1.0)), "coding": ((1500, 0.8), (13, 1.0))}


class Shape(namedtuple("Shape", "layers hidden heads kv_heads head ffn vocab page pages "
                       "rows chunks contexts used")):
    """Sizes of a model, and of what is kept for it. A page is of @page tokens; the last four are
    the numbers of rows, tokens and pages that graphs are captured for, ascending."""

    def limited(self, chunk: Optional[int]) -> "Shape":
        """With chunks of at most @chunk tokens."""
        sizes = tuple(c for c in self.chunks if c <= (chunk or c))
        return self._replace(chunks=sizes or (chunk,))


SHAPES = {
    "8b": Shape(32, 4096, 32, 8, 128, 14336, 128256, 256, 1024, (32, 64),
                (128, 512, 1024), (1024, 2048, 4096, 8192), (128, 256, 512, 1024)),
    "tiny": Shape(2, 64, 4, 2, 16, 128, 256, 8, 64, (2, 8), (4, 16), (32, 64), (32, 64)),
}


@dataclasses.dataclass
class Request:
    """One request, and the times that the engine writes into it, since the start of the load."""
    arrival: float
    prompt: int
    output: int
    counted: bool = True
    done: int = 0                       # prompt tokens that were processed
    times: list[float] = dataclasses.field(default_factory=list)    # of its output tokens


Goals = namedtuple("Goals", "ttft tbt")     # time to first token, and time between tokens


def requests(seed: int, rate: float, seconds: float, warm: float = 0.0,
             trace: str = "conversation", prompt: Optional[float] = None,
             most: tuple[int, int] = (8192, 512)) -> list[Request]:
    """Poisson arrivals, @rate a second, lognormal lengths of at most @most tokens. @prompt is
    another median of the prompt's length. Those of the first @warm seconds do not count."""
    draw = random.Random(f"{seed} {rate} {trace} {prompt}")
    ((usual, width), output), at, made = TRACES[trace], 0.0, []

    def length(median: float, width: float, longest: int) -> int:
        return max(1, min(longest, round(math.exp(draw.gauss(math.log(median), width)))))
    while True:
        at += draw.expovariate(rate)
        if at >= warm + seconds:
            return made
        made.append(Request(at, length(prompt or usual, width, most[0]),
                            length(*output, most[1]), at >= warm))


def quantile(values: Iterable[float], part: float) -> Optional[float]:
    """The smallest value that at least the fraction @part of @values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)] if ordered else None


def meets(request: Request, goals: Goals, end: Optional[float] = None) -> bool:
    """It ended, its first token came in time, and 99 % of its gaps between tokens are within the
    goal: all of them where it has fewer than 100. One that has not ended at @end is judged by what
    it has until then, the open gap included. Without a first token it does not meet them."""
    times = request.times
    if len(times) < request.output:
        if end is None or not times:
            return False
        times = [*times, end]
    if times[0] - request.arrival > goals.ttft:
        return False
    worst = quantile((b - a for a, b in zip(times, times[1:])), 0.99)
    return worst is None or worst <= goals.tbt


def summary(done: Sequence[Request], goals: Goals, seconds: float, warm: float,
            end: Optional[float] = None) -> dict[str, Any]:
    """The values of one run for a point of the map."""
    counted = [r for r in done if r.counted]
    met = [0] * math.ceil(seconds)
    for request in counted:
        if meets(request, goals, end):
            met[min(len(met) - 1, int(request.arrival - warm))] += 1
    first = [r.times[0] - r.arrival for r in counted if r.times]
    gaps = [b - a for r in counted for a, b in zip(r.times, r.times[1:])]
    return {"goodput": sum(met) / seconds, "offered": len(counted) / seconds,
            "counted": len(counted),
            "unfinished": sum(len(r.times) < r.output for r in counted), "met_by_second": met,
            "ttft_p50": quantile(first, 0.5), "ttft_p99": quantile(first, 0.99),
            "tbt_p50": quantile(gaps, 0.5), "tbt_p99": quantile(gaps, 0.99)}


MIXED = "mixed"             # prefill and decode in one batch, without any split
ALONE = "alone"             # each phase uses the whole GPU: both at once under light load


@dataclasses.dataclass
class Estimate:
    """Running means of the measurements of one candidate."""
    decode_per_byte: float              # of a decode step: s for each byte that it reads
    prefill_per_token: float
    step: Optional[float] = None        # of a mixed step of a whole chunk: it is both

    def learn(self, name: str, value: float, weight: float = 0.2) -> None:
        before = getattr(self, name)
        setattr(self, name, value if before is None else before + weight * (value - before))


def choose(candidates: Mapping[str, Estimate], nr_decoding: int, nr_bytes: float,
           waiting: Sequence[tuple[int, float]], goals: Goals, margin: float = 0.85) -> str:
    """The split for the next step: the first candidate without a split, ALONE or MIXED, that keeps
    both goals; else, of all that keep the time between tokens, the one with the fastest prefill,
    because a shorter time between tokens has no advantage; else the one with the shortest time
    between tokens. @waiting: tokens still to prefill and time left, one after the other."""
    def rank(index: int, name: str) -> tuple[int, float]:
        of, at, in_time = candidates[name], 0.0, name in (ALONE, MIXED)
        step = of.step if of.step is not None else of.decode_per_byte * nr_bytes
        if step > goals.tbt * margin:
            return 2, step
        for tokens, left in waiting:
            at += tokens * of.prefill_per_token
            # Some requests are late with every split. Such a request is no reason for a split.
            in_time = in_time and (at <= left * margin or left <= 0)
        return (0, index) if in_time else (1, of.prefill_per_token)
    if not waiting or not nr_decoding:
        return ALONE
    return min(enumerate(candidates), key=lambda item: rank(*item))[1]
