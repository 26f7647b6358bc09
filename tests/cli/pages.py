# SPDX-License-Identifier: MIT
"""pages.py links FILE...: prints each link in Markdown pages to a missing file or heading.
pages.py commands FILE...: prints each command of gpupart in a code block of Markdown or of a man
page, one line each: FILE:LINE:COMMAND."""
import os
import re
import shlex
import sys


def lines_of(path):
    """(number, text, language of its code block or None) of each line."""
    fence = None
    manual = path[-1].isdigit()
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if manual:
                line = line.replace("\\e", "\\")
            mark = re.match(r"\.(?:Bd -literal|Ed)()" if manual else r" *```(\w*)", line)
            if mark:
                fence = None if fence is not None else mark.group(1)
                continue
            yield number, line.rstrip("\n"), fence


def anchors_of(path):
    """GitHub's anchors: lower case, no punctuation, - for a blank; -1 for a second one."""
    seen, anchors = {}, set()
    for _, line, fence in lines_of(path):
        heading = re.match(r"#{1,6} +(.*)", line)
        if fence is not None or not heading:
            continue
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading.group(1)).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        anchors.add(f"{slug}-{count}" if count else slug)
    return anchors


def bad_links(path):
    for number, line, fence in lines_of(path):
        if fence is not None:
            continue
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            there = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            if not os.path.exists(there):
                yield f"{path}:{number}: {target}: there is no such file"
            elif anchor and (not there.endswith(".md") or anchor not in anchors_of(there)):
                yield f"{path}:{number}: {target}: there is no such heading"


def commands(path):
    """The words before '--' of each gpupart command, with continued lines joined."""
    joined, begun = "", 0
    for number, line, fence in lines_of(path):
        if fence not in ("", "console", "sh", "bash"):
            continue
        begun = begun if joined else number
        if line.endswith("\\"):
            joined += line[:-1] + " "
            continue
        line, joined = joined + line, ""
        line = re.sub(r"^ *\$ ", "", line)
        try:
            split = shlex.shlex(line, posix=True, punctuation_chars="|&;()<>")
            split.whitespace_split = True
            words = list(split)
        except ValueError:
            continue
        # The program and not an argument, for example in "sudo gpupart" and after a pipe.
        start = True
        for i, word in enumerate(words):
            if start and (word == "gpupart" or word.endswith("/gpupart")):
                rest = []
                for other in words[i + 1:]:
                    if other == "--" or re.match(r"[|&;()<>]", other):
                        break
                    rest.append(other)
                # "gpupart run: ..." is a message
                if rest and not rest[0].endswith(":"):
                    yield begun, " ".join(rest)
            start = bool(re.match(r"[|&;(]", word)) or (start and (
                word == "sudo" or re.match(r"\w+=", word)))


def main():
    for path in sys.argv[2:]:
        if sys.argv[1] == "links":
            for words in bad_links(path):
                print(words)
        else:
            for number, words in commands(path):
                print(f"{path}:{number}:{words}")


main()
