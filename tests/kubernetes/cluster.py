# SPDX-License-Identifier: MIT
"""cluster.py TMP DAEMONS PODS SEED: see cluster.sh. Prints TAP."""
import collections
import glob
import hashlib
import io
import json
import os
import random
import signal
import ssl
import subprocess
import sys
import tarfile
import threading
import time
import urllib.error
import urllib.request

import peer
from peer import until

tmp, daemons, number, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
random.seed(seed)
began = time.monotonic()
os.chmod(tmp, 0o755)
processes, failed, count = {}, 0, 0
port = 17443
URL = "https://127.0.0.1:%d" % port


def ok(good, words, more=""):
    global count, failed
    count += 1
    failed += not good
    print("%sok %d - %s" % ("" if good else "not ", count, words))
    if not good and more:
        print("# " + str(more)[:2000].replace("\n", "\n# "))


def start(name, *words):
    log = open("%s/%s.log" % (tmp, name), "a")
    processes[name] = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL)


def write(name, text):
    with open(tmp + "/" + name, "w") as file:
        file.write(text)
    return tmp + "/" + name


# ------------------------------------------------------------------- the image
def tar(files):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, content, mode in files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
    return data.getvalue()


def read(path):
    with open(path, "rb") as file:
        return file.read()


def image(name, files, command):
    layer = tar(files)
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": command},
            "rootfs": {
                "type": "layers",
                "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()],
            },
        }
    ).encode()
    digest = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps(
        [{"Config": digest, "RepoTags": [name], "Layers": ["layer.tar"]}]
    ).encode()
    path = tmp + "/image.tar"
    with open(path, "wb") as file:
        file.write(
            tar(
                [
                    (digest, config, 0o644),
                    ("layer.tar", layer, 0o644),
                    ("manifest.json", manifest, 0o644),
                ]
            )
        )
    subprocess.check_call(
        ["ctr", "-a", tmp + "/containerd.sock", "-n", "k8s.io", "images", "import", path],
        stdout=subprocess.DEVNULL,
    )


def work_files():
    """All files that the program and the mounted libraries load, without gpupart and the driver."""
    program = peer.build + "/tests/slurm-job"
    libraries = {program}
    for one in (
        [program]
        + glob.glob(peer.build + "/lib/gpupart/*.so")
        + glob.glob(peer.build + "/lib/gpupart/sim/*")
    ):
        for line in subprocess.run(
            ["ldd", one], capture_output=True, text=True
        ).stdout.splitlines():
            libraries |= {
                w for w in line.split() if w.startswith("/") and not w.startswith(peer.build)
            }
    files = [("program", read(program), 0o755), ("probe.ptx", read(tmp + "/probe.ptx"), 0o644)]
    # The loader must also be next to the C library, where the libraries in LD_AUDIT search it by
    # name.
    loader = [path for path in libraries if "/ld-linux" in path][0]
    libraries |= {
        os.path.dirname(path) + "/" + os.path.basename(loader)
        for path in libraries
        if "/libc.so" in path
    }
    return files + [(path[1:], read(path), 0o755) for path in libraries if path != program]


# ----------------------------------------------------------------- the daemons
def prepare():
    for folder in (
        "/var/lib/kubelet",
        "/var/log/pods",
        "/var/log/containers",
        tmp + "/etcd",
        tmp + "/containerd",
    ):
        os.makedirs(folder, exist_ok=True)
        subprocess.check_call(["mount", "-t", "tmpfs", "none", folder])
    write("none.conflist", "")
    os.makedirs(tmp + "/cni/bin")
    write(
        "cni/10-none.conflist",
        '{"cniVersion": "0.3.1", "name": "none", "plugins": [{"type": "none"}]}',
    )
    write(
        "containerd.toml",
        """version = 2
root = "%(tmp)s/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper"]
[grpc]
  address = "%(tmp)s/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "gpupart.dev/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "%(tmp)s/cni/bin"
    conf_dir = "%(tmp)s/cni"
"""
        % {"tmp": tmp},
    )
    write("tokens.csv", "secret,admin,1,system:masters\n")
    subprocess.check_call(
        ["openssl", "genrsa", "-out", tmp + "/accounts.key", "2048"], stderr=subprocess.DEVNULL
    )
    write(
        "kubeconfig",
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "clusters": [
                    {"name": "c", "cluster": {"server": URL, "insecure-skip-tls-verify": True}}
                ],
                "users": [{"name": "u", "user": {"token": "secret"}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            }
        ),
    )
    write(
        "kubelet.yaml",
        json.dumps(
            {
                "apiVersion": "kubelet.config.k8s.io/v1beta1",
                "kind": "KubeletConfiguration",
                "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
                "authorization": {"mode": "AlwaysAllow"},
                "cgroupsPerQOS": False,
                "enforceNodeAllocatable": [],
                "failSwapOn": False,
                "maxPods": 250,
                "makeIPTablesUtilChains": False,
                "oomScoreAdj": 0,
                "readOnlyPort": 0,
                "port": 17450,
                "healthzPort": 0,
                "evictionHard": {
                    "imagefs.available": "0%",
                    "nodefs.available": "0%",
                    "memory.available": "1Mi",
                },
                "nodeStatusUpdateFrequency": "1s",
                "imageGCHighThresholdPercent": 100,
            }
        ),
    )


def start_kubelet():
    start(
        "kubelet",
        daemons + "/kubelet",
        "--config",
        tmp + "/kubelet.yaml",
        "--kubeconfig",
        tmp + "/kubeconfig",
        "--hostname-override=node",
        "--container-runtime=remote",
        "--container-runtime-endpoint=unix://" + tmp + "/containerd.sock",
        "--v=1",
    )


def start_plugin():
    start("plugin", peer.build + "/bin/gpupart-device-plugin", "--config", tmp + "/kubernetes.conf")


def start_all():
    start(
        "etcd",
        "etcd",
        "--data-dir",
        tmp + "/etcd/d",
        "--listen-client-urls=http://127.0.0.1:17379",
        "--advertise-client-urls=http://127.0.0.1:17379",
        "--listen-peer-urls=http://127.0.0.1:17380",
        "--unsafe-no-fsync",
    )
    start("containerd", "containerd", "--config", tmp + "/containerd.toml")
    start(
        "apiserver",
        daemons + "/kube-apiserver",
        "--etcd-servers=http://127.0.0.1:17379",
        "--secure-port=%d" % port,
        "--bind-address=127.0.0.1",
        "--cert-dir=" + tmp + "/certs",
        "--token-auth-file=" + tmp + "/tokens.csv",
        "--authorization-mode=AlwaysAllow",
        "--service-account-issuer=gpupart",
        "--service-account-key-file=" + tmp + "/accounts.key",
        "--service-account-signing-key-file=" + tmp + "/accounts.key",
        "--disable-admission-plugins=ServiceAccount",
        "--service-cluster-ip-range=10.0.0.0/24",
    )
    good = until(lambda: get("/healthz"), 90)
    start(
        "scheduler",
        daemons + "/kube-scheduler",
        "--kubeconfig",
        tmp + "/kubeconfig",
        "--leader-elect=false",
        "--port=0",
        "--secure-port=0",
    )
    until(lambda: os.path.exists(tmp + "/containerd.sock"))
    pause = tmp + "/pause"
    subprocess.run(
        ["cc", "-static", "-O2", "-o", pause, "-xc", "-"],
        check=True,
        text=True,
        input="#include <signal.h>\n#include <unistd.h>\n"
        "int main(void) { signal(SIGTERM, _exit); for (;;) pause(); }\n",
    )
    image("gpupart.dev/pause:1", [("pause", read(pause), 0o755)], ["/pause"])
    image("gpupart.dev/work:1", work_files(), ["/program", "/probe.ptx"])
    write("kubernetes.conf", "memory-per-tpc = 1G\n")
    start_plugin()
    start_kubelet()
    return good


# --------------------------------------------------------------------- the API
trust = ssl._create_unverified_context()


def ask(path, method="GET", body=None):
    request = urllib.request.Request(
        URL + path,
        method=method,
        data=json.dumps(body).encode() if body else None,
        headers={"Authorization": "Bearer secret", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, context=trust, timeout=30) as reply:
        return reply.read().decode()


def get(path):
    try:
        return ask(path)
    except (OSError, urllib.error.URLError):
        return None


PODS = "/api/v1/namespaces/default/pods"


def create(name, size, seconds):
    ask(
        PODS,
        "POST",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {
                "restartPolicy": "Never",
                "hostNetwork": True,
                "terminationGracePeriodSeconds": 0,
                "automountServiceAccountToken": False,
                "tolerations": [{"operator": "Exists"}],
                "containers": [
                    {
                        "name": "c",
                        "image": "gpupart.dev/work:1",
                        "imagePullPolicy": "Never",
                        "args": ["4", str(seconds)],
                        "resources": {"limits": {peer.RESOURCE: size}},
                    }
                ],
            },
        },
    )


def pods():
    return json.loads(ask(PODS))["items"]


def delete(name):
    try:
        ask(
            PODS + "/" + name,
            "DELETE",
            {"gracePeriodSeconds": 0, "kind": "DeleteOptions", "apiVersion": "v1"},
        )
    except urllib.error.HTTPError:
        pass


def allocatable():
    node = get("/api/v1/nodes/node")
    return json.loads(node)["status"].get("allocatable", {}).get(peer.RESOURCE) if node else None


# ------------------------------------------------------------- observed from outside
class Watch(threading.Thread):
    """Records, ten times per second, the TPCs of containers' processes from their environments."""

    def __init__(self):
        super().__init__(daemon=True)
        self.known, self.spans, self.faults, self.looks, self.most, self.ended = (
            {},
            {},
            [],
            0,
            0,
            False,
        )

    def look(self):
        now, held = time.monotonic() - began, {}
        for pid in os.listdir("/proc"):
            if not pid.isdigit():
                continue
            try:
                text = open("/proc/%s/environ" % pid).read()
            except OSError:
                continue
            if "GPUPART_JOB=0-0-" not in text:
                continue
            env = dict(v.split("=", 1) for v in text.split("\0") if "=" in v)
            held[env["GPUPART_JOB"]] = (env["GPUPART_GPU"], env["GPUPART_SET"])
        used = {}
        for job, (gpu, text) in held.items():
            tpcs = peer.tpcs(text)
            for other, (other_gpu, other_text) in held.items():
                if other < job and other_gpu == gpu and peer.tpcs(other_text) & tpcs:
                    self.faults.append(
                        "%.1f s: %s and %s of %s: %s and %s"
                        % (now, job, other, gpu, text, other_text)
                    )
            used[gpu] = used.get(gpu, 0) + len(tpcs)
            self.spans.setdefault(job, [gpu, text, now, now])[3] = now
        self.most = max([self.most] + list(used.values()))
        self.looks += 1

    def run(self):
        at = time.monotonic()
        while not self.ended:
            self.look()
            at = max(at + 0.1, time.monotonic())
            time.sleep(max(0, at - time.monotonic()))


# ------------------------------------------------------------------------ the run
prepare()
ok(start_all(), "etcd and apiserver")
ok(until(lambda: allocatable() == "132", 90), "the node has 132 gpupart.dev/tpcs", allocatable())
watch = Watch()
watch.start()

sizes = [random.choice((1, 1, 2, 2, 4, 4, 8, 8, 12, 16, 16, 24, 33, 66)) for n in range(number)]
names = ["p%d" % n for n in range(number)]
waiting = collections.deque(zip(names, sizes))
asked, done, again, kills, outputs, reasons = (
    dict(zip(names, sizes)),
    {},
    0,
    [],
    {},
    collections.Counter(),
)
next_kill = time.monotonic() + 15
end = time.monotonic() + 4 * number + 180
active = set()


def tpcs_of(text):
    """A container's last line is "TIME stdout F TPCS MIB"; output on stderr comes before it."""
    words = [line.split()[3:] for line in text.splitlines() if " stdout F " in line]
    return peer.tpcs(words[-1][0]) if words else set()


def cut(pod):
    """Whether its container did not start because kubelet was killed at that moment."""
    status = pod["status"].get("containerStatuses") or [{}]
    ended = status[0].get("state", {}).get("terminated", {})
    return ended.get("reason") == "StartError" and "context canceled" in ended.get("message", "")


def output(name):
    """The state of all attempts: one that was created when kubelet was killed never starts."""
    found = sorted(glob.glob("/var/log/pods/default_%s_*/c/*.log" % name))
    return "".join(open(path).read() for path in found)


while (waiting or active) and time.monotonic() < end:
    while waiting and len(active) < 24:
        name, size = waiting.popleft()
        create(name, size, random.choice((2, 3, 5, 8)))
        active.add(name)
    for pod in pods():
        name, phase = pod["metadata"]["name"], pod["status"].get("phase")
        if name not in active or phase not in ("Succeeded", "Failed"):
            continue
        reason = pod["status"].get("reason", "")
        active.discard(name)
        if phase == "Succeeded":
            until(lambda: tpcs_of(output(name)), 10)
            done[name] = output(name)
        else:
            reasons[reason + ": " + pod["status"].get("message", "")[:150].strip()] += 1
            # Like a Deployment or a Job, starts it again, but only if a restart explains the
            # failure.
            if reason not in ("UnexpectedAdmissionError", "OutOfgpupart.dev/tpcs") and not cut(pod):
                done[name] = output(name) + json.dumps(pod["status"].get("containerStatuses"))
            else:
                again += 1
                fresh = name.split("-")[0] + "-%d" % again
                asked[fresh] = asked[name]
                waiting.append((fresh, asked[name]))
        delete(name)
    if time.monotonic() > next_kill and (waiting or active):
        victim = random.choice(("kubelet", "plugin"))
        processes[victim].kill()
        processes[victim].wait()
        kills.append((time.monotonic() - began, victim))
        time.sleep(random.choice((0, 0.5, 2)))
        start_kubelet() if victim == "kubelet" else start_plugin()
        next_kill = time.monotonic() + random.uniform(8, 20)
    time.sleep(0.3)

seconds = time.monotonic() - began
gone = until(lambda: not [f for f in os.listdir("/run/gpupart/jobs") if f.startswith("0-0-")], 60)
watch.ended = True
watch.join()
ran = [name for name, text in done.items() if tpcs_of(text)]
told = {
    name: text for name, text in done.items() if len(text.splitlines()) != 1 or not tpcs_of(text)
}
print(
    "# seed %d: %d pods in %.0f s, %d kills (%d of kubelet), %d made again, %d looks, "
    "%d TPCs of one GPU at most"
    % (
        seed,
        len(ran),
        seconds,
        len(kills),
        sum(v == "kubelet" for t, v in kills),
        again,
        watch.looks,
        watch.most,
    )
)
for reason, times in reasons.items():
    print("# %d times %s" % (times, reason))
ok(
    len(ran) == number,
    "%d pods of mixed sizes ran" % number,
    "%d ran; left: %s" % (len(ran), sorted(active)[:20]),
)
write("told.json", json.dumps(told, indent=1))
ok(not told, "and none had anything to say of how it is confined", json.dumps(told, indent=1))
ok(
    not watch.faults and watch.looks > 5 * seconds,
    "ten times a second: no two pods with a TPC in common",
    "\n".join(watch.faults[:10]),
)
ok(len(kills) >= number / 20, "while kubelet and the plugin were killed %d times" % len(kills))
bad = []
for name in ran:
    if len(tpcs_of(done[name])) != asked[name]:
        bad.append("%s asked for %d: %s" % (name, asked[name], done[name]))
ok(not bad, "each ran on as many TPCs as it asked for, seen by its blocks", "\n".join(bad[:5]))
ok(
    watch.most <= 66 and watch.most >= 50,
    "the GPUs were shared, and no more given than there is",
    watch.most,
)
ok(gone, "in the end nothing is given", os.listdir("/run/gpupart/jobs"))
write(
    "record.json",
    json.dumps({"spans": watch.spans, "kills": kills, "seconds": seconds, "seed": seed}),
)
print("1..%d" % count)
sys.stdout.flush()
os._exit(failed != 0)
