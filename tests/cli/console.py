# SPDX-License-Identifier: MIT
"""console.py PAGE FOLDER: runs the commands of PAGE's console blocks in FOLDER, with one shell,
and compares their output with the page. In a page "..." stands for omitted lines and 4711 for any
process; everything else must be equal.
console.py PAGE: each block after a line "<!-- of FILE -->" is in FILE, a path relative to PAGE, in
the same order. TAP."""
import os
import re
import subprocess
import sys


def blocks(path):
    """[line number, command, [expected lines]] of each command."""
    steps, inside = [], False
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            if line.startswith("```"):
                inside = line == "```console"
            elif inside and line.startswith("$ "):
                steps.append([number, line[2:], []])
            elif inside and line.startswith("> "):
                steps[-1][1] += "\n" + line[2:]
            elif inside:
                steps[-1][2].append(line)
    return steps


def run(steps, folder):
    """The output of each, both streams, from one shell that keeps its folder and variables."""
    end = "@@ end of a step"
    script = "".join(f"{command}\nprintf '\\n%s\\n' '{end}'\n" for _, command, _ in steps)
    done = subprocess.run(["sh"], input=script, cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8", timeout=600, check=False)
    return [text.strip("\n").split("\n") for text in done.stdout.split(end)]


def matches(shown, line):
    """Matches 4711, right-aligned or not, with any number and its preceding blanks."""
    pattern = r"\s*\d+".join(re.escape(part.rstrip()) if i == 0 else re.escape(part)
                            for i, part in enumerate(shown.split("4711")))
    return shown == line or ("4711" in shown and re.fullmatch(pattern, line) is not None)


def compare(shown, got):
    """-1 if all lines match, else the number of the first expected line that does not."""
    at = 0
    for i, line in enumerate(shown):
        if line == "...":
            follows = shown[i + 1] if i + 1 < len(shown) else None
            while at < len(got) and (follows is None or not matches(follows, got[at])):
                at += 1
        elif at >= len(got) or not matches(line, got[at]):
            return i
        else:
            at += 1
    return -1 if at >= len(got) else len(shown)


def transcripts(path):
    """(line number, file, [lines]) of each block from a file, without the command."""
    of, inside = None, None
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            named = re.fullmatch(r"<!-- of (\S+) -->", line)
            if named:
                of = named.group(1)
            elif line.startswith("```") and inside is not None:
                yield number, of, inside
                of, inside = None, None
            elif line.startswith("```") and of:
                inside = []
            elif inside is not None:
                inside.append(line)


def follows(shown, text):
    """Whether the text contains the lines: each group contiguous, and the groups in order."""
    at = 0
    for run_of in "\n".join(shown).split("\n...\n"):
        run_of = run_of.removeprefix("...\n").removesuffix("\n...").strip("\n")
        if not run_of or run_of == "...":
            continue
        at = text.find(run_of, at)
        if at < 0:
            return run_of.split("\n")[0]
        at += len(run_of)
    return None


def quoted(path):
    nr = failed = 0
    for number, name, lines in transcripts(path):
        with open(os.path.join(os.path.dirname(path), name), encoding="utf-8") as f:
            text = f.read()
        # A transcript may lack the command.
        shown = ["..." if line.startswith("$ ") and line not in text else line for line in lines]
        missing = follows(shown, text)
        nr += 1
        failed += missing is not None
        print(f"{'ok' if missing is None else 'not ok'} {nr} - {path}:{number}: of {name}"
              + (f": is not there, or not in this order: {missing}" if missing else ""))
    print(f"1..{nr}")
    return failed > 0 or not nr


def main():
    if len(sys.argv) == 2:
        return quoted(sys.argv[1])
    steps = blocks(sys.argv[1])
    printed = run(steps, sys.argv[2])
    failed = 0
    for nr, (number, command, shown) in enumerate(steps, 1):
        got = printed[nr - 1] if nr - 1 < len(printed) else ["(the shell had ended)"]
        got = [] if got == [""] else [line.rstrip() for line in got]
        while shown and not shown[-1]:
            shown.pop()
        bad = compare(shown, got)
        failed += bad >= 0
        words = command.split("\n")[0].replace("#", "")
        page = os.path.basename(sys.argv[1])
        print(f"{'ok' if bad < 0 else 'not ok'} {nr} - {page}:{number}: {words}")
        if bad >= 0:
            print(f"# differs from shown line {bad + 1}: "
                  f"{shown[bad] if bad < len(shown) else '(nothing more)'}")
            for line in got:
                print("#   " + line)
    print(f"1..{len(steps)}")
    return failed > 0 or not steps


sys.exit(main())
