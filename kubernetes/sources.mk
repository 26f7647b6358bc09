# SPDX-License-Identifier: MIT
# Sources of the device plugin for Kubernetes.
# A file that is in no list is not built; `make lint` names it. One list a folder, sorted.

KUBERNETES_SRC := \
	kubernetes/grpc.c \
	kubernetes/node.c \
	kubernetes/plugin.c \
	kubernetes/pods.c

KUBERNETES_PROTO := kubernetes/kubelet.proto
