# SPDX-License-Identifier: MIT
"""Run by tests/gpu/signal.sh: progress by kernels, compared with programs' reports.

signal_kinds.py cases FOLDER         all kinds of program, one after the other; FOLDER/signal.json
signal_kinds.py KIND FOLDER          one program, which works while FOLDER/KIND.go exists and ends
                               with FOLDER/KIND.ready
signal_kinds.py judge LOG            the figures of one log, as JSON

$GPUPART is the command; $GPUPART_SIM: the simulated GPU.
"""
import ctypes
import json
import os
import random
import statistics
import subprocess
import sys
import time

SIMULATED = bool(os.environ.get("GPUPART_SIM"))
SOURCE = ["-i", os.environ["GPUPART_SIM"]] if SIMULATED else []
GPUPART = os.environ.get("GPUPART", "gpupart")
EPOCH = 0.25
LEARN = 8           # epochs on all TPCs, in which qos learns only times
EACH = 10           # epochs in a set
SETS = (60, 40, 20, 60)
NEAR = 0.05
LONGEST = 180       # seconds: the program ends then if no other process ends it


def ok(good, words):
    print(f"{'ok' if good else 'not ok'} - {words}", flush=True)
    return good


# ----------------------------------------------------------------------------- programs

def decode():
    """Tokens of a batch of 8, each a CUDA graph: 12 layers that read their weights, and a head."""
    import torch
    import torch.nn.functional as F
    width, heads, length = 4096, 32, 1024

    def weights(rows, columns):
        return torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16) / columns ** 0.5

    layers = [(weights(3 * width, width), weights(width, width), weights(4 * width, width),
               weights(width, 4 * width)) for _ in range(12)]
    head = weights(32000, width)
    cache = torch.randn(2, 8, heads, length, width // heads, device="cuda", dtype=torch.bfloat16)
    start = torch.randn(8, width, device="cuda", dtype=torch.bfloat16)

    def token():
        x = start
        for qkv, out, up, down in layers:
            q = F.linear(F.layer_norm(x, (width,)), qkv)[:, :width]
            q = q.reshape(8, heads, 1, width // heads)
            a = F.scaled_dot_product_attention(q, cache[0], cache[1]).reshape(8, width)
            x = x + F.linear(a, out)
            x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, (width,)), up)), down)
        return F.linear(F.layer_norm(x, (width,)), head).argmax(-1)

    with torch.no_grad():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                token()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            token()

    def step():
        graph.replay()
        torch.cuda.synchronize()
        return 1

    return step


def train():
    """Steps of a small convolutional network, eager, with Adam and a loss."""
    import torch
    from torch import nn
    channels = (3, 64, 128, 256, 256)
    layers = []
    for a, b in zip(channels, channels[1:]):
        layers += [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2)]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(256 * 4, 10)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(512, 3, 32, 32, device="cuda")
    y = torch.randint(10, (512,), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        loss.item()
        return 1

    return step


def sizes():
    """Batches of six sizes, in a new order each time: products and a convolution; counts rows."""
    import torch
    import torch.nn.functional as F
    rows = (1024, 1536, 2048, 4096, 6144, 8192)
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    w = torch.randn(2, 8192, 8192, device="cuda", dtype=torch.bfloat16) / 90
    images = torch.randn(128, 64, 112, 112, device="cuda", dtype=torch.bfloat16)
    images = images.to(memory_format=torch.channels_last)
    filters = torch.randn(64, 64, 3, 3, device="cuda", dtype=torch.bfloat16)
    filters = filters.to(memory_format=torch.channels_last)
    order = []
    random.seed(1)

    def step():
        if not order:
            order.extend(random.sample(rows, len(rows)))
        n = order.pop()
        with torch.no_grad():
            F.gelu(a[:n] @ w[0]) @ w[1]
            F.conv2d(images[:n // 64], filters, padding=1)
        torch.cuda.synchronize()
        return n

    return step


def small():
    """On the simulated GPU: four kernels of 1 ms."""
    cuda = ctypes.CDLL("libcuda.so.1")
    context, module, kernel = (ctypes.c_void_p() for _ in range(3))
    out, ns = ctypes.c_uint64(), ctypes.c_uint32(1000000)
    here = os.path.dirname(os.path.abspath(__file__))
    with open(here + "/../../lib/confine/probe.ptx", "rb") as f:
        ptx = f.read()
    if (cuda.cuInit(0) or cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) or
            cuda.cuModuleLoadData(ctypes.byref(module), ptx) or
            cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"gpupart_census") or
            cuda.cuMemAlloc_v2(ctypes.byref(out), ctypes.c_size_t(1 << 20))):
        raise RuntimeError("the simulated driver")
    params = (ctypes.c_void_p * 2)(ctypes.addressof(out), ctypes.addressof(ns))

    def step():
        for _ in range(4):
            if cuda.cuLaunchKernel(kernel, 16, 1, 1, 32, 1, 1, 0, None, params, None):
                raise RuntimeError("no launch")
        if cuda.cuCtxSynchronize():
            raise RuntimeError("no end of a launch")
        return 1

    return step


def work(kind, folder):
    import gpupart
    path = f"{folder}/{kind}"
    step = globals()[kind]()
    for _ in range(20):
        step()
    open(path + ".ready", "w").close()
    end = time.monotonic() + LONGEST
    while not os.path.exists(path + ".go"):
        if not os.path.exists(path + ".ready") or time.monotonic() > end:
            return
        time.sleep(0.01)
    while os.path.exists(path + ".go") and time.monotonic() < end:
        gpupart.progress_add(step())


# ----------------------------------------------------------------------------- figures

def read_log(path):
    """The present epochs of the log: progress by records, and by reports."""
    rows = []
    try:
        with open(path) as f:
            for line in f:
                if line.endswith("\n") and '"event":"epoch"' in line:
                    m = json.loads(line)["measured"][0]
                    rows.append((m["work_milli"], m.get("reported_milli", 0), m["ns"]))
    except OSError:
        pass
    return rows


def judge(rows):
    """
    Each epoch's progress by records divided by that by reports, relative to the same ratio on all
    TPCs, without the first epoch.
    """
    alone = rows[1:LEARN]
    kernels, told = (sum(r[i] for r in alone) for i in range(2))
    one = kernels / told if told else 0
    off = [k / t / one - 1 if t and one else None for k, t, _ in rows[LEARN:]]
    known = [abs(d) for d in off if d is not None]
    speed = {}
    for (_, t, ns), tpcs in zip(rows[LEARN:], [n for n in SETS for _ in range(EACH)]):
        speed.setdefault(tpcs, []).append(t / ns * 1e6)
    return {
        "epochs": len(off), "known": len(known),
        "within": sum(d <= NEAR for d in known),
        "median": statistics.median(known) if known else None,
        "worst": max(known) if known else None,
        # Four epochs together, so that their edges count less.
        "within_1s": sum(abs(sum(r[0] for r in four) / one / max(sum(r[1] for r in four), 1) - 1)
                         <= NEAR for i in range(LEARN, len(rows) - 3, 4)
                         for four in [rows[i:i + 4]]) if one else 0,
        "alone_kernel_ms_a_second": kernels / max(sum(r[2] for r in alone), 1) * 1e6,
        "alone_units_a_second": told / max(sum(r[2] for r in alone), 1) * 1e6,
        "units_a_second_by_tpcs": {n: statistics.mean(v) for n, v in speed.items()},
        "deviations": off,
    }


# ----------------------------------------------------------------------------- cases

def until(true, seconds):
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def measure(folder, kind, all_tpcs):
    """Runs one program in its sets."""
    path = f"{folder}/{kind}"
    open(path + ".go", "w").close()
    time.sleep(0.3)
    with open(path + ".yaml", "w") as f:
        f.write(f"epoch: {EPOCH * 1000:.0f}ms\ntenants:\n"
                f"  {kind}: {{ job: {kind}, signal: kernels }}\n")
    nr = LEARN + EACH * len(SETS)
    with open(path + ".out", "w") as out:
        qos = subprocess.Popen([GPUPART, "qos", "run", *SOURCE, "-f", path + ".yaml", "--dry-run",
                                "--epochs", str(nr), "--log", path + ".log"], stdout=out,
                               stderr=subprocess.STDOUT)
    for i, n in enumerate(SETS):
        until(lambda want=LEARN + EACH * i: len(read_log(path + ".log")) >= want, 30)
        subprocess.run([GPUPART, "set", kind, "-t", f"0-{min(n, all_tpcs) - 1}"],
                       stdout=subprocess.DEVNULL, check=True)
    status = qos.wait(60)
    os.unlink(path + ".go")
    rows = read_log(path + ".log")
    if not ok(status == 0 and len(rows) == nr, f"{kind}: qos saw {len(rows)} epochs of {nr}, "
              f"status {status}"):
        with open(path + ".out") as f:
            print("".join("# " + line for line in f.readlines()[-5:]))
        return None
    found = judge(rows)
    ok(found["known"] >= found["epochs"] - 2 and all(r[0] for r in rows[1:]),
       f"{kind}: {found['known']} of {found['epochs']} epochs have both signals")
    if found["known"]:
        print(f"# {kind}: {found['within']} of {found['epochs']} epochs within 5%, median "
              f"{100 * found['median']:.2f}%, worst {100 * found['worst']:.2f}%; of 1 s "
              f"{found['within_1s']} of {found['epochs'] // 4}; alone "
              f"{found['alone_kernel_ms_a_second']:.0f} ms of kernels a second; units a second "
              + " ".join(f"{n} TPCs {v:.1f}" for n, v in found["units_a_second_by_tpcs"].items())
              + (" (simulated)" if SIMULATED else ""), flush=True)
    return found


def cases(folder):
    kinds = ["small"] if SIMULATED else ["decode", "train", "sizes"]
    topology = subprocess.run([GPUPART, "topology", *SOURCE, "--json"], capture_output=True,
                              check=True).stdout
    tpcs = len(json.loads(topology)["tpcs"])
    programs, found = {}, {}
    for kind in kinds:
        for end in ("ready", "go"):
            if os.path.exists(f"{folder}/{kind}.{end}"):
                os.unlink(f"{folder}/{kind}.{end}")
        with open(f"{folder}/{kind}.err", "w") as err:
            programs[kind] = subprocess.Popen(
                [GPUPART, "run", *SOURCE, "-t", f"0-{tpcs - 1}", "--name", kind, "--",
                 sys.executable, os.path.abspath(__file__), kind, folder], stdout=err, stderr=err)
    try:
        for kind in kinds:
            ready = f"{folder}/{kind}.ready"
            until(lambda: os.path.exists(ready) or programs[kind].poll() is not None, 60)
            ok(os.path.exists(ready), f"{kind}: is ready")
        for kind in kinds:
            if programs[kind].poll() is None:
                found[kind] = measure(folder, kind, tpcs)
    finally:
        for kind in kinds:
            for end in ("ready", "go"):
                if os.path.exists(f"{folder}/{kind}.{end}"):
                    os.unlink(f"{folder}/{kind}.{end}")
        for kind, program in programs.items():
            try:
                status = program.wait(20)
            except subprocess.TimeoutExpired:
                program.kill()
                status = program.wait()
            ok(status == 0, f"{kind}: the program ended with {status}")
            if status:
                with open(f"{folder}/{kind}.err") as f:
                    print("".join("# " + line for line in f.readlines()[-8:]))
    with open(f"{folder}/signal.json", "w") as f:
        json.dump({"simulated": SIMULATED, "epoch_s": EPOCH, "sets": SETS, "kinds": found}, f,
                  indent=1)


if __name__ == "__main__":
    if sys.argv[1] == "cases":
        cases(os.path.abspath(sys.argv[2]))
    elif sys.argv[1] == "judge":
        print(json.dumps(judge(read_log(sys.argv[2])), indent=1))
    else:
        work(sys.argv[1], sys.argv[2])
