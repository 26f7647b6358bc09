// SPDX-License-Identifier: MIT
/*
 * See parent.h. The program stays in the process group and session of this process. So a terminal
 * and its shell treat both processes as one program. One thread.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "cli/start/parent.h"
#include "cli/util/process.h"

static void __attribute__((noreturn)) be_child(struct parent *parent, pid_t pid)
{
	/* If this process gets SIGKILL, the program must end, too. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != pid)
		_exit(128 + SIGKILL);
	sigaction(SIGCHLD, &parent->chld_before, NULL);
	sigprocmask(SIG_SETMASK, &parent->before, NULL);
	_exit(parent->become(parent->arg));
}

int parent_start(struct parent *parent)
{
	const struct sigaction by_default = { .sa_handler = SIG_DFL };
	pid_t pid = getpid();
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &parent->before);
	/* While SIGCHLD is ignored, waitpid() returns no exit status. */
	sigaction(SIGCHLD, &by_default, &parent->chld_before);
	fflush(NULL);
	parent->child = fork();
	if (!parent->child)
		be_child(parent, pid);
	if (parent->child < 0)
		return -errno;
	/*
	 * Close the program's descriptors in this process. Then the program's pipes and locks end
	 * together with the program.
	 */
	process_let_go(-1, 2, parent->keep, -1);
	return 0;
}

static void stop_as(pid_t child, int sig);

static void pass_on(struct parent *parent, const siginfo_t *info)
{
	pid_t child = parent->child;

	/*
	 * The kernel sends signals of the terminal to the whole group, so do not pass them on.
	 * There are three exceptions. The kernel sends a hangup to the session's leader alone, and
	 * this process may be the leader. If an alarm was set before this command started, the
	 * alarm belongs to this process. If SIGSTOP has already stopped the program, waitpid() does
	 * not report another stop.
	 */
	if (info->si_code > 0) {
		if (info->si_signo == SIGALRM ||
		    (info->si_signo == SIGHUP && getsid(0) == getpid()))
			kill(child, info->si_signo);
		else if (info->si_signo == SIGTSTP && parent->child_held)
			stop_as(child, SIGTSTP);
		return;
	}
	if (info->si_pid == child || info->si_signo == SIGCHLD)
		return;
	if (info->si_code == SI_QUEUE)
		sigqueue(child, info->si_signo, info->si_value);
	else
		kill(child, info->si_signo);
}

/*
 * Signal @sig stopped the program. Stops this process by the same signal. Returns when this process
 * continues.
 */
static void stop_as(pid_t child, int sig)
{
	const struct sigaction by_default = { .sa_handler = SIG_DFL };
	const struct timespec at_once = { 0 };
	siginfo_t info = { 0 };
	sigset_t one;

	sigaction(sig, &by_default, NULL);
	sigemptyset(&one);
	sigaddset(&one, sig);
	raise(sig);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	sigprocmask(SIG_BLOCK, &one, NULL);
	sigemptyset(&one);
	sigaddset(&one, SIGCONT);
	/* If a shell has continued the whole group, the program runs already. */
	if (sigtimedwait(&one, NULL, &at_once) != SIGCONT)
		return;
	/*
	 * Do not use WEXITED, because has_ended() must reap the program. Until then, the program
	 * keeps its pid.
	 */
	if (waitid(P_PID, child, &info, WNOHANG | WCONTINUED) || !info.si_pid)
		kill(child, SIGCONT);
}

/* Returns whether the program has ended. Stores the program's status in *wstatus. */
static bool has_ended(struct parent *parent, int *wstatus)
{
	while (waitpid(parent->child, wstatus, WNOHANG | WUNTRACED | WCONTINUED) == parent->child) {
		if (!WIFSTOPPED(*wstatus) && !WIFCONTINUED(*wstatus))
			return true;
		/*
		 * If SIGSTOP stopped the program, do not stop this process: SIGCONT for the program
		 * would not wake this process.
		 */
		parent->child_held = WIFSTOPPED(*wstatus) && WSTOPSIG(*wstatus) == SIGSTOP;
		if (WIFSTOPPED(*wstatus) && !parent->child_held)
			stop_as(parent->child, WSTOPSIG(*wstatus));
	}
	return false;
}

int parent_wait(struct parent *parent)
{
	long next = process_now_ms() + parent->look(parent->arg, parent->child), left;
	struct timespec timeout;
	siginfo_t info;
	int wstatus, sig;
	sigset_t all;

	sigfillset(&all);
	while (!has_ended(parent, &wstatus)) {
		left = next - process_now_ms();
		if (left <= 0) {
			left = parent->look(parent->arg, parent->child);
			next = process_now_ms() + left;
		}
		timeout = (struct timespec){ left / 1000, left % 1000 * 1000000 };
		sig = sigtimedwait(&all, &info, &timeout);
		if (sig > 0)
			pass_on(parent, &info);
		if (sig == SIGIO)
			next = process_now_ms();
	}
	return wstatus;
}

int parent_end_as(int wstatus)
{
	const struct sigaction by_default = { .sa_handler = SIG_DFL };
	const struct rlimit none = { 0, 0 };
	int sig = WTERMSIG(wstatus);
	sigset_t one;

	if (!WIFSIGNALED(wstatus))
		return WEXITSTATUS(wstatus);
	/* Write no core file, because the program has already written one. */
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
	if (sig != SIGKILL)
		sigaction(sig, &by_default, NULL);
	sigemptyset(&one);
	sigaddset(&one, sig);
	raise(sig);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	return 128 + sig;
}
