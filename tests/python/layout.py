# SPDX-License-Identifier: MIT
"""Compares gpupart.py with the headers: offsets of fields, prototypes, constants."""
import ctypes
import os
import re
import subprocess
import tempfile

from tap import done, ok, same

import gpupart

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FOLDERS = [os.path.join(ROOT, "include"), os.path.join(ROOT, "include", "uapi")]
# Declared in C and not bound: sets are integers in Python; other functions are for the injected
# library or the command only.
NOT_BOUND = {"gpupart_" + name for name in (
    "driver_get", "grant_list", "job_begin", "process_signal", "remote_close", "remote_get",
    "remote_open", "remote_set", "set_cluster", "set_pick", "tenant_begin")}
# Functions of lib/private.h that are bound.
PRIVATE = {"gpupart_memory_parse", "gpupart_tpcset_parse_hex"}
STRUCTURES_NOT_BOUND = ["gpupart_driver", "gpupart_grant"]

header = ""
for name in ("include/gpupart.h", "include/gpupart_manage.h",
             "include/gpupart_tpcset.h"):
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        header += f.read()
with open(os.path.join(ROOT, "lib/private.h"), encoding="utf-8") as f:
    private = f.read()


def without_comments(text):
    return re.sub(r"^\s*#.*$", "", re.sub(r"/\*.*?\*/", " ", text, flags=re.S), flags=re.M)


code = without_comments(header)


def scalar(ctype):
    """Whether a type is a signed or unsigned integer, not a bool."""
    return (issubclass(ctype, ctypes._SimpleCData) and
            ctype not in (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_bool))


lines = []
wanted = {}
for name, structure in gpupart._STRUCTURES.items():
    lines.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
    wanted[name] = str(ctypes.sizeof(structure))
    for field, ctype in structure._fields_:
        at = f"((struct {name} *)0)->{field}"
        lines.append(f'printf("{name}.{field} %zu %zu\\n", offsetof(struct {name}, {field}), '
                     f'sizeof({at}));')
        wanted[f"{name}.{field}"] = (f"{getattr(structure, field).offset} "
                                     f"{getattr(structure, field).size}")
        # The compiler chooses the type of an enum.
        if scalar(ctype) and (name, field) != ("gpupart_verify_row", "result"):
            lines.append(f'printf("{name}.{field}.sign %d\\n", (__typeof__({at}))-1 < 0);')
            wanted[f"{name}.{field}.sign"] = str(int(ctype(-1).value < 0))
for constant, value in {
        "GPUPART_MAX_TPCS": gpupart.MAX_TPCS,
        "GPUPART_PLAN_MAX_TENANTS": gpupart._PLAN_MAX_TENANTS,
        "GPUPART_JOB_STRLEN": gpupart._JOB_STRLEN,
        "GPUPART_TENANT_STRLEN": gpupart._TENANT_STRLEN,
        "GPUPART_TPCSET_STRLEN": gpupart._TPCSET_STRLEN,
        "GPUPART_RECORDS_NR_FUNCTIONS": gpupart._RECORDS_NR_FUNCTIONS,
        "GPUPART_MAX_SMS_PER_TPC": gpupart._MAX_SMS_PER_TPC,
        "GPUPART_VERIFY_QUICK": gpupart._VERIFY_QUICK,
        **{"GPUPART_VERIFY_" + r.name: r.value for r in gpupart.Result}}.items():
    lines.append(f'printf("{constant} %d\\n", {constant});')
    wanted[constant] = str(int(value))

with tempfile.TemporaryDirectory() as folder:
    program = os.path.join(folder, "layout")
    with open(program + ".c", "w", encoding="utf-8") as f:
        f.write("#include <stdio.h>\n#include <gpupart_manage.h>\nint main(void)\n{\n" +
                "\n".join(lines) + "\nreturn 0;\n}\n")
    compiler = os.environ.get("CC", "gcc").split()
    built = subprocess.run([*compiler, "-o", program, program + ".c", *("-I" + d for d in FOLDERS)],
                           capture_output=True, text=True)
    if not ok(built.returncode == 0, "the header has every structure, field and constant: " +
              built.stderr[:300].replace("\n", " ")):
        done()
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
found = dict(line.split(" ", 1) for line in printed.splitlines())
for name, values in wanted.items():
    same(found.get(name), values, f"{name} is where the compiler has it")

# The other direction: nothing of the header is missing in Python.
bodies = dict(re.findall(r"\nstruct (gpupart_\w+) \{(.*?)\n\};", code, flags=re.S))
for name in STRUCTURES_NOT_BOUND:
    bodies.pop(name, None)
same(sorted(bodies), sorted(gpupart._STRUCTURES), "the structures of the header")
for name, body in bodies.items():
    body = re.sub(r"enum \{.*?\}", "int", body, flags=re.S)
    fields = [re.search(r"(\w+)(\[\w+( / \d+)?\])?$", line.strip()).group(1)
              for line in body.split(";") if line.strip()]
    same(fields, [field for field, _ in gpupart._STRUCTURES[name]._fields_], f"fields of {name}")


def c_kind(text):
    """The class of a parameter or result; for structures passed by value, their name."""
    if "*" in text:
        return "pointer"
    text = re.sub(r"\b(const|struct)\b", "", text)
    for kind in ("unsigned int", "size_t", "uint64_t", "bool", "int", "void"):
        if re.match(rf"\s*{kind}\b", text):
            return kind
    return text.split()[0]


def python_kind(ctype):
    if ctype is None:
        return "void"
    if ctype in (ctypes.c_void_p, ctypes.c_char_p) or issubclass(
            ctype, (ctypes._Pointer, ctypes._CFuncPtr)):
        return "pointer"
    if ctype is gpupart._CTpcSet:
        return "gpupart_tpcset"
    if ctype is ctypes.c_size_t:
        return ("size_t", "uint64_t")
    return {ctypes.c_int: "int", ctypes.c_uint: "unsigned int", ctypes.c_bool: "bool"}[ctype]


def alike(c, python):
    return c in python if isinstance(python, tuple) else c == python


def functions(text):
    found = {}
    for result, name, rest in re.findall(
            r"\n([a-z][\w \n]*?[ *]+)(gpupart_\w+)\(((?:[^()]|\([^()]*\))*)\);", text):
        args = re.sub(r"\(\*\w+\)\([^()]*\)", "*", rest)
        found[name] = (result, [] if args.strip() == "void" else args.split(","))
    return found


declared = functions(code)
for name, prototype in functions(without_comments(private)).items():
    if name in PRIVATE:
        declared[name] = prototype
ok(len(declared) > 40, f"the header declares {len(declared)} functions")
same(sorted(declared), sorted(set(gpupart._PROTOTYPES) | NOT_BOUND), "all of them are known here")
for name, (restype, argtypes) in gpupart._PROTOTYPES.items():
    result, args = declared.get(name, ("", []))
    ok(alike(c_kind(result), python_kind(restype)) and len(args) == len(argtypes) and
       all(alike(c_kind(c), python_kind(p)) for c, p in zip(args, argtypes)),
       f"{name}(): {', '.join(' '.join(a.split()) for a in args)}")
done()
