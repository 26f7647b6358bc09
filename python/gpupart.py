# SPDX-License-Identifier: MIT
# The library parses and formats sets, and converts sets to mask bits. This file does not.
"""Confines kernel launches to TPCs of an NVIDIA GPU, from Python.

This file is the public interface of libgpupart over ctypes. The rules, terms and index
spaces (tpc, gpc, vgpc, ugpu, smid) of gpupart.h apply.

    import gpupart
    with gpupart.partition(gpcs=[1, 2], stream=torch.cuda.current_stream()):
        model(batch)                    # in GPCs 1 and 2 and nowhere else

A set can be given as a TpcSet, as text ("gpc:1,2+40-43"), or as numbers of TPCs. A stream can be
given as a handle, which is an int or a ctypes pointer. A stream can also be given as an object
with .cuda_stream, .ptr or __cuda_stream__(), for example an object of PyTorch or CuPy. None is
the legacy default stream. Failures raise Error. Error is an OSError, and its text is the
library's message.

A launch uses: limit AND (next launch, else function, else stream, else thread, else
process, else all). Every function may be called from any thread.

PyTorch reuses the streams of a pool and destroys no stream. So after the deletion of a stream's
Python object, the set of the stream stays in force until the set is removed. partition() restores
the previous set.

If the program has already loaded the library, that copy is used. Otherwise, if GPUPART_LIBRARY is
set, it is the path of the library. Otherwise the library is searched in the wheel, by the loader,
and in the build or installation of this file. `python -m gpupart` runs the
command.

For a program with two phases, split() creates a stream with separate TPCs for each.

The examples run on a capture with the simulated driver:

    LD_LIBRARY_PATH=build/lib/gpupart/sim GPUPART_SIM=tests/data/gh100-h200-b/capture.txt \\
        python3 -m doctest python/gpupart.py
"""
from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import enum
import errno
import functools
import inspect
import operator
import os
import re
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from ctypes import (POINTER, Structure, byref, c_bool, c_char, c_char_p, c_int, c_size_t, c_uint,
                    c_uint32, c_uint64, c_void_p)
from typing import Any, Optional, Union

__version__ = "0.2.0"
__all__ = ["Check", "Counters", "Demand", "Error", "Gpc", "Gpu", "GpuInfo", "Job",
           "KernelTime", "Part", "Plan", "Process", "Records", "Result", "Split", "Stream",
           "Tenant", "TenantProcess", "Topology", "Tpc", "TpcSet", "Ugpu", "VerifyRow", "Vgpc",
           "attach", "available", "counters", "detach", "gpus", "jobs", "latency_report",
           "partition", "plan", "processes", "progress_add", "publish", "records", "split",
           "tenant_processes", "tenants"]


def __dir__():
    return [*__all__, "__all__", "__doc__", "__version__"]


# ------------------------------------------------------------------- the C interface

MAX_TPCS = 256
_TPCSET_STRLEN = 1024
_JOB_STRLEN = 64
_TENANT_STRLEN = 64
_RECORDS_NR_FUNCTIONS = 64
_PLAN_MAX_TENANTS = 16
_MAX_SMS_PER_TPC = 4
_VERIFY_QUICK = 1


class _CTpcSet(Structure):
    _fields_ = [("allowed", c_uint64 * (MAX_TPCS // 64))]


class _CGpuInfo(Structure):
    _fields_ = [("name", c_char * 64), ("pci", c_char * 20), ("uuid", c_char * 48),
                ("driver", c_char * 32), ("source", c_char * 512), ("origin", c_char * 160),
                ("chip_id", c_uint32), ("mig", c_int), ("max_gpcs", c_uint),
                ("max_tpcs_per_gpc", c_uint), ("simulated", c_bool)]


class _CTpc(Structure):
    _fields_ = [("gpc", c_int), ("tpc_in_gpc", c_int), ("vgpc", c_int), ("tpc_in_vgpc", c_int),
                ("cpc", c_int), ("ugpu", c_int), ("measured_bit", c_int), ("nr_sms", c_uint),
                ("sms", c_uint * _MAX_SMS_PER_TPC)]


class _CGpc(Structure):
    _fields_ = [("gpc_phys", c_int), ("present_tpcs", c_uint32), ("ugpu", c_int),
                ("tpcs", _CTpcSet)]


class _CCounters(Structure):
    _fields_ = [("launches", c_uint64), ("confined", c_uint64), ("widened_empty", c_uint64),
                ("widened_driver", c_uint64), ("widened_cluster", c_uint64),
                ("widened_cooperative", c_uint64), ("unconfinable_version", c_uint64),
                ("unconfinable_map", c_uint64), ("unconfinable_gpu", c_uint64),
                ("graphs_reapplied", c_uint64), ("graphs_stale", c_uint64),
                ("next_dropped", c_uint64), ("device_launches", c_uint64)]


class _CProcess(Structure):
    _fields_ = [("pid", c_int), ("name", c_char * 64), ("job", c_char * _JOB_STRLEN),
                ("pci", c_char * 20), ("source", c_char * 512), ("simulated", c_bool),
                ("nr_gpus", c_uint), ("limit", c_char * _TPCSET_STRLEN),
                ("problem", c_char * 256), ("counters", _CCounters), ("uid", c_uint),
                ("other_version", c_bool)]


class _CJob(Structure):
    _fields_ = [("id", c_char * _JOB_STRLEN), ("parent", c_char * _JOB_STRLEN),
                ("name", c_char * 64), ("pid", c_int), ("elsewhere", c_bool),
                ("pci", c_char * 20), ("source", c_char * 512), ("simulated", c_bool),
                ("limit", c_char * _TPCSET_STRLEN), ("uid", c_uint),
                ("other_version", c_bool)]


class _CTenant(Structure):
    _fields_ = [("name", c_char * _TENANT_STRLEN), ("uid", c_uint), ("pci", c_char * 20),
                ("simulated", c_bool), ("quota", c_uint64), ("used", c_uint64),
                ("nr_processes", c_uint), ("other_version", c_bool)]


class _CTenantProcess(Structure):
    _fields_ = [("tenant", c_char * _TENANT_STRLEN), ("uid", c_uint), ("pci", c_char * 20),
                ("pid", c_int), ("inner_pid", c_int), ("program", c_char * 64),
                ("used", c_uint64), ("uncounted", c_uint64)]


class _CMemoryCounters(Structure):
    _fields_ = [("refused", c_uint64), ("uncounted", c_uint64), ("uncounted_call", c_char_p)]


class _CDemand(Structure):
    _fields_ = [("name", c_char_p), ("min_tpcs", c_uint), ("max_tpcs", c_uint), ("gpcs", c_bool),
                ("spread", c_bool), ("cluster", c_uint), ("weight", c_uint), ("same", c_char_p),
                ("apart", c_char_p)]


class _CAttachOptions(Structure):
    _fields_ = [("size", c_size_t), ("unconfined", c_uint), ("profilers", c_uint),
                ("no_device_launch", c_uint)]


class _CPlanTenant(Structure):
    _fields_ = [("name", c_char * 64), ("set", _CTpcSet), ("ugpu", c_int)]


class _CPlan(Structure):
    _fields_ = [("topology_hash", c_uint64), ("optimal", c_bool), ("nr_steps", c_uint),
                ("nr_tenants", c_uint), ("tenants", _CPlanTenant * _PLAN_MAX_TENANTS)]


class _CRecordsFunction(Structure):
    _fields_ = [("name", c_char * 96), ("count", c_uint64), ("ns", c_uint64),
                ("longest_ns", c_uint64)]


class _CRecords(Structure):
    _fields_ = [("pci", c_char * 20), ("on", c_bool), ("all_known", c_bool), ("issued", c_uint64),
                ("ended", c_uint64), ("outstanding", c_uint64), ("unrecorded", c_uint64),
                ("unknown", c_uint64), ("untimed", c_uint64), ("last_end_ns", c_uint64),
                ("busy_ns", c_uint64), ("kernels_ns", c_uint64), ("late_ns", c_uint64),
                ("graphs", c_uint64), ("nr_functions", c_uint),
                ("functions", _CRecordsFunction * _RECORDS_NR_FUNCTIONS)]


class _CCheck(Structure):
    _fields_ = [("layout", c_char_p), ("from_cache", c_bool), ("nr_proven", c_uint),
                ("nr_launches", c_uint), ("streams", c_char_p),
                ("graphs", c_char_p), ("key", c_char * 20)]


class _CVerifyRow(Structure):
    _fields_ = [("name", c_char_p), ("what", c_char_p), ("result", c_int), ("detail", c_char_p)]


_STRUCTURES = {
    "gpupart_attach_options": _CAttachOptions,
    "gpupart_tpcset": _CTpcSet, "gpupart_gpu_info": _CGpuInfo, "gpupart_tpc": _CTpc,
    "gpupart_gpc": _CGpc, "gpupart_counters": _CCounters, "gpupart_process": _CProcess,
    "gpupart_job": _CJob, "gpupart_tenant": _CTenant,
    "gpupart_tenant_process": _CTenantProcess, "gpupart_demand": _CDemand,
    "gpupart_memory_counters": _CMemoryCounters,
    "gpupart_plan_tenant": _CPlanTenant,
    "gpupart_records": _CRecords, "gpupart_records_function": _CRecordsFunction,
    "gpupart_plan": _CPlan, "gpupart_check": _CCheck, "gpupart_verify_row": _CVerifyRow,
}
_ROW = ctypes.CFUNCTYPE(None, POINTER(_CVerifyRow), c_void_p)

# Result and arguments. Opaque pointers are c_void_p. The addresses of sets are also c_void_p,
# because c_void_p is the fastest type.
_PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "gpupart_open": (c_int, [POINTER(c_void_p)]),
    "gpupart_close": (None, [c_void_p]),
    "gpupart_error": (c_char_p, [c_void_p]),
    "gpupart_version": (c_char_p, []),
    "gpupart_tpcset_parse_list": (c_int, [c_void_p, c_char_p, POINTER(_CTpcSet)]),
    "gpupart_tpcset_parse_hex": (c_int, [c_void_p, c_char_p, POINTER(_CTpcSet)]),
    "gpupart_tpcset_format_list": (c_int, [c_void_p, c_char_p, c_size_t]),
    "gpupart_topology_open": (c_int, [c_void_p, c_char_p, c_char_p, POINTER(c_void_p)]),
    "gpupart_topology_close": (None, [c_void_p]),
    "gpupart_gpu_list": (c_int, [c_void_p, c_char_p, POINTER(_CGpuInfo), c_uint, c_size_t]),
    "gpupart_topology_info": (POINTER(_CGpuInfo), [c_void_p]),
    "gpupart_topology_nr_tpcs": (c_uint, [c_void_p]),
    "gpupart_topology_nr_gpcs": (c_uint, [c_void_p]),
    "gpupart_topology_nr_sms": (c_uint, [c_void_p]),
    "gpupart_topology_nr_ugpus": (c_uint, [c_void_p]),
    "gpupart_topology_end_vgpc": (c_uint, [c_void_p]),
    "gpupart_topology_tpc": (POINTER(_CTpc), [c_void_p, c_uint]),
    "gpupart_topology_gpc": (POINTER(_CGpc), [c_void_p, c_uint]),
    "gpupart_topology_sm_tpc": (c_int, [c_void_p, c_uint]),
    "gpupart_topology_all": (_CTpcSet, [c_void_p]),
    "gpupart_topology_ugpu": (_CTpcSet, [c_void_p, c_uint]),
    "gpupart_topology_vgpc": (_CTpcSet, [c_void_p, c_uint]),
    "gpupart_topology_hash": (c_uint64, [c_void_p]),
    "gpupart_topology_agree": (c_bool, [c_void_p, c_void_p]),
    "gpupart_set_parse": (c_int, [c_void_p, c_void_p, c_char_p, POINTER(_CTpcSet)]),
    "gpupart_set_check": (c_int, [c_void_p, c_void_p, c_void_p]),
    "gpupart_topology_capture": (c_int, [c_void_p, c_void_p, c_char_p, POINTER(c_void_p)]),
    "gpupart_plan_make": (c_int, [c_void_p, c_void_p, c_void_p, POINTER(_CDemand), c_uint,
                                  POINTER(_CPlan)]),
    "gpupart_plan_check": (c_int, [c_void_p, c_void_p, c_uint64]),
    "gpupart_attach": (c_int, [c_void_p, c_char_p, POINTER(_CAttachOptions), POINTER(c_void_p)]),
    "gpupart_available": (c_int, [c_void_p, c_char_p]),
    "gpupart_detach": (c_int, [c_void_p]),
    "gpupart_process_publish": (c_int, [c_void_p, c_char_p]),
    "gpupart_gpu_topology": (c_void_p, [c_void_p]),
    "gpupart_limit_set": (c_int, [c_void_p, c_void_p, c_void_p]),
    "gpupart_limit_cap": (c_int, [c_void_p, c_void_p, c_void_p]),
    "gpupart_process_set": (c_int, [c_void_p, c_void_p, c_void_p]),
    "gpupart_stream_set": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "gpupart_function_set": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "gpupart_rule_set": (c_int, [c_void_p, c_void_p, c_char_p, c_void_p]),
    "gpupart_thread_set": (c_int, [c_void_p, c_void_p, c_void_p]),
    "gpupart_next_set": (c_int, [c_void_p, c_void_p, c_void_p]),
    "gpupart_graph_prepare": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p,
                                      POINTER(_CTpcSet), c_uint]),
    "gpupart_limit_get": (c_bool, [c_void_p, POINTER(_CTpcSet)]),
    "gpupart_process_get": (c_bool, [c_void_p, POINTER(_CTpcSet)]),
    "gpupart_stream_get": (c_bool, [c_void_p, c_void_p, POINTER(_CTpcSet)]),
    "gpupart_function_get": (c_bool, [c_void_p, c_void_p, POINTER(_CTpcSet)]),
    "gpupart_thread_get": (c_bool, [c_void_p, POINTER(_CTpcSet)]),
    "gpupart_sm_count_tell": (c_int, [c_void_p, c_void_p, c_bool]),
    "gpupart_sm_count_get": (c_bool, [c_void_p, POINTER(c_uint)]),
    "gpupart_progress_add": (None, [c_uint64]),
    "gpupart_latency_report": (None, [c_uint64]),
    "gpupart_counters_get": (None, [POINTER(_CCounters)]),
    "gpupart_process_list": (c_int, [c_void_p, POINTER(_CProcess), c_uint, c_size_t]),
    "gpupart_process_limit_set": (c_int, [c_void_p, c_int, c_char_p, c_void_p, c_void_p]),
    "gpupart_records_open": (c_int, [c_void_p, c_int, c_char_p, POINTER(c_void_p)]),
    "gpupart_records_read": (c_int, [c_void_p, c_void_p, POINTER(_CRecords), c_size_t]),
    "gpupart_records_stream": (c_int, [c_void_p, c_void_p, c_void_p, POINTER(_CRecords),
                                       c_size_t]),
    "gpupart_records_busy": (c_int, [c_void_p, c_void_p]),
    "gpupart_records_close": (None, [c_void_p]),
    "gpupart_job_list": (c_int, [c_void_p, POINTER(_CJob), c_uint, c_size_t]),
    "gpupart_job_limit_set": (c_int, [c_void_p, c_char_p, c_void_p, c_void_p]),
    "gpupart_tenant_list": (c_int, [c_void_p, POINTER(_CTenant), c_uint, c_size_t]),
    "gpupart_tenant_process_list": (c_int, [c_void_p, POINTER(_CTenantProcess), c_uint, c_size_t]),
    "gpupart_tenant_get": (c_int, [c_void_p, c_char_p, c_char_p, POINTER(_CTenant)]),
    "gpupart_tenant_quota_set": (c_int, [c_void_p, c_char_p, c_char_p, c_uint64,
                                         POINTER(c_uint64)]),
    "gpupart_memory_counters_get": (None, [POINTER(_CMemoryCounters)]),
    "gpupart_memory_start": (c_int, [c_void_p, c_char_p, c_uint64]),
    "gpupart_memory_limit": (c_int, [c_void_p, c_char_p, c_uint64]),
    "gpupart_memory_parse": (c_int, [c_void_p, c_char_p, POINTER(c_uint64)]),
    "gpupart_gpu_check": (None, [c_void_p, POINTER(_CCheck)]),
    "gpupart_verify": (c_int, [c_void_p, c_void_p, c_uint, _ROW, c_void_p]),
    "gpupart_census": (c_int, [c_void_p, c_void_p, c_void_p, POINTER(_CTpcSet)]),
}


_MANAGE = "libgpupart-manage.so.0"
_HERE = os.path.dirname(os.path.realpath(__file__))
_WHEEL = os.path.join(_HERE, "gpupart.libs")


class _DlInfo(Structure):
    _fields_ = [("file", c_char_p), ("base", c_void_p), ("name", c_char_p), ("symbol", c_void_p)]


def _loaded() -> Optional[str]:
    """If `gpupart run` has loaded libgpupart.so.0 into this process, its path."""
    info = _DlInfo()
    try:
        version = ctypes.CDLL("libgpupart.so.0", mode=os.RTLD_NOLOAD).gpupart_version
    except OSError:
        return None
    ctypes.CDLL(None).dladdr(version, byref(info))
    return os.fsdecode(info.file)


def _library_paths(loaded: Optional[str]) -> list[str]:
    """Paths to try for libgpupart.so.0, in order. The loader finds a name without a slash."""
    named = os.environ.get("GPUPART_LIBRARY")
    if named:
        return [os.path.abspath(named)]
    wheel = [os.path.join(_WHEEL, "lib", "libgpupart.so.0")] if os.path.isdir(_WHEEL) else []
    if wheel and not loaded:
        return wheel
    return [*([loaded] if loaded else []), *wheel, "libgpupart.so.0",
            os.path.join(_HERE, "..", "build", "lib", "libgpupart.so.0"),  # a source tree
            os.path.join(_HERE, "..", "..", "libgpupart.so.0")]    # installed: PREFIX/lib


def _load() -> ctypes.CDLL:
    said, loaded = [], _loaded()
    for path in _library_paths(loaded):
        try:
            # A process has only one copy of libgpupart.so.0. The manage library depends on it. So
            # the manage library, from any of the paths, also provides the functions of that copy.
            if not loaded:
                ctypes.CDLL(path)
            lib = ctypes.CDLL(os.path.join(os.path.dirname(path), _MANAGE))
        except OSError as error:
            said.append(str(error))
            continue
        _bind(lib, loaded or path)
        return lib
    raise ImportError("libgpupart.so.0 cannot be loaded: " + "; ".join(said))


def _bind(lib: ctypes.CDLL, path: str) -> None:
    """Declares the functions. Refuses a different version, because its structures may differ."""
    for name, (restype, argtypes) in _PROTOTYPES.items():
        try:
            function = getattr(lib, name)
        except AttributeError:
            raise ImportError(f"{path} has no {name}(): it is not the libgpupart {__version__} "
                              "that this gpupart.py needs") from None
        function.restype, function.argtypes = restype, argtypes
    version = lib.gpupart_version().decode()
    if version.split(".")[:2] != __version__.split(".")[:2]:
        raise ImportError(f"{path} is libgpupart {version}, but gpupart.py needs {__version__}")


_lib = _load()


_limit_set, _limit_get = _lib.gpupart_limit_set, _lib.gpupart_limit_get
_process_set, _process_get = _lib.gpupart_process_set, _lib.gpupart_process_get
_stream_set, _stream_get = _lib.gpupart_stream_set, _lib.gpupart_stream_get
_thread_set, _thread_get = _lib.gpupart_thread_set, _lib.gpupart_thread_get
_function_set, _function_get = _lib.gpupart_function_set, _lib.gpupart_function_get
_next_set = _lib.gpupart_next_set


class Error(OSError):
    """An error of the library. .errno is the number. .strerror and the text are the message.

    >>> try:
    ...     Topology.open("sample:h200-b").set("0-66")
    ... except Error as error:
    ...     print(error.errno == errno.EINVAL, error)
    True TPC 66 does not exist: this GPU has TPCs 0-65
    """

    def __str__(self) -> str:
        return self.strerror or ""


class _Pointer(int):
    """The address of a C object from the library. Plain integers are refused."""


class _Context:
    """The library's context, one for each thread; it keeps the last error message."""

    def __init__(self) -> None:
        pointer = c_void_p()
        err = _lib.gpupart_open(byref(pointer))
        if err:
            raise Error(-err, os.strerror(-err))
        self.pointer = pointer.value
        self._close = weakref.finalize(self, _lib.gpupart_close, pointer.value)
        self._close.atexit = False


class _Thread(threading.local):
    def __init__(self) -> None:
        self.owner = _Context()
        self.context = self.owner.pointer


_thread = _Thread()


def _fail(err: int) -> Error:
    """The exception for a failed call with this thread's context. The call returned @err."""
    message = _lib.gpupart_error(_thread.context).decode("utf-8", "replace")
    return Error(-err, message or os.strerror(-err))


def _done(ret: int) -> int:
    if ret < 0:
        raise _fail(ret)
    return ret


def _bytes(text: Optional[Union[str, os.PathLike[str]]]) -> Optional[bytes]:
    if text is None:
        return None
    encoded = os.fsencode(text)
    if b"\0" in encoded:
        raise Error(errno.EINVAL, f"{text!r} contains a zero byte")
    return encoded


def _str(text: Optional[bytes]) -> str:
    return (text or b"").decode("utf-8", "replace")


# --------------------------------------------------------------------------- sets

TpcsLike = Union["TpcSet", str, int, Iterable[int]]


class TpcSet(AbstractSet[int]):
    """A set of allowed TPCs. Immutable. Equal to a frozenset of the same numbers.

    The arguments are lists in taskset's form, numbers, ranges, iterables or sets:

    >>> a = TpcSet("0-7,16"); b = TpcSet(7, range(16, 20))
    >>> print(a & b, "|", a | b, "|", a - b, "|", a ^ b)
    7,16 | 0-7,16-19 | 0-6 | 0-6,17-19
    >>> a
    TpcSet('0-7,16')
    >>> len(a), list(b), 16 in a, 17 in a, a.hex, bool(TpcSet())
    (9, [7, 16, 17, 18, 19], True, False, '0x100ff', False)
    >>> TpcSet("0-10:2") == {0, 2, 4, 6, 8, 10} and TpcSet(3).issubset(a)
    True
    >>> TpcSet(256)
    Traceback (most recent call last):
    gpupart.Error: TPC 256 is out of range: must be 0 to 255
    """

    __slots__ = ("_mask", "_c", "_at", "_hashed", "__weakref__")
    _mask: int                  # bit i allows TPC i
    _c: _CTpcSet
    _at: int                    # the address of _c
    _hashed: Optional[int]

    def __init__(self, *parts: TpcsLike) -> None:
        mask = 0
        for part in parts:
            mask |= _mask_of(part)
        self._become(mask)

    def _become(self, mask: int) -> None:
        put = object.__setattr__
        c = _CTpcSet(tuple(mask >> (64 * i) & (1 << 64) - 1 for i in range(MAX_TPCS // 64)))
        put(self, "_mask", mask)
        put(self, "_c", c)
        put(self, "_at", ctypes.addressof(c))
        put(self, "_hashed", None)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a TpcSet cannot be changed")

    __delattr__ = __setattr__  # type: ignore[assignment]

    @classmethod
    def _of_mask(cls, mask: int) -> TpcSet:
        new = cls.__new__(cls)
        new._become(mask)
        return new

    @classmethod
    def _of_c(cls, c: _CTpcSet) -> TpcSet:
        return cls._of_mask(sum(word << (64 * i) for i, word in enumerate(c.allowed)))

    @classmethod
    def _from_iterable(cls, it: Iterable[int]) -> TpcSet:
        return cls(it)

    @classmethod
    def from_hex(cls, text: str) -> TpcSet:
        """Bit i allows TPC i; "0x" and commas between groups are allowed.

        >>> TpcSet.from_hex("0x100ff")
        TpcSet('0-7,16')
        """
        c = _CTpcSet()
        _done(_lib.gpupart_tpcset_parse_hex(_thread.context, _bytes(text), byref(c)))
        return cls._of_c(c)

    @property
    def hex(self) -> str:
        """"0x100ff": bit i allows TPC i."""
        return hex(self._mask)

    def __str__(self) -> str:
        text = ctypes.create_string_buffer(_TPCSET_STRLEN)
        if _lib.gpupart_tpcset_format_list(self._at, text, len(text)) < 0:
            raise Error(errno.ENOSPC, "the text of a set does not fit into the buffer")
        return _str(text.value)

    def __repr__(self) -> str:
        return f"TpcSet({str(self)!r})" if self else "TpcSet()"

    def __contains__(self, tpc: object) -> bool:
        try:
            index = operator.index(tpc)  # type: ignore[arg-type]
        except TypeError:
            return False
        return index >= 0 and bool(self._mask >> index & 1)

    def __iter__(self) -> Iterator[int]:
        mask = self._mask
        while mask:
            yield (mask & -mask).bit_length() - 1
            mask &= mask - 1

    def __len__(self) -> int:
        return bin(self._mask).count("1")

    def __bool__(self) -> bool:
        return self._mask != 0

    def __hash__(self) -> int:
        hashed = self._hashed
        if hashed is None:
            hashed = self._hash()
            object.__setattr__(self, "_hashed", hashed)
        return hashed

    def __reduce__(self) -> Any:
        return TpcSet.from_hex, (self.hex,)

    def __copy__(self) -> TpcSet:
        return self

    def __deepcopy__(self, memo: Any) -> TpcSet:
        return self

    def __and__(self, other: Any) -> TpcSet:
        mask = _mask_of_set(other)
        if mask is None:
            return NotImplemented
        return TpcSet._of_mask(self._mask & mask)

    def __or__(self, other: Any) -> TpcSet:
        mask = _mask_of_set(other)
        if mask is None:
            return NotImplemented
        return TpcSet._of_mask(self._mask | mask)

    def __sub__(self, other: Any) -> TpcSet:
        mask = _mask_of_set(other)
        if mask is None:
            return NotImplemented
        return TpcSet._of_mask(self._mask & ~mask)

    def __rsub__(self, other: Any) -> TpcSet:
        mask = _mask_of_set(other)
        if mask is None:
            return NotImplemented
        return TpcSet._of_mask(mask & ~self._mask)

    def __xor__(self, other: Any) -> TpcSet:
        mask = _mask_of_set(other)
        if mask is None:
            return NotImplemented
        return TpcSet._of_mask(self._mask ^ mask)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def issubset(self, other: TpcsLike) -> bool:
        """True if every TPC of this set is in @other."""
        return not self._mask & ~_mask_of(other)

    def issuperset(self, other: TpcsLike) -> bool:
        """True if every TPC of @other is in this set."""
        return not _mask_of(other) & ~self._mask


def _mask_of_set(value: Any) -> Optional[int]:
    """
    The mask of a set. For other types, returns None; operators of Python's sets refuse such
    types too.
    """
    if isinstance(value, TpcSet):
        return value._mask
    return _mask_of(value) if isinstance(value, AbstractSet) else None


def _tpc(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError(f"{value} is not a TPC number")
    tpc = operator.index(value)
    if not 0 <= tpc < MAX_TPCS:
        raise Error(errno.EINVAL, f"TPC {tpc} is out of range: must be 0 to {MAX_TPCS - 1}")
    return tpc


def _refuse_bytes(value: Any) -> None:
    """Refuses bytes, which Python iterates as numbers: b"0-3" would be 48, 45 and 51."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"{value!r} is bytes: must be text or numbers")


def _mask_of(part: Any) -> int:
    if isinstance(part, TpcSet):
        return part._mask
    if isinstance(part, str):
        c = _CTpcSet()
        _done(_lib.gpupart_tpcset_parse_list(_thread.context, _bytes(part), byref(c)))
        return TpcSet._of_c(c)._mask
    _refuse_bytes(part)
    if isinstance(part, Iterable):
        mask = 0
        for tpc in part:
            mask |= 1 << _tpc(tpc)
        return mask
    return 1 << _tpc(part)


# ----------------------------------------------------------------------- topology

@dataclasses.dataclass(frozen=True)
class GpuInfo:
    """Properties of a GPU. Unknown texts are "". Unknown numbers are None."""
    name: str
    pci: str            #: "0000:0d:00.0"; the GPU's identity
    uuid: str
    driver: str
    source: str         #: "rm", "kernel", or the capture's path
    origin: str         #: for a capture: author and method
    chip_id: Optional[int]
    mig: Optional[bool]
    max_gpcs: Optional[int]             #: before floorsweeping
    max_tpcs_per_gpc: Optional[int]
    simulated: bool     #: the GPU is simulated


@dataclasses.dataclass(frozen=True)
class Tpc:
    """One TPC. If the source does not have a value, the value is None."""
    tpc: int
    gpc: Optional[int]
    tpc_in_gpc: Optional[int]
    vgpc: Optional[int]
    tpc_in_vgpc: Optional[int]
    cpc: Optional[int]
    ugpu: Optional[int]
    measured_bit: Optional[int]         #: in a capture: the mask bit that disabled this TPC
    sms: tuple[int, ...]                #: numbers as in %smid


@dataclasses.dataclass(frozen=True)
class Gpc:
    """One logical GPC."""
    gpc: int
    gpc_phys: Optional[int]             #: index in the fuses
    present_tpcs: Optional[int]         #: bit i: physical TPC i is present
    ugpu: Optional[int]
    tpcs: TpcSet


@dataclasses.dataclass(frozen=True)
class Vgpc:
    """One virtual GPC. All blocks of a cluster run in one virtual GPC."""
    vgpc: int
    tpcs: TpcSet


@dataclasses.dataclass(frozen=True)
class Ugpu:
    """One uGPU: half of the GPU, with the near half of the L2 cache."""
    ugpu: int
    tpcs: TpcSet


def _index(value: int) -> Optional[int]:
    return None if value < 0 else value


def _info(c: _CGpuInfo) -> GpuInfo:
    return GpuInfo(name=_str(c.name), pci=_str(c.pci), uuid=_str(c.uuid), driver=_str(c.driver),
                   source=os.fsdecode(c.source), origin=_str(c.origin), chip_id=c.chip_id or None,
                   mig=None if c.mig < 0 else bool(c.mig), max_gpcs=c.max_gpcs or None,
                   max_tpcs_per_gpc=c.max_tpcs_per_gpc or None, simulated=c.simulated)


IndicesLike = Union[str, int, Iterable[int]]
MemoryLike = Union[int, str]


def _list(indices: IndicesLike) -> str:
    """Numbers in the list form that the library parses; text is returned unchanged."""
    if isinstance(indices, str):
        return indices
    _refuse_bytes(indices)
    if not isinstance(indices, Iterable):
        indices = [indices]
    numbers = []
    for index in indices:
        if isinstance(index, bool):
            raise TypeError(f"{index} is not an index: must be an integer")
        numbers.append(str(operator.index(index)))  # type: ignore[arg-type]
    return ",".join(numbers)


class Topology:
    """GPCs, virtual GPCs, TPCs, SMs and uGPUs of one GPU. Immutable.

    >>> topology = Topology.open("sample:h200-b")
    >>> topology.info.name, topology.nr_tpcs, topology.nr_sms, topology.nr_gpcs
    ('NVIDIA H200', 66, 132, 8)
    >>> topology.tpcs[7].sms, topology.tpcs[7].gpc
    ((14, 15), 7)
    >>> len(topology.gpc_tpcs([1, 2])), topology.set("gpc:1+ugpu:0") >= topology.gpcs[1].tpcs
    (16, True)
    >>> topology.gpc_tpcs(9)
    Traceback (most recent call last):
    gpupart.Error: GPC 9 does not exist: this GPU has GPCs 0-7
    """

    def __init__(self, pointer: _Pointer, keeps: Any = None) -> None:
        """Do not call this: use Topology.open() or Gpu.topology."""
        if not isinstance(pointer, _Pointer):
            raise TypeError(f"Topology({pointer!r}): use Topology.open() or Gpu.topology")
        self._pointer = pointer
        self._keeps = keeps
        lib = _lib
        #: Properties of the GPU.
        self.info = _info(lib.gpupart_topology_info(pointer).contents)
        self.nr_tpcs: int = lib.gpupart_topology_nr_tpcs(pointer)
        self.nr_gpcs: int = lib.gpupart_topology_nr_gpcs(pointer)
        self.nr_sms: int = lib.gpupart_topology_nr_sms(pointer)
        #: 0 if the source does not report uGPUs.
        self.nr_ugpus: int = lib.gpupart_topology_nr_ugpus(pointer)
        #: The largest id of a virtual GPC, plus one.
        self.end_vgpc: int = lib.gpupart_topology_end_vgpc(pointer)
        #: Hash of the topology, as 16 hexadecimal digits. A plan's JSON has the same hash.
        self.hash: str = f"{lib.gpupart_topology_hash(pointer):016x}"
        #: All TPCs, GPCs and uGPUs, by index.
        self.tpcs = tuple(self._read_tpc(tpc) for tpc in range(self.nr_tpcs))
        self.gpcs = tuple(self._read_gpc(gpc) for gpc in range(self.nr_gpcs))
        self.ugpus = tuple(Ugpu(ugpu, TpcSet._of_c(lib.gpupart_topology_ugpu(pointer, ugpu)))
                           for ugpu in range(self.nr_ugpus))
        vgpcs = (Vgpc(vgpc, TpcSet._of_c(lib.gpupart_topology_vgpc(pointer, vgpc)))
                 for vgpc in range(self.end_vgpc))
        #: The virtual GPCs with TPCs, in the order of their ids. The ids may have gaps.
        self.vgpcs = tuple(vgpc for vgpc in vgpcs if vgpc.tpcs)
        #: All TPCs.
        self.all = TpcSet._of_c(lib.gpupart_topology_all(pointer))

    @classmethod
    def open(cls, source: Optional[Union[str, os.PathLike[str]]] = None,
             gpu: Optional[str] = None) -> Topology:
        """
        Opens the topology of a GPU. @source: "kernel", "rm", "sample:NAME", the path of a
        capture, or None for kernel and then rm. @gpu: an index in PCI order ("0"), a PCI
        address or a UUID; None is the first GPU.
        """
        pointer = c_void_p()
        _done(_lib.gpupart_topology_open(_thread.context, _bytes(source), _bytes(gpu),
                                         byref(pointer)))
        assert pointer.value
        topology = cls(_Pointer(pointer.value))
        weakref.finalize(topology, _lib.gpupart_topology_close, pointer.value).atexit = False
        return topology

    def _read_tpc(self, tpc: int) -> Tpc:
        c = _lib.gpupart_topology_tpc(self._pointer, tpc).contents
        return Tpc(tpc, _index(c.gpc), _index(c.tpc_in_gpc), _index(c.vgpc), _index(c.tpc_in_vgpc),
                   _index(c.cpc), _index(c.ugpu), _index(c.measured_bit), tuple(c.sms[:c.nr_sms]))

    def _read_gpc(self, gpc: int) -> Gpc:
        c = _lib.gpupart_topology_gpc(self._pointer, gpc).contents
        return Gpc(gpc, _index(c.gpc_phys), c.present_tpcs or None, _index(c.ugpu),
                   TpcSet._of_c(c.tpcs))

    def set(self, words: TpcsLike) -> TpcSet:
        """
        Parses a set, for example "gpc:1,2+40-43". The terms LIST, tpc:LIST, gpc:LIST,
        ugpu:LIST and hex:MASK are joined by "+". Also accepts all arguments of TpcSet(). An empty
        set, and a set with a unit that does not exist, raise Error. The message names the value.
        """
        if isinstance(words, str):
            c = _CTpcSet()
            _done(_lib.gpupart_set_parse(_thread.context, self._pointer, _bytes(words), byref(c)))
            return TpcSet._of_c(c)
        tpcs = words if isinstance(words, TpcSet) else TpcSet(words)
        _done(_lib.gpupart_set_check(_thread.context, self._pointer, tpcs._at))
        return tpcs

    def gpc_tpcs(self, gpcs: IndicesLike) -> TpcSet:
        """The TPCs of @gpcs: a number, several numbers, or a list as text."""
        return self.set("gpc:" + _list(gpcs))

    def ugpu_tpcs(self, ugpus: IndicesLike) -> TpcSet:
        """The TPCs of @ugpus."""
        return self.set("ugpu:" + _list(ugpus))

    def vgpc_tpcs(self, vgpcs: IndicesLike) -> TpcSet:
        """The TPCs of @vgpcs, which are virtual GPCs."""
        found = {vgpc.vgpc: vgpc.tpcs for vgpc in self.vgpcs}
        tpcs = TpcSet()
        for vgpc in TpcSet(_list(vgpcs)):
            if vgpc not in found:
                raise Error(errno.EINVAL, f"virtual GPC {vgpc} does not exist: this GPU has "
                                          f"virtual GPCs {TpcSet(found)}")
            tpcs |= found[vgpc]
        return tpcs

    def sm_tpc(self, smid: int) -> Optional[int]:
        """The TPC of the SM whose %smid is @smid, or None."""
        if not 0 <= smid < 1 << 32:
            return None
        tpc: int = _lib.gpupart_topology_sm_tpc(self._pointer, smid)
        return _index(tpc)

    def agrees(self, other: Topology) -> bool:
        """True if this topology and @other agree. Compares only the values that both have."""
        return bool(_lib.gpupart_topology_agree(self._pointer, other._pointer))

    def capture(self, captured_by: Optional[str] = None) -> str:
        """The topology as the text of a capture, which open() can read from a file."""
        text = c_void_p()
        _done(_lib.gpupart_topology_capture(_thread.context, self._pointer, _bytes(captured_by),
                                            byref(text)))
        try:
            return os.fsdecode(ctypes.string_at(text.value or 0))
        finally:
            _free(text)

    def __reduce__(self) -> Any:
        raise _of_this_process("Topology", "open its source in the other process, or pass the "
                               "values of .info, .tpcs, .gpcs")

    def __copy__(self) -> Topology:
        return self

    def __deepcopy__(self, memo: Any) -> Topology:
        return self

    def __repr__(self) -> str:
        name = f"{self.info.name} {self.info.pci}".strip()
        return (f"<Topology of {name}: {self.nr_gpcs} GPCs, {self.nr_tpcs} TPCs, "
                f"{self.nr_sms} SMs>")


def _of_this_process(what: str, instead: str) -> TypeError:
    return TypeError(f"a {what} belongs to one process and cannot be pickled: {instead}")


_free = ctypes.CDLL(None).free
_free.restype, _free.argtypes = None, [c_void_p]


def _all_of(function: Callable[..., Any], structure: Any) -> list[Any]:
    """
    All rows of a C function(list, max, size). If the rows do not fit, calls the function again
    with a larger list.
    """
    room = 16
    while True:
        rows = (structure * room)()
        nr: int = function(rows, room, ctypes.sizeof(structure))
        _done(nr)
        if nr <= room:
            return list(rows[:nr])
        room = nr + 16


def gpus(source: Optional[str] = None) -> list[GpuInfo]:
    """The GPUs of @source ("kernel", "rm", None: the first that works), in PCI order."""
    return [_info(c) for c in _all_of(
        lambda *rows: _lib.gpupart_gpu_list(_thread.context, _bytes(source), *rows),
        _CGpuInfo)]


# -------------------------------------------------------------- launches of this process

@dataclasses.dataclass(frozen=True)
class Check:
    """How the mask bits of an attached GPU were proven."""
    layout: str         #: "V04_00"
    from_cache: bool    #: the result is from the cache
    nr_proven: int      #: number of proven TPCs
    nr_launches: int    #: number of probe launches; 0: from the cache
    streams: str        #: "", or the reason why sets of streams are refused
    graphs: str         #: "", or the reason why graphs keep earlier sets
    key: str            #: hash of the checked map


@dataclasses.dataclass(frozen=True)
class Counters:
    """Counts of this process's launches since it attached, on all its GPUs."""
    launches: int
    confined: int               #: confined to exactly the set of the scopes
    widened_empty: int          #: limit AND set was empty, so the limit applied
    widened_driver: int         #: the driver's mask excluded the whole set, so the mask applied
    widened_cluster: int        #: no virtual GPC of the set had room for a cluster
    widened_cooperative: int    #: the set could not hold all blocks at the same time
    unconfinable_version: int   #: unknown TMD version or launch type
    unconfinable_map: int       #: mask bits not proven on this GPU
    unconfinable_gpu: int       #: launches on a GPU that was not attached
    graphs_reapplied: int       #: graph launches with rebuilt nodes
    graphs_stale: int           #: graph launches whose nodes kept an earlier set
    next_dropped: int           #: next-launch sets whose launch failed or was captured
    device_launches: int        #: launches of kernels that can launch unconfined kernels


def _counters(c: _CCounters) -> Counters:
    return Counters(*(getattr(c, name) for name, _ in _CCounters._fields_))


@dataclasses.dataclass(frozen=True)
class Process:
    """A process whose launches are confined."""
    pid: int                    #: 0: not visible in this pid namespace
    name: str
    job: str                    #: id of the process's job, or ""
    pci: str                    #: PCI address of its first confined GPU
    source: str                 #: source of that GPU's topology
    simulated: bool             #: that GPU is simulated
    nr_gpus: int                #: number of attached GPUs
    limit: Optional[TpcSet]     #: None: no limit
    problem: str                #: "", or the reason why launches are not confined
    counters: Counters

    def set_limit(self, tpcs: TpcsLike | None) -> Optional[TpcSet]:
        """
        Sets the limit on the GPU @pci, from the next launch on; None removes the limit.
        Returns the previous limit. The process must belong to this user.
        """
        wanted = None if tpcs is None else TpcSet(tpcs)
        before = _CTpcSet()
        _done(_lib.gpupart_process_limit_set(_thread.context, self.pid, _bytes(self.pci),
                                             wanted._at if wanted is not None else None,
                                             byref(before)))
        return TpcSet._of_c(before) or None


@dataclasses.dataclass(frozen=True)
class KernelTime:
    """The launches of one function whose end the GPU has recorded. Times are in ns."""
    name: str                   #: the driver's name, truncated; "" while it is unknown
    count: int
    ns: int
    longest_ns: int


@dataclasses.dataclass(frozen=True)
class Records:
    """
    Completion records of a process's launches on one GPU, like struct gpupart_records. Times
    are in ns. The assumed begin of a kernel is the later of two times: its submission, and the
    previous end on its stream. So if a stream waits, times are upper bounds.
    """
    pci: str
    on: bool                    #: launches are recorded; False: all other values are 0
    all_known: bool             #: if no launch is outstanding, the GPU is idle
    issued: int                 #: launches that have a record
    ended: int                  #: launches whose record the GPU has written
    outstanding: int
    unrecorded: int             #: launches that have no record
    unknown: int                #: launches that may still run; if not 0, the GPU counts as busy
    untimed: int                #: launches that have ended and whose time is unknown
    last_end_ns: int            #: latest end, on the GPU's clock
    busy_ns: int                #: time during which at least one launch ran
    kernels_ns: int             #: sum of the launches' times
    late_ns: int                #: part of kernels_ns that is not in busy_ns
    graphs: int                 #: graph launches without a record
    functions: list[KernelTime]  #: the functions with the most time

    @property
    def busy(self) -> bool:
        """True if a launch is outstanding, or may be outstanding."""
        return bool(self.outstanding) or not self.all_known


def records(pci: str, pid: int = 0) -> Records:
    """The records of process @pid on a GPU; 0 is this process. Only root can read the records of
    other users.

    >>> gpu = attach()
    >>> before = records(gpu.topology.info.pci)
    >>> _ = gpu.census()
    >>> after = records(gpu.topology.info.pci)
    >>> after.ended - before.ended, after.busy
    (1, False)
    """
    reader, c = c_void_p(), _CRecords()
    _done(_lib.gpupart_records_open(_thread.context, pid, _bytes(pci), byref(reader)))
    try:
        _done(_lib.gpupart_records_read(_thread.context, reader, byref(c), ctypes.sizeof(c)))
    finally:
        _lib.gpupart_records_close(reader)
    return _records(c)


def _records(c: _CRecords) -> Records:
    plain = [name for name, _ in _CRecords._fields_[1:-2]]
    return Records(_str(c.pci), *(getattr(c, name) for name in plain),
                   [KernelTime(_str(f.name), f.count, f.ns, f.longest_ns)
                    for f in c.functions[:c.nr_functions]])


def _size(memory: MemoryLike) -> int:
    """Converts a size, a number or text in the form of gpupart_memory_parse(), to bytes."""
    size = c_uint64()
    if isinstance(memory, bool) or not (isinstance(memory, str) or hasattr(memory, "__index__")):
        raise TypeError(f"memory={memory!r}: must be a number of bytes, or text like \"8G\"")
    text = memory if isinstance(memory, str) else str(operator.index(memory))
    _done(_lib.gpupart_memory_parse(_thread.context, _bytes(text), byref(size)))
    return size.value


@dataclasses.dataclass(frozen=True)
class Job:
    """A job: one `gpupart run` and all processes that it started."""
    id: str
    parent: str                 #: id of the job in which it was started, or ""
    name: str
    pid: int                    #: pid of its first process; 0: in another namespace, or ended
    elsewhere: bool             #: in another pid namespace; some processes may be invisible
    pci: str
    source: str                 #: source of that GPU's topology
    simulated: bool
    limit: TpcSet

    def set_limit(self, tpcs: TpcsLike) -> TpcSet:
        """Sets the limit of its present and future processes. Returns the previous limit."""
        wanted, before = TpcSet(tpcs), _CTpcSet()
        _done(_lib.gpupart_job_limit_set(_thread.context, _bytes(self.id), wanted._at,
                                         byref(before)))
        return TpcSet._of_c(before)


@dataclasses.dataclass(frozen=True)
class Tenant:
    """Programs of a user that share a memory quota on one GPU. Sizes are in bytes."""
    name: str
    uid: int                    #: its user
    pci: str                    #: the GPU; "": no quota and no memory on any GPU
    simulated: bool             #: that GPU is simulated
    quota: Optional[int]        #: None: no quota
    used: int                   #: memory of all its processes; may exceed the quota
    nr_processes: int           #: number of its living processes

    def set_quota(self, memory: MemoryLike) -> Optional[int]:
        """
        Sets the quota on that GPU, in the form that attach() accepts. A quota below the memory
        in use frees nothing. Returns the previous quota. Only for tenants of this user.
        """
        before = c_uint64()
        _done(_lib.gpupart_tenant_quota_set(_thread.context, _bytes(self.name),
                                            _bytes(self.pci), _size(memory), byref(before)))
        return before.value or None


@dataclasses.dataclass(frozen=True)
class TenantProcess:
    """A process of a tenant, and its memory on one GPU."""
    tenant: str
    uid: int
    pci: str                    #: "": the process has not used a GPU yet
    pid: int                    #: 0: not visible in this pid namespace
    inner_pid: int              #: pid in its own namespace
    program: str
    used: int                   #: bytes
    uncounted: int              #: calls that may have allocated uncounted memory


class Result(enum.IntEnum):
    """The result of a row of verify()."""
    PASS = 0
    FAIL = 1
    SKIP = 2


@dataclasses.dataclass(frozen=True)
class VerifyRow:
    """One check and its result."""
    name: str           #: "tpc-alone"; names do not change between versions
    what: str           #: the checked statement, in one sentence
    result: Result
    detail: str         #: the measured result; on a failure, also the TPC


def _handle(value: Any, refusal: str, name: str) -> int:
    """A handle as a number; 0 for None. @refusal is the message for other types."""
    if isinstance(value, ctypes._Pointer):
        value = ctypes.cast(value, c_void_p)
    if isinstance(value, ctypes._SimpleCData):
        value = value.value
    if value is None:
        return 0
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(refusal)
    handle = operator.index(value)
    if not 0 <= handle < 1 << 64:
        raise Error(errno.EINVAL, f"{handle} is not a handle of a {name}: must fit into 64 bits")
    return handle


def _stream_handle(stream: Any) -> int:
    """The CUstream of a library's stream object; 0 for None."""
    given = stream
    if hasattr(stream, "cuda_stream"):
        stream = stream.cuda_stream
    elif hasattr(stream, "ptr"):
        stream = stream.ptr
    elif hasattr(stream, "__cuda_stream__"):
        stream = stream.__cuda_stream__()[1]
    return _handle(stream, f"{given!r} is not a stream: must be an int, a ctypes pointer or an "
                           "object with .cuda_stream, .ptr or __cuda_stream__()", "stream")


def _graph_handle(graph: Any) -> int:
    """The CUgraphExec of a library's graph object."""
    given = graph
    if hasattr(graph, "raw_cuda_graph_exec"):
        graph = graph.raw_cuda_graph_exec()
    elif hasattr(graph, "graphExec"):
        graph = graph.graphExec
    return _handle(graph, f"{given!r} is not an executable graph: must be an int, a ctypes "
                          "pointer, a torch.cuda.CUDAGraph or a cupy.cuda.Graph", "graph")


def _function_handle(function: Any) -> int:
    """The CUfunction or CUkernel of a library's kernel object."""
    given = function
    for name in ("ptr", "handle"):
        if hasattr(function, name):
            function = getattr(function, name)
            break
    return _handle(function, f"{given!r} is not a kernel function: must be an int, a ctypes "
                             "pointer or an object with .ptr or .handle", "kernel function")


def _stream_gpu(stream: Any) -> Optional[str]:
    """
    CUDA's number of the stream's GPU. Objects of PyTorch and CuPy have this number. For other
    objects, returns None.
    """
    device = getattr(getattr(stream, "device", None), "index", None)
    if device is None:
        device = getattr(stream, "device_id", None)
    return f"cuda:{device}" if isinstance(device, int) and device >= 0 else None


class Gpu:
    """One GPU on which this process's launches are confined. See attach().

    >>> gpu = attach()
    >>> gpu.process = "gpc:1"
    >>> gpu.process == gpu.topology.gpcs[1].tpcs == gpu.census()
    True
    >>> gpu.process = None          # removes the set
    >>> print(gpu.process, len(gpu.census()) == gpu.topology.nr_tpcs)
    None True
    >>> gpu.process = [3, 66]
    Traceback (most recent call last):
    gpupart.Error: TPC 66 does not exist: this GPU has TPCs 0-65
    """

    _by_name: dict[Optional[str], Gpu] = {}
    _by_pointer: dict[int, Gpu] = {}

    def __init__(self, pointer: _Pointer) -> None:
        """Do not call this: use attach()."""
        if not isinstance(pointer, _Pointer):
            raise TypeError(f"Gpu({pointer!r}): use attach()")
        self._pointer = pointer
        #: The topology with which the GPU was attached.
        self.topology = Topology(_Pointer(_lib.gpupart_gpu_topology(pointer)), self)

    @classmethod
    def attach(cls, gpu: Optional[str] = None, *, memory: Optional[MemoryLike] = None,
               strict: bool = False, profilers: bool = False,
               no_device_launch: bool = False) -> Gpu:
        """
        Prepares one GPU for confined launches. @gpu is "cuda:N" for CUDA's own number, an
        index in PCI order ("0"), a PCI address or a UUID; None is CUDA's device 0. The first
        attach to a GPU makes a few short launches to prove the mask bits. A second attach returns
        the same object. The object exists until the process ends. If the environment contains
        GPUPART_DISABLE=1, attach() fails (errno.ECANCELED).

        @memory: the GPU memory that this process, or all processes of its tenant, may use
        together: bytes, or text ("8G", "512M", "1.5GiB"). Inside `gpupart run --mem`, attach()
        can only reduce the quota.

        The other options apply to the process from the first attach on. @strict: after the first
        launch outside the limit, launches fail with 800. @profilers: a tool that uses CUPTI, for
        example torch.profiler, can run at the same time as gpupart. @no_device_launch: modules
        whose kernels can launch other kernels are refused with 800.
        """
        if gpu is not None and not isinstance(gpu, str):
            raise TypeError(f"gpu={gpu!r}: must be text: \"cuda:0\", a PCI address or a UUID")
        # Keep the result, because a look-up is slow. A name means the same GPU until the process
        # ends.
        known = cls._by_name.get(gpu)
        if known is None or strict or profilers or no_device_launch:
            pointer = c_void_p()
            options = _CAttachOptions(ctypes.sizeof(_CAttachOptions), bool(strict),
                                      bool(profilers), bool(no_device_launch))
            _done(_lib.gpupart_attach(_thread.context, _bytes(gpu), byref(options),
                                      byref(pointer)))
            assert pointer.value
            known = cls._by_pointer.get(pointer.value) or cls._by_pointer.setdefault(
                pointer.value, cls(_Pointer(pointer.value)))
            cls._by_name[gpu] = known
        if memory is not None:
            known._limit_memory(memory)
        return known

    def _limit_memory(self, memory: MemoryLike) -> None:
        _done(_lib.gpupart_memory_limit(_thread.context, _bytes(self.topology.info.pci),
                                        _size(memory)))

    @property
    def memory(self) -> Optional[int]:
        """
        The quota of this process's tenant on this GPU, in bytes. None: no quota. tenants()
        and tenant_processes() report the memory in use.

        >>> gpu = attach(memory="8G")
        >>> gpu.memory == 8 << 30
        True
        >>> gpu.memory = "8 apples"
        Traceback (most recent call last):
        gpupart.Error: '8 apples' has an unknown unit: use K, M, G or T (powers of 1024), \
KB, MB, .. (powers of 1000), or no unit for bytes
        """
        c = _CTenant()
        err = _lib.gpupart_tenant_get(_thread.context, None, _bytes(self.topology.info.pci),
                                      byref(c))
        if err == -errno.ESRCH:
            return None
        _done(err)
        return c.quota or None

    @memory.setter
    def memory(self, memory: MemoryLike) -> None:
        self._limit_memory(memory)

    def _apply(self, function: Any, tpcs: Optional[TpcsLike]) -> None:
        if tpcs is None:
            err = function(_thread.context, self._pointer, None)
        else:
            if not isinstance(tpcs, TpcSet):
                tpcs = self.topology.set(tpcs)
            err = function(_thread.context, self._pointer, tpcs._at)
        if err:
            raise _fail(err)

    @property
    def limit(self) -> Optional[TpcSet]:
        """
        The set that bounds all launches on this GPU. None: no limit. A limit from outside
        (GPUPART_SET) can only be reduced. Assigning None restores the limit from outside.
        """
        c = _CTpcSet()
        return TpcSet._of_c(c) if _limit_get(self._pointer, byref(c)) else None

    @limit.setter
    def limit(self, tpcs: Optional[TpcsLike]) -> None:
        self._apply(_limit_set, tpcs)

    def _limit_mask(self) -> int:
        """The limit as a mask; -1: no limit."""
        c = _CTpcSet()
        return int.from_bytes(bytes(c), "little") if _limit_get(self._pointer, byref(c)) else -1

    def cap(self, tpcs: TpcsLike) -> None:
        """
        Reduces the limit from outside to its intersection with @tpcs. If there is no limit
        from outside, the new limit is @tpcs. This process cannot undo the change. If the
        intersection is empty, fails with errno.EPERM.
        """
        self._apply(_lib.gpupart_limit_cap, tpcs)

    @property
    def process(self) -> Optional[TpcSet]:
        """The set of all launches of this process on streams without a set; None: no set."""
        c = _CTpcSet()
        return TpcSet._of_c(c) if _process_get(self._pointer, byref(c)) else None

    @process.setter
    def process(self, tpcs: Optional[TpcsLike]) -> None:
        self._apply(_process_set, tpcs)

    @property
    def thread(self) -> Optional[TpcSet]:
        """The set of the calling thread's launches on streams without a set; None: no set.

        >>> gpu = attach()
        >>> gpu.thread = "gpc:2"
        >>> gpu.census() == gpu.topology.gpcs[2].tpcs
        True
        >>> gpu.thread = None
        """
        c = _CTpcSet()
        return TpcSet._of_c(c) if _thread_get(self._pointer, byref(c)) else None

    @thread.setter
    def thread(self, tpcs: Optional[TpcsLike]) -> None:
        self._apply(_thread_set, tpcs)

    @property
    def sm_count(self) -> int:
        """The number of SMs that .limit and .process allow together."""
        nr = c_uint()
        _lib.gpupart_sm_count_get(self._pointer, byref(nr))
        return nr.value

    @property
    def sm_count_told(self) -> bool:
        """
        If this is True, the driver and the runtime report .sm_count to the program as the
        number of SMs of this GPU. They also report a matching occupancy. The default is False.
        Most libraries read the number one time (PyTorch does) and keep the old number. So set
        this before the first use of CUDA.

        >>> gpu = attach()
        >>> gpu.process = "gpc:2"
        >>> gpu.sm_count_told = True
        >>> print(gpu.sm_count)
        16
        >>> gpu.sm_count_told = False
        >>> gpu.process = None
        """
        return bool(_lib.gpupart_sm_count_get(self._pointer, byref(c_uint())))

    @sm_count_told.setter
    def sm_count_told(self, on: bool) -> None:
        _done(_lib.gpupart_sm_count_tell(_thread.context, self._pointer, on))

    def function_set(self, function: Any, tpcs: Optional[TpcsLike]) -> None:
        """
        Sets the set of all launches of a kernel. None removes the set. @function is a
        CUfunction or CUkernel, an int, a ctypes pointer or an object with .ptr or .handle.
        """
        at = None
        if tpcs is not None:
            if not isinstance(tpcs, TpcSet):
                tpcs = self.topology.set(tpcs)
            at = tpcs._at
        err = _function_set(_thread.context, self._pointer, _function_handle(function), at)
        if err:
            raise _fail(err)

    def function_get(self, function: Any) -> Optional[TpcSet]:
        """The set of @function; None: no set."""
        c = _CTpcSet()
        has = _function_get(self._pointer, _function_handle(function), byref(c))
        return TpcSet._of_c(c) if has else None

    def rule(self, pattern: Optional[str], tpcs: Optional[TpcsLike]) -> None:
        """
        Adds a rule, which gives kernels a set by name. With tpcs=None, removes the rule. With
        pattern=None, removes all rules. @pattern is a shell pattern for the driver's name or for
        the qualified name without arguments. The first rule that matches applies. For its kernels,
        a rule replaces the sets of streams, of threads and of the process. gpupart_rule_set(3)
        describes rules, and kernels that need all their blocks at the same time.

        >>> gpu = attach()
        >>> gpu.rule("*census", "gpc:3")
        >>> gpu.census() == gpu.topology.gpcs[3].tpcs
        True
        >>> gpu.rule(None, None)
        """
        at = None
        if tpcs is not None:
            if not isinstance(tpcs, TpcSet):
                tpcs = self.topology.set(tpcs)
            at = tpcs._at
        _done(_lib.gpupart_rule_set(_thread.context, self._pointer, _bytes(pattern), at))

    def next_set(self, tpcs: Optional[TpcsLike]) -> None:
        """Sets the set of the calling thread's next launch of a kernel or graph on this GPU."""
        self._apply(_next_set, tpcs)

    def graph_prepare(self, graph: Any, sets: Iterable[TpcsLike], stream: Any = None) -> None:
        """
        Builds @graph for each of the @sets, and uploads the builds in @stream. There are at
        most four @sets. Later launches under one of these sets build nothing. @graph is a
        CUgraphExec, an int, a ctypes pointer, a captured torch.cuda.CUDAGraph (PyTorch 2.9) or a
        cupy.cuda.Graph.
        """
        if isinstance(sets, (str, TpcSet)):
            raise TypeError(f"graph_prepare() needs a list of sets, not one set: {sets!r}")
        given = [tpcs if isinstance(tpcs, TpcSet) else self.topology.set(tpcs) for tpcs in sets]
        of_c = (_CTpcSet * len(given))(*(tpcs._c for tpcs in given))
        _done(_lib.gpupart_graph_prepare(_thread.context, self._pointer, _graph_handle(graph),
                                         _stream_handle(stream), of_c, len(given)))

    def stream(self, stream: Any = None) -> Stream:
        """
        An object for the set of @stream: .set reads and writes this set. Keep the object,
        because reuse is faster.
        """
        return Stream(self, stream)

    def stream_set(self, stream: Any, tpcs: Optional[TpcsLike]) -> None:
        """
        Sets the set of @stream. None removes the set. The destruction of the stream also
        removes the set.
        """
        Stream(self, stream)._give(tpcs)

    def stream_get(self, stream: Any) -> Optional[TpcSet]:
        """The set of @stream; None: no set."""
        return Stream(self, stream).set

    @property
    def check(self) -> Check:
        """How the mask bits of this GPU were proven."""
        c = _CCheck()
        _lib.gpupart_gpu_check(self._pointer, byref(c))
        return Check(_str(c.layout), c.from_cache, c.nr_proven, c.nr_launches, _str(c.streams),
                     _str(c.graphs), _str(c.key))

    def census(self, stream: Any = None) -> TpcSet:
        """Makes one launch on @stream and returns the TPCs on which its blocks ran."""
        c = _CTpcSet()
        handle = _stream_handle(stream)
        _done(_lib.gpupart_census(_thread.context, self._pointer, handle, byref(c)))
        return TpcSet._of_c(c)

    def verify(self, quick: bool = False,
               on_row: Optional[Callable[[VerifyRow], None]] = None) -> list[VerifyRow]:
        """
        Proves with launches that every TPC, GPC, uGPU and scope confines launches. During the
        call, no other thread should launch. Returns the rows with their results. When a row is
        complete, calls @on_row. @quick skips rows that take more than a second.
        """
        rows: list[VerifyRow] = []
        failed: list[BaseException] = []

        def row(c: Any, _user: Any) -> None:
            try:
                c = c.contents
                rows.append(VerifyRow(_str(c.name), _str(c.what), Result(c.result), _str(c.detail)))
                if on_row and not failed:
                    on_row(rows[-1])
            except BaseException as error:  # it cannot pass through C and is raised below
                failed.append(error)

        ret = _lib.gpupart_verify(_thread.context, self._pointer, _VERIFY_QUICK if quick else 0,
                                  _ROW(row), None)
        if failed:
            raise failed[0]
        _done(ret)
        return rows

    def __reduce__(self) -> Any:
        raise _of_this_process("Gpu", "call attach() in the other process, with .topology.info.pci")

    def __copy__(self) -> Gpu:
        return self

    def __deepcopy__(self, memo: Any) -> Gpu:
        return self

    def __repr__(self) -> str:
        return f"<Gpu {self.topology.info.name} {self.topology.info.pci}>"


class Stream:
    """Reads and writes the set of a stream on one GPU. Keeps the stream's object alive."""

    __slots__ = ("gpu", "stream", "handle")

    def __init__(self, gpu: Gpu, stream: Any = None) -> None:
        """See Gpu.stream()."""
        self.gpu = gpu
        self.stream = stream
        #: The CUstream.
        self.handle = _stream_handle(stream)

    @property
    def set(self) -> Optional[TpcSet]:
        """The stream's set; None: no set. Assigning None removes the set."""
        c = _CTpcSet()
        has = _stream_get(self.gpu._pointer, self.handle, byref(c))
        return TpcSet._of_c(c) if has else None

    @set.setter
    def set(self, tpcs: Optional[TpcsLike]) -> None:
        self._give(tpcs)

    def _give(self, tpcs: Optional[TpcsLike]) -> None:
        if tpcs is None:
            at = None
        else:
            if not isinstance(tpcs, TpcSet):
                tpcs = self.gpu.topology.set(tpcs)
            at = tpcs._at
        err = _stream_set(_thread.context, self.gpu._pointer, self.handle, at)
        if err:
            raise _fail(err)

    def __repr__(self) -> str:
        return f"<Stream {self.handle:#x} of {self.gpu!r}>"


def attach(gpu: Optional[str] = None, *, memory: Optional[MemoryLike] = None, strict: bool = False,
           profilers: bool = False, no_device_launch: bool = False) -> Gpu:
    """Calls Gpu.attach()."""
    return Gpu.attach(gpu, memory=memory, strict=strict, profilers=profilers,
                      no_device_launch=no_device_launch)


def available(gpu: Optional[str] = None) -> None:
    """If attach(gpu) is not possible, raises Error with the reason."""
    _done(_lib.gpupart_available(_thread.context, _bytes(gpu)))


def detach() -> None:
    """
    Detaches from the driver permanently, so that another tool can attach. Launches of this
    process are then no longer confined. If there is a limit from outside, fails with errno.EPERM.
    """
    _done(_lib.gpupart_detach(_thread.context))


def counters() -> Counters:
    """Counts of this process's launches since it attached, on all its GPUs.

    >>> gpu = attach()
    >>> before = counters()
    >>> with partition(tpcs="0-3"):
    ...     print(gpu.census())
    0-3
    >>> counters().confined > before.confined
    True
    """
    c = _CCounters()
    _lib.gpupart_counters_get(byref(c))
    return _counters(c)


def progress_add(units: int = 1) -> None:
    """Reports to `gpupart qos` that @units of work were done.

    >>> progress_add(32)
    """
    if not 0 <= units < 1 << 64:
        raise ValueError(f"units={units}: must be 0 or more")
    _lib.gpupart_progress_add(units)


def latency_report(seconds: float) -> None:
    """Reports the duration of one request, in seconds, to `gpupart qos`.

    >>> latency_report(0.0125)
    """
    if not 0 <= seconds < 1e9:
        raise ValueError(f"seconds={seconds}: must be 0 or more, and less than 1e9")
    _lib.gpupart_latency_report(int(seconds * 1e9))


@dataclasses.dataclass(frozen=True)
class Demand:
    """
    The demand of a tenant. The default is at least one TPC, and the tenant's share of the
    GPU.
    """

    min: int = 1                            #: minimum number of TPCs
    max: Optional[int] = None               #: maximum number of TPCs; None: no maximum
    gpcs: bool = False                      #: whole GPCs, not shared with other tenants
    cluster: int = 0                        #: blocks of the tenant's largest cluster
    same: Iterable[str] = ()                #: name or names of tenants in the same uGPU
    apart: Iterable[str] = ()               #: name or names of tenants in another uGPU
    weight: int = 1                         #: weight of its share, up to 1000
    spread: bool = False                    #: True: many GPCs, for speed; False: packed


@dataclasses.dataclass(frozen=True)
class Plan:
    """Disjoint sets for tenants, the result of plan()."""

    sets: Mapping[str, TpcSet]              #: by the tenant's name
    ugpus: Mapping[str, Optional[int]]      #: uGPU of a tenant that has same or apart
    topology_hash: str                      #: Topology.hash of its topology
    optimal: bool                           #: proven to be the best plan; always true
    nr_steps: int                           #: number of steps of the search

    def check(self, topology: Topology) -> None:
        """If the plan was made for a topology with a different hash, raises Error."""
        _done(_lib.gpupart_plan_check(_thread.context, topology._pointer,
                                      int(self.topology_hash, 16)))


def _check_demand(name: str, demand: Demand) -> None:
    """Refuses values that C would misread. In C, 0 means no maximum, and any object is true."""
    for field, least in (("min", 0), ("max", 1), ("cluster", 0), ("weight", 0)):
        value = getattr(demand, field)
        if value is None and field == "max":
            continue
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"tenant {name}: {field}={value!r}: must be a number")
        if not least <= operator.index(value) < 1 << 32:
            rule = "must be 1 or more, or None for no maximum" if least else "must be 0 or more"
            raise Error(errno.EINVAL, f"tenant {name}: {field}={value}: {rule}")
    for field in ("gpcs", "spread"):
        value = getattr(demand, field)
        if not isinstance(value, bool):
            raise TypeError(f"tenant {name}: {field}={value!r}: must be True or False")


def _names(names: Union[str, Iterable[str]]) -> Optional[bytes]:
    return _bytes(names if isinstance(names, str) else "+".join(names)) or None


def plan(topology: Topology, demands: Mapping[str, Demand],
         within: Optional[TpcsLike] = None) -> Plan:
    """
    Computes disjoint sets for up to 16 tenants from the TPCs @within (None: all TPCs). The
    result is the best plan by the rules of gpupart_manage.h. The order of @demands does not
    matter. If a demand cannot be met, the message names the tenant and a possible value.

    >>> made = plan(Topology.open("sample:h200-b"), {
    ...     "llm": Demand(min=16, max=33, gpcs=True, cluster=8, apart=["batch"], weight=2),
    ...     "batch": Demand(min=8, max=24)})
    >>> len(made.sets["llm"]), len(made.sets["batch"]), made.ugpus, made.optimal
    (33, 24, {'llm': 0, 'batch': 1}, True)
    >>> plan(Topology.open("sample:h200-b"), {"a": Demand(40), "b": Demand(30, gpcs=True)})
    Traceback (most recent call last):
    gpupart.Error: tenant a: min=40 cannot be met beside b on 66 TPCs: min=34 would do
    >>> plan(Topology.open("sample:h200-b"), {"a": Demand(max=0)})
    Traceback (most recent call last):
    gpupart.Error: tenant a: max=0: must be 1 or more, or None for no maximum
    >>> plan(Topology.open("sample:h200-b"), {"a": Demand(gpcs="no")})
    Traceback (most recent call last):
    TypeError: tenant a: gpcs='no': must be True or False
    >>> made.check(Topology.open("sample:h200-e"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    gpupart.Error: the plan was made for topology b750cf4a1a267bb7, but ...
    """
    rows = (_CDemand * max(len(demands), 1))()
    for row, (name, demand) in zip(rows, demands.items()):
        _check_demand(name, demand)
        row.min_tpcs, row.max_tpcs = demand.min, demand.max or 0
        row.cluster, row.weight = demand.cluster, demand.weight
        row.name, row.gpcs, row.spread = _bytes(name), demand.gpcs, demand.spread
        row.same, row.apart = _names(demand.same), _names(demand.apart)
    at = None if within is None else topology.set(within)
    c = _CPlan()
    _done(_lib.gpupart_plan_make(_thread.context, topology._pointer, at._at if at else None, rows,
                                 len(demands), byref(c)))
    made = [(_str(t.name), t) for t in c.tenants[:c.nr_tenants]]
    return Plan({name: TpcSet._of_c(t.set) for name, t in made},
                {name: t.ugpu if t.ugpu >= 0 else None for name, t in made},
                f"{c.topology_hash:016x}", c.optimal, c.nr_steps)


def processes() -> list[Process]:
    """The confined processes of this user (root: of all users), sorted by pid."""
    rows = _all_of(
        lambda *rows: _lib.gpupart_process_list(_thread.context, *rows), _CProcess)
    return [Process(c.pid, _str(c.name), _str(c.job), _str(c.pci), _str(c.source), c.simulated,
                    c.nr_gpus, TpcSet(_str(c.limit)) if c.limit else None, _str(c.problem),
                    _counters(c.counters)) for c in rows]


def jobs() -> list[Job]:
    """The jobs of this user."""
    rows = _all_of(lambda *rows: _lib.gpupart_job_list(_thread.context, *rows), _CJob)
    return [Job(_str(c.id), _str(c.parent), _str(c.name), c.pid, c.elsewhere, _str(c.pci),
                _str(c.source), c.simulated, TpcSet(_str(c.limit))) for c in rows]


def tenants() -> list[Tenant]:
    """The tenants of this user (root: of all users), with one row for each GPU."""
    rows = _all_of(lambda *rows: _lib.gpupart_tenant_list(_thread.context, *rows),
                   _CTenant)
    return [Tenant(_str(c.name), c.uid, _str(c.pci), c.simulated, c.quota or None, c.used,
                   c.nr_processes) for c in rows]


def tenant_processes() -> list[TenantProcess]:
    """The processes of these tenants. A process has a row for each GPU that it uses. If it uses
    no GPU, it has one row.

    >>> gpu = attach(memory="8G")
    >>> [p.pid for p in tenant_processes() if p.pid == os.getpid()] == [os.getpid()]
    True
    """
    rows = _all_of(
        lambda *rows: _lib.gpupart_tenant_process_list(_thread.context, *rows),
        _CTenantProcess)
    return [TenantProcess(_str(c.tenant), c.uid, _str(c.pci), c.pid, c.inner_pid,
                          _str(c.program), c.used, c.uncounted) for c in rows]


def publish(name: Optional[str] = None) -> None:
    """Creates a state page, so that processes() lists this process. A later call keeps the name."""
    _done(_lib.gpupart_process_publish(_thread.context, _bytes(name)))


# ----------------------------------------------------------------------- partition

_PROCESS = object()

# Handles of the default streams. Each of these streams depends on the current context. The stream
# of the last handle also depends on the thread.
_DEFAULT_STREAMS = (0, 1, 2)
_PER_THREAD = 2


@functools.lru_cache(maxsize=None)
def _driver() -> ctypes.CDLL:
    """The copy of libcuda that the library has opened."""
    return ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)


def _current_context() -> Optional[int]:
    context = c_void_p()
    return None if _driver().cuCtxGetCurrent(byref(context)) else context.value


@contextlib.contextmanager
def _in_context(context: Optional[int]) -> Iterator[bool]:
    """Makes @context current for a `with`. If the context was destroyed, yields False."""
    if context == _current_context():
        yield True
        return
    there = not _driver().cuCtxPushCurrent_v2(c_void_p(context))
    try:
        yield there
    finally:
        if there:
            _driver().cuCtxPopCurrent_v2(byref(c_void_p()))


class partition(contextlib.ContextDecorator):  # noqa: N801 (reads as a statement)
    """
    Confines launches inside a `with` or inside a decorated function. Restores the previous
    set afterwards, also after an exception. The `with` yields the set as a TpcSet.

    @tpcs, @gpcs, @ugpus, @vgpcs: numbers, or a list as text; @set: a TpcSet or text. The set is
    the union of these arguments; at least one is required.

    @stream: confines launches on @stream, from any thread. Without @stream: confines every launch
    of this process, from any thread, on any stream without a set. These streams include all
    streams of PyTorch. stream=None is the legacy default stream.

    @gpu: as for attach(), or a Gpu. If the object of @stream has a GPU (PyTorch and CuPy), this
    GPU is the default. Otherwise the default is CUDA's device 0, even if PyTorch's current device
    is a different device.

    An inner partition replaces the outer partition, and the outer partition does not bound it.
    Only Gpu.limit bounds all sets. If several threads change the set of the process at the same
    time, they overwrite each other's sets. The same is true for the set of one stream.

    If a stream has a different set at the end of the `with`, it keeps this set. Either the
    program changed the set on purpose, or the stream was destroyed and a new stream has its
    handle. One case is not detected: a new stream has the handle, and the set of the new stream
    is equal. Then the new stream gets the previous set of the destroyed stream.

    A default stream belongs to the context that is current at the start of the `with`. The set of
    the default stream is restored even if a different context is current at the end. With the
    per-thread default stream (stream=2), the same thread must enter and leave the `with`. Several
    threads may use one object.

    A decorated function must do its work during the call. A coroutine function or a generator
    works later, after the set was restored. So such a function raises TypeError. Use `with`
    inside it, with thread=True or a separate stream. Other code that runs before the end of the
    `with` is then confined too. Sets take effect at launches, so work that is already queued does
    not move. A CUDA graph uses the set that is in force at its launch, with few exceptions
    (gpupart.h, "Graphs").

    thread=True, instead of @stream: confines the launches of the calling thread. If several
    threads use one object or one decorated function, each thread has a separate set.

    >>> gpu = attach()
    >>> with partition(gpcs=[1, 2]) as outer, partition(tpcs=range(4)) as inner:
    ...     print(gpu.census(), gpu.process == inner, inner <= outer)
    0-3 True False
    >>> print(gpu.process)
    None
    >>> with partition(gpcs=9): pass
    Traceback (most recent call last):
    gpupart.Error: GPC 9 does not exist: this GPU has GPCs 0-7
    """

    def __init__(self, *, gpcs: Optional[IndicesLike] = None, tpcs: Optional[IndicesLike] = None,
                 ugpus: Optional[IndicesLike] = None, vgpcs: Optional[IndicesLike] = None,
                 set: Optional[TpcsLike] = None, stream: Any = _PROCESS, thread: bool = False,
                 gpu: Optional[Union[str, Gpu]] = None) -> None:
        self._wanted = [("set", set), ("tpcs", tpcs), ("gpc_tpcs", gpcs),
                        ("ugpu_tpcs", ugpus), ("vgpc_tpcs", vgpcs)]
        if all(value is None for _, value in self._wanted):
            raise TypeError("partition() needs at least one of tpcs, gpcs, ugpus, vgpcs, set")
        if thread and stream is not _PROCESS:
            raise TypeError("partition() accepts a stream or a thread, not both")
        self._thread = thread
        self._stream = stream
        self._gpu = gpu
        self._place: Optional[_Place] = None
        self._starting = threading.Lock()
        # The last thread to leave restores the set of the process or stream.
        self._entered: Union[_Entered, _EnteredByThread] = (_EnteredByThread() if thread
                                                            else _Entered())

    def __call__(self, func: Any) -> Any:
        for what in (func, getattr(func, "__call__", None)):
            if (inspect.iscoroutinefunction(what) or inspect.isgeneratorfunction(what) or
                    inspect.isasyncgenfunction(what)):
                raise TypeError(f"partition() cannot decorate {func!r}, which returns before its "
                                "work is done: use `with` inside it")
        return super().__call__(func)

    def _start(self) -> _Place:
        """
        Attaches at the first use. So a module with decorated functions can be imported without
        a GPU.
        """
        gpu = self._gpu
        if not isinstance(gpu, Gpu):
            gpu = attach(gpu if gpu is not None else _stream_gpu(self._stream))
        topology = gpu.topology
        tpcs = TpcSet()
        for name, value in self._wanted:
            if value is not None:
                tpcs |= (topology.set("tpc:" + _list(value)) if name == "tpcs"
                         else getattr(topology, name)(value))
        self._tpcs = tpcs
        if self._thread:
            return _ThreadPlace(gpu)
        if self._stream is _PROCESS:
            return _ProcessPlace(gpu)
        stream = gpu.stream(self._stream)
        if stream.handle == _PER_THREAD:
            self._entered = _EnteredByThread()
        return stream

    def __enter__(self) -> TpcSet:
        place = self._place
        if place is None:
            with self._starting:
                place = self._place = self._place or self._start()
        before = place.set
        place.set = self._tpcs
        self._entered.before.append((before, _context_of(place)))
        return self._tpcs

    def __exit__(self, *_exception: Any) -> None:
        place = self._place
        if place is None or not self._entered.before:
            raise RuntimeError("the end of a partition without a begin; with thread=True or a "
                               "per-thread default stream, both must be in one thread")
        before, context = self._entered.before.pop()
        if not isinstance(place, Stream):
            place.set = before
        elif context is None:
            self._leave(place, before)
        else:
            with _in_context(context) as there:
                if there:
                    self._leave(place, before)

    def _leave(self, stream: Stream, before: Optional[TpcSet]) -> None:
        if stream.set == self._tpcs:
            self._put_back(stream, before)

    @staticmethod
    def _put_back(stream: Stream, before: Optional[TpcSet]) -> None:
        try:
            stream.set = before
        except Error:
            # Meanwhile the stream was destroyed, and so was its set.
            if stream.set is not None:
                raise


def _context_of(place: _Place) -> Optional[int]:
    """The context of a default stream; None for other streams."""
    if isinstance(place, Stream) and place.handle in _DEFAULT_STREAMS:
        return _current_context()
    return None


class _Entered:
    """
    The previous set for each partition that has not ended. For a default stream, also its
    context.
    """

    def __init__(self) -> None:
        self.before: list[tuple[Optional[TpcSet], Optional[int]]] = []


class _EnteredByThread(threading.local):
    """Like _Entered, but separate for each thread."""

    def __init__(self) -> None:
        self.before: list[tuple[Optional[TpcSet], Optional[int]]] = []


class _ProcessPlace:
    """Reads and writes the set of the process."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu

    @property
    def set(self) -> Optional[TpcSet]:
        return self.gpu.process

    @set.setter
    def set(self, tpcs: Optional[TpcSet]) -> None:
        self.gpu.process = tpcs


class _ThreadPlace:
    """Reads and writes the set of the calling thread."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu

    @property
    def set(self) -> Optional[TpcSet]:
        return self.gpu.thread

    @set.setter
    def set(self, tpcs: Optional[TpcSet]) -> None:
        self.gpu.thread = tpcs


_Place = Union[Stream, _ProcessPlace, _ThreadPlace]


# --------------------------------------------------------------------------- split

SizeLike = Union[int, str]
_SHAPES = ("packed", "gpcs", "balanced", "spread")
#: Names of a GPU: CUDA's number, an index, a PCI address, a UUID.
_GPU_FORM = re.compile(r"(cuda:)?[0-9]+|([0-9a-f]+:)?[0-9a-f]+:[0-9a-f]+(\.[0-7])?|"
                       r"(gpu-)?[0-9a-f-]{36}", re.I)


def _share(name: str, size: SizeLike) -> Optional[Union[int, float]]:
    """
    Parses a size. An int is a number of TPCs, a float is a fraction of 1.0, and None is the
    rest.
    """
    if isinstance(size, int) and not isinstance(size, bool) and 1 <= size <= MAX_TPCS:
        return size
    if size == "rest":
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)%", size) if isinstance(size, str) else None
    if not found or not 0 < float(found[1]) <= 100:
        raise Error(errno.EINVAL, f"part {name}: {size!r}: must be a number of TPCs, \"50%\" or "
                                  "\"rest\"")
    return float(found[1]) / 100


def _shares(sizes: Mapping[str, SizeLike], shape: str) -> dict[str, Optional[Union[int, float]]]:
    """Parses all sizes and makes the checks that need no GPU. "rest" becomes the last part."""
    if shape not in _SHAPES:
        raise Error(errno.EINVAL, f"shape={shape!r}: must be one of {', '.join(_SHAPES)}")
    if not sizes:
        raise TypeError("split() needs parts, for example split(prefill=\"50%\", decode=\"rest\")")
    shares = {name: _share(name, size) for name, size in sizes.items()}
    rest = [name for name, share in shares.items() if share is None]
    if len(rest) > 1:
        raise Error(errno.EINVAL, f"parts {rest[0]} and {rest[1]}: only one can be \"rest\"")
    total = sum(share for share in shares.values() if isinstance(share, float))
    if total > 1 + 1e-9:
        raise Error(errno.EINVAL, f"the parts add up to {total:.0%} of the GPU: must be at most "
                                  "100%")
    # If percentages add up to 100 %, the last part is the rest. So whole GPCs are rounded one
    # time.
    if total > 1 - 1e-9 and all(isinstance(share, float) for share in shares.values()):
        rest = [list(shares)[-1]]
    for name in rest:
        del shares[name]
        shares[name] = None
    return shares


def _unions(groups: Iterable[tuple[int, int]]) -> dict[tuple[int, int], tuple[int, ...]]:
    """
    @groups has pairs of a GPC and its number of TPCs. A possible choice has a number of GPCs
    and a total number of TPCs. For each such pair of numbers, returns the GPCs with the lowest
    numbers.
    """
    made: dict[tuple[int, int], tuple[int, ...]] = {(0, 0): ()}
    for gpc, nr in groups:
        for (count, total), gpcs in list(made.items()):
            at = (count + 1, total + nr)
            made[at] = min(made.get(at, (MAX_TPCS,)), (*gpcs, gpc))
    return made


def _whole_gpcs(gpcs: Mapping[int, TpcSet], ugpus: Iterable[Iterable[int]], wanted: float,
                most: int) -> tuple[int, ...]:
    """
    The best choice of whole GPCs, with the same number of GPCs from each of @ugpus and at
    most @most TPCs. If there is no such choice, returns (). If @wanted is an int, it is the
    minimum number of TPCs. Otherwise the number of TPCs is as near to @wanted as possible.
    """
    made: dict[tuple[int, int], tuple[int, ...]] = {}
    for n, ugpu in enumerate(ugpus):
        more = _unions((gpc, len(gpcs[gpc])) for gpc in ugpu if gpcs[gpc])
        if n:
            joined: dict[tuple[int, int], tuple[int, ...]] = {}
            for (count, total), chosen in made.items():
                for (other, extra), added in more.items():
                    at = (count, total + extra)
                    if other == count:
                        joined[at] = min(joined.get(at, (MAX_TPCS,)), chosen + added)
            more = joined
        made = more
    fits = [(abs(total - wanted), count, chosen) for (count, total), chosen in made.items()
            if count and total <= most and (isinstance(wanted, float) or total >= wanted)]
    return min(fits)[2] if fits else ()


def _shape_sets(topology: Topology, within: TpcSet,
                shares: Mapping[str, Optional[Union[int, float]]], shape: str) -> dict[str, TpcSet]:
    """
    Disjoint sets from @within. Equal arguments give equal sets. If a number of TPCs cannot be
    met, it is refused. With whole GPCs, a percentage gets the nearest possible number. If parts
    with numbers of TPCs leave fewer TPCs than this, the percentage is refused.
    """
    gpcs = {gpc.gpc: gpc.tpcs & within for gpc in topology.gpcs if gpc.tpcs & within}
    ugpu_of = {gpc.gpc: gpc.ugpu if shape == "balanced" else None for gpc in topology.gpcs}
    ugpus = [[gpc for gpc in gpcs if ugpu_of[gpc] == ugpu]
             for ugpu in sorted({ugpu_of[gpc] for gpc in gpcs}, key=str)]
    if shape == "spread":
        order = [tpc for _, tpc in sorted((rank, tpc) for gpc in gpcs.values()
                                          for rank, tpc in enumerate(gpc))]
    else:
        order = [tpc for gpc in sorted(gpcs, key=lambda gpc: (str(topology.gpcs[gpc].ugpu), gpc))
                 for tpc in gpcs[gpc]]
    sets: dict[str, TpcSet] = {}
    before, because = 0.0, ""
    for name, share in shares.items():
        free = [tpc for tpc in order if not any(tpc in tpcs for tpcs in sets.values())]
        if share is None:
            tpcs = TpcSet(free)
        elif shape in ("gpcs", "balanced"):
            left = {gpc: tpcs & TpcSet(free) for gpc, tpcs in gpcs.items()}
            wanted = share if isinstance(share, int) else share * len(within)
            later = list(shares)[len(sets) + 1:]
            chosen = _whole_gpcs(left, ugpus, wanted, len(free) - bool(later))
            if not chosen and later and _whole_gpcs(left, ugpus, wanted, len(free)):
                because = f", because part {later[0]} needs some of them"
            tpcs = TpcSet(*(left[gpc] for gpc in chosen))
            nearest = _whole_gpcs(gpcs, ugpus, wanted, len(within))
            if (len(free) < wanted and any(isinstance(size, int) for size in shares.values()) and
                    wanted - len(tpcs) > abs(sum(len(gpcs[gpc]) for gpc in nearest) - wanted)):
                tpcs = TpcSet()
        elif isinstance(share, int):
            tpcs = TpcSet(free[:share] if share <= len(free) else ())
        else:
            # Round the end of each part, so that 50% and 50% are the whole GPU.
            first, before = round(before * len(within)), before + share
            nr = max(round(before * len(within)) - first, 1)
            tpcs = TpcSet(free[:nr] if nr <= len(free) else ())
        if not tpcs:
            asked = "the rest" if share is None else share if isinstance(share, int) else \
                f"{share:.0%}"
            raise Error(errno.ENOSPC, f"part {name}: {asked} of {len(within)} TPCs, shape "
                                      f"{shape}: not possible with the {len(free)} TPCs that are "
                                      f"left{because}")
        sets[name] = tpcs
    return sets


def _steps(now: dict[str, int], new: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """
    The sets to give to parts, one after the other, until @now is @new. All are masks. Two parts
    never have the same TPC, so + is the union of their masks. A part gets the TPCs of its new set
    that no other part has. If this changes no part, one part gives up half of its TPCs first.
    """
    while now != new:
        for name, mask in new.items():
            tpcs = mask & ~(sum(now.values()) - now[name])
            if tpcs not in (0, now[name]):
                break
        else:
            wanted = sum(mask for name, mask in new.items() if not now[name] & mask)
            nr, name = max((bin(mask).count("1"), name) for name, mask in now.items()
                           if mask & wanted)
            if nr == 1:
                raise Error(errno.EBUSY, f"part {name} has one TPC and cannot exchange it with a "
                                         "part that also has one TPC: change to other sizes first")
            order = sorted(TpcSet._of_mask(now[name]), key=lambda tpc: wanted >> tpc & 1)
            tpcs = TpcSet(order[:(nr + 1) // 2])._mask
        now[name] = tpcs
        yield name, tpcs


class _RawStream:
    """
    A stream of the driver on @device, for programs without PyTorch. If the current context is not
    of this device, the stream is in the device's primary context. If there is no current context,
    this context becomes current. CUDA's runtime does the same.
    """

    def __init__(self, device: int) -> None:
        ctypes.CDLL("libcuda.so.1")
        cu, handle, context, current = _driver(), c_void_p(), c_void_p(), c_int(-1)
        result, outer = cu.cuInit(0), _current_context()
        if outer:
            cu.cuCtxGetDevice(byref(current))
        if current.value != device:
            result = (result or cu.cuDevicePrimaryCtxRetain(byref(context), device) or
                      cu.cuCtxSetCurrent(context))
        result = result or cu.cuStreamCreate(byref(handle), 1)
        if outer:
            cu.cuCtxSetCurrent(c_void_p(outer))
        if result:
            raise Error(errno.EIO, f"the driver cannot create a stream: error {result}")
        #: The CUstream.
        self.cuda_stream = handle.value or 0
        self.close = weakref.finalize(self, cu.cuStreamDestroy_v2, c_void_p(self.cuda_stream))
        self.close.atexit = False

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.cuda_stream

    def synchronize(self) -> None:
        """Waits for all work on the stream."""
        result = _driver().cuStreamSynchronize(c_void_p(self.cuda_stream))
        if result:
            raise Error(errno.EIO, f"cuStreamSynchronize: error {result}")


def _cuda_device(gpu: Optional[str]) -> int:
    """CUDA's number of @gpu. If the driver works and CUDA does not list @gpu, raises EINVAL."""
    device = c_int()
    if gpu is None:
        return 0
    ctypes.CDLL("libcuda.so.1")
    cu = _driver()
    if cu.cuInit(0):
        raise Error(errno.EIO, "the driver cannot be initialised")
    if gpu.startswith("cuda:"):
        result = cu.cuDeviceGet(byref(device), c_int(min(int(gpu[5:]), 99999)))
    else:
        pci = gpu if ":" in gpu else Topology.open("rm", gpu).info.pci
        result = cu.cuDeviceGetByPCIBusId(byref(device), _bytes(pci))
    if result:
        raise Error(errno.EINVAL, f"gpu={gpu!r}: CUDA does not list this GPU: error {result}")
    return device.value


def _current_gpu() -> Optional[str]:
    """The current GPU of PyTorch, or of the thread's CUDA context; None if there is neither."""
    torch, device = sys.modules.get("torch"), c_int()
    if torch is not None and torch.cuda.is_initialized():
        return f"cuda:{torch.cuda.current_device()}"
    try:
        return None if _driver().cuCtxGetDevice(byref(device)) else f"cuda:{device.value}"
    except OSError:
        return None


def _new_stream(device: int, taken: AbstractSet[int]) -> Any:
    """
    If the program has imported PyTorch with CUDA, returns a PyTorch stream. PyTorch reuses a
    pool of 32 streams, so this function skips the streams of other parts (@taken).
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return _RawStream(device)
    for _ in range(len(taken) * 64 + 1):
        stream = torch.cuda.Stream(device=device)
        if _stream_handle(stream) not in taken:
            return stream
    raise Error(errno.ENOSPC, "all streams of PyTorch's pool are in use: close another split")


#: Parts in use. Until a part is closed or deleted, no other split gets its stream.
_live_parts: weakref.WeakSet[Part] = weakref.WeakSet()
_live_lock = threading.Lock()


class Part:
    """One part of split(): a stream, and the set of launches on it."""

    def __init__(self, name: str, stream: Any, gpu: Optional[Gpu]) -> None:
        """Do not call this: use split()."""
        #: The name of the argument of split().
        self.name = name
        #: A PyTorch stream or an object with .cuda_stream; None if there is no CUDA driver.
        self.stream = stream
        self._gpu = gpu
        self._place = gpu.stream(stream) if gpu else None
        #: If the last use of .records(), .outstanding or .busy_ns returned None, the reason.
        #: Otherwise None.
        self.records_why: Optional[str] = None
        self._set: Optional[TpcSet] = None

    @property
    def set(self) -> Optional[TpcSet]:
        """
        The TPCs that launches on the stream may use now. If the limit has changed, these TPCs can
        differ from the result of split() or change(): call change() before graph_prepare() then. If
        gpupart is not available, None.
        """
        tpcs, limit = self._set, self._gpu._limit_mask() if self._gpu else -1
        if tpcs is None or not tpcs._mask & ~limit:
            return tpcs
        return TpcSet._of_mask(tpcs._mask & limit or limit)

    def _give(self, tpcs: Optional[TpcSet]) -> None:
        if self._place is not None:
            self._place.set = tpcs
        self._set = tpcs

    def _within(self, **where: bool) -> contextlib.AbstractContextManager[Optional[TpcSet]]:
        tpcs = self.set
        if self._gpu is None or tpcs is None:
            return contextlib.nullcontext()
        return partition(set=tpcs, gpu=self._gpu, **where)

    def thread(self) -> contextlib.AbstractContextManager[Optional[TpcSet]]:
        """
        For a `with`. Launches of the calling thread on streams without a set use the part's
        set. A later change of the part's set has no effect on the `with`.
        """
        return self._within(thread=True)

    def process(self) -> contextlib.AbstractContextManager[Optional[TpcSet]]:
        """Like thread(), but for launches of all threads."""
        return self._within()

    def records(self) -> Optional[Records]:
        """
        Records of all launches on the part's stream. See Records; .functions is empty here.
        If launches have no records, returns None, and .records_why is the reason.
        """
        self.records_why = None if self._gpu else "gpupart is not available"
        if self._gpu is None:
            return None
        c = _CRecords()
        err = _lib.gpupart_records_stream(_thread.context, self._gpu._pointer,
                                          _stream_handle(self.stream), byref(c), ctypes.sizeof(c))
        if err:
            self.records_why = str(_fail(err))
            return None
        return _records(c)

    @property
    def outstanding(self) -> Optional[int]:
        """
        The number of outstanding launches on the part's stream. If the number is unknown, the
        result is None, and .records_why is the reason. For example, no kernel has ended on this
        stream since the launch of a graph without records.
        """
        read = self.records()
        if read is None:
            return None
        if not read.all_known:
            self.records_why = f"the ends of {read.unknown} launches are unknown"
            return None
        return read.outstanding

    @property
    def busy_ns(self) -> Optional[int]:
        """
        The busy time of the part's stream in ns, without launches that have no record. If records
        are off, the result is None, and .records_why is the reason.
        """
        read = self.records()
        return None if read is None else read.busy_ns

    def __repr__(self) -> str:
        return f"<Part {self.name}: {self.set or 'no set'}>"


class Split(Mapping[str, Part]):
    """
    Parts of one GPU by name, as items and as attributes. See split(). To end a split, call
    close() or use the split in a `with`.
    """

    def __init__(self, gpu: Optional[str], within: Optional[TpcsLike], shape: str,
                 sizes: Mapping[str, SizeLike]) -> None:
        """Do not call this: use split()."""
        for name in sizes:
            if name == "why" or name.startswith("_") or hasattr(Split, name):
                raise Error(errno.EINVAL, f"{name}: a part cannot have this name")
        shares = _shares(sizes, shape)
        #: None, or the reason why the parts have ordinary streams.
        self.why: Optional[str] = None
        self._gpu: Optional[Gpu] = None
        self._known: dict[Any, dict[str, TpcSet]] = {}
        self._shape, self._sizes = shape, dict(sizes)
        self._parts: dict[str, Part] = {}
        self._lock = threading.RLock()
        if isinstance(gpu, str) and not _GPU_FORM.fullmatch(gpu):
            raise Error(errno.EINVAL, f"gpu={gpu!r}: must be \"cuda:N\", an index in PCI order, a "
                                      "PCI address or a UUID")
        wanted_gpu = _current_gpu() if gpu is None else gpu
        try:
            self._gpu = attach(wanted_gpu)
            self._name: Optional[str] = self._gpu.topology.info.pci
        except Error as error:
            if gpu is not None and error.errno == errno.ENODEV and not _driver().cuInit(0):
                raise Error(errno.EINVAL, f"gpu={gpu!r}: {error}") from None
            self.why, self._name = str(error), wanted_gpu
        if self._gpu is not None:
            topology = self._gpu.topology
            self._within = topology.all if within is None else topology.set(within)
            self._limit = self._gpu._limit_mask()
            if within is not None and self._within._mask & ~self._limit:
                raise Error(errno.EINVAL, f"within={self._within}: the limit of this process is "
                                          f"{self._gpu.limit}")
            wanted = self._sets(shape, sizes)
            try:
                self._make(shares)
                self._apply(wanted)
            except Error as error:
                self.close()
                if error.errno == errno.ENOSPC:
                    raise
                self.why, self._gpu = str(error), None
        if self._gpu is None:
            self._make_ordinary(shares)

    def _make(self, names: Iterable[str]) -> None:
        device = _cuda_device(self._name)
        for name in names:
            with _live_lock:
                taken = {_stream_handle(part.stream) for part in _live_parts}
                part = self._parts[name] = Part(name, _new_stream(device, taken), self._gpu)
                _live_parts.add(part)

    def _make_ordinary(self, names: Iterable[str]) -> None:
        try:
            self._make(names)
        except (Error, OSError) as error:
            if error.errno == errno.EINVAL:
                raise
            self._parts = {name: Part(name, None, None) for name in names}
            self.why = f"{self.why}; and no streams: {error}"

    def _sets(self, shape: str, sizes: Mapping[str, SizeLike]) -> dict[str, TpcSet]:
        assert self._gpu is not None
        self._limit = self._gpu._limit_mask()
        key = (self._limit, shape, *sizes.items())
        known = self._known.get(key)
        if known is None:
            within = TpcSet._of_mask(self._within._mask & self._limit)
            known = self._known[key] = _shape_sets(self._gpu.topology, within,
                                                   _shares(sizes, shape), shape)
        return known

    def _apply(self, wanted: Mapping[str, TpcSet]) -> None:
        """Changes the sets so that parts never overlap at a launch. See _steps()."""
        now = {name: part._set._mask & self._limit if part._set else 0
               for name, part in self._parts.items()}
        new = {name: tpcs._mask for name, tpcs in wanted.items()}
        for name, tpcs in list(_steps(now, new)):
            self._parts[name]._give(wanted[name] if tpcs == new[name] else TpcSet._of_mask(tpcs))
        for name, part in self._parts.items():
            if part._set is None or part._set._mask != new[name]:
                part._give(wanted[name])

    def change(self, shape: Optional[str] = None, **sizes: SizeLike) -> None:
        """
        Changes the sizes of the parts, or the shape, for later launches. Earlier launches do
        not move. If the limit has changed, also without arguments: the parts then divide the TPCs
        of the present limit. Later launches of two parts never get the same TPC. During the change,
        a part may have few TPCs, but at least one. If the sizes were used before, a change takes a
        few us.
        """
        with self._lock:
            shape, sizes = shape or self._shape, sizes or self._sizes
            if not self._parts:
                raise RuntimeError("the split is closed: create another one")
            if set(sizes) != set(self._parts):
                raise TypeError(f"change() needs a size for each of {', '.join(self._parts)}, or "
                                "no sizes")
            if self._gpu is None:
                _shares(sizes, shape)
            else:
                self._apply(self._sets(shape, sizes))
            self._shape, self._sizes = shape, dict(sizes)

    def close(self) -> None:
        """
        Removes the sets. If a stream is not a PyTorch stream, it is destroyed when it is
        unused.
        """
        with self._lock:
            for part in self._parts.values():
                if part._set is not None:
                    part._give(None)
                with _live_lock:
                    _live_parts.discard(part)
            self._parts = {}

    def __getitem__(self, name: str) -> Part:
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __getattr__(self, name: str) -> Part:
        parts: dict[str, Part] = self.__dict__.get("_parts", {})
        try:
            return parts[name]
        except KeyError:
            raise AttributeError(f"part {name} does not exist") from None

    def __enter__(self) -> Split:
        return self

    def __exit__(self, *_exception: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        why = f": {self.why}" if self.why else ""
        return f"<Split {', '.join(map(repr, self._parts.values()))}{why}>"


def split(shape: str = "balanced", *, gpu: Optional[str] = None,
          within: Optional[TpcsLike] = None, **parts: SizeLike) -> Split:
    """
    Creates disjoint parts of a GPU. Each part has a name and a separate stream. If the
    program has imported torch, the stream is a PyTorch stream. The size of a part is a number of
    TPCs or a percentage ("50%"). One part can be the "rest".

    @shape: "packed", few GPCs; "gpcs", whole GPCs; "balanced", whole GPCs, the same number of
    each uGPU, which is faster than one uGPU for kernels that read much DRAM; "spread", some TPCs
    of every GPC. With whole GPCs, a number of TPCs is the minimum for the part, and a percentage
    gets the nearest possible number. If the TPCs that are left are too few for a part, this is an
    error.

    @gpu: as for attach(). None is PyTorch's current GPU, for example after torch.cuda.set_device(),
    or the GPU of the thread's context, or the first GPU. A GPU that does not exist is an error.
    @within: the TPCs to split, in the limit; None is the limit, or all TPCs.

    If gpupart is not available, the parts have ordinary streams on that GPU, and .why has the
    reason.

    >>> parts = split(prefill="50%", decode="rest")
    >>> len(parts.prefill.set), len(parts.decode.set), parts.prefill.set & parts.decode.set
    (33, 33, TpcSet())
    >>> gpu = attach()
    >>> gpu.census(parts.prefill.stream) == parts.prefill.set == gpu.topology.gpc_tpcs("0-3")
    True

    Between two steps, when the backlog has changed:

    >>> parts.change(prefill="25%", decode="rest")
    >>> len(parts["prefill"].set), len(parts["decode"].set)
    (17, 49)

    The outstanding launches and the busy time of a part, from completion records:

    >>> used = parts.prefill.records()
    >>> used.issued, parts.prefill.outstanding, parts.prefill.busy_ns > 0, parts.decode.busy_ns
    (1, 0, True, 0)

    Launches on other streams, from a thread that works for one part:

    >>> with parts.decode.thread() as tpcs:
    ...     gpu.census() == tpcs == parts.decode.set
    True
    >>> parts.close()
    >>> with split("spread", small=8, large="rest") as parts:
    ...     print(parts.small)
    <Part small: 0-7>
    >>> split(a="60%", b="50%")
    Traceback (most recent call last):
    gpupart.Error: the parts add up to 110% of the GPU: must be at most 100%
    """
    return Split(gpu, within, shape, parts)


def _main() -> None:
    """Replaces this process by the gpupart command of this installation."""
    for place in (os.path.join(_WHEEL, "bin"), os.path.join(_HERE, "..", "build", "bin"),
                  os.path.join(_HERE, "..", "..", "..", "bin")):
        command = os.path.realpath(os.path.join(place, "gpupart"))
        if os.access(command, os.X_OK):
            os.execv(command, ["gpupart", *sys.argv[1:]])
    sys.exit(f"gpupart: the command of the installation in {_HERE} is missing: reinstall gpupart")


if __name__ == "__main__":
    _main()
