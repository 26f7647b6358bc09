# SPDX-License-Identifier: MIT
"""reduce.py [-s] TRACES >REDUCED: of what tests/gpu/traces.c wrote, what the comparison needs.

Times are medians over all runs. "sms" are those that the first ten runs used, "vary" says that
they did not all use the same. "wave" is the order of SMs of a kernel's first wave (the
blocks that began before any block of the case ended), "order" the first 264 of them with how
many runs had them, all kernels of the case together. With -s, for traces between which nothing
else ran (traces -n), "seq" says which order the first 24 runs had, one after the other.
"""
import statistics
import sys
from collections import Counter


def read(path):
    cases = []
    for line in open(path):
        word = line.split()
        if not word or word[0] == '#':
            continue
        if word[0] == 'case':
            cases.append({'head': word[1:], 'kernels': [], 'runs': []})
        elif word[0] == 'kernel':
            cases[-1]['kernels'].append(line.strip())
        elif word[0] == 'run':
            cases[-1]['runs'].append([])
        elif word[0] == 'rep':
            cases[-1]['runs'][-1].append({'rep': [int(w) for w in word[1:]], 'blocks': [],
                                          'order': []})
        elif word[0] == 'b':
            block = [int(w) for w in word[1:]]
            cases[-1]['runs'][-1][-1]['blocks'].append(block)
            cases[-1]['runs'][-1][-1]['order'].append(block[1])
        elif word[0] == 'o':
            cases[-1]['runs'][-1][-1]['order'] = [int(w) for w in word[1:]]
    return cases


def ranges(numbers):
    text, numbers = [], sorted(numbers)
    while numbers:
        first = last = numbers.pop(0)
        while numbers and numbers[0] == last + 1:
            last = numbers.pop(0)
        text.append(str(first) if first == last else '%d-%d' % (first, last))
    return ','.join(text)


def waves(run):
    """How many of each kernel's blocks began before the first end."""
    end = min(block[3] for kernel in run for block in kernel['blocks'])
    sizes = []
    for kernel in run:
        size = 0
        for block in kernel['blocks']:
            if block[2] >= end:
                break
            size += 1
        sizes.append(size)
    return sizes


def write(case, sequence):
    runs, nr = case['runs'], len(case['kernels'])
    print('case', *case['head'], len(runs))
    for i in range(nr):
        print(case['kernels'][i])
        print('time', i, int(statistics.median(run[i]['rep'][1] for run in runs)),
              int(statistics.median(run[i]['rep'][2] for run in runs)))
    if not runs[0][0]['blocks']:
        return
    sizes = waves(runs[0])
    for i in range(nr):
        sets = [set(run[i]['order']) for run in runs[:10]]
        print('sms', i, ranges(set.union(*sets)))
        if any(each != sets[0] for each in sets):
            print('vary', i)
        print('wave', i, *runs[0][i]['order'][:sizes[i]])
    each = [tuple(tuple(run[i]['order'][:min(sizes[i], 264)]) for i in range(nr)) for run in runs]
    orders = Counter(each).most_common()
    if sequence:
        print('seq', *[[order for order, _ in orders].index(one) for one in each[:24]])
    for order, count in orders:
        print('order', count)
        for i in range(nr):
            print('o', i, *order[i])


for line in open(sys.argv[-1]):
    if line[0] != '#':
        break
    print(line.strip())
for one in read(sys.argv[-1]):
    write(one, sys.argv[1] == '-s')
