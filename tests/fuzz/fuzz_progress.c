// SPDX-License-Identifier: MIT
/*
 * Fuzz target: the lines that programs write to the socket of `gpupart qos`. Each line of the
 * input is sent as one datagram. A valid line must count one time, with the line's value and for
 * the line's tenant. Other lines must not count.
 */
#include <errno.h>
#include <sys/socket.h>
#include <time.h>
#include "cli/qos/live.h"
#include "cli/util/yaml.h"
#include "tests/fuzz/fuzz.h"

static const char *left;
static uint64_t now_us;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __real_clock_gettime(clockid_t clock, struct timespec *ts);

/* A line arrives every 100 us. After some lines, a unit of work is in progress. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	if (clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, ts);
	now_us += 100;
	*ts = (struct timespec){ now_us / 1000000, now_us % 1000000 * 1000 };
	return 0;
}

ssize_t __wrap_recv(int fd, void *room, size_t len, int flags);

ssize_t __wrap_recv(int fd, void *room, size_t len, int flags)
{
	size_t nr;

	MUST(fd == 5);
	if (!*left)
		return -1;
	nr = strcspn(left, "\n");
	memcpy(room, left, nr < len ? nr : len);
	left += nr;
	left += *left == '\n';
	return nr < len || flags & MSG_TRUNC ? nr : len;
}

/* The values of a tenant's lines, from an independent parser. */
struct told {
	uint64_t nr, milli, reports, answers, latencies[GPUPART_NR_LATENCIES];
};

/*
 * Returns the next word of @text. If there is no such word, or if the line is too long, returns
 * "".
 */
static const char *next_word(const char **text, char word[256])
{
	size_t len;

	*text += strspn(*text, " \t\r");
	len = strcspn(*text, " \t\r\n");
	MUST(len < 256);
	memcpy(word, *text, len);
	word[len] = 0;
	*text += len;
	return word;
}

static void expect_line(const char *line, const char *name, struct told *told)
{
	char word[256], value[256], *end;
	uint64_t ns, more;
	double number;
	bool units;
	int bucket = 0;

	if (strcmp(next_word(&line, word), name))
		return;
	next_word(&line, word);
	units = !strcmp(word, "units");
	if (!units && strcmp(word, "latency"))
		return;
	next_word(&line, value);
	if (units) {
		if (!*value || strspn(value, "0123456789.eE+-") != strlen(value))
			return;
		errno = 0;
		number = strtod(value, &end);
		if (*end || errno || !(number >= 0 && number < 1e15))
			return;
		more = number * 1000 + 0.5;
		told->milli = told->milli > UINT64_MAX - more ? UINT64_MAX : told->milli + more;
		told->reports += !!more;
	} else {
		if (!yaml_read_time(value, &ns))
			return;
		while (bucket + 1 < GPUPART_NR_LATENCIES && gpupart_latency_least(bucket + 1) <= ns)
			bucket++;
		told->latencies[bucket]++;
		told->answers++;
	}
	told->nr++;
}

/* The maximum size of a datagram. A longer datagram is ignored completely. */
static void expect(const char *text, const char *name, struct told *told)
{
	memset(told, 0, sizeof(*told));
	for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
		if (strcspn(text, "\n") < 256)
			expect_line(text, name, told);
}

/*
 * Adds up the work of epochs with the same lines. The sum must be at least the total of all
 * reports. The excess is the work in progress at the end of the epochs, and must be less than one
 * report. Before the second report, the work in progress is unknown.
 */
static void check_work(struct live *live, const char *text, int i, const struct told *told)
{
	const struct qos_tenant tenant = { .goal = QOS_RATE };
	const struct qos_spec spec = { 0 };
	struct qos_measured m;
	uint64_t all, reports = told->milli ? told->reports : told->answers, each, sum;

	all = told->milli ? told->milli : 1000 * told->answers;
	if (all > INT64_MAX / 4)
		return;
	each = reports ? all / reports : 0;
	live_read(live);
	live_take(live, i, &tenant, &spec, 200000000, &m);
	MUST(m.work == all && m.reports == reports && m.nr == told->answers);
	left = text;
	live_listen(live);
	live_read(live);
	live_take(live, i, &tenant, &spec, 200000000, &m);
	MUST(m.work >= all && m.work <= all + each && m.reports == reports);
	sum = m.work;
	left = text;
	live_listen(live);
	live_read(live);
	live_take(live, i, &tenant, &spec, 200000000, &m);
	/* Work that was counted in advance must not count again. */
	sum += m.work;
	MUST(!all || (sum >= 2 * all && sum <= 2 * all + each));
	/* No more work may count, because work in progress counts only after its report. */
	live_read(live);
	live_take(live, i, &tenant, &spec, 200000000, &m);
	MUST(!m.work && !m.reports);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "llm", "batch" };
	static struct live live;
	char *text = fuzz_text(data, size);
	struct told told;

	memset(&live, 0, sizeof(live));
	live.nr = 2;
	live.socket = 5;
	for (int i = 0; i < 2; i++)
		live.tenants[i].name = names[i];
	left = text;
	live_listen(&live);
	for (int i = 0; i < 2; i++) {
		struct live_tenant *t = &live.tenants[i];

		expect(text, names[i], &told);
		MUST(t->since_change == told.nr && t->ever_told == !!told.nr);
		MUST(t->reported_milli == told.milli);
		for (int k = 0; k < GPUPART_NR_LATENCIES; k++)
			MUST(t->latencies[k] == told.latencies[k]);
		MUST(t->reports == told.reports);
	}
	for (int i = 0; i < 2; i++) {
		expect(text, names[i], &told);
		live_restart(&live);
		memset(live.tenants[i].paces, 0, sizeof(live.tenants[i].paces));
		live.tenants[i].ever_units = false;
		left = text;
		live_listen(&live);
		check_work(&live, text, i, &told);
	}
	free(text);
	return 0;
}
