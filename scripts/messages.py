#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lists the messages of the programs, libraries and kernel module, one a line: file:line: "text".

A message is a string literal in a call of a function that is declared with the attribute
format(printf), of a macro for such a function, or of a log function of the kernel or of Slurm. Run
it at the top of the source tree. It takes the folders or files to list as arguments, by default all
sources. Literals without a word, such as "%s: %s", are not listed.
"""
import glob
import os
import re
import sys

FOLDERS = ["lib", "cli", "slurm", "kmod", "sim", "kubernetes"]
# These functions format parts of an output.
NOT_MESSAGES = {"alloc_text", "topo_append", "out_append", "add_env", "add_file", "top_put",
                "gp_text_add", "behind"}
LOG = {"pr_err", "pr_warn", "pr_info", "pr_notice", "dev_err", "dev_warn", "dev_info",
       "slurm_error", "slurm_info", "slurm_spank_log"}

TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|\w+|\s+|.', re.S)
DECLARED = re.compile(r'(?:format\(printf, *\d+, *\d+\)\)\)|\b__printf\(\d+, \d+\))'
                      r'\s*(?:[A-Z_]+\s+)?[\w \t]*?[ *](\w+)\(')
MACRO = re.compile(r'^#define\s+(\w+)\([^)\n]*\.\.\.\)\s+(?:\\\n\s*)?(\w+)\(', re.M)
CONVERSION = re.compile(r'%[-+ #0]*[\d*]*(?:\.[\d*]*)?(?:hh|h|ll|l|z|j)?[a-zA-Z]|\\.')


def sources(places):
    for place in places:
        if os.path.isfile(place):
            yield place
        yield from sorted(name for name in glob.glob(place + "/**/*.[ch]", recursive=True))


def calls(text, names):
    """Yields (line, message): adjacent literals of a call of one of @names are one message."""
    line, depth, begin, parts, name = 1, 0, 0, [], None
    for token in TOKEN.findall(text):
        blank = token.isspace() or token.startswith(("/*", "//"))
        if depth and token[0] == '"':
            begin = begin if parts else line
            parts.append(token[1:-1])
        elif parts and not blank and not token.startswith("PRI"):
            yield begin, "".join(parts)
            parts = []
        if depth:
            depth += (token == "(") - (token == ")")
        elif token == "(" and name in names:
            depth = 1
        if not blank:
            name = token
        line += token.count("\n")


def main():
    texts = {path: open(path, encoding="utf-8").read() for path in sources(FOLDERS)}
    names = LOG | {name for text in texts.values() for name in DECLARED.findall(text)}
    names -= NOT_MESSAGES
    names |= {macro for text in texts.values() for macro, to in MACRO.findall(text) if to in names}
    for path in sources(sys.argv[1:] or FOLDERS):
        for line, message in calls(texts[os.path.relpath(path)], names):
            if re.search(r"[A-Za-z]", CONVERSION.sub("", message)):
                print('%s:%u: "%s"' % (path, line, message))


if __name__ == "__main__":
    main()
