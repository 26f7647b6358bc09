# SPDX-License-Identifier: MIT
"""Scopes and partitions on the simulated driver, one GPU of 66 TPCs."""
import copy
import ctypes
import errno
import functools
import pickle
import threading

from tap import Driver, done, ok, raises, same

import gpupart
from gpupart import Error, TpcSet, attach, partition

gpu = attach()
driver = Driver()
topo = gpu.topology
ALL = topo.all
same((attach() is gpu, attach("cuda:0") is gpu, topo.info.simulated), (True, True, True), "attach")
check = gpu.check
same((check.layout, check.nr_proven, check.streams, check.graphs), ("V04_00", 66, "", ""),
     "check")
ok(len(check.key) == 16 and check.from_cache == (check.nr_launches == 0), f"check: {check}")

# Each scope, and the resulting set of a launch.
same((gpu.process, gpu.limit, gpu.census()), (None, None, ALL), "nothing is set")
for value, want in (("gpc:1", topo.gpcs[1].tpcs), (range(4), TpcSet("0-3")), (TpcSet(9), {9}),
                    ({60, 65}, {60, 65}), (7, {7})):
    gpu.process = value
    same((gpu.process, gpu.census()), (want, want), f"process = {value}")
gpu.limit = "0-15"
gpu.process = "10-20"
same((gpu.limit, gpu.process, gpu.census()), (TpcSet("0-15"), TpcSet("10-20"), TpcSet("10-15")),
     "limit AND process")
gpu.limit = None
gpu.next_set("40")
same((gpu.census(), gpu.census()), (TpcSet(40), TpcSet("10-20")), "the next launch, once")
gpu.next_set(TpcSet(41))
gpu.next_set(None)
same(gpu.census(), TpcSet("10-20"), "a next launch's set taken away")
gpu.process = None
same((gpu.process, gpu.limit, gpu.census()), (None, None, ALL), "all taken away")

# Graphs: a fill, which is a kernel node, under sets that were prepared.
exec_ = driver.graph_of_a_fill()


class Captured:
    def raw_cuda_graph_exec(self):
        return exec_


class Older:
    graphExec = exec_


for graph in (exec_, ctypes.c_void_p(exec_), Captured(), Older()):
    gpu.graph_prepare(graph, ["0-3", {8, 9}, TpcSet(20)])
    reapplied = gpupart.counters().graphs_reapplied
    for words in ("8,9", "0-3", "20"):
        gpu.process = words
        driver("cuGraphLaunch", ctypes.c_void_p(exec_), None)
    same(gpupart.counters().graphs_reapplied, reapplied, f"a graph as {type(graph).__name__}")
gpu.process = "30"
driver("cuGraphLaunch", ctypes.c_void_p(exec_), None)
same(gpupart.counters().graphs_reapplied, reapplied + 1, "another set is built for")
gpu.process = None
raises(TypeError, "executable", lambda: gpu.graph_prepare("graph", [1]), "no graph")
for one_set in ("3", TpcSet(3)):
    raises(TypeError, repr(one_set), lambda: gpu.graph_prepare(exec_, one_set), "one set, no list")
for graph, words, part, number in ((4096, [1], "0x1000", errno.EINVAL),
                                   (exec_, range(5), "at most 4 sets, not", errno.EOPNOTSUPP),
                                   (exec_, ["66"], "66", errno.EINVAL)):
    raises(Error, part, lambda: gpu.graph_prepare(graph, words), f"{graph} {words}", number)

# Streams, in all forms.
one, two = driver.stream(), driver.stream()


class Torch:
    cuda_stream = one


class CuPy:
    ptr = one


class Cuda:
    def __cuda_stream__(self):
        return 0, one


class Index:
    def __index__(self):
        return one


for nr, stream in enumerate((one, ctypes.c_void_p(one), ctypes.c_size_t(one),
                             ctypes.cast(one, ctypes.POINTER(ctypes.c_int)), Torch(), CuPy(),
                             Cuda(), Index())):
    gpu.stream_set(stream, nr)
    same((gpu.stream_get(one), gpu.stream_get(stream), gpu.stream(stream).handle),
         (TpcSet(nr), TpcSet(nr), one), f"a stream as {type(stream).__name__}")
    same(gpu.census(stream), TpcSet(nr), "and its launches")
same((gpu.stream_get(two), gpu.census(two), gpu.census()), (None, ALL, ALL), "others have no set")
place = gpu.stream(two)
for words in ("1", "2-3", TpcSet(4)):
    place.set = words
    same((place.set, gpu.census(two)), (TpcSet(words), TpcSet(words)), f"stream(..).set = {words}")
gpu.process = 50
same((gpu.census(two), gpu.census()), (TpcSet(4), TpcSet(50)), "the stream's before the process's")
place.set = None
same((place.set, gpu.census(two)), (None, TpcSet(50)), "taken away: the process's")
gpu.process = None
gpu.stream_set(None, "8-9")
same((gpu.stream_get(0), gpu.stream_get(1), gpu.census(), gpu.census(two)),
     (TpcSet("8-9"), TpcSet("8-9"), TpcSet("8-9"), ALL), "None is the legacy default stream")
gpu.stream_set(0, None)
same(gpu.census(), ALL, "and without its set")
for bad in (1.5, "0", True, [], object()):
    raises(TypeError, repr(bad), lambda: gpu.stream(bad), f"a stream {bad!r}")
for bad in (-1, 1 << 64):
    raises(Error, str(bad), lambda: gpu.stream(bad), f"a stream {bad}", errno.EINVAL)
gpu.stream_set(one, None)

# Refusals, with the value.
for words, part in (("0-66", "66"), ("gpc:8", "8"), (TpcSet(), "empty"), (TpcSet(65, 77), "77")):
    for name, put in (("process", lambda: setattr(gpu, "process", words)),
                      ("limit", lambda: setattr(gpu, "limit", words)),
                      ("next", lambda: gpu.next_set(words)),
                      ("stream", lambda: gpu.stream_set(one, words)),
                      ("partition", lambda: partition(set=words).__enter__())):
        raises(Error, part, put, f"{name} {words!r}", errno.EINVAL)
raises(Error, "0xdead0", lambda: gpu.stream_set(0xdead0, 1), "no stream", errno.EINVAL)
raises(Error, "cuda:7", lambda: attach("cuda:7"), "no such GPU", errno.ENODEV)
raises(TypeError, "gpu=0", lambda: attach(0), "a GPU as a number")
raises(TypeError, "needs at least one of", lambda: partition(stream=one), "a partition of nothing")
same((gpu.process, gpu.limit, gpu.stream_get(one), gpu.census()), (None, None, None, ALL),
     "what was refused changed nothing")

# partition()
with partition(tpcs="0-3") as tpcs:
    same((tpcs, gpu.process, gpu.census()), (TpcSet("0-3"),) * 3, "a partition of the process")
    with partition(gpcs=[1, 2], stream=one):
        same((gpu.census(one), gpu.census(two)), (topo.gpc_tpcs([1, 2]), tpcs),
             "inside, a stream's")
    same((gpu.stream_get(one), gpu.census(one)), (None, tpcs), "the stream's is put back: none")
    with partition(ugpus=1):
        same(gpu.census(), topo.ugpus[1].tpcs, "nested: in place of the outer one")
    same((gpu.process, gpu.census()), (tpcs, tpcs), "the outer one is put back")
same((gpu.process, gpu.census()), (None, ALL), "none is put back")
with partition(gpcs=1, tpcs=[0, 1], vgpcs=topo.vgpcs[0].vgpc, set="hex:0x4", gpu=gpu) as tpcs:
    same(tpcs, topo.gpcs[1].tpcs | {0, 1, 2} | topo.vgpcs[0].tpcs, "what is given is joined")
gpu.stream_set(one, "30")
try:
    with partition(tpcs=5), partition(tpcs=6, stream=one):
        same((gpu.census(one), gpu.census()), (TpcSet(6), TpcSet(5)), "two at once")
        raise KeyError("out")
except KeyError as error:
    ok(error.args == ("out",), "an exception passes")
same((gpu.process, gpu.stream_get(one)), (None, TpcSet(30)), "and both are put back")
gpu.stream_set(one, None)


def interrupted():
    with partition(tpcs=5):
        gpu.process = "0-66"


raises(Error, "66", interrupted, "an Error of our own passes")
same(gpu.process, None, "and it is put back")
raises(Error, "66", lambda: partition(tpcs=66).__enter__(), "a partition that cannot be")
same(gpu.process, None, "sets nothing")


@partition(tpcs=[20, 21])
def confined(depth):
    return [gpu.census()] + (confined(depth - 1) if depth else [])


same(confined(2), [TpcSet("20-21")] * 3, "as a decorator, of a function that calls itself")
same(gpu.process, None, "and put back")
again = partition(tpcs=22, stream=two)
for _ in range(3):
    with again, again:
        same(gpu.census(two), TpcSet(22), "used again")
    same(gpu.stream_get(two), None, "and put back")
with partition(tpcs=3, stream=None):
    same((gpu.census(), gpu.process, gpu.census(two)), (TpcSet(3), None, ALL),
         "stream=None is the legacy default stream, not the process")
gone = driver.stream()
with partition(tpcs=1, stream=gone):
    driver.destroy(gone)
ok(True, "a stream that goes inside takes its set along")
lost = driver.stream()
with partition(tpcs=1, stream=lost):
    gpu.stream_set(lost, None)
same(gpu.stream_get(lost), None, "a set that was taken away inside")
with partition(tpcs=1, stream=lost):
    gpu.stream_set(lost, "7")
same(gpu.stream_get(lost), TpcSet(7), "a set that another replaced inside stays")
gpu.stream_set(lost, None)
gone = driver.stream()
gpu.stream_set(gone, "0-3")
with partition(tpcs="8-9", stream=gone):
    driver.destroy(gone)
ok(True, "a stream that had a set before and goes inside is no error")
# The driver reuses handles: try until it does.
for _ in range(100):
    gone = driver.stream()
    gpu.stream_set(gone, "0-3")
    with partition(tpcs="8-9", stream=gone):
        driver.destroy(gone)
        new = driver.stream()
        inside = gpu.stream_get(new)
    if new == gone:
        break
same((new == gone, inside, gpu.stream_get(new), gpu.census(new)), (True, None, None, ALL),
     "a new stream with the handle of one that went gets none of its sets")
with partition(tpcs=5, stream=one), partition(tpcs=5, stream=one):
    same(gpu.stream_get(one), TpcSet(5), "equal sets, nested")
same(gpu.stream_get(one), None, "and put back")

# Threads, each with its own stream.
wrong = []


def work(nr):
    try:
        driver.enter()
        stream = driver.stream()
        for i in range(20):
            with partition(tpcs=[nr, nr + 10 + i], stream=stream) as tpcs:
                seen = gpu.census(stream)
                if seen != tpcs:
                    wrong.append((nr, i, seen))
            try:
                TpcSet(f"{300 + nr}")
            except Error as error:
                if str(300 + nr) not in str(error):
                    wrong.append(str(error))
            finally:
                gpu.next_set(TpcSet(nr))
                seen = gpu.census(stream)
                if seen != {nr}:
                    wrong.append(("next", nr, seen))
    except Exception as error:
        wrong.append(error)


threads = [threading.Thread(target=work, args=(nr,)) for nr in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
same(wrong, [], "6 threads, each sees its own stream's set, next launch and sentence")

# A thread's own set, from one object in several threads.


@partition(tpcs="0-3", thread=True)
def together(depth, meet):
    if depth:
        return together(depth - 1, meet)
    meet.wait(20)
    return gpu.thread


shared = partition(tpcs="0-3", thread=True)


def in_a_with(depth, meet):
    with shared:
        return in_a_with(depth - 1, meet) if depth else (meet.wait(20), gpu.thread)[1]


def thread_of_its_own(function, before, depth, meet, into):
    try:
        gpu.thread = before
        into[before] = [function(depth, meet), gpu.thread]
        meet.wait(20)
        into[before] += [function(depth, meet), gpu.thread]
    except Exception as error:
        into[before] = error


for function, name in ((together, "a decorated function"), (in_a_with, "one object's with")):
    for depth in 0, 2:
        befores = (None, "20-21", "30", "40-42")
        meet, into = threading.Barrier(len(befores)), {}
        threads = [threading.Thread(target=thread_of_its_own,
                                    args=(function, before, depth, meet, into))
                   for before in befores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        same(into, {before: [TpcSet("0-3"), TpcSet(before) if before else None] * 2
                    for before in befores}, f"{name} {depth} deep: each thread's own is put back")
same(gpu.thread, None, "and the main thread has none")
shared.__enter__()
left = []
thread = threading.Thread(target=lambda: left.append(raises(
    RuntimeError, "in one thread", shared.__exit__, "left in a thread that did not enter")))
thread.start()
thread.join()
shared.__exit__()
same(gpu.thread, None, "and left where it was entered")
# All threads share the process's set: the last one to leave restores the first set.
shared = partition(tpcs="0-3")
gpu.process = "9"
shared.__enter__()
thread = threading.Thread(target=shared.__enter__)
thread.start()
thread.join()
shared.__exit__()
same(gpu.process, TpcSet("0-3"), "one object in two threads on the process: one has left")
thread = threading.Thread(target=shared.__exit__)
thread.start()
thread.join()
same(gpu.process, TpcSet(9), "both have left")
gpu.process = None

# Default streams, left while another context is current, or in another thread.
other = ctypes.c_void_p()
driver("cuCtxCreate_v2", ctypes.byref(other), 0, 0)
driver.enter()
for stream in None, 1, 2:
    for context, where in ((other, "with another context"), (None, "with no context")):
        gpu.stream_set(stream, "50")
        with partition(tpcs="0-3", stream=stream):
            driver("cuCtxSetCurrent", context)
            if context:
                gpu.stream_set(stream, "0-3")
        current = ctypes.c_void_p()
        driver("cuCtxGetCurrent", ctypes.byref(current))
        same(current.value, context and context.value, f"stream={stream}, left {where}")
        if context:
            same(gpu.stream_get(stream), TpcSet("0-3"), "that one's set stays")
            gpu.stream_set(stream, None)
        driver.enter()
        same(gpu.stream_get(stream), TpcSet(50), "the first one's is put back")
    gpu.stream_set(stream, None)
with partition(tpcs="0-3", stream=None):
    def leaves():
        with partition(tpcs="4-5", stream=None):
            driver("cuCtxSetCurrent", other)
    leaves()
    driver.enter()
    same(gpu.stream_get(None), TpcSet("0-3"), "nested, the outer one's is put back")
driver("cuCtxSetCurrent", other)
with partition(tpcs="0-3", stream=None):
    driver.enter()
    driver("cuCtxDestroy_v2", other)
ok(True, "a default stream whose context goes inside takes its set along")
shared = partition(tpcs="0-3", stream=2)
shared.__enter__()
errors = []


def leaves_in_another_thread():
    driver.enter()
    errors.append(raises(RuntimeError, "in one thread", shared.__exit__,
                         "a per-thread default stream, left in another thread"))
    with shared:
        errors.append(gpu.stream_get(2))
    errors.append(gpu.stream_get(2))


thread = threading.Thread(target=leaves_in_another_thread)
thread.start()
thread.join()
same(errors[1:], [TpcSet("0-3"), None], "which may use the object for its own")
same(gpu.stream_get(2), TpcSet("0-3"), "the first thread's is there still")
shared.__exit__()
same(gpu.stream_get(2), None, "and left where it was entered")

# A function that works later cannot be decorated.


async def coroutine():
    pass


async def async_generator():
    yield


def generator():
    yield


class Later:
    async def __call__(self):
        pass


for later in coroutine, async_generator, generator, functools.partial(generator), Later():
    raises(TypeError, "before its work is done", lambda: partition(tpcs="0-3")(later),
           f"a decorated {getattr(later, '__name__', type(later).__name__)}")
same(partition(tpcs="0-3")(functools.partial(gpu.census))(), TpcSet("0-3"), "what does it at once")

# Handles of this process are invalid in another one.
for what in gpu, topo, gpu.stream(one):
    raises(TypeError, "cannot be pickled", lambda: pickle.dumps(what), f"pickling {what}")
same((copy.copy(gpu), copy.deepcopy([gpu, topo]), copy.copy(topo)), (gpu, [gpu, topo], topo),
     "copies are the same")
same(pickle.loads(pickle.dumps(topo.gpcs[1])), topo.gpcs[1], "what a topology says can be pickled")

# Counters, processes, verify.
before = gpupart.counters()
with partition(tpcs=3):
    gpu.census()
after = gpupart.counters()
ok(after.launches - before.launches == after.confined - before.confined >= 1,
   f"counted: {after.confined - before.confined} confined")
same((after.widened_empty, after.unconfinable_map, after.unconfinable_gpu), (0, 0, 0), "no other")
gpu.limit = "0-3"
gpu.process = "5"
same(gpu.census(), TpcSet("0-3"), "limit AND process is empty: the limit")
ok(gpupart.counters().widened_empty > after.widened_empty, "and that is counted")
gpupart.publish("a job")
mine = [p for p in gpupart.processes() if p.name == "a job"]
same([(p.limit, p.pci, p.problem) for p in mine], [(TpcSet("0-3"), topo.info.pci, "")],
     "processes() shows this one")
ok(mine and mine[0].counters.confined >= after.confined, "with its counters")
gpu.limit = gpu.process = None
same([p.limit for p in gpupart.processes() if p.name == "a job"], [None], "and no limit is None")
rows = []
got = gpu.verify(quick=True, on_row=rows.append)
ok(got == rows and len(rows) > 5 and {r.result for r in rows} <= {
    gpupart.Result.PASS, gpupart.Result.SKIP} and all(r.name and r.what for r in rows),
    f"verify: {len(rows)} rows")
slow = {r.name for r in rows if r.result} - {r.name for r in gpu.verify() if r.result}
ok("tpc-alone" in slow, f"verify, not quick, has more: {sorted(slow)}")


def refuse(row):
    raise KeyError(row.name)


raises(KeyError, rows[0].name, lambda: gpu.verify(True, refuse), "an exception of on_row passes")
same(gpu.census(), ALL, "and nothing is left set")
done()
