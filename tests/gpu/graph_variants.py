# SPDX-License-Identifier: MIT
"""Run by tests/gpu/graph_variants.sh: a graph of 300 kernels that is launched under several sets.

Checks that every block of every launch stayed in its set and that launches of one graph follow
each other. Prints the host's time for a launch in us and the memory of a variant. With
GPUPART_GRAPH_SETS=1 the graph is rebuilt instead, for comparison.
"""
import os
import statistics
import sys
import time

import gpupart
import torch
import triton
import triton.language as tl

from sms import census, ok

KERNELS, BLOCKS = 300, 264
LAUNCHES = 100                      # times four, of each case
VARIANTS = os.environ.get("GPUPART_GRAPH_SETS") != "1"


@triton.jit
def count(at, n: tl.constexpr):
    # Not atomic: overlapping launches would lose some increments.
    tl.store(at, tl.load(at) + 1)


def captured(kernel):
    """A graph of KERNELS kernels."""
    kernel(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for n in range(KERNELS):
            kernel(n)
    return graph


def main():
    out = torch.full((KERNELS, 1024), -1, device="cuda", dtype=torch.int32)
    # A graph that was instantiated before the attach cannot be rebuilt.
    gpu = gpupart.attach()
    topo = gpu.topology
    sets = [topo.set(words) for words in ("gpc:0", "gpc:1,2", "gpc:3", "gpc:4-6")]
    graph = captured(lambda n: census[(BLOCKS,)](out[n], 0))

    def tpcs():
        """The TPCs of all blocks of the last launch; None for a block that did not run."""
        return {topo.sm_tpc(sm & 0xffffffff) for sm in set(out[:, :BLOCKS].flatten().tolist())}

    def stays(words, used, launches):
        wrong = 0
        for n in range(launches):
            tpc_set = used[n % len(used)]
            gpu.process = tpc_set
            out.fill_(-1)
            graph.replay()
            torch.cuda.synchronize()
            wrong += not tpcs() <= set(tpc_set)
        ok(not wrong, f"{words}: {wrong} of {launches} launches left their set")

    def costs(*cases):
        """Median host times for a launch in us, of each (words, graph, sets in turns). The queue
        is never full. The cases take turns, so that a slow phase of the machine meets each."""
        took = [[] for _ in cases]
        before = gpupart.counters().graphs_reapplied
        for n in range(LAUNCHES):
            for (_, launched, used), times in zip(cases, took):
                for m in range(4):
                    gpu.process = used[m % len(used)]
                    start = time.perf_counter_ns()
                    launched.replay()
                    times.append((time.perf_counter_ns() - start) / 1000)
                torch.cuda.synchronize()
        for (words, _, _), times in zip(cases, took):
            times.sort()
            print(f"# {words}: median {statistics.median(times):.2f} us, 99th percentile "
                  f"{times[len(times) * 99 // 100]:.2f}", flush=True)
        return [statistics.median(times) for times in took], (
            gpupart.counters().graphs_reapplied - before)

    stays("one set", sets[:1], 20)
    stays("two sets in turns", sets[:2], 40)
    if VARIANTS:
        stays("four sets in turns", sets, 40)
        single = captured(lambda n: census[(BLOCKS,)](out[n], 0))
        several = (("one set of four", graph, sets[:1]), ("two sets in turns", graph, sets[:2]),
                   ("four sets in turns", graph, sets))
        (one, *others), built = costs(("one build", single, sets[:1]), *several)
        ok(built <= 1, f"graphs were built {built} times")      # the single one, for its set
        for (words, *_), us in zip(several, others):
            ok(us - one <= 2, f"{words}: {us - one:.2f} us more than a graph with one build")
    else:
        _, built = costs(("two sets in turns", graph, sets[:2]))
        ok(built >= 4 * LAUNCHES - 1, f"without variants: built again {built} times")

    # One graph in two streams with a set each.
    gpu.process = None
    counter = torch.zeros(1, device="cuda", dtype=torch.int64)
    chain = captured(lambda n: count[(1,)](counter, 0))
    counter.zero_()
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    for stream, tpc_set in zip(streams, sets):
        gpu.stream_set(stream, tpc_set)
    torch.cuda.synchronize()
    for n in range(200):
        with torch.cuda.stream(streams[n % 2]):
            chain.replay()
    torch.cuda.synchronize()
    ok(counter.item() == 200 * KERNELS,
       f"two streams in turns: {counter.item()} of {200 * KERNELS} kernels counted one by one")
    for stream in streams:
        gpu.stream_set(stream, None)

    # The memory of variants.
    graphs = [captured(lambda n: census[(BLOCKS,)](out[n], 0)) for _ in range(10)]
    free = []
    for tpc_set in sets:
        gpu.process = tpc_set
        start = time.perf_counter_ns()
        for graph in graphs:
            graph.replay()
        torch.cuda.synchronize()
        took = (time.perf_counter_ns() - start) / 10000
        free.append(torch.cuda.mem_get_info()[0])
        print(f"# 10 graphs, set {len(free)}: {took:.0f} us a graph with its run, "
              f"{(free[0] - free[-1]) / 10 / 1024:.0f} KiB a graph more than with one", flush=True)
    if VARIANTS and hasattr(graph, "raw_cuda_graph_exec"):
        graph = captured(lambda n: census[(BLOCKS,)](out[n], 0))
        start = time.perf_counter_ns()
        gpu.graph_prepare(graph, sets)
        print(f"# four sets beforehand: {(time.perf_counter_ns() - start) / 1000:.0f} us")
        before = gpupart.counters().graphs_reapplied
        stays("four sets named beforehand", sets, 8)
        ok(gpupart.counters().graphs_reapplied == before, "and nothing is built")
    ok(gpupart.counters().graphs_stale == 0, "no launch kept an earlier set")
    gpu.process = None


sys.exit(main())
