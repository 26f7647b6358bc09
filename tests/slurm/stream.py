# SPDX-License-Identifier: MIT
# A stream of jobs of mixed shapes, and its evaluation: stream.py submit .. and report .. It uses
# Slurm's commands and the lines of the watchers.
import os
import random
import subprocess
import sys
import time

# Numbers of TPCs, and their frequency.
SHAPES = [(2, 12), (4, 18), (6, 12), (8, 20), (12, 12), (16, 12), (24, 7), (33, 4), (48, 2),
          (66, 1)]
USERS = ["games", "news"]


def spread(text):
    tpcs = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        tpcs.update(range(int(first), int(last or first) + 1))
    return tpcs


def shape(chance):
    tpcs = chance.choices([s[0] for s in SHAPES], [s[1] for s in SHAPES])[0]
    words, mib = "tpcs=%d" % tpcs, 0
    if chance.random() < 0.5:
        mib = chance.choice([2, 4, 8, 16, 30]) * 1024
        words += ",mem=%dM" % mib
    kind = chance.random()
    if kind < 0.15 and tpcs >= 8:
        words += ",cluster=8,wait=60"
    elif kind < 0.19 and tpcs in (8, 16):
        words += ",gpcs,wait=60"
    elif kind < 0.23 and tpcs <= 16:
        words += ",ugpu,wait=60"
    return words, tpcs, mib


# submit SEED NR LEAST MOST FOLDER JOB PTX: arrays of five, from two users; one line for each job
# in FOLDER/jobs.
def submit(seed, nr, least, most, folder, program, ptx):
    chance = random.Random(int(seed))
    script = os.path.join(folder, "script")
    with open(script, "w") as out:
        out.write('#!/bin/sh\necho "from $(date +%s%3N)"\necho "set $GPUPART_SET"\n')
        out.write('seen=$(%s %s 64 $1)\nstatus=$?\n' % (program, ptx))
        out.write('echo "seen $seen"\necho "status $status"\necho "to $(date +%s%3N)"\n')
    with open(os.path.join(folder, "jobs"), "a") as jobs:
        for _ in range(int(nr) // 5):
            words, tpcs, mib = shape(chance)
            seconds = "%.2f" % chance.uniform(float(least), float(most))
            user = chance.choice(USERS)
            become = ["setpriv", "--reuid=" + user, "--regid=" + user, "--clear-groups", "--"]
            sbatch = ["sbatch", "--parsable", "--array=0-4", "--gpupart=" + words, "-t", "10",
                      "-o", folder + "/out.%A_%a", "-D", folder, script, seconds]
            got = subprocess.run(become + sbatch, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, universal_newlines=True)
            if got.returncode:
                sys.exit("sbatch --gpupart=%s: %s" % (words, got.stderr))
            at = time.time() * 1000
            for task in range(5):
                jobs.write("%s_%d %d %d %d %s\n" % (got.stdout.strip(), task, tpcs, mib, at, words))


def events(files):
    held, bad, looks = {}, [], 0
    for node, path in enumerate(files):
        for line in open(path):
            word = line.split(None, 3)
            if word[0] == "held":
                nr, tpcs = word[3].split()
                held[word[2]] = [node, int(nr), int(word[1]), None, spread(tpcs)]
            elif word[0] == "free":
                held[word[2]][3] = int(word[1])
            elif word[0] == "bad":
                bad.append(line.strip())
            elif word[0] == "end":
                looks += int(word[2])
    return held, bad, looks


# The ideal packer for the same jobs: each begins on the first node with room as soon as there is
# some, the oldest first, and its TPCs are reused only after that many ms. (from, to, TPCs) of
# each.
def greedy(jobs, between_ms, nodes, tpcs, mib):
    free = [[tpcs, mib] for _ in range(nodes)]
    waiting, running, runs = sorted(jobs), [], []
    now = waiting[0][0]
    while waiting:
        for job in list(waiting):
            if job[0] > now:
                break
            for node in range(nodes):
                if job[1] <= free[node][0] and job[2] <= free[node][1]:
                    free[node][0] -= job[1]
                    free[node][1] -= job[2]
                    runs.append((now + between_ms, now + between_ms + job[3], job[1]))
                    running.append((now + between_ms + job[3], node, job[1], job[2]))
                    waiting.remove(job)
                    break
        coming = [r[0] for r in running] + [j[0] for j in waiting if j[0] > now]
        if not coming:
            break
        now = min(coming)
        for r in [r for r in running if r[0] <= now]:
            free[r[1]][0] += r[2]
            free[r[1]][1] += r[3]
            running.remove(r)
    return runs


# The time when this fraction of all TPC-seconds was done.
def done_at(runs, share):
    wanted, done, use, last = share * sum(r[2] * (r[1] - r[0]) for r in runs), 0, 0, 0
    for at, tpcs in sorted([(r[0], r[2]) for r in runs] + [(r[1], -r[2]) for r in runs]):
        if use and done + use * (at - last) >= wanted:
            return last + (wanted - done) / use
        done, use, last = done + use * (at - last), use + tpcs, at
    return last


def names(folder):
    table = {}
    for line in open(os.path.join(folder, "numbers")):
        number, name = line.split()
        table[name] = number
    return table


# The time in ms that Slurm itself needs between two dependent jobs, on this machine at this time:
# jobs without --gpupart that take the one gres "turn" in turn.
def between(folder):
    path, turns = os.path.join(folder, "turns"), []
    if os.path.exists(path):
        turns = sorted(tuple(map(int, line.split())) for line in open(path)
                       if len(line.split()) == 2 and line[0].isdigit())
    gaps = [b[0] - a[1] for a, b in zip(turns, turns[1:])]
    return sum(gaps) / max(len(gaps), 1), len(gaps)


# report FOLDER WATCHED..: sentences for readers after "#", "key=value" for the test.
def report(folder, *watched):
    held, bad, looks = events(watched)
    number_of = names(folder)
    jobs, wrong, refused, done = [], 0, 0, 0
    for line in open(os.path.join(folder, "jobs")):
        name, tpcs, mib, at, words = line.split()
        path, lines = folder + "/out." + name, {}
        if os.path.exists(path):
            lines = dict(text.rstrip("\n").partition(" ")[::2] for text in open(path))
        refused += not lines.get("set")
        seen = lines.get("seen", "").split()
        if seen:
            done += 1
            wrong += spread(seen[0]) != spread(lines["set"])
        hold = held.get(number_of.get(name))
        if hold and hold[3] and "to" in lines:
            jobs.append({"at": int(at), "tpcs": int(tpcs), "mib": int(mib), "nr": hold[1],
                         "ran": (int(lines["from"]), int(lines["to"])),
                         "held": (hold[2], hold[3])})
    for line in bad[:20]:
        print("# " + line)
    left = sum(1 for h in held.values() if not h[3])
    print("ran=%d refused=%d held=%d wrong=%d bad=%d looks=%d left=%d" % (
        done, refused, len(held), wrong, len(bad), looks, left))
    turn, turns = between(folder)
    print("turns=%d turn_ms=%.0f" % (turns, turn))
    if jobs:
        compare("ran", jobs, turn, len(watched))
        compare("held", jobs, 0, len(watched))


# TPCs in use from the first submission on, by the times of jobs and of their TPCs, and the
# packer's: for the whole time, and up to nine tenths of the work. The end depends by chance on
# the longest of the last jobs, not on the packer.
def compare(kind, jobs, between_ms, nodes):
    first, all_tpcs = min(j["at"] for j in jobs), 66.0 * nodes
    mine = [(j[kind][0], j[kind][1], j["nr"]) for j in jobs]
    packer = greedy([(j["at"], j["tpcs"], j["mib"], j[kind][1] - j[kind][0]) for j in jobs],
                    between_ms, nodes, 66, 143771)
    work = sum(r[2] * (r[1] - r[0]) for r in mine)
    for name, share in ((kind, 1.0), (kind + "_most", 0.9)):
        took = done_at(mine, share) - first
        best = done_at(packer, share) - first
        print("%s_seconds=%.1f %s_packer_seconds=%.1f %s_use=%.1f %s_packer_use=%.1f "
              "%s_ratio=%.3f" % (
                  name, took / 1000, name, best / 1000, name,
                  100 * share * work / (all_tpcs * took), name,
                  100 * share * work / (all_tpcs * best), name, best / took))


# picture TITLE OUT WATCHED..: draws TPCs over time, one strip per node, one colour per job. Needs
# scripts/ in PYTHONPATH.
def picture(title, path, *watched):
    import palette
    held = [h for h in events(watched)[0].values() if h[3]]
    first, last = min(h[2] for h in held), max(h[3] for h in held)
    width, strip, left = 1000.0, 2, 60
    per_ms = width / (last - first)
    height = 66 * strip + 24
    out = palette.begin(width + left + 10, height * len(watched) + 60, title)
    out.append('<text x="%d" y="18">%s</text>' % (left, title))
    for node in range(len(watched)):
        top = 30 + node * height
        out.append('<text x="6" y="%d">n%d</text>' % (top + 70, node + 1))
        out.append('<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>'
                   % (left, top, width, 66 * strip, palette.BAND))
    for nr, hold in enumerate(sorted(held, key=lambda h: h[2])):
        top, runs, tpcs = 30 + hold[0] * height, [], sorted(hold[4])
        for tpc in tpcs:
            if runs and runs[-1][1] == tpc - 1:
                runs[-1][1] = tpc
            else:
                runs.append([tpc, tpc])
        for a, b in runs:
            out.append('<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>' % (
                left + (hold[2] - first) * per_ms, top + a * strip,
                max((hold[3] - hold[2]) * per_ms - 0.3, 0.3),
                (b - a + 1) * strip, palette.TENANTS[nr % len(palette.TENANTS)]))
    bottom = 30 + len(watched) * height
    for second in range(0, int((last - first) / 1000) + 1, 10):
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%d s</text>'
                   % (left + second * 1000 * per_ms, bottom, second))
    out.append("</svg>\n")
    with open(path, "w") as file:
        file.write("\n".join(out))


{"submit": submit, "report": report, "picture": picture}[sys.argv[1]](*sys.argv[2:])
