// SPDX-License-Identifier: MIT
/* Tests that a writer never blocks. The reader may be slow, may have ended or may never read. */
#include <signal.h>
#include "tests/tap.h"
#include "cli/qos/async_writer.c"

#define LINES 20000

static void *read_slowly(void *arg)
{
	FILE *file = fdopen(*(int *)arg, "r");
	long nr = 0;
	char line[64];

	for (; fgets(line, sizeof(line), file); nr++) {
		if (nr % 1000 == 0)
			usleep(1000);
		if (atol(line) != nr)
			break;
	}
	fclose(file);
	return (void *)nr;
}

static void test_order(void)
{
	pthread_t reader;
	struct pump *pump;
	void *nr;
	int fds[2], err;

	if (pipe(fds) || pthread_create(&reader, NULL, read_slowly, &fds[0]))
		return;
	pump = async_writer_open(fds[1]);
	for (int i = 0; i < LINES; i++)
		fprintf(async_writer_file(pump), "%d\n", i);
	err = async_writer_close(pump);
	close(fds[1]);
	pthread_join(reader, &nr);
	tap_ok(!err && (long)nr == LINES, "all lines in their order: %ld, %d", (long)nr, err);
}

static void test_no_reader(void)
{
	static char block[1 << 20];
	struct pump *pump;
	int fds[2], nr = 0, err = 0;

	if (pipe(fds))
		return;
	memset(block, 'x', sizeof(block));
	pump = async_writer_open(fds[1]);
	tap_ok(!async_writer_pending(pump), "nothing waits");
	while (nr < 100 && !err) {
		if (fwrite(block, sizeof(block), 1, async_writer_file(pump)) != 1 ||
		    fflush(async_writer_file(pump)))
			err = errno;
		nr += !err;
	}
	/* The thread blocked in a write. The bytes of this write do not count as buffered. */
	tap_ok(err == EAGAIN && nr >= ASYNC_WRITER_MAX >> 20 && nr <= 2 * ASYNC_WRITER_MAX >> 20,
	       "16 MiB are kept, and more is refused: %d blocks, %d", nr, err);
	tap_ok(async_writer_pending(pump), "they wait");
	err = async_writer_close(pump);
	tap_ok(err == -EAGAIN, "and the close returns an error: %d", err);
}

static void test_end(void)
{
	struct pump *pump;
	int fds[2], err;

	if (pipe(fds))
		return;
	close(fds[0]);
	pump = async_writer_open(fds[1]);
	fputs("without a reader\n", async_writer_file(pump));
	err = async_writer_close(pump);
	tap_ok(err == -EPIPE, "an error after the reader ended: %d", err);
	close(fds[1]);

	pump = async_writer_open(-1);
	fputs("to nothing\n", async_writer_file(pump));
	tap_ok(!fflush(async_writer_file(pump)), "one line is taken");
	while (async_writer_pending(pump))
		usleep(1000);
	fputs("and one more\n", async_writer_file(pump));
	tap_ok(fflush(async_writer_file(pump)) && errno == EBADF, "the next one fails as that did");
	err = async_writer_close(pump);
	tap_ok(err == -EBADF, "and so does the end: %d", err);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	test_order();
	test_no_reader();
	test_end();
	return tap_done();
}
