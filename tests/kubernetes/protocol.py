# SPDX-License-Identifier: MIT
"""protocol.py TMP: see protocol.sh. Prints TAP."""
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

import grpc

import peer
from peer import until

tmp = sys.argv[1]
pb = peer.messages(tmp)
folder = tmp + "/kubelet"
os.mkdir(folder)
gpupart = peer.build + "/bin/gpupart"
captures = peer.build + "/share/gpupart/captures"
begun = time.monotonic()
count = failed = 0


def ok(good, words, more=""):
    global count, failed
    count += 1
    failed += not good
    print("%sok %d - %s" % ("" if good else "not ", count, words))
    if os.environ.get("TIMES"):
        print("# %.1f s" % (time.monotonic() - begun))
    if not good:
        print("# " + str(more).replace("\n", "\n# "))


def refused(call, part, words, code=None):
    try:
        reply = call()
    except grpc.RpcError as error:
        ok(
            part in error.details() and code in (None, error.code()),
            words,
            "%s %s" % (error.code(), error.details()),
        )
    else:
        ok(False, words, reply)


def held():
    out = subprocess.check_output([gpupart, "slurm-node", "--list", "--json"], text=True)
    return {row["job"]: row for row in json.loads(out)["jobs"]}


config = tmp + "/config"


def write_config(text):
    with open(config, "w") as file:
        file.write(text)
    os.chmod(config, 0o644)


# ---------------------------------------------------------------- without kubelet
write_config("memory-per-tpc = 1G\n")
with open(tmp + "/file", "w") as file:
    file.write("")
deaf = socket.socket(socket.AF_UNIX)
os.makedirs(tmp + "/deaf/device-plugins")
deaf.bind(tmp + "/deaf/device-plugins/kubelet.sock")
for path, part in (
    (tmp + "/file", "Not a directory"),
    (tmp + "/" + "x" * 100, "File name too long"),
    (tmp + "/deaf", "Connection refused"),
):
    plugin = peer.Plugin(path, config)
    plugin.log = tmp + "/log"
    plugin.start()
    until(lambda: part in plugin.said())
    time.sleep(2)
    plugin.stop()
    ok(
        plugin.said().count(part) == 1,
        "kubelet's folder: it says only once %r" % part,
        plugin.said(),
    )
    said = [line for line in plugin.said().splitlines() if path in line]
    ok(
        said and all(line.startswith("gpupart-device-plugin: ") for line in said),
        "and its lines begin with its name",
        plugin.said(),
    )
    os.unlink(plugin.log)
deaf.close()
plugin = peer.Plugin(folder, config)
plugin.start()
ok(until(lambda: "no kubelet at" in plugin.said()), "without a kubelet it says so", plugin.said())
time.sleep(1)
ok(
    plugin.process.poll() is None and plugin.said().count("no kubelet at") == 1,
    "and waits, and says it once",
    plugin.said(),
)
kubelet = peer.Kubelet(folder, pb)
kubelet.start()
ok(until(lambda: kubelet.registered), "a kubelet that comes is registered with", plugin.said())
register = kubelet.registered[0]
ok(
    (register.version, register.resource_name, register.endpoint)
    == ("v1beta1", "gpupart.dev/tpcs", "gpupart.sock"),
    "with API v1beta1, the resource and the socket",
    register,
)
ok(
    until(lambda: len(kubelet.devices) == 132),
    "it offers 66 TPCs of each of two GPUs",
    len(kubelet.devices),
)
ok(set(kubelet.devices.values()) == {"Healthy"}, "all healthy")
ok(
    os.stat(folder + "/device-plugins/gpupart.sock").st_mode & 0o077 == 0,
    "its socket is root's alone",
)
options = kubelet.method("GetDevicePluginOptions", pb.Options)(pb.Empty(), timeout=5)
ok(options.preferred_allocation and not options.pre_start_required, "GetDevicePluginOptions")
gpus = sorted({i.rpartition("/")[0] for i in kubelet.devices})
ids = [["%s/%d" % (gpu, n) for n in range(66)] for gpu in gpus]

# ------------------------------------------------------------------ allocations
chosen = kubelet.preferred(ids[0][:5] + ids[1][:20], 8)
ok(len(chosen) == 8 and set(chosen) <= set(ids[1]), "preferred: ids of one GPU", chosen)
chosen = kubelet.preferred(ids[0] + ids[1], 4, [ids[1][9]])
ok(
    len(chosen) == 4 and set(chosen) <= set(ids[1]) and ids[1][9] in chosen,
    "with those that must be among them",
    chosen,
)
first = kubelet.give("first", ids[0][:16])
env = peer.variables(first)
mine = peer.tpcs(env["GPUPART_SET"])
ok(len(mine) == 16, "16 ids: 16 TPCs", env)
ok(env.get("GPUPART_MEM") == str(16 << 30), "memory follows in the node's ratio", env)
ok(
    env["GPUPART_GPU"] == gpus[0] and env["NVIDIA_VISIBLE_DEVICES"] == "void",
    "of that GPU, and of no other",
    env,
)
grants = [m for m in first.mounts if m.inside == "/run/gpupart/jobs"]
ok(len(grants) == 1 and grants[0].read_only, "its grant is mounted, read only", first.mounts)
row = held().get(env["GPUPART_NAME"])
ok(row and row["nr_tpcs"] == 16 and row["simulated"], "the node's planners see it", held())
second = kubelet.give("second", ids[0][16:56])
given = time.monotonic()
ok(not mine & peer.tpcs(peer.variables(second)["GPUPART_SET"]), "a second one has others")

run = peer.container(first, ["%s/census" % tmp, "%s/probe.ptx" % tmp, "7"], stdout=subprocess.PIPE)
seen = {int(sm) // 2 for sm in run.communicate()[0].split()}
ok(
    run.returncode == 7 and seen == mine,
    "a program in the container runs on its TPCs",
    (run.returncode, seen, mine),
)
for words, change in (
    ("another set in its environment", {"GPUPART_SET": "0-65"}),
    ("GPUPART_DISABLE=1", {"GPUPART_DISABLE": "1"}),
    ("no job", {"GPUPART_JOB": "", "GPUPART_SET": "40-65"}),
):
    run = peer.container(
        first, ["%s/census" % tmp, "%s/probe.ptx" % tmp, "7"], stdout=subprocess.PIPE, env=change
    )
    seen = {int(sm) // 2 for sm in run.communicate()[0].split()}
    ok(
        run.returncode == 7 and seen and seen <= mine,
        "user 0 with %s: none but those" % words,
        (run.returncode, seen),
    )
run = peer.container(
    first,
    [
        "setpriv",
        "--reuid=1234",
        "--clear-groups",
        "env",
        "GPUPART_SET=0-65",
        "%s/census" % tmp,
        "%s/probe.ptx" % tmp,
        "7",
    ],
    stdout=subprocess.PIPE,
)
os.chmod(tmp, 0o755)
seen = {int(sm) // 2 for sm in run.communicate()[0].split()}
ok(run.returncode == 7 and seen == mine, "another user too", (run.returncode, seen))


def census():
    run = peer.container(
        first,
        ["%s/census" % tmp, "%s/probe.ptx" % tmp, "7"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, error = run.communicate()
    return run.returncode, {int(sm) // 2 for sm in out.split()}, error


def change(tpcs):
    return subprocess.run(
        [gpupart, "set", env["GPUPART_NAME"], "-t", ",".join(map(str, sorted(tpcs)))],
        capture_output=True,
        text=True,
    )


def follows(status, tpcs, words):
    """After `gpupart set`, what the container starts runs on all of these TPCs and on no others."""
    began = time.monotonic()
    looks = []

    def look():
        looks.append(census())
        return looks[-1][:2] == (7, tpcs)

    ok(
        status.returncode == 0 and until(look),
        words,
        "gpupart set: %s\nexpected: %s\nlast of %d censuses in %.1f s: %s\ngrant: %s\nplugin: %s"
        % (
            status,
            sorted(tpcs),
            len(looks),
            time.monotonic() - began,
            looks[-1:],
            held().get(env["GPUPART_NAME"]),
            plugin.said(),
        ),
    )


# Some of its own TPCs and a free one: the variables and the shared part of the grant are wrong.
other = set(sorted(mine)[:4]) | {
    min(set(range(66)) - mine - peer.tpcs(peer.variables(second)["GPUPART_SET"]))
}
for tpcs in (other, mine):
    follows(
        change(tpcs),
        tpcs,
        "`gpupart set` on the node: %d TPCs for what the container starts later" % len(tpcs),
    )
# The plugin has read the grants and waits for kubelet's list.
for tpcs in (other, mine):
    kubelet.hang = True
    lists = kubelet.lists_seen
    waits = until(lambda: kubelet.lists_seen > lists)
    status = change(tpcs)
    kubelet.hang = False
    ok(waits, "the plugin reads kubelet's list", plugin.said())
    follows(status, tpcs, "also while the plugin looks at the grants: %d TPCs" % len(tpcs))

# ---------------------------------------------------------------- refusals
code = grpc.StatusCode
refused(
    lambda: kubelet.allocate(ids[1][:60] + ids[1][60:] + ids[0][60:61]),
    "2 GPUs",
    "ids of two GPUs",
    code.INVALID_ARGUMENT,
)
refused(
    lambda: kubelet.allocate(ids[1][:6] + ids[0][60:61]),
    "the most that one GPU of this node has free is 66, on GPU " + gpus[1],
    "it names the largest size",
)
refused(
    lambda: kubelet.allocate(["GPU-1/0"]),
    "'GPU-1/0' is not a TPC",
    "an id of no GPU",
    code.INVALID_ARGUMENT,
)
for bad in (
    "%s/66" % gpus[0],
    "%s/-1" % gpus[0],
    "%s/01" % gpus[0],
    gpus[0],
    "",
    "/",
    "\x1b[0m",
    "%s/0/0" % gpus[0],
    "x" * 5000,
):
    refused(
        lambda: kubelet.allocate([bad]), "is not a TPC", "id %r" % bad[:20], code.INVALID_ARGUMENT
    )
refused(lambda: kubelet.allocate([]), "the request has no TPC", "0 ids", code.INVALID_ARGUMENT)
refused(
    lambda: kubelet.allocate(), "it names no container", "no container", code.INVALID_ARGUMENT
)
refused(lambda: kubelet.allocate([ids[1][0]] * 2), "twice", "an id twice", code.INVALID_ARGUMENT)
refused(
    lambda: kubelet.channel.unary_unary("/v1beta1.DevicePlugin/Allocate")(b"\xff\xff", timeout=5),
    "the request is not valid",
    "bytes that are no message",
    code.INVALID_ARGUMENT,
)
refused(
    lambda: kubelet.channel.unary_unary("/v1beta1.DevicePlugin/Nothing")(b"", timeout=5),
    "no such method",
    "an unknown method",
    code.UNIMPLEMENTED,
)
refused(
    lambda: kubelet.channel.unary_unary("/v1beta1.DevicePlugin/Allocate")(
        b"x" * (2 << 20), timeout=5
    ),
    "too long",
    "2 MiB",
    code.RESOURCE_EXHAUSTED,
)
ok(len(held()) == 2, "nothing of these was given", held())

with open(tmp + "/squeue", "w") as file:
    file.write("#!/bin/sh\n")
os.chmod(tmp + "/squeue", 0o755)
before = held()
status = subprocess.run(
    [gpupart, "slurm-node", "--clean"], env={**os.environ, "PATH": tmp + ":" + os.environ["PATH"]}
).returncode
ok(
    status == 0 and held() == before,
    "a node of Slurm's, which has no jobs, takes nothing from pods",
    (status, held()),
)

# Another program of this node has TPCs.
sim = {
    "GPUPART_SIM": "%s/h200-e.capture:%s/h200-c.capture" % (captures, captures),
    "LD_LIBRARY_PATH": peer.build + "/lib/gpupart/sim",
}
run = subprocess.Popen(
    [gpupart, "run", "--gpu", gpus[1], "-t", "0-9", "--", "sleep", "1000"],
    stderr=subprocess.DEVNULL,
    env={**os.environ, **sim},
)
until(lambda: open("/proc/%d/cmdline" % run.pid).read().startswith("sleep"))
ok(
    until(
        lambda: [
            i.startswith(gpus[1]) for i, health in kubelet.devices.items() if health != "Healthy"
        ]
        == [True] * 10
    ),
    "as many ids of its GPU are unhealthy",
    kubelet.devices,
)
refused(
    lambda: kubelet.allocate(ids[1][:60]),
    "the most that one GPU of this node has free is 56",
    "more than it leaves",
    code.RESOURCE_EXHAUSTED,
)
beside = kubelet.give("beside", ids[1][:56])
ok(
    peer.tpcs(peer.variables(beside)["GPUPART_SET"]) == set(range(10, 66)),
    "a container has none of its TPCs",
    beside,
)
inside = peer.container(
    beside, ["%s/census" % tmp, "%s/probe.ptx" % tmp, "7"], stdout=subprocess.PIPE
)
seen = {int(sm) // 2 for sm in inside.communicate()[0].split()}
ok(
    inside.returncode == 7 and seen == set(range(10, 66)),
    "and runs on its own, on the second GPU",
    (inside.returncode, seen),
)
run.kill()
run.wait()
ok(
    until(lambda: set(kubelet.devices.values()) == {"Healthy"}),
    "when it has ended all are healthy again",
)
del kubelet.given["beside"]
kubelet.note()
ok(until(lambda: len(held()) == 2), "and what the container had is free", held())

# ----------------------------------------------------- ids that kubelet gives twice
# If kubelet's list is read while kubelet waits for a reply to Allocate, kubelet can forget the
# ids of this request, and offers them as free to the next pod.
twice = ids[1][:3]
kubelet.preferred(twice, 3)
early = kubelet.allocate(twice).containers[0]
name = peer.variables(early)["GPUPART_NAME"]
chosen = kubelet.preferred(ids[1][:6], 3)
ok(set(chosen) == set(ids[1][3:6]), "preferred: not the ids of another container", chosen)


def offered_again(gpu, n, words):
    kubelet.preferred(ids[gpu][n : n + 1], 1)
    before = held()
    refused(
        lambda: kubelet.allocate(ids[gpu][n : n + 1]),
        "kubelet has given an id of GPU %s to two containers" % gpus[gpu],
        words,
        code.RESOURCE_EXHAUSTED,
    )
    ok(held() == before, "and the other container keeps its TPCs", (held(), before))


offered_again(1, 0, "an id that is given twice at once is refused")
kubelet.given["early"] = set(twice)
kubelet.note()
lists = kubelet.lists_seen
until(lambda: kubelet.lists_seen > lists + 1)
offered_again(1, 0, "and when kubelet lists the first container")
del kubelet.given["early"]
kubelet.preferred(twice, 3)
again = kubelet.give("again", twice)
ok(
    name not in held() or not held()[name]["nr_tpcs"],
    "a container that kubelet listed and does not list any more leaves its ids at once",
    held(),
)
del kubelet.given["again"]
kubelet.note()
ok(until(lambda: len(held()) == 2), "and then nothing of both is left", held())


# ------------------------------------------------------------------- bytes
def raw():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(5)
    s.connect(folder + "/device-plugins/gpupart.sock")
    return s


def answers(words):
    good = len(kubelet.preferred(ids[0], 1)) == 1 and plugin.process.poll() is None
    ok(good, words + ": kubelet is served", plugin.said())


preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
s = raw()
s.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
until(lambda: not s.recv(65536), 5)
answers("HTTP/1.1")
s = raw()
s.sendall(preface + struct.pack(">IBI", 0xFFFFFF00, 0, 1)[:9])
answers("a frame of 16 MiB")
s = raw()
s.sendall(preface + b"\0\0\5\1")
answers("half a frame")
s.close()
answers("a connection that is cut")
for n in range(0, 200, 7):
    cut = raw()
    cut.sendall((preface + os.urandom(200))[:n])
    cut.close()
answers("connections that end anywhere")
many = []


def one_more():
    try:
        many.append(raw())
    except BlockingIOError:
        return False
    return True


ok(all(until(one_more) for n in range(1000)), "1000 connections", len(many))
answers("1000 connections")
del many
stub = kubelet.channel.stream_unary("/v1beta1.DevicePlugin/Allocate")
refused(lambda: stub(iter([b"", b""]), timeout=5), "exactly one", "two messages in a request")
channel = grpc.insecure_channel(
    "unix:" + folder + "/device-plugins/gpupart.sock",
    options=[("grpc.use_local_subchannel_pool", 1)],
)
watches = [
    kubelet.method("ListAndWatch", pb.DeviceList, True, channel)(pb.Empty()) for n in range(8)
]
ok(all(len(next(w).devices) == 132 for w in watches), "eight watches on one connection")
for w in watches:
    w.cancel()
channel.close()
answers("streams that are cancelled")

# ---------------------------------------------------- what a pod can write, another plugin
def healthy_for(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if set(kubelet.devices.values()) != {"Healthy"}:
            return False
        time.sleep(0.1)
    return True


until(lambda: set(kubelet.devices.values()) == {"Healthy"})
pages = peer.container(
    first,
    ["flock", "/dev/shm/gpupart-0/lock", "sleep", "1000"],
    env={"GPUPART_JOB": "", "GPUPART_SET": "0-65"},
)
until(lambda: open("/proc/%d/cmdline" % pages.pid).read().startswith("flock"))
ok(healthy_for(3), "a pod's process that claims all TPCs takes none of the node's", kubelet.devices)
reply = kubelet.give("beside", ids[1][:4])
ok(
    len(peer.tpcs(peer.variables(reply)["GPUPART_SET"])) == 4,
    "nor does it keep the plugin from giving while it holds a lock in its folder",
    reply,
)
del kubelet.given["beside"]
kubelet.note()
pages.kill()
pages.wait()
until(lambda: len(held()) == 2)
status = subprocess.run(plugin.words, capture_output=True, text=True, timeout=60)
ok(
    status.returncode == 1
    and "another gpupart-device-plugin runs on this node" in status.stderr
    and plugin.process.poll() is None,
    "a second plugin refuses to run beside the first",
    status,
)

# A process with its own user namespace can have up to 100,000 mounts. In a copy of its mount
# namespace, they are before the mount of its grant.
CROWD = """
import ctypes, os
path = "/dev/shm" + ("/" + "x" * 250) * 15
os.makedirs(path)
for n in range(2400):
    if ctypes.CDLL(None).mount(path.encode(), path.encode(), None, 4096, None):
        raise OSError("mount")
os.execvp("unshare", ["unshare", "-m", "sleep", "1000"])
"""
cgroups = []


def join_pod(pid, uid):
    """Puts a process into a container's cgroup, as kubelet does. Returns whether it could."""
    for root in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"):
        path = root + "/kubepods-%d/pod%s/%s" % (os.getpid(), uid, uid[0] * 64)
        try:
            os.makedirs(path, exist_ok=True)
            with open(path + "/cgroup.procs", "w") as file:
                file.write(str(pid))
        except OSError:
            continue
        cgroups.append(path)
        return True
    return False


def crowded(edits, uid):
    process = peer.container(edits, ["/usr/bin/python3", "-c", CROWD])
    joined = join_pod(process.pid, uid)
    until(lambda: open("/proc/%d/cmdline" % process.pid).read().startswith("sleep"))
    return process, joined


def rounds(number):
    seen = kubelet.lists_seen
    until(lambda: kubelet.lists_seen >= seen + number)
    return kubelet.lists_seen - seen


def bytes_read():
    with open("/proc/%d/io" % plugin.process.pid) as file:
        return int(file.readline().split()[1])


crowd, other = ("%s-0000-0000-0000-000000000000" % (c * 8) for c in "ab")
reply = kubelet.give(crowd, ids[1][:4])
name = peer.variables(reply)["GPUPART_NAME"]
beside = peer.variables(kubelet.give(other, ids[1][4:8]))["GPUPART_NAME"]
process, joined = crowded(reply, crowd)
size = len(open("/proc/%d/mountinfo" % process.pid).read())
ok(size > 16 << 20, "a container has more than 16 MiB of mounts", size)
more = [crowded(reply, crowd)[0] for n in range(2)]
read = bytes_read()
number = rounds(4)
each = (bytes_read() - read) / number
ok(each < 12 << 20, "the plugin reads only a part of them", "%d bytes a round" % each)
for each in more:
    each.kill()
    each.wait()
if joined:
    kubelet.stale = {crowd: kubelet.given.pop(crowd)}
    kubelet.note()
    rounds(3)
    ok(name in held(), "a container keeps its TPCs if the plugin does not find its mount", held())
    del kubelet.given[other]
    kubelet.stale = {}
    kubelet.note()
    ok(
        until(lambda: beside not in held()) and name in held(),
        "an ended container of another pod does not, though the checkpoint has neither",
        held(),
    )
    plugin.stop()
    kubelet.registered = []
    plugin.start()
    until(lambda: kubelet.registered)
    rounds(3)
    ok(name in held(), "it does too if the plugin does not know the pod of a grant", held())
    process.kill()
    process.wait()
    ok(until(lambda: name not in held()), "until its process has ended", held())
else:
    print("# no cgroup can be made here: who keeps TPCs was not tested")
    kubelet.given.pop(crowd), kubelet.given.pop(other)
    kubelet.note()
    process.kill()
    process.wait()
    until(lambda: len(held()) == 2)
for path in cgroups:
    for n in range(3):
        try:
            os.rmdir(path)
        except OSError:
            break
        path = os.path.dirname(path)

# ---------------------------------------------------------------- restarts
plugin.stop()
before = held()
os.makedirs(tmp + "/xdg/gpupart")
with open(tmp + "/xdg/gpupart/config", "w") as file:
    file.write("default.input = sample:h200-b\n")
plugin.start(
    XDG_CONFIG_HOME=tmp + "/xdg",
    GPUPART_INPUT="sample:h200-c",
    GPUPART_SET="0-3",
    GPUPART_GPU="1",
    GPUPART_NAME="leak",
    GPUPART_TENANT="leak",
    GPUPART_RULES="leak",
    GPUPART_DISABLE="1",
    GPUPART_SIM="/nowhere",
    CUDA_VISIBLE_DEVICES="1",
    CUDA_MPS_PIPE_DIRECTORY="/leak",
    LD_AUDIT="/leak.so",
)
ok(
    until(lambda: len(kubelet.registered) == 2),
    "a plugin that was killed registers again",
    plugin.said(),
)
ok(until(lambda: len(kubelet.devices) == 132) and held() == before, "and what it gave is given")
third = kubelet.give("third", ids[0][56:])
own = ("GPUPART_SET", "GPUPART_NAME", "GPUPART_JOB", "GPUPART_TENANT", "GPUPART_MEM")
shared = [
    (
        {k: v for k, v in peer.variables(e).items() if k not in own},
        sorted(m.inside for m in e.mounts),
    )
    for e in (first, third)
]
ok(
    shared[0] == shared[1],
    "with another environment of the plugin a container has the same",
    shared,
)
sets = [peer.tpcs(peer.variables(e)["GPUPART_SET"]) for e in (first, second, third)]
ok(len(set.union(*sets)) == 66, "a third container gets what the two have not", sets)
kubelet.preferred(ids[1][:5], 5)
lost = peer.variables(kubelet.allocate(ids[1][:5]).containers[0])["GPUPART_NAME"]
kubelet.stop()
kubelet.knows_pods = False
kubelet.start()
ok(
    until(lambda: kubelet.registered),
    "a kubelet that begins anew, and removed the plugin's socket, is registered with",
    plugin.said(),
)
until(lambda: len(kubelet.devices) == 132)
kubelet.preferred(ids[1][:5], 5)
reply = kubelet.give("fourth", ids[1][:5])
ok(
    lost not in held() and len(peer.tpcs(peer.variables(reply)["GPUPART_SET"])) == 5,
    "ids that the earlier kubelet did not store are given again at once",
    held(),
)
del kubelet.given["fourth"]
kubelet.note()
given = time.monotonic()
# All are older than the last allocations that kubelet may not have stored yet.
until(lambda: time.monotonic() > given + 11)
lists = kubelet.lists_seen
until(lambda: kubelet.lists_seen > lists + 1)
ok(len(held()) == 3, "while it knows of no pods nothing is taken back", held())
kubelet.knows_pods = True
lists = kubelet.lists_seen
until(lambda: kubelet.lists_seen > lists + 1)
offered_again(0, 16, "an id of a container that has no process yet is refused after 10 s too")
os.unlink(folder + "/device-plugins/gpupart.sock")
kubelet.registered = []
ok(until(lambda: kubelet.registered), "its own socket is deleted: it is made anew", plugin.said())

# The plugin makes its socket anew while it waits for kubelet. Then the same kubelet is there again.
path = folder + "/device-plugins/kubelet.sock"
kubelet.registered = []
os.rename(path, path + "-real")
os.symlink(path + "-real", path)
until(lambda: kubelet.registered)
os.rename(path, path + "-link")
os.unlink(folder + "/device-plugins/gpupart.sock")
until(lambda: os.path.exists(folder + "/device-plugins/gpupart.sock"))
kubelet.registered = []
os.rename(path + "-link", path)
ok(until(lambda: kubelet.registered), "also while kubelet's socket is away", plugin.said())
os.rename(path + "-real", path)
until(lambda: len(kubelet.registered) == 2)

# ----------------------------------------------------------------- ended containers
until(lambda: len(kubelet.devices) == 132)
life = peer.container(second, ["sleep", "1000"])
until(lambda: open("/proc/%d/cmdline" % life.pid).read().startswith("sleep"))
del kubelet.given["second"], kubelet.given["third"]
name = peer.variables(third)["GPUPART_NAME"]
ok(
    until(lambda: name not in held()),
    "a container that kubelet does not list any more: its TPCs are free",
    held(),
)
name = peer.variables(second)["GPUPART_NAME"]
ok(name in held(), "but not those of one whose process lives")
refused(
    lambda: kubelet.allocate(ids[0][16:66]),
    "the most that one GPU of this node has free is 66",
    "they are not given again",
    code.RESOURCE_EXHAUSTED,
)
life.kill()
life.wait()
ok(until(lambda: name not in held()), "they are when it has ended", held())
ok(
    not os.path.exists("/run/gpupart/kubernetes/" + env["GPUPART_JOB"][:-1])
    and len(os.listdir("/run/gpupart/kubernetes")) == 1,
    "no folder is left",
    os.listdir("/run/gpupart/kubernetes"),
)

# Another user of the node, with a user namespace, mounts what has the name of a grant.
kept = peer.variables(kubelet.give("kept", ids[1][50:52]))
os.mkdir("/run/open")
os.chmod("/run/open", 0o1777)
MOUNTS = """
job=$1 own=/run/open/gpupart/kubernetes/$1
mkdir -p $own && mount -t tmpfs none /mnt && mkdir /mnt/1 /mnt/2 && touch /mnt/3 || exit 1
mount --bind /run/gpupart/kubernetes/$job /mnt/1 && echo folder
mount --bind $own /mnt/2 && echo own
mount --bind /run/gpupart/jobs/$job /mnt/3 && echo file
echo over
exec sleep 1000 >&-
"""
other = subprocess.Popen(
    ["setpriv", "--reuid=1234", "--clear-groups", "unshare", "-U", "-r", "-m"]
    + ["sh", "-c", MOUNTS, "sh", kept["GPUPART_JOB"]],
    text=True,
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
)
mounted = other.stdout.read().split()
if "over" in mounted:
    ok(
        mounted == ["own", "file", "over"]
        and os.stat("/run/gpupart/kubernetes").st_mode & 0o7777 == 0o700,
        "another user cannot mount the folder of a container",
        mounted,
    )
del kubelet.given["kept"]
kubelet.note()
ok(
    until(lambda: kept["GPUPART_NAME"] not in held()) and other.poll() is None
    or "over" not in mounted,
    "and other mounts of this user do not keep the TPCs of an ended container",
    held(),
)
other.kill()
other.wait()

# A pod that ends while kubelet is down stays in kubelet's checkpoint, but its directory goes.
gone = peer.variables(kubelet.give("gone", ids[1][40:44]))["GPUPART_NAME"]
kubelet.stop()
kubelet.stale = {"gone": kubelet.given.pop("gone")}
os.rmdir(folder + "/pods/gone")
kubelet.start()
until(lambda: kubelet.registered)
lists = kubelet.lists_seen
until(lambda: kubelet.lists_seen > lists + 1)
until(lambda: len(kubelet.devices) == 132)
ok(gone in held(), "a pod of kubelet's checkpoint keeps its TPCs while kubelet starts", held())

# An init container shares the ids of the pod's other containers.
# kubelet does not ask for preferred ids if those of the init containers suffice.
init = peer.variables(kubelet.give("pod", ids[1][:10]))
main = peer.variables(kubelet.give("pod", ids[1][:20]))
ok(
    peer.tpcs(init["GPUPART_SET"]) <= peer.tpcs(main["GPUPART_SET"]),
    "an init container's TPCs are those of its pod",
    (init, main),
)
chosen = kubelet.preferred(ids[1][20:40], 6)
init = peer.variables(kubelet.give("pod2", chosen))
more = kubelet.preferred(ids[1][20:40], 8, chosen)
main = peer.variables(kubelet.give("pod2", more))
ok(
    set(chosen) < set(more)
    and peer.tpcs(init["GPUPART_SET"]) < peer.tpcs(main["GPUPART_SET"])
    and len(peer.tpcs(main["GPUPART_SET"])) == 8,
    "also if kubelet asks for preferred ids, which must have those of the init container",
    (init, main),
)

# An init container's grant cannot be replaced, because it is a mount point.
init = peer.variables(kubelet.give("pod3", ids[1][60:62]))
path = "/run/gpupart/jobs/" + init["GPUPART_JOB"]
subprocess.check_call(["mount", "--bind", path, path])
before = held()
refused(
    lambda: kubelet.allocate(ids[1][60:66]),
    "the grant of job %s cannot be written" % init["GPUPART_NAME"],
    "if a grant that gives TPCs to another one cannot be written, Allocate fails",
    code.UNAVAILABLE,
)
ok(held() == before, "and no grant has the TPCs of another one", (held(), before))
subprocess.check_call(["umount", path])

# /run has few inodes left, so one of the writes of an Allocate fails. The writes of a grant need
# two inodes, and a container's folder with its files needs six.
jobs = sorted(os.listdir("/run/gpupart/jobs"))


def used_inodes():
    """The least number of several looks, because a file that is being replaced exists twice."""
    least = None
    for _ in range(20):
        run = os.statvfs("/run")
        used = run.f_files - run.f_ffree
        least = used if least is None else min(least, used)
        time.sleep(0.01)
    return least


for free in range(9):
    room = used_inodes() + free
    subprocess.check_call(["mount", "-o", "remount,nr_inodes=%d" % room, "/run"])
    try:
        kubelet.allocate(ids[1][60:66])
    except grpc.RpcError as error:
        refusal = error.details()
    else:
        refusal = ""
    subprocess.check_call(["mount", "-o", "remount,nr_inodes=100000", "/run"])
    if not refusal:
        break
    ok(
        "written" in refusal
        and held() == before
        and sorted(os.listdir("/run/gpupart/jobs")) == jobs,
        "/run with %d free inodes: Allocate fails, and no grant changes" % free,
        (refusal, held(), before, os.listdir("/run/gpupart/jobs")),
    )
ok(4 < free < 8, "with more free inodes Allocate succeeds", free)
del kubelet.given["pod3"]
kubelet.note()
ok(until(lambda: init["GPUPART_NAME"] not in held()), "and nothing of it is left", held())

# ------------------------------------------------------------------------- MPS
kubelet.hang = True
lists = kubelet.lists_seen
until(lambda: kubelet.lists_seen > lists)
ended = time.monotonic()
plugin.stop(signal.SIGTERM)
ended = time.monotonic() - ended
kubelet.hang = False
ok(
    plugin.process.returncode == 0 and not os.path.exists(folder + "/device-plugins/gpupart.sock"),
    "SIGTERM: it ends, and its socket goes",
)
ok(ended < 1, "also while kubelet does not answer", ended)
write_config("mps = yes\n")
kubelet.registered = []
plugin.start()
until(lambda: kubelet.registered)
until(lambda: len(kubelet.devices) == 132)
refused(
    lambda: kubelet.allocate(ids[1][30:34]),
    "%s has mps = yes, but no MPS daemon answers in /run/gpupart/mps" % config,
    "mps = yes without a daemon",
    code.UNAVAILABLE,
)
os.mkdir("/run/gpupart/mps", 0o755)
daemon = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
daemon.bind("/run/gpupart/mps/control")
daemon.listen()
reply = kubelet.give("mps", ids[1][30:34])
env = peer.variables(reply)
ok(
    env.get("CUDA_MPS_PIPE_DIRECTORY") == "/run/gpupart/mps"
    and "/run/gpupart/mps" in [m.inside for m in reply.mounts],
    "with one the container is its client",
    env,
)
ok("GPUPART_MEM" not in env, "without a ratio there is no quota")
ok(
    until(lambda: gone not in held(), 100) and env["GPUPART_NAME"] in held(),
    "but not for ever, if kubelet has removed its directory",
    held(),
)
plugin.stop()
for text, part in (
    ("colour = red\n", ":1: 'colour = red'"),
    ("mps = maybe\n", ":1: 'mps = maybe'"),
    ("memory-per-tpc = 1T\n", "memory-per-tpc"),
    ("uid = x\n", "uid = x"),
    ("uid = -1\n", ":1: 'uid = -1'"),
    ("uid = 4294967295\n", ":1: 'uid = 4294967295'"),
    ("uid = 4294967296\n", ":1: 'uid = 4294967296'"),
    ("uid = 18446744073709551617\n", ":1: 'uid = 18446744073709551617'"),
    ("driver = both\n", ":1: 'driver = both'"),
    ("driver = files\nmps = both\n", ":2: 'mps = both'"),
    ("driver = cdi\nmps = both\n", ":2: 'mps = both'"),
    ("driver = runtime\nmps = both\n", ":2: 'mps = both'"),
    ("uid = 0\nmps = no\n\nuid = 1\n", ":4: 'uid' is given twice"),
):
    write_config(text)
    status = subprocess.run(plugin.words, capture_output=True, text=True)
    ok(status.returncode == 1 and part in status.stderr, "settings %r are refused" % text, status)
write_config("colour = red\n")
for words, code, part in (
    (["--config", tmp + "/absent"], 1, "--config %s/absent: No such file" % tmp),
    (["--config=%s/absent" % tmp], 1, "--config %s/absent: No such file" % tmp),
    (["--kubelet=" + folder, "--config=" + config], 1, config + ":1: 'colour = red'"),
    (["--kubelet="], 2, "--kubelet: needs a value"),
    (["--kubelet", ""], 2, "--kubelet: needs a value"),
    (["--kubelet"], 2, "--kubelet: needs a value"),
    (["--config", ""], 2, "--config: needs a value"),
    (["--colour=red"], 2, "--colour: unknown option"),
    (["here"], 2, "here: unknown option"),
):
    status = subprocess.run(
        ["timeout", "20", plugin.words[0]] + words, capture_output=True, text=True
    )
    ok(
        status.returncode == code and part in status.stderr,
        "options %s" % " ".join(words).replace(tmp, "TMP"),
        status,
    )
# A plugin beside a `gpupart` whose edits have a mount without a path in the container.
os.makedirs(tmp + "/other/bin")
os.symlink(peer.build + "/lib", tmp + "/other/lib")
shutil.copy(plugin.words[0], tmp + "/other/bin")
write_config("")


def other_plugin(script):
    with open(tmp + "/other/bin/gpupart", "w") as file:
        file.write("#!/bin/sh\n%s\n" % script)
    os.chmod(tmp + "/other/bin/gpupart", 0o755)
    words = ["timeout", "20", tmp + "/other/bin/gpupart-device-plugin"] + plugin.words[1:]
    return subprocess.Popen(words, stderr=subprocess.PIPE, text=True)


for part in ("containerPath", "hostPath", "options", "mounts"):
    status = other_plugin("%s \"$@\" | sed 's/\"%s\"/\"x\"/'" % (gpupart, part))
    said = status.communicate()[1]
    ok(
        status.returncode == 1 and "or its output is not complete" in said
        and "--device pod failed" in said,
        "the plugin does not start if edits have no %s" % part,
        said,
    )
status = other_plugin("echo asked >&2; exec sleep 8")
status.stderr.readline()
ended = time.monotonic()
status.terminate()
status.wait()
ended = time.monotonic() - ended
ok(ended < 1, "SIGTERM ends it also while it waits for `gpupart cdi`", ended)


def lock_is_free():
    with open("/run/gpupart/device-plugin.lock") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


if not lock_is_free():
    for line in subprocess.getoutput("lslocks; ps -ef").splitlines():
        print("# the lock is still held:", line)
ok(until(lock_is_free), "then its lock is free", subprocess.getoutput("lslocks"))
os.chmod(config, 0o666)
status = subprocess.run(plugin.words, capture_output=True, text=True)
ok(
    status.returncode == 1 and "only root" in status.stderr,
    "and those that others can write",
    status,
)
print("1..%d" % count)
sys.stdout.flush()
os._exit(failed != 0)
