# SPDX-License-Identifier: MIT
"""Which libgpupart.so.0 is loaded. Arguments: the module's folder, the library, a work folder."""
import os
import shutil
import subprocess
import sys

from tap import done, ok, same

folder, library, tmp = sys.argv[1:]
clean = {name: value for name, value in os.environ.items()
         if name not in ("GPUPART_LIBRARY", "LD_LIBRARY_PATH", "PYTHONPATH")}


def load(where, **environment):
    """The path that was loaded, or the last line on stderr."""
    program = ("import gpupart, os; print(os.path.realpath([l.split(None, 5)[-1].strip() for l in "
               "open('/proc/self/maps', errors='replace') if 'libgpupart.so' in l "
               "or 'other.so' in l][0]))")
    ran = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True,
                         env={**clean, "PYTHONPATH": where, **environment}, cwd="/")
    return (ran.stdout or ran.stderr).strip().split("\n")[-1]


def copy(to):
    """Copies both libraries into a folder; returns the path of the first."""
    shutil.copy(os.path.join(os.path.dirname(library), "libgpupart-manage.so.0"), to)
    return shutil.copy(library, to)


real = os.path.realpath(library)
tree = os.path.join(tmp, "a tree")
os.makedirs(os.path.join(tree, "python"))
os.makedirs(os.path.join(tree, "build", "lib"))
shutil.copy(os.path.join(folder, "gpupart.py"), os.path.join(tree, "python"))
built = copy(os.path.join(tree, "build", "lib"))
loader = os.path.join(tmp, "loader")
os.makedirs(loader)
loaded = copy(loader)
where = os.path.join(tree, "python")
same(load(where, GPUPART_LIBRARY=real, LD_LIBRARY_PATH=loader), real, "GPUPART_LIBRARY is first")
same(load(where, LD_LIBRARY_PATH=loader), loaded, "then the loader's")
away = os.path.join(tmp, "away")
os.makedirs(away)
before = copy(away)
same(load(where, LD_PRELOAD=before), before, "a loaded one is used, with its own manage library")
if "libgpupart.so.0" in subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True,
                                       text=True).stdout:
    print("# the loader knows one here")
else:
    same(load(where), built, "then the source tree's")
    os.unlink(built)
    said = load(where)
    ok("ImportError" in said and built.split("/build/")[0] in said, f"none at all: {said[:150]}")
said = load(where, GPUPART_LIBRARY="/nowhere/lib.so", LD_LIBRARY_PATH=loader)
ok("ImportError" in said and "/nowhere/lib.so" in said, f"one that is not there: {said[:150]}")

# Samples are found even if the loader has an incomplete path of the library.
program = ("import gpupart, os; open = gpupart.Topology.open; a = open('sample:h200-b'); "
           "os.chdir('/'); b = open('sample:h200-b'); print(a.info.source); print(b.info.source)")
lib = os.path.dirname(real)
ran = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True,
                     cwd=os.path.dirname(lib),
                     env={**clean, "PYTHONPATH": folder, "LD_LIBRARY_PATH": os.path.basename(lib)})
sample = os.path.join(lib, "..", "share", "gpupart", "captures", "h200-b.capture")
paths = ran.stdout.split("\n")[:2]
ok(all(path.startswith("/") and os.path.realpath(path) == os.path.realpath(sample)
       for path in paths),
   f"samples, of a library on a relative path: {paths} {ran.stderr.strip()[-150:]}")

sys.path.insert(0, folder)
import gpupart  # noqa: E402

other = os.path.join(tmp, "other.so")
os.symlink(other, os.path.join(tmp, "libgpupart-manage.so.0"))


def fake(version, without=()):
    with open(other + ".c", "w", encoding="utf-8") as f:
        f.write(f'const char *gpupart_version(void) {{ return "{version}"; }}\n')
        for name in gpupart._PROTOTYPES:
            if name != "gpupart_version" and name not in without:
                f.write(f"int {name}(void) {{ return 0; }}\n")
    subprocess.run([*os.environ.get("CC", "gcc").split(), "-shared", "-fPIC", "-o", other,
                    other + ".c"], check=True)
    return load(where, GPUPART_LIBRARY=other)


major, minor = gpupart.__version__.split(".")[:2]
same(fake(f"{major}.{minor}.99"), os.path.realpath(other), "another patch version will do")
said = fake(f"{major}.{int(minor) + 1}.0")
ok("ImportError" in said and f"{major}.{int(minor) + 1}.0" in said, f"another one: {said[:150]}")
said = fake(gpupart.__version__, ("gpupart_census",))
ok("ImportError" in said and "gpupart_census" in said, f"a function is missing: {said[:150]}")
same(gpupart._lib.gpupart_version().decode(), gpupart.__version__,
     "gpupart.py and the library have one version")
done()
