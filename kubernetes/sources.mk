# SPDX-License-Identifier: MIT
# Sources of the device plugin for Kubernetes. Files that are in no list are not built, and `make
# lint` names them. One sorted list for each folder.

KUBERNETES_SRC := \
	kubernetes/grpc.c \
	kubernetes/node.c \
	kubernetes/plugin.c \
	kubernetes/pods.c

KUBERNETES_PROTO := kubernetes/kubelet.proto
