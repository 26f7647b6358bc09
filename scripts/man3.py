#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Generates mdoc manual pages of the public functions from the headers.

man3 EXAMPLES FOLDER HEADER...

Each group of functions has one page, with links for its other names. The text is the header's
comment; the example is EXAMPLES/PAGE.c. A function without a group, or a group without functions,
is an error.
"""
import datetime
import fnmatch
import os
import re
import subprocess
import sys
import textwrap

# Page, subject, functions. Each function belongs to the first page that has a pattern for the
# function's name.
PAGES = [
    ("gpupart_open", "the context, errors and the version",
     "gpupart_open gpupart_close gpupart_error gpupart_version"),
    ("gpupart_tpcset", "sets of TPCs", "gpupart_tpcset_*"),
    ("gpupart_topology", "GPCs, TPCs and SMs of a GPU",
     "gpupart_topology_* gpupart_gpu_list"),
    ("gpupart_set_parse", "parse the text form of a set for one GPU", "gpupart_set_*"),
    ("gpupart_plan", "disjoint sets for several tenants", "gpupart_plan_*"),
    ("gpupart_attach", "prepare to confine launches",
     "gpupart_attach gpupart_detach gpupart_available gpupart_gpu_topology gpupart_gpu_check gpupart_process_publish"
     " gpupart_driver_get"),
    ("gpupart_process_list", "processes that confine launches, and their limits",
     "gpupart_process_list gpupart_process_signal gpupart_process_limit_set"),
    ("gpupart_process_set", "sets of launches",
     "gpupart_limit_* gpupart_process_* gpupart_stream_* gpupart_function_* gpupart_thread_*"
     " gpupart_next_* gpupart_rule_* gpupart_graph_*"),
    ("gpupart_sm_count", "report the SMs of its set to the program", "gpupart_sm_count_*"),
    ("gpupart_counters", "counts of launches", "gpupart_counters_*"),
    ("gpupart_progress", "report progress",
     "gpupart_progress_* gpupart_latency_*"),
    ("gpupart_records", "completion records of launches",
     "gpupart_records_*"),
    ("gpupart_remote", "change a process's limit repeatedly", "gpupart_remote_*"),
    ("gpupart_job", "jobs: programs and their descendants",
     "gpupart_job_* gpupart_grant_*"),
    ("gpupart_memory", "tenants and their memory quotas", "gpupart_memory_* gpupart_tenant_*"),
    ("gpupart_verify", "prove that sets confine", "gpupart_verify gpupart_census"),
]


def page_of(function):
    for page, _, patterns in PAGES:
        if any(fnmatch.fnmatchcase(function, p) for p in patterns.split()):
            return page
    sys.exit(f"man3: {function} belongs to no page: add it to PAGES in scripts/man3.py")


class Entry:
    """A comment with its functions and definitions."""

    def __init__(self, doc):
        self.doc, self.code, self.functions = doc, [], []


def comment(text):
    """The lines of a comment, without comment characters."""
    text = re.sub(r"^/\*\s?|\s*\*/$", "", text.strip())
    return [re.sub(r"^\s*\* ?", "", line).rstrip() for line in text.split("\n")]


def prototype(code):
    code = re.sub(r"\{.*", "", code.removeprefix("static inline "), flags=re.S)
    code = " ".join(code.rstrip(";\n").split())
    found = re.match(r"([\w \t*]+?[ *])(gpupart_\w+)\((.*)\)$", code)
    if not found:
        return None
    depth, args = 0, [""]
    for char in found[3]:
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            args.append("")
        else:
            args[-1] += char
    return found[1].strip(), found[2], [a.strip() for a in args]


def entries(body):
    """The declarations between the pragmas, each with its preceding comment."""
    now, out = Entry([]), []
    token = re.compile(r"/\*.*?\*/|#define (?:[^\n]*\\\n)*[^\n]*|(?:struct|enum) \w+ \{.*?^\};"
                       r"|static inline .*?^\}|[a-z][^;{]*;|\n\n", re.S | re.M)
    for found in token.finditer(body):
        text = found[0]
        if text.startswith("/* ---"):
            continue
        if text.startswith("/*"):
            out.append(now)
            now = Entry(comment(text))
        elif text == "\n\n":
            if now.functions:
                out.append(now)
                now = Entry([])
        elif prototype(text):
            now.functions.append(prototype(text))
        elif not re.fullmatch(r"struct \w+;", text):
            now.code.append(text)
    out.append(now)
    return [e for e in out if e.doc or e.code or e.functions]


def escape(text):
    text = text.replace("\\", "\\e")
    return "\\&" + text if text[:1] in (".", "'") else text


def words(line):
    """Converts text to mdoc lines, one sentence each, with arguments and functions marked."""
    plain, out = [], []

    def flush():
        # Wrap the text to short lines. No line may begin with the name of a macro.
        out.extend(escape(part) for part in textwrap.wrap(" ".join(plain), 78,
                                                          break_long_words=False,
                                                          break_on_hyphens=False))
        plain.clear()

    for word in line.split():
        found = re.fullmatch(r"(\(?)(?:@(\w+)|(gpupart_\w+)\(\))(.*)", word)
        if not found or found[4].startswith("["):
            plain.append(word.replace("@", ""))
            if re.search(r"[.!?][)\"]*$", word) and word != "..":
                flush()
            continue
        flush()
        tail = found[4].replace("\\", "\\e")
        if re.fullmatch(r"[.,:;)]*", tail):
            tail = "".join(" " + c for c in tail)
        else:
            tail = " Ns " + tail
        macro = f"Fa {found[2]}" if found[2] else f"Fn {found[3]}"
        out.append("." + ("No \\&( Ns " if found[1] else "") + macro + tail)
    flush()
    return out


def text(lines):
    """Splits text into paragraphs; also before a number or "@name:", and around lines of C."""
    out, para = [], []

    def flush():
        if para:
            out.extend(words(" ".join(para)))
            para.clear()

    for line in lines:
        if re.match(r"for \(", line):
            flush()
            out.append(".Dl " + escape(line.strip()))
        elif not line.strip():
            flush()
            out.append(".Pp")
        else:
            if re.match(r"(\d+\. |@\w+: )", line) and (para or out):
                flush()
                out.append(".Pp")
            para.append(line)
    flush()
    while out and out[0] == ".Pp":
        out.pop(0)
    while out and out[-1] == ".Pp":
        out.pop()
    return [line for i, line in enumerate(out) if not (line == ".Pp" and out[i - 1] == ".Pp")]


def literal(source):
    return [".Bd -literal -offset indent",
            *[escape(line).expandtabs() for line in source.rstrip().split("\n")], ".Ed"]


def synopsis(functions):
    out = []
    for returns, name, args in functions:
        out += [f".Ft {returns}", f".Fo {name}", *[f'.Fa "{a}"' for a in args], ".Fc"]
    return out


def description(group):
    out, tagged = [], []
    for entry in group:
        body = text(entry.doc) + (literal("\n".join(entry.code)) if entry.code else [])
        if not entry.functions:
            if out and not entry.doc:
                out.pop()
            out += [*body, ".Pp"]
            continue
        names = " , ".join(f"Fn {name}" for _, name, _ in entry.functions)
        tagged += [f".It Xo\n.{names}\n.Xc".replace(" , Fn", " ,\n.Fn"), *body]
    while out and out[-1] == ".Pp":
        out.pop()
    return out + ([".Bl -tag -width Ds", *tagged, ".El"] if tagged else [])


def example(path):
    """An example program, and its output, which is the comment at its end."""
    with open(path, encoding="utf-8") as file:
        source = file.read()
    source = re.sub(r"^// SPDX.*\n|^/\* SPDX.*\n", "", source)
    program, _, prints = source.partition("\n/* Prints:\n")
    return [*literal(program), ".Pp", "On the simulated GPU made of sample:h200 it prints",
            *literal(re.sub(r"\n?\s*\*/\s*$", "", re.sub(r"(?m)^ \* ?", "", prints)))]


def date():
    """The date of the headers' last commit, or without git that of SOURCE_DATE_EPOCH."""
    when = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not when:
        when = subprocess.run(["git", "log", "-1", "--format=%ct", "include"],
                              capture_output=True, text=True, check=False).stdout.strip()
    if when:
        day = datetime.datetime.fromtimestamp(int(when), datetime.timezone.utc)
    else:
        day = datetime.datetime.fromtimestamp(os.stat("include/gpupart.h").st_mtime)
    return f"{day:%B} {day.day}, {day.year}"


def main():
    examples, folder, *headers = sys.argv[1:]
    sources = []
    for header in headers:
        with open(header, encoding="utf-8") as file:
            sources.append(file.read())
    intro = comment(re.findall(r"^/\*.*?\*/", sources[0], re.S | re.M)[1])
    groups, header_of = {}, {}
    for header, source in zip(headers, sources):
        body = source.split('extern "C" {\n#endif')[1].split("#ifdef __cplusplus")[0]
        body = re.sub(r"(?m)^#pragma .*\n", "", body)
        waiting = []
        for entry in entries(body):
            waiting.append(entry)
            if entry.functions:
                pages = {page_of(name) for _, name, _ in entry.functions}
                if len(pages) != 1:
                    sys.exit("man3: functions of several pages share a comment: "
                             + ", ".join(sorted(pages)))
                page = pages.pop()
                groups.setdefault(page, []).extend(waiting)
                header_of[page] = os.path.basename(header)
                waiting = []
    paras = "\n".join(intro).split("\n\n")
    errors = next(p for p in paras if p.startswith("Errors. "))
    for page, about, _ in PAGES:
        if page not in groups:
            sys.exit(f"man3: page {page} has no function")
        functions = [f for e in groups[page] for f in e.functions]
        names = sorted({name for _, name, _ in functions} | {page},
                       key=lambda n: (n != page, n))
        others = [p for p, _, _ in PAGES if p != page and p in ("gpupart_open", "gpupart_attach")]
        lines = [".\\\" SPDX-License-Identifier: MIT", ".\\\" Made of its header.", f".Dd {date()}",
                 f".Dt {page.upper()} 3", ".Os", ".Sh NAME",
                 *[f".Nm {n}" + (" ," if n != names[-1] else "") for n in names], f".Nd {about}",
                 ".Sh LIBRARY", "libgpupart", ".Pq Fl lgpupart", ".Sh SYNOPSIS",
                 f".In {header_of[page]}",
                 *synopsis(functions), ".Sh DESCRIPTION", *description(groups[page])]
        if page == "gpupart_open":
            for para in paras[1:]:
                if not para.startswith("Errors. "):
                    lines += [".Pp", *text(para.split("\n"))]
        lines += [".Sh RETURN VALUES", *text(errors[len("Errors. "):].split("\n")),
                  ".Sh EXAMPLES", *example(os.path.join(examples, page + ".c")), ".Sh SEE ALSO",
                  ".Xr gpupart 1 ,", *[f".Xr {p} 3 ," for p in sorted(others)], ".Xr gpupart 7"]
        with open(os.path.join(folder, page + ".3"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        for name in names[1:]:
            os.symlink(page + ".3", os.path.join(folder, name + ".3"))


main()
