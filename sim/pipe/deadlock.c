// SPDX-License-Identifier: MIT
/*
 * Reports a deadlock. In a deadlock, the queue has no more events, but some work is not done. The
 * report follows the chain of waits until the chain repeats or ends. Changes nothing.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "sim/pipe/pipe.h"

enum who_kind { WHO_PROGRAM, WHO_STREAM, WHO_NONE };

struct who {
	enum who_kind kind;
	unsigned int nr;
};

const char *stream_name(const struct pipe *pipe, unsigned int stream)
{
	return pipe->scenario->streams[stream].name;
}

__attribute__((format(printf, 3, 4)))
static void say(char *text, size_t len, const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text + used, len - used, fmt, args);
	va_end(args);
}

/* Returns the channel with the next command of a stream. */
static const struct channel *holds(const struct pipe *pipe, unsigned int nr,
				   const struct command **found)
{
	const struct stream *stream = &pipe->streams[nr];
	const struct channel *channels[3] = {
		stream->compute, stream->copies[0], stream->copies[1],
	};
	const struct command *command;

	for (unsigned int i = 0; i < 3; i++)
		for (command = channels[i]->head; command; command = command->next)
			if (command->stream == nr && command->seq == stream->done + 1) {
				*found = command;
				return channels[i];
			}
	return NULL;
}

static bool is_waiting(const struct program *program)
{
	return program->state == PROGRAM_FULL || program->state == PROGRAM_SLEEPS;
}

/*
 * Returns true if the remaining steps of the program record the event. The remaining steps
 * include the rest of each active loop and the loop's further rounds.
 */
static bool will_record(const struct program *program, unsigned int event)
{
	const struct frame *frame;
	unsigned int i, from;

	if (program->step->kind == PIPE_RECORD && program->step->what == event)
		return true;
	for (i = 0; i < program->depth; i++) {
		frame = &program->frames[i];
		from = frame->left > 1 ? 0 : frame->at;
		if (check_records(frame->steps + from, frame->nr - from, event))
			return true;
	}
	return false;
}

/*
 * Finds the stream or program that will record the event. If the record was submitted to @stream,
 * the result is @stream. Otherwise the result is a stream that has a command to record the event,
 * or a program.
 */
static struct who recorder(const struct pipe *pipe, unsigned int event, unsigned int stream)
{
	const struct pipe_scenario *scenario = pipe->scenario;
	const struct command *command;

	if (stream != NO_STREAM)
		return (struct who){ WHO_STREAM, stream };
	for (unsigned int i = 0; i < scenario->nr_streams; i++)
		for (command = pipe->streams[i].compute->head; command; command = command->next)
			if (command->kind == DO_RECORD && command->step->what == event)
				return (struct who){ WHO_STREAM, command->stream };
	for (unsigned int i = 0; i < scenario->nr_programs; i++)
		if (is_waiting(&pipe->programs[i]) && will_record(&pipe->programs[i], event))
			return (struct who){ WHO_PROGRAM, i };
	return (struct who){ WHO_NONE, 0 };
}

static struct who after_program(const struct pipe *pipe, unsigned int nr, char *text, size_t len)
{
	const struct program *program = &pipe->programs[nr];
	unsigned int stream;

	say(text, len, "program %s (line %d) waits for ", program->spec->name,
	    program->step->line);
	if (program->state == PROGRAM_FULL) {
		stream = program->waits_for->head->stream;
		say(text, len, "space in the channel of stream %s; ", stream_name(pipe, stream));
		return (struct who){ WHO_STREAM, stream };
	}
	if (program->step->kind == PIPE_SYNC_EVENT) {
		say(text, len, "event %s; ", pipe->scenario->events[program->step->what]);
		return recorder(pipe, program->step->what, program->asleep_on);
	}
	say(text, len, "stream %s; ", stream_name(pipe, program->asleep_on));
	return (struct who){ WHO_STREAM, program->asleep_on };
}

static struct who after_stream(const struct pipe *pipe, unsigned int nr, char *text, size_t len)
{
	const struct command *command = NULL;
	const struct channel *channel = holds(pipe, nr, &command);

	if (!channel) {
		say(text, len, "stream %s has no commands left; ", stream_name(pipe, nr));
		return (struct who){ WHO_NONE, 0 };
	}
	if (command != channel->head) {
		say(text, len, "stream %s (line %d) waits behind stream %s in the same channel; ",
		    stream_name(pipe, nr), command->step->line,
		    stream_name(pipe, channel->head->stream));
		return (struct who){ WHO_STREAM, channel->head->stream };
	}
	say(text, len, "stream %s (line %d) waits for event %s; ", stream_name(pipe, nr),
	    command->step->line, pipe->scenario->events[command->step->what]);
	return recorder(pipe, command->step->what, command->other);
}

static struct who first_one(const struct pipe *pipe)
{
	const struct command *command;

	for (unsigned int i = 0; i < pipe->scenario->nr_streams; i++)
		if (holds(pipe, i, &command))
			return (struct who){ WHO_STREAM, i };
	for (unsigned int i = 0; i < pipe->scenario->nr_programs; i++)
		if (pipe->programs[i].state != PROGRAM_DONE)
			return (struct who){ WHO_PROGRAM, i };
	return (struct who){ WHO_NONE, 0 };
}

static struct who step_on(const struct pipe *pipe, struct who who, char *text, size_t len)
{
	return who.kind == WHO_PROGRAM ? after_program(pipe, who.nr, text, len) :
					 after_stream(pipe, who.nr, text, len);
}

static const char *name_of(const struct pipe *pipe, struct who who)
{
	return who.kind == WHO_STREAM ? stream_name(pipe, who.nr) :
					pipe->scenario->programs[who.nr].name;
}

/* If the text is too long, shortens it after a complete link of the chain. */
static void cut(char *text, size_t len)
{
	static const char more[] = "and so on; ";
	char *end;

	if (strlen(text) + 1 < len)
		return;
	text[len - sizeof(more)] = '\0';
	for (end = text + strlen(text); end > text + 2 && strncmp(end - 2, "; ", 2); end--)
		;
	strcpy(end, more);
}

int deadlock_report(struct pipe *pipe)
{
	unsigned int i, most = pipe->scenario->nr_streams + pipe->scenario->nr_programs + 1;
	char text[PIPE_WHY - 128] = "", unused[PIPE_WHY - 128];
	struct who who = first_one(pipe), begin;

	/* Follow the chain to the beginning of the cycle, and then follow the cycle one time. */
	for (i = 0; i < most && who.kind != WHO_NONE; i++) {
		unused[0] = '\0';
		begin = who;
		who = step_on(pipe, who, unused, sizeof(unused));
	}
	if (who.kind == WHO_NONE) {
		who = first_one(pipe);
		for (i = 0; i < most && who.kind != WHO_NONE; i++)
			who = step_on(pipe, who, text, sizeof(text));
		cut(text, sizeof(text));
		return pipe_error(pipe, -EDEADLK, 0, "deadlock at %llu ns: %snothing is left that "
				  "could signal that", (unsigned long long)pipe->now, text);
	}
	begin = who;
	do {
		who = step_on(pipe, who, text, sizeof(text));
	} while (who.kind != begin.kind || who.nr != begin.nr);
	cut(text, sizeof(text));
	return pipe_error(pipe, -EDEADLK, 0, "deadlock at %llu ns: %sand so back to %s %s",
			  (unsigned long long)pipe->now, text,
			  begin.kind == WHO_STREAM ? "stream" : "program", name_of(pipe, begin));
}
