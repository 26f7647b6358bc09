# SPDX-License-Identifier: MIT
"""Run by tests/gpu/profile.sh: PyTorch's profiler and CUPTI, with and without gpupart. (PyTorch
imports Python's profile.py.)

profile [NUM_SMS]  profiles a fixed program, in a green context of NUM_SMS if given; prints JSON:
                   its kernels with counts and median times in ns, and the SMs on which they ran
callbacks SMS      CUPTI's callback interface, a hundred subscriptions; SMs as "0,1,8"; prints one
                   line for each check
first              CUPTI subscribes before gpupart is attached; one line for each check
"""
import ctypes
import ctypes.util
import glob
import json
import os
import statistics
import sys

import torch

from sms import ok, seen

STEPS = 100
TIMES = 100
CB_DOMAIN_DRIVER_API = 1


def step(a, b):
    c = a @ b
    c = torch.relu(c) + a
    return torch.softmax(c, dim=-1)


def profile(num_sms):
    if num_sms:
        from torch.cuda.green_contexts import GreenContext
        context = GreenContext.create(num_sms=num_sms, device_id=0)
        context.set_context()
    sms = seen()
    # Longer than a launch, so that the CPU's speed does not affect the kernels' times.
    a = torch.ones(4096, 4096, device="cuda", dtype=torch.bfloat16)
    b = torch.ones(4096, 4096, device="cuda", dtype=torch.bfloat16) / 4096
    for _ in range(20):
        step(a, b)
    torch.cuda.synchronize()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as prof:
        for _ in range(STEPS):
            step(a, b)
        torch.cuda.synchronize()
    trace = os.environ.get("TRACE", "/tmp/gpupart-trace.json")
    prof.export_chrome_trace(trace)
    with open(trace) as file:
        events = json.load(file)["traceEvents"]
    os.unlink(trace)
    kernels = {}
    for event in events:
        if event.get("cat") == "kernel":
            kernels.setdefault(event["name"], []).append(event["dur"] * 1000)
    print(json.dumps({"sms": sorted(sms), "kernels": {
        name: {"count": len(times), "median_ns": statistics.median(times)}
        for name, times in sorted(kernels.items())}}))


def cupti():
    """PyTorch's copy of the library, or the system's."""
    roots = [os.path.dirname(os.path.dirname(torch.__file__)), "/usr/local/cuda"]
    for root in roots:
        for path in sorted(glob.glob(root + "/**/libcupti.so*", recursive=True)):
            return ctypes.CDLL(path)
    return ctypes.CDLL(ctypes.util.find_library("cupti") or "libcupti.so")


CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)
nr_called = 0


def called(_user, _domain, _cbid, _data):
    global nr_called
    nr_called += 1


called_c = CALLBACK(called)


def callbacks(words):
    want = {int(word) for word in words.split(",")}
    lib = cupti()
    sms = seen()
    ok(sms == want, f"before: {len(sms)} SMs of the set")
    good = confined = told = 0
    for i in range(TIMES):
        subscriber = ctypes.c_void_p()
        before = nr_called
        result = lib.cuptiSubscribe(ctypes.byref(subscriber), called_c, None)
        result = result or lib.cuptiEnableDomain(1, subscriber, CB_DOMAIN_DRIVER_API)
        torch.ones(16, device="cuda").sum().item()
        told += nr_called > before
        if i % 10 == 0:
            confined += seen() == want
        result = result or lib.cuptiUnsubscribe(subscriber)
        good += result == 0
        if result and i == 0:
            print(f"# CUPTI: {result}")
        if i % 10 == 0:
            confined += seen() == want
    ok(good == TIMES, f"CUPTI subscribed and went {good} times of {TIMES}")
    ok(told == TIMES, f"and got callbacks of calls {told} times, {nr_called} in all")
    ok(confined == TIMES // 5, f"confined with it and without, {confined} times of {TIMES // 5}")
    before = nr_called
    ok(seen() == want and nr_called == before, "after its end it gets no callback")


def first():
    sys.path.insert(0, os.environ["GPUPART_PYTHON"])
    lib = cupti()
    subscriber = ctypes.c_void_p()
    result = lib.cuptiSubscribe(ctypes.byref(subscriber), called_c, None)
    ok(result == 0, f"CUPTI subscribes before gpupart: {result}")
    import gpupart
    try:
        gpupart.attach("cuda:0")
        ok(False, "gpupart is attached beside it")
    except OSError as error:
        ok("already attached to the CUDA driver" in str(error),
           f"gpupart says who has the place: {error}")
    ok(lib.cuptiUnsubscribe(subscriber) == 0, "CUPTI goes")


if sys.argv[1] == "profile":
    profile(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
elif sys.argv[1] == "callbacks":
    callbacks(sys.argv[2])
else:
    first()
