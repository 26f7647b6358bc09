# SPDX-License-Identifier: MIT
"""Imitates kubelet for the device plugin, with Debian's python3-grpcio, an independent gRPC.

protoc generates the messages from kubernetes/kubelet.proto."""
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent import futures

import grpc

RESOURCE = "gpupart.dev/tpcs"
top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
build = os.environ.get("BUILD", top + "/build")


def messages(folder):
    subprocess.check_call(
        ["protoc", "-I", top + "/kubernetes", "--python_out", folder, "kubelet.proto"]
    )
    sys.path.insert(0, folder)
    import kubelet_pb2

    return kubelet_pb2


def until(what, seconds=30):
    """Waits until what() is true, and returns its value."""
    end = time.monotonic() + seconds
    while True:
        found = what()
        if found or time.monotonic() > end:
            return found
        time.sleep(0.02)


class Plugin:
    """The program under test."""

    def __init__(self, folder, config=None):
        self.folder, self.log = folder, folder + "/plugin.log"
        self.words = [build + "/bin/gpupart-device-plugin", "--kubelet", folder]
        self.words += ["--config", config] if config else []
        self.process = None

    def start(self, **env):
        self.process = subprocess.Popen(
            self.words,
            stderr=open(self.log, "a"),
            stdin=subprocess.DEVNULL,
            env={**os.environ, **env},
        )

    def stop(self, sig=signal.SIGKILL):
        self.process.send_signal(sig)
        return self.process.wait()

    def said(self):
        return open(self.log).read() if os.path.exists(self.log) else ""


class Kubelet:
    """Registration and PodResources; allocations are stored in a file, as in kubelet."""

    def __init__(self, folder, pb):
        self.folder, self.pb = folder, pb
        self.plugins, self.lists = folder + "/device-plugins", folder + "/pod-resources"
        os.makedirs(self.plugins, exist_ok=True)
        os.makedirs(self.lists, exist_ok=True)
        self.given = {}  # container: ids
        self.stale = {}  # the same, for pods that only the checkpoint still has
        self.knows_pods = True  # false: it was restarted and its pods are not known yet
        self.devices, self.registered, self.lost = {}, [], threading.Event()
        self.server = self.channel = self.stream = None
        self.lists_seen = 0
        self.hang = False  # true: PodResources does not answer
        self.shown = set()  # all containers that a list had

    def start(self):
        for name in os.listdir(self.plugins):
            if name.endswith(".sock"):
                os.unlink(self.plugins + "/" + name)
        pb = self.pb
        self.server = grpc.server(futures.ThreadPoolExecutor(4))
        handler = grpc.unary_unary_rpc_method_handler
        self.server.add_generic_rpc_handlers(
            [
                grpc.method_handlers_generic_handler(
                    "v1beta1.Registration",
                    {
                        "Register": handler(
                            self.register, pb.RegisterRequest.FromString, pb.Empty.SerializeToString
                        )
                    },
                ),
                grpc.method_handlers_generic_handler(
                    "v1.PodResourcesLister",
                    {"List": handler(self.list, pb.Empty.FromString, pb.PodList.SerializeToString)},
                ),
            ]
        )
        if os.path.exists(self.lists + "/kubelet.sock"):
            os.unlink(self.lists + "/kubelet.sock")
        self.registered = []
        self.server.add_insecure_port("unix:" + self.lists + "/kubelet.sock")
        self.server.add_insecure_port("unix:" + self.plugins + "/kubelet.sock")
        self.server.start()

    def stop(self):
        if self.channel:
            self.channel.close()
        self.channel = None
        self.server.stop(None).wait()
        # A killed kubelet leaves its sockets.
        self.devices = {}

    def register(self, request, context):
        # A caller that waits for devices waits for this plugin's: the previous channel is closed.
        self.devices = {}
        self.registered.append(request)
        threading.Thread(target=self.connect, args=(request.endpoint,), daemon=True).start()
        return self.pb.Empty()

    def connect(self, endpoint):
        if self.channel:
            self.channel.close()
        # The server name of kubelet's gRPC.
        path = self.plugins + "/" + endpoint
        channel = self.channel = grpc.insecure_channel(
            "unix:" + path, options=[("grpc.default_authority", path)]
        )
        try:
            for update in self.method("ListAndWatch", self.pb.DeviceList, True, channel)(
                self.pb.Empty(), wait_for_ready=True
            ):
                if self.channel is not channel:
                    break
                self.devices = {device.id: device.health for device in update.devices}
        except (grpc.RpcError, ValueError):
            pass

    def method(self, name, reply, streams=False, channel=None):
        channel = channel or self.channel
        if not channel:
            raise ValueError("the plugin is not registered")
        make = channel.unary_stream if streams else channel.unary_unary
        return make(
            "/v1beta1.DevicePlugin/" + name, lambda m: m.SerializeToString(), reply.FromString
        )

    def list(self, request, context):
        self.lists_seen += 1
        while self.hang:
            time.sleep(0.05)
        self.shown |= set(self.given if self.knows_pods else {})
        reply = self.pb.PodList()
        for name, ids in (self.given if self.knows_pods else {}).items():
            pod = reply.pods.add(name=name, name_space="default")
            container = pod.containers.add(name="c")
            container.devices.add(resource="nvidia.com/gpu", ids=["GPU-0"])
            container.devices.add(resource=RESOURCE, ids=sorted(ids))
        return reply

    def note(self):
        entries = [
            {
                "PodUID": name,
                "ContainerName": "c",
                "ResourceName": RESOURCE,
                "DeviceIDs": {"-1": sorted(ids)},
            }
            for name, ids in {**self.given, **self.stale}.items()
        ]
        for name in self.given:
            os.makedirs(self.folder + "/pods/" + name, exist_ok=True)
        text = json.dumps(
            {"Data": {"PodDeviceEntries": entries or None, "RegisteredDevices": {}}, "Checksum": 1}
        )
        with open(self.plugins + "/new", "w") as file:
            file.write(text)
        os.rename(self.plugins + "/new", self.plugins + "/kubelet_internal_checkpoint")

    def free_ids(self):
        used = set().union(*self.given.values()) if self.given else set()
        return [i for i, health in self.devices.items() if health == "Healthy" and i not in used]

    def preferred(self, ids, size, included=()):
        request = self.pb.PreferredRequest()
        request.containers.add(available=ids, included=included, size=size)
        return list(
            self.method("GetPreferredAllocation", self.pb.IdsByContainer)(request, timeout=10)
            .containers[0]
            .ids
        )

    def allocate(self, *lists, timeout=20):
        request = self.pb.IdsByContainer()
        for ids in lists:
            request.containers.add(ids=ids)
        return self.method("Allocate", self.pb.AllocateReply)(request, timeout=timeout)

    def give(self, name, ids):
        """Allocates for a container like kubelet: stores the result after the answer."""
        reply = self.allocate(ids).containers[0]
        self.given[name] = set(ids)
        self.note()
        return reply


def variables(edits):
    return {v.name: v.value for v in edits.variables}


def tpcs(text):
    """The numbers of a list, "0-3,7"."""
    numbers = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def container(edits, words, **more):
    """A process with the mounts and variables of a reply, in an overlay of this machine's root."""
    script = [
        "set -e",
        "mount --make-rprivate /",
        "r=$(mktemp -d)",
        "mount -t tmpfs none $r",
        "mkdir $r/up $r/work $r/root",
        "mount -t overlay -o lowerdir=/,upperdir=$r/up,workdir=$r/work none $r/root",
        "r=$r/root",
        "mount --rbind /proc $r/proc",
        "mount --rbind /dev $r/dev",
        "mkdir -p $r/own",
        "mount -t tmpfs -o mode=1777 none $r/dev/shm",
        "mount -t tmpfs none $r/run",
    ]
    for mount in edits.mounts:
        place = "$r" + mount.inside
        script.append(
            "[ -d %s ] && mkdir -p %s || { mkdir -p $(dirname %s); touch %s; }"
            % (mount.outside, place, place, place)
        )
        script.append("mount --bind %s %s" % (mount.outside, place))
        if mount.read_only:
            script.append("mount -o remount,bind,ro %s" % place)
    script.append('exec chroot $r env -i PATH=/usr/bin:/bin "$@"')
    words = ["%s=%s" % pair for pair in {**variables(edits), **more.pop("env", {})}.items()] + words
    return subprocess.Popen(
        ["unshare", "-m", "sh", "-c", "\n".join(script), "sh"] + words, text=True, **more
    )
