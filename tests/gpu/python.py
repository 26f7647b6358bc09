# SPDX-License-Identifier: MIT
"""gpupart.py with PyTorch on a real GPU, as TAP; started by tests/gpu/python.sh.

A Triton kernel reports the SMs on which its programs ran; the sets give the expected SMs.
"""
import os
import sys
import threading
import timeit

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
from tap import done, ok, raises, same  # noqa: E402

import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402

import gpupart  # noqa: E402
from gpupart import TpcSet, partition  # noqa: E402


@triton.jit
def census(out, n: tl.constexpr):
    pid = tl.program_id(0)
    sm = tl.inline_asm_elementwise("mov.u32 $0, %smid;", "=r", [], dtype=tl.int32,
                                   is_pure=False, pack=1)
    tl.store(out + pid, sm)


def seen(launch=None, device=0):
    """The TPCs of many launches on the current stream, each with more blocks than fit at once."""
    out = torch.full((8192,), -1, device=f"cuda:{device}", dtype=torch.int32)
    sms = set()
    for _ in range(20):
        if launch is None:
            census[(8192,)](out, 0)
        else:
            launch(out)
        sms |= set(out.tolist())
    topology = gpupart.attach(f"cuda:{device}").topology
    return TpcSet({topology.sm_tpc(sm) for sm in sms})


gpu = gpupart.attach("cuda:0")
topo = gpu.topology
print("#", gpu, gpu.check, "torch", torch.__version__)
ok(not topo.info.simulated, f"a real GPU: {topo}")
census[(1,)](torch.zeros(1, device="cuda", dtype=torch.int32), 0)
torch.cuda.synchronize()
same(seen(), topo.all, "without a set: all TPCs")
gpcs = topo.gpc_tpcs([1, 2])

stream = torch.cuda.Stream()
with partition(gpcs=[1, 2], stream=stream):
    with torch.cuda.stream(stream):
        same(seen(), gpcs, "a stream of PyTorch's in GPCs 1 and 2")
    same(seen(), topo.all, "its other stream is not confined")
with torch.cuda.stream(stream):
    same(seen(), topo.all, "put back")
with partition(tpcs="0-3", stream=torch.cuda.current_stream()):
    same(seen(), TpcSet("0-3"), "PyTorch's default stream, the legacy one")
same(seen(), topo.all, "put back")
with partition(ugpus=0):
    same(seen(), topo.ugpus[0].tpcs, "without stream=: PyTorch's current stream")
    with torch.cuda.stream(stream):
        same(seen(), topo.ugpus[0].tpcs, "and its others")
    with partition(gpcs=0):
        same(seen(), topo.gpcs[0].tpcs, "nested")
    try:
        with partition(gpcs=3, stream=stream):
            raise KeyError
    except KeyError:
        same(gpu.stream_get(stream), None, "put back, an exception passing")
same(seen(), topo.all, "put back")

# Products, their gradient, a captured graph: counted as confined, with correct results.
a = torch.randn(512, 512, device="cuda", requires_grad=True)
want = (a @ a).sum()
before = gpupart.counters()
with partition(tpcs=range(8)):
    got = (a @ a).sum()
    got.backward()
    torch.cuda.synchronize()
after = gpupart.counters()
ok(torch.allclose(want, got), "a product in 8 TPCs is what it was in all")
same((after.launches - before.launches, after.unconfinable_version, after.unconfinable_map),
     (after.confined - before.confined, 0, 0), f"each launch confined: {after}")
buffer = torch.full((8192,), -1, device="cuda", dtype=torch.int32)
graph = torch.cuda.CUDAGraph()
census[(8192,)](buffer, 0)
torch.cuda.synchronize()
with partition(gpcs=1):
    with torch.cuda.graph(graph):
        census[(8192,)](buffer, 0)
    graph.replay()
    torch.cuda.synchronize()


def replay(out):
    graph.replay()
    out.copy_(buffer)


same(seen(replay), topo.all, "a graph takes what is in force when it is launched: nothing")
with partition(gpcs=2):
    same(seen(replay), topo.gpcs[2].tpcs, "a graph in another partition")
gpu.thread = "gpc:3"
same((seen(), gpu.thread), (topo.gpcs[3].tpcs, topo.gpcs[3].tpcs), "the thread's set")
with partition(gpcs=1, thread=True):
    same(seen(), topo.gpcs[1].tpcs, "a partition of the thread")
same(seen(), topo.gpcs[3].tpcs, "the thread's set again")
gpu.thread = None
same(gpupart.counters().graphs_stale, 0, "no graph kept an earlier set")

# PyTorch's streams come from a pool.
kept = gpu.stream(torch.cuda.Stream())
kept.set = "5"
same(kept.set, TpcSet(5), "a stream's set stays")
kept.set = None

wrong = []


def work(nr):
    mine = torch.cuda.Stream()
    with torch.cuda.stream(mine):
        for _ in range(3):
            with partition(tpcs=[nr, nr + 20], stream=mine) as tpcs:
                found = seen()
                if found != tpcs:
                    wrong.append((nr, found))


threads = [threading.Thread(target=work, args=(nr,)) for nr in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
same(wrong, [], "4 threads, each in its own set")
if torch.cuda.device_count() > 1:
    other = torch.cuda.Stream(device=1)
    with partition(gpcs=1, stream=other) as tpcs, torch.cuda.device(1), torch.cuda.stream(other):
        same(seen(device=1), tpcs, "a stream of the second GPU says which GPU it is of")
    raises(gpupart.Error, "not on the GPU", lambda: gpu.stream_set(other, 1), "it is none of GPU 0")
    with gpupart.split(a="50%", b="rest", gpu="cuda:1") as parts:
        for part in parts.values():
            with torch.cuda.device(1), torch.cuda.stream(part.stream):
                same((part.stream.device.index, seen(device=1)), (1, part.set),
                     f"part {part.name} of a split of the second GPU")
try:
    import cupy
except ImportError:
    print("# no CuPy here")
else:
    with cupy.cuda.Stream(non_blocking=True) as theirs, partition(gpcs=2, stream=theirs) as tpcs:
        same((gpu.stream_get(theirs.ptr), gpu.census(theirs)), (tpcs, tpcs), "a stream of CuPy's")

# The cost, on an idle CPU.
one, place = TpcSet("0-3"), gpu.stream(stream)
place.set = one
again = partition(set=one, stream=stream)


def process():
    gpu.process = one


def kept_stream():
    place.set = one


def entered():
    with again:
        pass


def made():
    with partition(gpcs=[1, 2], stream=stream):
        pass


for function in (process, kept_stream, entered, made):
    nr = 20000
    best = min(timeit.repeat(function, number=nr, repeat=7)) / nr * 1e9
    print(f"# {function.__name__}: {best:.0f} ns")
place.set = gpu.process = None
rows = gpu.verify()
ok(rows and all(row.result != gpupart.Result.FAIL for row in rows), f"verify: {len(rows)} rows")
done()
