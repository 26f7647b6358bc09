// SPDX-License-Identifier: MIT
/* Handles keys of `gpupart top`. Keys choose rows, ask questions, change sets and end programs. */
#include <ncurses.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/top/top.h"
#include "cli/util/alloc.h"
#include "cli/util/child.h"

#define SET_SECONDS	20
#define MAX_WORDS	((int)sizeof(answer) / 2 + 4)	/* more than an answer can have */

/* Shows a question or a message instead of the list of keys. */
#define say(view, ...) snprintf((view)->footer, sizeof((view)->footer), __VA_ARGS__)

static enum { ASK_NOTHING, ASK_FILTER, ASK_SET, ASK_END } question;
/*
 * @asked is the row that was chosen when the question was asked. During the answer, another row may
 * be the chosen row.
 */
static char answer[160], asked[MODEL_KEY_STRLEN];
static bool cut;	/* @answer had no room for a character */

/* ------------------------------------------------------------------- choosing */

/* Scrolls the help. Or, without the help, chooses the row that is @by rows below. */
static void go(const struct top *top, struct top_view *view, long by)
{
	const struct model_row **shown;
	long nr, n = *view->key ? (long)view->row + by : 0;

	if (view->page == TOP_HELP) {
		view->first = (long)view->first + by < 0 ? 0 : view->first + by;
		return;
	}
	nr = top_shown(view, top, &shown);
	n = n >= nr ? nr - 1 : n;
	view->row = n < 0 ? 0 : n;
	strcpy(view->key, nr ? shown[view->row]->key : "");
	free(shown);
}

/* ------------------------------------------------------------------- changing */

struct words {
	int (*set)(int argc, char **argv);
	int argc;
	char *argv[MAX_WORDS];
};

static void set_in_child(void *arg, void *result)
{
	const struct words *words = arg;

	cmd_name = "set";
	*(int *)result = cmd_exit_status(words->set(words->argc, (char **)words->argv), false);
}

/* Runs 'gpupart set' with @whose and the answer as arguments. Returns 0 or an error. */
static int change_set(const struct top *top, struct top_view *view, const char *option,
		      const char *whose)
{
	struct words words = { .set = top->set, .argc = 1, .argv = { "set" } };
	char text[sizeof(answer)], said[4096], why[160], *rest = text, *line;
	off_t start = lseek(2, 0, SEEK_CUR);
	int status = 0, err;
	ssize_t len;

	if (option)
		words.argv[words.argc++] = (char *)option;
	words.argv[words.argc++] = (char *)whose;
	strcpy(text, answer);
	while (words.argc < MAX_WORDS - 1 && (words.argv[words.argc] = strsep(&rest, " ")))
		words.argc += *words.argv[words.argc] != 0;
	err = child_call(set_in_child, &words, &status, sizeof(status), SET_SECONDS, why,
			 sizeof(why));
	/* The child's messages are in a file, because screen.c has replaced stderr by this file. */
	len = start < 0 ? -1 : pread(2, said, sizeof(said) - 1, start);
	said[len > 0 ? len : 0] = 0;
	if (start >= 0 && !ftruncate(2, start))
		lseek(2, start, SEEK_SET);
	say(view, "%.500s", err ? why : status ? said : "");
	for (line = strtok(said, "\n"); line && !status; line = strtok(NULL, "\n"))
		if (strstr(line, "'s new ") || !*view->footer)
			say(view, "%.500s", line);
	view->footer[strcspn(view->footer, "\n")] = 0;
	return err ?: status;
}

/* Returns whether @row is @of, or is a program of the job @of. */
static bool is_program(const struct top *top, const struct model_row *row,
		       const struct model_row *of)
{
	return row->job >= 0 && (row == of || &top->model.rows[row->job] == of);
}

static void set_all(const struct top *top, struct top_view *view, const struct model_row *of)
{
	char pid[16];

	/* For another user's job, root changes each process of the job separately. */
	if (of->job < 0 && *of->id && of->uid == geteuid()) {
		change_set(top, view, NULL, of->id);
		return;
	}
	for (unsigned int i = 0; i < top->model.nr_rows; i++) {
		if (!is_program(top, &top->model.rows[i], of))
			continue;
		snprintf(pid, sizeof(pid), "%d", top->model.rows[i].process->pid);
		if (change_set(top, view, "-p", pid))
			return;
	}
}

static void end_all(const struct top *top, struct top_view *view, const struct model_row *of,
		    int sig)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < top->model.nr_rows; i++) {
		if (!is_program(top, &top->model.rows[i], of))
			continue;
		if (gpupart_process_signal(cmd_gp, top->model.rows[i].process, sig, NULL, NULL))
			say(view, "%s", gpupart_error(cmd_gp));
		else
			nr++;
	}
	if (!*view->footer)
		say(view, "SIG%s was sent to %u program%s", sigabbrev_np(sig), nr,
		    nr == 1 ? "" : "s");
}

/* ------------------------------------------------------------------- questions */

static void show_question(const struct top *top, struct top_view *view)
{
	const struct model_row *row = model_find(&top->model, asked);
	char whose[96] = "it";

	if (row && row->job >= 0)
		snprintf(whose, sizeof(whose), "program %d", row->process->pid);
	else if (row)
		snprintf(whose, sizeof(whose), "%.40s (%u program%s)", *row->name ? row->name :
			 row->id, row->nr, row->nr == 1 ? "" : "s");
	if (question == ASK_FILTER)
		say(view, "Only what has: %s_", answer);
	else if (question == ASK_SET)
		say(view, "Set of %s, as -g 0 or -n 8: %s_", whose, answer);
	else
		say(view, "End %s? y: SIGTERM, K: SIGKILL, any other key: no", whose);
}

static void ask(const struct top *top, struct top_view *view, int what)
{
	if (what != ASK_FILTER && !model_find(&top->model, view->key)) {
		say(view, "Choose a row first: Up, Down");
		return;
	}
	question = what;
	cut = false;
	strcpy(asked, view->key);
	strcpy(answer, what == ASK_FILTER ? view->filter : "");
	show_question(top, view);
}

static void answer_key(const struct top *top, struct top_view *view, int key)
{
	const struct model_row *row = model_find(&top->model, asked);
	size_t len = strlen(answer), room = question == ASK_FILTER ? sizeof(view->filter) :
								      sizeof(answer);
	int what = question;

	if (key == 27)
		*answer = 0;
	else if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && len)
		answer[len - 1] = 0;
	else if (key >= ' ' && key <= '~' && !(cut = (cut && len) || len + 1 >= room))
		memcpy(answer + len, (char[]){ key, 0 }, 2);
	if (what == ASK_FILTER)
		strcpy(view->filter, answer);
	if (key != 27 && key != '\n' && key != '\r' && key != KEY_ENTER && what != ASK_END) {
		show_question(top, view);
		return;
	}
	question = ASK_NOTHING;
	*view->footer = 0;
	if (key == 27 || what == ASK_FILTER || (what == ASK_SET && !*answer))
		return;
	view->stale = true;
	if (!row || (what == ASK_SET && cut))
		say(view, row ? "This is too long, at most %zu characters: nothing was changed" :
		    "It has ended.", sizeof(answer) - 1);
	else if (what == ASK_SET)
		set_all(top, view, row);
	else if (key == 'y' || key == 'K')
		end_all(top, view, row, key == 'y' ? SIGTERM : SIGKILL);
}

/* ------------------------------------------------------------------- keys */

bool top_key(struct top *top, struct top_view *view, int key)
{
	struct model_row *row = model_find(&top->model, view->key);

	if (key == KEY_RESIZE)
		return true;
	if (question != ASK_NOTHING) {
		answer_key(top, view, key);
		return true;
	}
	*view->footer = 0;
	switch (key) {
	case KEY_UP:	go(top, view, -1); return true;
	case KEY_DOWN:	go(top, view, 1); return true;
	case KEY_PPAGE:	go(top, view, -(long)view->room); return true;
	case KEY_NPAGE:	go(top, view, view->room); return true;
	case KEY_HOME:	go(top, view, -(1l << 30)); return true;
	case KEY_END:	go(top, view, 1l << 30); return true;
	}
	/*
	 * The help page hides the effects of keys. So each key closes the help page and does
	 * nothing else.
	 */
	if (view->page == TOP_HELP) {
		view->page = TOP_LIST;
		return true;
	}
	switch (key) {
	case 'q': case KEY_F(10): case 27:
		if (view->page == TOP_LIST && key != 27)
			return false;
		if (view->page == TOP_LIST)
			*view->filter = 0;
		view->page = TOP_LIST;
		break;
	case '\n': case '\r': case KEY_ENTER:
		if (row)
			view->page = view->page == TOP_DETAILS ? TOP_LIST : TOP_DETAILS;
		view->first = 0;
		break;
	case ' ':
		if (row && row->job < 0)
			row->open = !row->open;
		break;
	case '+': case '-':
		for (unsigned int i = 0; i < top->model.nr_rows; i++)
			top->model.rows[i].open = key == '+';
		break;
	case '/': case KEY_F(4): ask(top, view, ASK_FILTER); break;
	case 's':	ask(top, view, ASK_SET); break;
	case 'k':	ask(top, view, ASK_END); break;
	case 'h': case '?': case KEY_F(1):
		view->page = TOP_HELP;
		view->first = 0;
		break;
	case 'I':	view->reverse = !view->reverse; break;
	case '>': case KEY_F(6): view->sort = (view->sort + 1) % TOP_NR_SORTS; break;
	case '<':	view->sort = (view->sort + TOP_NR_SORTS - 1) % TOP_NR_SORTS; break;
	case 'g': case '\t':
		view->gpu = top->model.nr_gpus ? (view->gpu + 1) % top->model.nr_gpus : 0;
		*view->key = 0;
		break;
	}
	return true;
}
