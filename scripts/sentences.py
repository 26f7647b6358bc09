#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws sentences for a readability test: sentences.py SEED NUMBER. A fifth comes from each of the
README, the pages, the manual, comments, and messages. Prints `N. PLACE: sentence`."""

import pathlib
import random
import re
import subprocess
import sys

INLINE = ('Nm', 'Cm', 'Ar', 'Fl', 'Pa', 'Ev', 'Xr', 'Sy', 'Em', 'Ql', 'Dq', 'Pq', 'Sx', 'Fn', 'Dv',
          'Va', 'Vt', 'Er', 'Li', 'Ic', 'In')
SHOWN = ('Cm', 'Fl', 'Ql', 'Ev', 'Pa', 'Fn', 'Dv')	# their words have another typeface
END = re.compile(r'(?<=[.!?:])\s+(?=[A-Z"`(*])')


def sentences(text):
    for sentence in END.split(' '.join(text.split())):
        if len(sentence.split()) >= 4 and re.search(r'[a-z]{3}', sentence):
            yield sentence.strip()


def markdown(text):
    text = re.sub(r'```.*?```|<!--.*?-->|!\[[^]]*\]\([^)]*\)', '\n\n', text, flags=re.S)
    text = re.sub(r'\[([^]]*)\]\([^)]*\)', r'\1', text)
    for paragraph in re.split(r'\n\s*\n|\n(?=[*-] |\||#)', text):
        if paragraph.startswith('|'):
            for cell in re.split(r'(?<!\\)\|', paragraph):
                yield cell
        elif not paragraph.startswith('#'):
            yield re.sub(r'^[*-] ', '', paragraph.strip())


def inline(line, name):
    """The text of a line of mdoc macros, such as "Cm run Fl -mem Ar SIZE ,"."""
    words, prefix, macro = [], '', None
    for word in line.split():
        if word in INLINE:
            prefix, macro = '-' if word == 'Fl' else '', word
            words += [name] if line == 'Nm' else []
        elif word in ('Ns', 'No'):
            words.append('\\c')
        elif macro == 'Xr' and word.isdigit():
            words[-1] += f'({word})'
        else:
            quote = '`' if macro in SHOWN and word[0] not in '.,;:)' else ''
            words.append(quote + (prefix if word[0] not in '.,;:)' else '') + word + quote)
    text = re.sub(r' ?\\c ', '', ' '.join(words)).replace('\\&', '')
    return f'({text})' if line.startswith('Pq') else text


def manual(text):
    name = re.search(r'^\.Nm (\S+)$', text, re.M)[1]
    text = re.sub(r'^\.Sh SYNOPSIS\n.*?(?=^\.Sh)|^\.Bd.*?^\.Ed', '', text, flags=re.M | re.S)
    words = []
    for line in text.splitlines():
        if line.startswith('.'):
            macro = line[1:].split(' ', 1)[0]
            if macro in INLINE:
                words.append(inline(line[1:], name))
                continue
            yield re.sub(r' ([.,;:])(?= |$)', r'\1', ' '.join(words))
            words = []
        else:
            words.append(line)
    yield re.sub(r' ([.,;:])(?= |$)', r'\1', ' '.join(words))


def comments(text, name):
    if name.endswith(('.c', '.h')):
        for comment in re.findall(r'/\*(.*?)\*/', text, re.S):
            if 'SPDX' not in comment:
                yield from re.split(r'\n\s*\*?\s*\n', re.sub(r'\n\s*\* ?', '\n', comment))
    else:
        for comment in re.findall(r'(?:^[ \t]*#(?!!).*\n)+', text, re.M):
            if 'SPDX' not in comment or comment.count('\n') > 1:
                yield re.sub(r'^[ \t]*# ?(SPDX.*)?', '', comment, flags=re.M)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split('\n')


def tracked(*patterns):
    return [f for f in run('git', 'ls-files', '--', *patterns) if f and 'tests/data/' not in f]


def main():
    seed, number = int(sys.argv[1]), int(sys.argv[2])
    read = lambda f: pathlib.Path(f).read_text(encoding='utf-8', errors='replace')
    kinds = {
        'README': [('README.md', markdown(read('README.md')))],
        'page': [(f, markdown(read(f)))
                 for f in tracked('Documentation/user/*.md', 'Documentation/internals/*.md')],
        'manual': [(f, manual(read(f))) for f in tracked('Documentation/man/*.[1-8]')],
        'comment': [(f, comments(read(f), f)) for f in tracked('*.c', '*.h', 'scripts/*')
                    if not f.endswith(('.md', '.json'))],
        'message': [('message', [m.split(': ', 1)[1].strip('"')])
                    for m in run('scripts/messages.py') if ': ' in m],
    }
    chance = random.Random(seed)
    drawn = []
    for kind, sources in kinds.items():
        found = sorted({(f, s) for f, texts in sources for t in texts for s in sentences(t)})
        drawn += chance.sample(found, min(number // len(kinds), len(found)))
    for i, (place, sentence) in enumerate(drawn, 1):
        print(f'{i}. {place}: {sentence}')


if __name__ == '__main__':
    main()
