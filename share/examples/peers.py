#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs for 'gpupart bench peers': each prints the time in ms of every finished unit of work.

    gpupart bench peers --a 'python3 peers.py decode' --b 'python3 peers.py train' \\
        --both 'python3 peers.py both decode train' --goal 'latency: 8ms' -o results

decode   the decode step of a transformer as one CUDA graph, bound by memory
resnet   ResNet-50 of torchvision, a request every 4 ms, bound by latency
stream   copies in DRAM
train    forward and backward of three 8192^3 products, bound by compute
compute  products that stay in the caches

both A B MODE FILE FILE  A and B on two streams of one process; MODE is 'priority' (A's is higher)
or 'green' (half of the SMs each, by cuda-bindings). For PyTorch 2.4 or newer.
"""
import sys
import threading
import time

import torch


def half(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) / 64


class Decode:
    """2.6 billion parameters, a batch of 16, 2048 tokens of keys and values."""
    WIDTH, LAYERS, HEADS, TOKENS, BATCH = 2560, 32, 20, 2048, 16

    def __init__(self):
        w, heads = self.WIDTH, (self.BATCH, self.HEADS, self.TOKENS, self.WIDTH // self.HEADS)
        self.layers = [(half(w, 3 * w), half(w, w), half(w, 4 * w), half(4 * w, w), half(*heads),
                        half(*heads)) for _ in range(self.LAYERS)]
        self.x = half(self.BATCH, w)
        self.capture()

    def capture(self):
        self.step()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.step()
        self.unit = self.graph.replay

    def step(self):
        x = self.x
        for qkv, out, up, down, keys, values in self.layers:
            q = (x @ qkv)[:, :self.WIDTH].view(self.BATCH, self.HEADS, 1, -1)
            a = torch.nn.functional.scaled_dot_product_attention(q, keys, values)
            x = x + a.reshape(self.BATCH, -1) @ out
            x = x + torch.relu(x @ up) @ down
        self.y = x


class Resnet(Decode):
    every = 0.004

    def __init__(self):
        import torchvision
        self.model = torchvision.models.resnet50().eval().to("cuda", torch.bfloat16)
        self.x = half(8, 3, 224, 224)
        with torch.no_grad():
            for _ in range(3):
                self.model(self.x)
            self.capture()

    def step(self):
        self.y = self.model(self.x)


class Train:
    def __init__(self):
        self.weights = [half(8192, 8192).requires_grad_() for _ in range(3)]
        self.x = half(8192, 8192)

    def unit(self):
        x = self.x
        for weight in self.weights:
            x = x @ weight
            weight.grad = None
        x.sum().backward()


class Stream:
    def __init__(self):
        self.a, self.b = half(1 << 28), half(1 << 28)

    def unit(self):
        self.b.copy_(self.a)


class Compute:
    def __init__(self):
        self.a = half(2048, 2048)
        self.b = torch.empty_like(self.a)

    def unit(self):
        for _ in range(8):
            torch.mm(self.a, self.a, out=self.b)


PROGRAMS = {"decode": Decode, "resnet": Resnet, "train": Train, "stream": Stream,
            "compute": Compute}


def report(gpupart, ms):
    if gpupart:
        gpupart.progress_add(1)
        gpupart.latency_report(ms / 1000)


def work(program, stream, file, gpupart=None):
    """Runs units forever and prints a line for each. Late requests count from their due time."""
    every = getattr(program, "every", 0)
    due = time.monotonic()
    while True:
        start = time.monotonic()
        if every:
            due += every
            time.sleep(max(0, due - start))
            start = due
        with torch.cuda.stream(stream):
            program.unit()
            done = stream.record_event()
        done.synchronize()
        ms = 1000 * (time.monotonic() - start)
        print(f"{ms:.4f}", file=file, flush=True)
        report(gpupart, ms)


def green_streams():
    """Two contexts: half of the SMs, as a multiple of 8, and the others."""
    from cuda.bindings import driver

    def call(name, *args):
        error, *result = getattr(driver, name)(*args)
        if error:
            raise RuntimeError(f"{name}: {error.name}")
        return result[0] if len(result) == 1 else result

    kind = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
    sms = call("cuDeviceGetDevResource", 0, kind)
    first, _, rest = call("cuDevSmResourceSplitByCount", 1, sms, 0, sms.sm.smCount // 2 // 8 * 8)
    found = []
    for part in (first[0], rest):
        context = call("cuGreenCtxCreate", call("cuDevResourceGenerateDesc", [part], 1), 0,
                       driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM)
        found.append(call("cuGreenCtxStreamCreate", context, 1, 0))     # 1: non-blocking
    return [torch.cuda.ExternalStream(int(stream)) for stream in found]


def streams(mode):
    if mode == "priority":
        return [torch.cuda.Stream(priority=-1), torch.cuda.Stream(priority=0)]
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    return green_streams()


def both(names, mode, files):
    pair = streams(mode)
    programs = []
    for name, stream in zip(names, pair):
        with torch.cuda.stream(stream):
            programs.append(PROGRAMS[name]())
    torch.cuda.synchronize()
    threads = [threading.Thread(target=work, args=(program, stream, open(file, "w")))
               for program, stream, file in zip(programs, pair, files)]
    for thread in threads:
        thread.start()


def main():
    if sys.argv[1:2] == ["both"] and len(sys.argv) == 7:
        both(sys.argv[2:4], sys.argv[4], sys.argv[5:])
    elif len(sys.argv) == 2 and sys.argv[1] in PROGRAMS:
        try:
            import gpupart
        except ImportError:
            gpupart = None
        program = PROGRAMS[sys.argv[1]]()
        torch.cuda.synchronize()
        work(program, torch.cuda.Stream(), sys.stdout, gpupart)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
