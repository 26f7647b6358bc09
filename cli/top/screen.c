// SPDX-License-Identifier: MIT
/*
 * Shows frames of `gpupart top` on a terminal. Uses ncurses and the alternate screen. Handles keys
 * and signals.
 */
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "cli/draw/palette.h"
#include "cli/top/top.h"
#include "cli/util/process.h"
/* Include curses.h last, because it defines macros such as "lines". */
#include <term.h>

#define PAIR_RED	1
#define PAIR_TENANT	2

static int real_stderr = -1;
static bool coloured;

bool top_has_screen(void)
{
	const char *name = getenv("TERM"), *cup;
	int err;

	if (!isatty(0) || !isatty(1) || !name || setupterm(NULL, 1, &err) != OK)
		return false;
	cup = tigetstr("cup");
	return cup && cup != (char *)-1;
}

static void begin_colours(void)
{
	static const short dark[] = { COLOR_BLUE, COLOR_YELLOW, COLOR_RED, COLOR_CYAN,
				      COLOR_GREEN, COLOR_MAGENTA, COLOR_WHITE, COLOR_BLACK };
	const char *none = getenv("NO_COLOR");

	if ((none && *none) || !has_colors() || start_color() == ERR)
		return;
	coloured = COLOR_PAIRS >= PAIR_TENANT + PALETTE_TENANTS;
	use_default_colors();
	init_pair(PAIR_RED, COLOR_RED, -1);
	for (int i = 0; i < PALETTE_TENANTS; i++) {
		const struct palette_colour *colour = palette_tenant(i);

		if (COLORS >= 256)
			init_pair(PAIR_TENANT + i, colour->terminal_ink, colour->terminal_fill);
		else
			init_pair(PAIR_TENANT + i, i & 1 || i == 4 || i == 6 ? COLOR_BLACK :
				  COLOR_WHITE, dark[i]);
	}
}

static void leave(void)
{
	char words[4096];
	ssize_t len;

	if (!isendwin())
		endwin();
	if (real_stderr < 0)
		return;
	len = pread(2, words, sizeof(words), 0);
	dup2(real_stderr, 2);
	close(real_stderr);
	real_stderr = -1;
	if (len > 0)
		(void)!write(2, words, len);
}

static bool enter(void)
{
	int fd;

	/* These variables would override the real size of the terminal. */
	unsetenv("COLUMNS");
	unsetenv("LINES");
	if (!newterm(NULL, stdout, stdin))
		return false;
	/* Messages on stderr would overwrite the frame. So store messages until the end. */
	fd = memfd_create("words", MFD_CLOEXEC);
	real_stderr = fd < 0 ? -1 : dup(2);
	if (real_stderr >= 0)
		dup2(fd, 2);
	close(fd);
	atexit(leave);
	set_escdelay(50);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	begin_colours();
	return true;
}

static int attributes(unsigned int style)
{
	static const int plain[] = { A_NORMAL, A_BOLD, A_DIM, A_BOLD, A_REVERSE, A_BOLD };

	if (!coloured || (style != TOP_RED && style < TOP_TENANT))
		return plain[style < TOP_TENANT ? style : TOP_TENANT];
	return style == TOP_RED ? A_BOLD | COLOR_PAIR(PAIR_RED) :
				  COLOR_PAIR(PAIR_TENANT + style - TOP_TENANT);
}

static void show(const struct top_view *view)
{
	int style = -1;

	erase();
	for (unsigned int y = 0; y < view->height; y++)
		for (unsigned int x = 0; x < view->width; x++) {
			const struct top_cell *cell = &view->cells[y * view->width + x];

			if (!*cell->bytes && !cell->style)
				continue;
			if (cell->style != style)
				attrset(attributes(style = cell->style));
			mvaddstr(y, x, *cell->bytes ? cell->bytes : " ");
		}
	attrset(A_NORMAL);
	refresh();
}

/* Handles keys until the time @until. If the command must end, returns false. */
static bool do_keys(struct top *top, struct top_view *view, uint64_t until)
{
	struct pollfd terminal = { .fd = 0, .events = POLLIN };
	uint64_t now = process_now_ns();
	int ready, key, there = 0;

	ready = poll(&terminal, 1, now < until ? (until - now) / 1000000 + 1 : 0);
	/* After a hangup, poll() reports that the terminal is readable, but there are no bytes. */
	if (terminal.revents & (POLLERR | POLLNVAL) ||
	    (ready > 0 && (ioctl(0, FIONREAD, &there) || !there)))
		return false;
	while ((key = getch()) != ERR)
		if (!top_key(top, view, key))
			return false;
	return true;
}

int top_show(struct top *top, double seconds, unsigned long count)
{
	struct top_view view = { .gpu = 0 };
	uint64_t next = process_now_ns();
	unsigned long n = 0;
	int status = 0;

	top_end_on(SIGHUP);
	if (!enter())
		return failure("the terminal %s cannot be used", getenv("TERM"));
	while (!status && !top_ended) {
		if (process_now_ns() >= next || view.stale) {
			if (count && n == count)
				break;
			status = top_take(top, view.stale ? 0 : TOP_LISTS_AGE);
			view.stale = false;
			/* Begin with the first GPU that has a job. */
			for (unsigned int i = 0; !n && i < top->model.nr_rows; i++)
				if (!i || top->model.rows[i].gpu < view.gpu)
					view.gpu = top->model.rows[i].gpu;
			n++;
			next = process_now_ns() + (uint64_t)(seconds * 1e9);
		}
		top_frame(&view, top, COLS, LINES);
		show(&view);
		if (!do_keys(top, &view, next))
			break;
	}
	leave();
	free(view.cells);
	return status;
}
