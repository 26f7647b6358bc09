#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Creates a wheel of gpupart.py with the built programs and libraries inside: `make wheel`.
"""
scripts/wheel.py FOLDER MODULE PLACE=FILE..: FILE becomes gpupart.libs/PLACE. Libraries of other
packages that these files need, except glibc, are added with their licences. Prints the path of the
wheel. The same files give the same bytes.
"""
import base64
import glob
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile

FOLDER = "gpupart.libs"
# Libraries of glibc. The manylinux tag of a wheel covers these libraries.
GLIBC = re.compile(r"(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt)\.so(\.\d+)?$")
EPOCH = (2020, 1, 1, 0, 0, 0)


def output(*command):
    """The output of a program; it must succeed."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def is_program(path):
    """Whether a file is an ELF file."""
    with open(path, "rb") as f:
        return f.read(4) == b"\x7fELF"


def foreign(path, ours):
    """Yields name and file of libraries of other packages that @path needs."""
    for name, file in re.findall(r"^\s*(\S+) => (/\S+)", output("ldd", path), re.M):
        if not GLIBC.match(name) and name not in ours:
            yield name, file


def licence(file):
    """The package that contains @file, and its licence file."""
    for path in (file, os.path.realpath(file), "/usr" + file):
        found = subprocess.run(["dpkg", "-S", path], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, check=False).stdout
        package = found.split(":")[0]
        text = f"/usr/share/doc/{package}/copyright"
        if package and os.path.exists(text):
            return package, text
    sys.exit(f"scripts/wheel.py: {file}: dpkg -S finds no package with a licence for it")


def floor_of(paths):
    """The oldest glibc with which all of @paths run."""
    versions = [tuple(map(int, version.split("."))) for path in paths
                for version in re.findall(r"GLIBC_(\d+(?:\.\d+)+)", output("objdump", "-T", path))]
    return max(versions)[:2]


def collect(places, stripped):
    """All files of the wheel except its own list: name in the wheel to path."""
    files, licences = {}, {}
    for place, path in places:
        files[f"{FOLDER}/{place}"] = path
    ours = {os.path.basename(name) for name in files}
    for path in [path for path in files.values() if is_program(path)]:
        for name, file in foreign(path, ours):
            package, text = licence(file)
            files[f"{FOLDER}/lib/{name}"] = os.path.realpath(file)
            licences[package] = text
            with open(text, encoding="utf-8") as f:
                for common in re.findall(r"/usr/share/common-licenses/([\w.-]*\w)", f.read()):
                    licences[common] = f"/usr/share/common-licenses/{common}"
    for name, path in files.items():
        if is_program(path):
            files[name] = os.path.join(stripped, name.replace("/", "_"))
            output("strip", "--strip-unneeded", "-o", files[name], path)
            os.chmod(files[name], 0o755)
    return files, licences


def main(folder, module, *places):
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    with open(module, encoding="utf-8") as f:
        version = re.search(r'^__version__ = "(.*)"', f.read(), re.M)[1]
    with open(os.path.join(top, "python", "pyproject.toml"), encoding="utf-8") as f:
        project = dict(re.findall(r'^(description|requires-python) = "(.*)"', f.read(), re.M))
    os.makedirs(folder, exist_ok=True)
    for old in glob.glob(os.path.join(folder, "gpupart-*.whl")):
        os.unlink(old)
    with tempfile.TemporaryDirectory() as stripped:
        files, licences = collect([place.split("=", 1) for place in places], stripped)
        major, minor = floor_of(path for path in files.values() if is_program(path))
        tag = f"py3-none-manylinux_{major}_{minor}_{os.uname().machine}"
        info = f"gpupart-{version}.dist-info"
        files["gpupart.py"] = module
        files[f"{info}/licenses/LICENSE"] = os.path.join(top, "LICENSE")
        for package, text in licences.items():
            files[f"{info}/licenses/{package}"] = text
        content = {}
        for name, path in files.items():
            with open(path, "rb") as f:
                content[name] = f.read(), os.access(path, os.X_OK)
        for name, text in (
                ("METADATA", f"Metadata-Version: 2.1\nName: gpupart\nVersion: {version}\n"
                             f"Summary: {project['description']}\nLicense: MIT\n"
                             f"Requires-Python: {project['requires-python']}\n"),
                ("WHEEL", f"Wheel-Version: 1.0\nGenerator: gpupart\nRoot-Is-Purelib: false\n"
                          f"Tag: {tag}\n"),
                ("entry_points.txt", "[console_scripts]\ngpupart = gpupart:_main\n")):
            content[f"{info}/{name}"] = text.encode(), False
    rows = []
    path = os.path.join(folder, f"gpupart-{version}-{tag}.whl")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(name, data, executable=False):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            wheel.writestr(entry, data)
        for name, (data, executable) in sorted(content.items()):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(data)}\n")
            add(name, data, executable)
        add(f"{info}/RECORD", "".join(rows) + f"{info}/RECORD,,\n")
    print(path)


if len(sys.argv) < 4:
    sys.exit(__doc__)
main(*sys.argv[1:])
