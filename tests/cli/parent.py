# SPDX-License-Identifier: MIT
"""parent.py GPUPART OPTIONS..: gpupart run as the parent of its program: signals, stop and continue
in a terminal, descriptors, exit statuses. TAP. Needs no GPU."""
import fcntl
import os
import pty
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time

RUN = [sys.argv[1], "run"] + sys.argv[2:] + ["--"]
PATIENCE = 60
count = failed = 0


def ok(good, words):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {words}", flush=True)


def same(got, wanted, words):
    ok(got == wanted, words if got == wanted else f"{words}: {got!r}, not {wanted!r}")


def until(what):
    """Waits for a condition, long enough for a loaded machine."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.02)
    return False


def start(program, **more):
    return subprocess.Popen(RUN + program, stderr=subprocess.DEVNULL, **more)


def state(pid):
    """The kernel's state letter, "" for a process that has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin1") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def line(run):
    return run.stdout.readline().decode().strip()


def end_of(run):
    """Its status as a shell shows it, or "" if it does not end."""
    try:
        return run.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        run.kill()
        return ""


# A program that prints its pid, and each signal that it gets.
TELL = ["python3", "-uc", """
import os, signal, sys, time
def told(number, frame):
    print("got", signal.Signals(number).name, flush=True)
    if number == signal.SIGTERM:
        sys.exit(3)
for name in ("SIGTERM", "SIGINT", "SIGUSR1", "SIGHUP", "SIGQUIT", "SIGRTMIN"):
    signal.signal(getattr(signal, name), told)
print(os.getpid(), os.getppid(), os.getpgrp(), os.getsid(0), flush=True)
while True:
    time.sleep(0.05)
"""]

# Signals that are sent only to run, one after the other.
run = start(TELL, stdout=subprocess.PIPE)
pid, ppid, group, session = map(int, line(run).split())
same(ppid, run.pid, "run stays as the program's parent")
same((group, session), (os.getpgrp(), os.getsid(0)), "in its process group and session")
with open(f"/proc/{ppid}/comm", encoding="ascii") as comm:
    same(comm.read(), "gpupart\n", "ps calls it gpupart")
for name in ("SIGUSR1", "SIGINT", "SIGHUP", "SIGQUIT", "SIGRTMIN"):
    os.kill(run.pid, getattr(signal, name))
    same(line(run), f"got {name}", f"{name} is passed on")
os.kill(run.pid, signal.SIGTERM)
same(line(run), "got SIGTERM", "SIGTERM is passed on")
same(end_of(run), 3, "and the program decides how it ends")

# Ends.
same(end_of(start(["sh", "-c", "exit 42"])), 42, "the program's status")
for name in ("SIGTERM", "SIGKILL", "SIGSEGV", "SIGPIPE", "SIGINT"):
    same(end_of(start(["sh", "-c", f"kill -{name[3:]} $$"])), -getattr(signal, name),
         f"{name} ends run as it ended the program")
with tempfile.TemporaryDirectory() as folder:
    def cores():
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
    end_of(start(["sh", "-c", "ulimit -c 0; kill -SEGV $$"], cwd=folder, preexec_fn=cores))
    same(os.listdir(folder), [], "and leaves no core of its own")
run = start(TELL, stdout=subprocess.PIPE)
pid = int(line(run).split()[0])
run.kill()
run.wait()
ok(until(lambda: state(pid) in ("", "Z")), "who kills run by SIGKILL kills the program")
run = start(["sh", "-c", "sleep 60 & echo $!; exec sleep 0"], stdout=subprocess.PIPE)
left = int(line(run))
same(end_of(run), 0, "what the program leaves behind is not waited for")
# Its TPCs would belong to a job during later tests.
os.kill(left, signal.SIGKILL)

# Inherited by the program.
SHOW = ["python3", "-c", "import os, signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []), "
        "[signal.getsignal(s) for s in (signal.SIGCHLD, signal.SIGHUP)], os.umask(0), os.nice(0))"]


def odd():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.umask(0o27)
    os.nice(3)


plain = subprocess.run(SHOW, preexec_fn=odd, capture_output=True, check=False).stdout
run = start(SHOW, stdout=subprocess.PIPE, preexec_fn=odd)
same(run.stdout.read(), plain, "signal mask, ignored signals, umask, nice are the program's")
same(end_of(run), 0, "and SIGCHLD may be ignored")

# Only the program has the pipes and locks.
inner, outer = os.pipe()
run = start(["sh", "-c", f"exec {outer}>&- >&-; read line"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, pass_fds=[outer])
os.close(outer)
ok(select.select([inner], [], [], PATIENCE)[0] and os.read(inner, 1) == b"",
   "a pipe that the program closes has ended")
ok(select.select([run.stdout], [], [], PATIENCE)[0] and run.stdout.read() == b"",
   "its standard output too")
run.stdin.write(b"\n")
run.stdin.close()
same(end_of(run), 0, "and standard input is its own")
with tempfile.NamedTemporaryFile() as lock:
    with open(lock.name, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        run = start(["sh", "-c", f"echo; read line; exec {held.fileno()}<&-; echo; read line"],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[held.fileno()])
        line(run)
    run.stdin.write(b"\n")
    run.stdin.flush()
    line(run)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        ok(True, "a lock that the program gives up is free")
    except OSError as err:
        ok(False, f"a lock that the program gives up is free: {err}")
    run.stdin.close()
    end_of(run)


alarm = subprocess.Popen(["sh", "-c", 'exec "$@"', "sh"] + RUN + ["sleep", "60"],
                         preexec_fn=lambda: signal.alarm(1), stderr=subprocess.DEVNULL)
same(end_of(alarm), -signal.SIGALRM, "an alarm that was set before run began ends the program")


# Job control of a shell, in a separate terminal.
class Terminal:
    def __init__(self, argv):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if not self.pid:
            # No escape sequences in the output of commands.
            os.environ.update(PS1="$ ", TERM="dumb", INPUTRC="/dev/null")
            os.execvp(argv[0], argv)

    def wait_for(self, pattern):
        end = time.monotonic() + PATIENCE
        while not re.search(pattern, self.text) and time.monotonic() < end:
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self.fd, 4096).decode(errors="replace")
                except OSError:
                    break
        found = re.search(pattern, self.text)
        if found:
            self.text = self.text[found.end():]
        return found

    def type(self, text):
        os.write(self.fd, text.encode())


terminal = Terminal(["bash", "--norc", "--noprofile", "-i"])
terminal.wait_for(r"\$ ")
terminal.type("echo ready\n")
terminal.wait_for("[\r\n]ready")
with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
    program.write("""
import os, signal, time
def told(number, frame):
    print("<" + signal.Signals(number).name + ">", flush=True)
for name in ("SIGINT", "SIGCONT", "SIGQUIT"):
    signal.signal(getattr(signal, name), told)
print("<pid", os.getpid(), os.getppid(), str(os.tcgetpgrp(0) == os.getpgrp()) + ">", flush=True)
while True:
    time.sleep(0.05)
""")
    program.flush()
    terminal.type(" ".join(RUN) + f" python3 {program.name}\n")
    found = terminal.wait_for(r"<pid (\d+) (\d+) (\w+)>")
    pid, ppid = int(found[1]), int(found[2])
    same(found[3], "True", "in a terminal: the program is in its foreground")
    terminal.type("\x03")
    ok(terminal.wait_for("<SIGINT>"), "^C reaches it")
    terminal.type("\x1c")
    ok(terminal.wait_for("<SIGQUIT>"), "^\\ reaches it")
    ok("<SIGINT>" not in terminal.text, "once")
    terminal.type("\x1a")
    ok(terminal.wait_for("Stopped"), "^Z: the shell sees the job stop")
    same(state(pid) + state(ppid), "TT", "program and run are stopped")
    terminal.type("fg\n")
    ok(terminal.wait_for("<SIGCONT>"), "fg: it goes on")
    ok(until(lambda: state(ppid) == "S"), "and run does")
    os.kill(pid, signal.SIGSTOP)
    ok(until(lambda: state(pid) == "T"), "the program is stopped by SIGSTOP")
    os.kill(ppid, signal.SIGCONT)
    ok(terminal.wait_for("<SIGCONT>"), "SIGCONT to run alone continues it")
    os.kill(pid, signal.SIGSTOP)
    until(lambda: state(pid) == "T")
    os.kill(pid, signal.SIGCONT)
    ok(terminal.wait_for("<SIGCONT>") and until(lambda: state(ppid) == "S"),
       "and so does SIGCONT to the program alone: run was not stopped")
    os.kill(pid, signal.SIGSTOP)
    until(lambda: state(pid) == "T")
    terminal.type("\x1a")
    ok(terminal.wait_for("Stopped"), "^Z where SIGSTOP stopped the program: the shell comes back")
    terminal.type("fg\n")
    ok(terminal.wait_for("<SIGCONT>") and until(lambda: state(ppid) == "S"), "fg: both go on")
    os.kill(ppid, signal.SIGTSTP)
    ok(until(lambda: state(pid) + state(ppid) == "TT"), "SIGTSTP to run alone stops both")
    terminal.type("bg\n")
    ok(terminal.wait_for("<SIGCONT>"), "bg: it goes on")
    terminal.type("fg\n")
    ok(until(lambda: os.tcgetpgrp(terminal.fd) == os.getpgid(pid)), "fg again")
    os.kill(pid, signal.SIGTERM)
    ok(terminal.wait_for("Terminated"), "the shell says what ended it")
    terminal.type("echo 'status:' $?\n")
    ok(terminal.wait_for(r"status: 143"), "the shell sees the signal that ended it")
    terminal.type("exit\n")
    os.close(terminal.fd)
    os.waitpid(terminal.pid, 0)

# The terminal is closed while run leads its session.
with tempfile.NamedTemporaryFile("r") as log:
    terminal = Terminal(RUN + ["sh", "-c", "trap 'echo hup >\"$0\"; exit' HUP; echo; echo up; "
                               "while :; do sleep 0.1; done", log.name])
    ok(terminal.wait_for("[\r\n]up"), "run leads a session")
    os.close(terminal.fd)
    ok(until(lambda: os.stat(log.name).st_size), "its hangup reaches the program")
    os.waitpid(terminal.pid, 0)

print(f"1..{count}")
sys.exit(failed > 0)
