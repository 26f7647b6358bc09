// SPDX-License-Identifier: MIT
/*
 * Reads the records of this process or of another process. The files of another process are not
 * trusted, so they are read with system calls. Each number from these files is checked before it
 * is used as an index or a length.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <gpupart_manage.h>
#include "lib/core/fault.h"
#include "lib/records/reader.h"
#include "lib/state/holder.h"

#define MAX_SIZE	(64 << 10)	/* maximum size in bytes of a caller's struct */
#define TRIES		100

/* ------------------------------------------------------------------- opening */

static int find_gpu(struct gpupart *gp, struct gpupart_records_reader *reader,
		    const struct shared_seen *seen)
{
	uint32_t nr = seen ? seen->nr_gpus : state_nr_gpus(state_page_own);

	for (reader->gpu = 0; reader->gpu < nr && reader->gpu < STATE_MAX_GPUS; reader->gpu++)
		if (!strncmp(reader->pci, seen ? seen->gpus[reader->gpu].pci :
			     state_page_own->gpus[reader->gpu].pci, sizeof(reader->pci) - 1))
			return 0;
	return ctx_fail(gp, -ENODEV, "process %d does not use the GPU at %s",
			reader->pid ? reader->pid : getpid(), reader->pci);
}

/* Opens the state page in the directory of @uid. Returns 0, -ESRCH or -EPROTO. */
static int open_of(struct gpupart_records_reader *reader, uid_t uid, struct shared_seen *seen)
{
	struct holder_table table = { .maps_max = 4 << 20 };
	enum shared_version version;
	int holder = -ESRCH;

	reader->dir = state_dir_open(uid, false);
	if (reader->dir < 0)
		return -ESRCH;
	reader->page_fd = shared_open(reader->dir, reader->file, uid, SHARED_PROCESS,
				       STATE_LAYOUT, seen, &version);
	if (reader->page_fd >= 0 && version != SHARED_NONE)
		holder = holder_pid(reader->page_fd, uid, &seen->header, &table);
	holder_table_free(&table);
	reader->uid = uid;
	if (holder != reader->pid)
		return -ESRCH;
	return version == SHARED_SAME ? 0 : -EPROTO;
}

static void close_files(struct gpupart_records_reader *reader)
{
	int *fds[] = { &reader->dir, &reader->page_fd, &reader->records_fd };

	for (int i = 0; i < 3; i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

/*
 * Root can read the process of any user. The directory of the state page belongs to the real user
 * or to the effective user of the process.
 */
static int open_process(struct gpupart *gp, struct gpupart_records_reader *reader)
{
	struct state_dir_status status = { .uids = { geteuid(), geteuid() } };
	int pid = reader->pid, err = -ESRCH;
	struct shared_seen seen;
	uint64_t name_space;

	if (state_dir_proc_is_own())
		state_dir_read_status(pid, &status);
	name_space = state_dir_proc_is_own() ? state_dir_namespace_of(pid) : 0;
	snprintf(reader->file, sizeof(reader->file), "%d.%llx", status.inner ? status.inner : pid,
		 (unsigned long long)(name_space ? name_space : state_dir_pid_namespace()));
	for (int i = 0; err == -ESRCH && i < 2; i++) {
		if (i && status.uids[i] == status.uids[0])
			break;
		if (geteuid() && status.uids[i] != geteuid())
			continue;
		close_files(reader);
		err = open_of(reader, status.uids[i], &seen);
	}
	if (err == -EPROTO)
		return ctx_fail(gp, err, "process %d uses another version of gpupart", pid);
	if (err)
		return ctx_fail(gp, err,
				"this user has no confined process %d", pid);
	return find_gpu(gp, reader, &seen);
}

int gpupart_records_open(struct gpupart *gp, int pid, const char *pci,
			 struct gpupart_records_reader **reader)
{
	struct gpupart_records_reader *new;
	int err;

	if (!pci || pid < 0)
		return ctx_fail(gp, -EINVAL,
				"records of process %d: the PCI address of the GPU is missing",
				pid);
	new = calloc(1, sizeof(*new));
	if (!new)
		return ctx_fail(gp, -ENOMEM, "out of memory for records of process %d", pid);
	new->dir = new->page_fd = new->records_fd = -1;
	new->pid = pid == getpid() ? 0 : pid;
	snprintf(new->pci, sizeof(new->pci), "%s", pci);
	for (unsigned int n = 0; n < STATE_NR_RINGS; n++)
		new->done[n] = records_base(n);
	err = new->pid ? open_process(gp, new) : find_gpu(gp, new, NULL);
	if (err)
		gpupart_records_close(new);
	else
		*reader = new;
	return err;
}

void gpupart_records_close(struct gpupart_records_reader *reader)
{
	if (!reader)
		return;
	if (reader->page && reader->pid)
		munmap((void *)(uintptr_t)reader->page, sizeof(*reader->page));
	if (reader->section && reader->pid)
		munmap((void *)(uintptr_t)reader->section, sizeof(*reader->section));
	close_files(reader);
	if (reader->watch)
		reader->watch_free(reader->watch);
	free(reader);
}

/* ------------------------------------------------------------------- copying */

/* Returns the offset of a member of the GPU's records. The offset is in the state page. */
static size_t page_at(const struct gpupart_records_reader *reader, size_t member)
{
	return offsetof(struct state_page, records) +
	       reader->gpu * sizeof(struct state_records) + member;
}

bool reader_page(const struct gpupart_records_reader *reader, size_t at, void *into, size_t len)
{
	if (reader->pid)
		return pread(reader->page_fd, into, len, at) == (ssize_t)len;
	memcpy(into, (const char *)state_page_own + at, len);
	return true;
}

/*
 * The copied totals must be consistent. If the process was killed while it wrote the totals,
 * they never become consistent.
 */
static bool copy_records(struct gpupart_records_reader *reader)
{
	const size_t version = page_at(reader, offsetof(struct state_records, version));
	struct state_records *copy = &reader->copy;
	uint64_t after;

	for (int i = 0; i < TRIES; i++) {
		if (!reader_page(reader, page_at(reader, 0), copy, sizeof(*copy)))
			return false;
		if (copy->nr_graphs > STATE_NR_GRAPHS)
			copy->nr_graphs = STATE_NR_GRAPHS;
		atomic_thread_fence(memory_order_acquire);
		if (copy->nr_graphs &&
		    !reader_section(reader, offsetof(struct records_section, graphs),
				    reader->graphs, copy->nr_graphs * sizeof(reader->graphs[0])))
			copy->nr_graphs = 0;
		atomic_thread_fence(memory_order_acquire);
		if (!reader_page(reader, version, &after, sizeof(after)))
			return false;
		if (after == copy->version && !(after & 1))
			break;
	}
	return true;
}

/*
 * The process creates the file together with its first context. So try again at each call until
 * the file exists.
 */
static bool open_records(struct gpupart_records_reader *reader)
{
	char file[64];
	struct stat st;

	if (reader->records_fd >= 0)
		return true;
	snprintf(file, sizeof(file), "%s" STATE_RECORDS, reader->file);
	reader->records_fd = openat(reader->dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
				    O_NOCTTY | O_CLOEXEC);
	if (reader->records_fd >= 0 && (fstat(reader->records_fd, &st) || !S_ISREG(st.st_mode) ||
					st.st_uid != reader->uid)) {
		close(reader->records_fd);
		reader->records_fd = -1;
	}
	return reader->records_fd >= 0;
}

bool reader_section(struct gpupart_records_reader *reader, size_t at, void *into, size_t len)
{
	const off_t start = RECORDS_HEAD + (off_t)reader->gpu * RECORDS_STRIDE;
	const struct records_section *section;

	if (reader->pid)
		return open_records(reader) &&
		       pread(reader->records_fd, into, len, start + at) == (ssize_t)len;
	section = records_file_find(reader->gpu);
	if (section)
		memcpy(into, (const char *)section + at, len);
	return section;
}

unsigned int reader_ring(struct gpupart_records_reader *reader, unsigned int n, uint64_t first,
			 uint64_t last)
{
	const unsigned int entries = records_entries(n);
	const size_t cells = offsetof(struct records_section, cells[records_first(n)]);
	const size_t notes = offsetof(struct records_section, notes[records_first(n)]);
	const size_t issued_at = page_at(reader, offsetof(struct state_records,
							   rings[n].issued));
	struct reader_entry *entry = &reader->entries[reader->nr_entries];
	uint64_t issued, key = 0;
	unsigned int nr = 0;

	if (!reader_section(reader, cells, reader->cells, entries * sizeof(reader->cells[0])))
		return 0;
	for (uint64_t seq = first; seq <= last && nr < entries; seq++) {
		const struct records_cell *cell = &reader->cells[seq % entries];

		if (!records_reached(cell, seq))
			break;
		/*
		 * If the cell contains another number, a later launch uses the cell, so this launch
		 * has ended.
		 */
		entry[nr++] = (struct reader_entry){ .ring = n, .seq = seq,
						     .timed = records_has(cell, seq) };
	}
	if (!reader_section(reader, cells, reader->cells, entries * sizeof(reader->cells[0])) ||
	    !reader_section(reader, notes, reader->notes, entries * sizeof(reader->notes[0])) ||
	    !reader_page(reader, issued_at, &issued, sizeof(issued)))
		return 0;
	reader->nr_entries += nr;
	for (; entry < &reader->entries[reader->nr_entries]; entry++) {
		const unsigned int at = entry->seq % entries;

		entry->launch.time = reader->cells[at].time;
		if (entry->timed && issued - entry->seq < entries - 1) {
			entry->launch.submitted = reader->notes[at].submitted;
			entry->launch.function = reader->notes[at].function;
			if (entry->launch.time > key)
				key = entry->launch.time;
		}
		entry->key = key;
	}
	return nr;
}

/*
 * Returns the number of launches of the graph in @entry that have not ended. A launch of a graph
 * can have several counted kernels.
 */
uint64_t reader_graph(const struct gpupart_records_reader *reader, unsigned int entry)
{
	const struct state_graph *graph = &reader->copy.graph[entry];
	const int32_t left = records_graph_left(graph, &reader->graphs[entry]);
	uint64_t launches = left > 0 && graph->kernels ?
			    ((uint32_t)left + graph->kernels - 1) / graph->kernels : 0;

	return launches < graph->issued ? launches : graph->issued;
}

static int by_time(const void *a, const void *b)
{
	const struct reader_entry *x = a, *y = b;

	if (x->key != y->key)
		return (x->key > y->key) - (x->key < y->key);
	if (x->ring != y->ring)
		return (x->ring > y->ring) - (x->ring < y->ring);
	return (x->seq > y->seq) - (x->seq < y->seq);
}

/* ------------------------------------------------------------------- reading */

static struct state_function *graph_function(struct state_records *copy)
{
	for (unsigned int n = 0; n < STATE_NR_FUNCTIONS; n++)
		if (copy->functions[n].key == RECORDS_GRAPH_KEY)
			return &copy->functions[n];
	return NULL;
}

/*
 * Adds a graph that the process itself has not folded yet. The stream of the graph is unknown, so
 * the graph counts only for the time in which no other launch ran. When the process folds its
 * graphs, their total time can become longer, but not shorter.
 */
static void fold_graph(struct state_records *copy, uint64_t since, uint64_t end)
{
	const uint64_t busy = copy->busy_ns, kernels = copy->kernels_ns;
	struct state_function *f = graph_function(copy);
	const uint64_t longest = f ? f->longest_ns : 0;
	struct state_ring ring = { .issued = 0 };
	uint64_t ns;

	/* If the series began later, none of its launches has ended. */
	if (!since || end <= records_clock_ns(&copy->clock, since) + copy->clock.offset)
		return;
	records_fold_entry(copy, &ring, &(struct records_entry){ end, since, RECORDS_GRAPH_KEY });
	ns = copy->busy_ns - busy;
	f = graph_function(copy);
	if (f) {
		f->ns -= copy->kernels_ns - kernels - ns;
		f->longest_ns = ns > longest ? ns : longest;
	}
	copy->kernels_ns = kernels + ns;
}

/* Adds the launches that have ended, but that the process itself has not folded yet. */
static void fold_rest(struct gpupart_records_reader *reader)
{
	struct state_records *copy = &reader->copy;
	uint64_t newest = 0;

	reader->nr_entries = 0;
	for (unsigned int n = 0; n < STATE_NR_RINGS; n++) {
		struct state_ring *ring = &copy->rings[n];
		const unsigned int entries = records_entries(n);

		if (ring->issued <= ring->folded)
			continue;
		if (ring->issued - ring->folded > entries) {
			copy->untimed += ring->issued - entries - ring->folded;
			ring->folded = ring->issued - entries;
		}
		reader_ring(reader, n, ring->folded + 1, ring->issued);
	}
	qsort(reader->entries, reader->nr_entries, sizeof(reader->entries[0]), by_time);
	if (reader->nr_entries)
		newest = reader->entries[reader->nr_entries - 1].key;
	for (unsigned int n = 0; n < copy->nr_graphs; n++)
		if (copy->graph[n].since && reader->graphs[n].end.time > newest)
			newest = reader->graphs[n].end.time;
	if (newest)
		records_clock_seen(&copy->clock, newest);
	for (unsigned int i = 0; i < reader->nr_entries; i++)
		records_fold_entry(copy, &copy->rings[reader->entries[i].ring],
				   &reader->entries[i].launch);
	for (unsigned int n = 0; n < copy->nr_graphs; n++)
		fold_graph(copy, copy->graph[n].since, reader->graphs[n].end.time);
}

static void sum_graphs(const struct gpupart_records_reader *reader,
		       struct gpupart_records *records)
{
	const struct state_records *copy = &reader->copy;

	records->graphs = copy->graphs;
	records->unknown += copy->graphs;
	records->outstanding += copy->launching;
	for (unsigned int n = 0; n < copy->nr_graphs; n++) {
		const uint64_t left = reader_graph(reader, n);

		records->issued += copy->graph[n].issued;
		records->ended += copy->graph[n].issued - left;
		if (copy->graph[n].lost)
			records->unknown += left;
		else
			records->outstanding += left;
	}
}

static void sum_rings(const struct state_records *copy, struct gpupart_records *records)
{
	records->unrecorded = records->unknown = copy->nowhere;
	for (unsigned int n = 0; n < RECORDS_GRAPH_RING; n++) {
		const struct state_ring *ring = &copy->rings[n];
		uint64_t left = ring->issued > ring->folded ? ring->issued - ring->folded : 0;

		if (ring->issued < records_base(n))
			continue;
		records->issued += ring->issued - records_base(n);
		records->ended += ring->issued - left - records_base(n);
		records->unrecorded += ring->unrecorded;
		if (ring->lost)
			records->unknown += left;
		else
			records->outstanding += left;
		if (ring->lost || ring->folded < ring->after)
			records->unknown += ring->waiting;
	}
}

static int by_ns(const void *a, const void *b)
{
	const struct gpupart_records_function *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

void *reader_row(void *rows, size_t size, unsigned int *nr, const char *name)
{
	char *row = rows;

	for (unsigned int i = 0; i < *nr; i++, row += size)
		if (!strcmp(row, name))
			return row;
	if (*nr == GPUPART_RECORDS_NR_FUNCTIONS)
		return memset(row - size, 0, 1);
	++*nr;
	return strcpy(row, name);
}

/* A function that was unloaded and loaded again has several entries. */
static void add_function(const struct state_function *from, struct gpupart_records *records)
{
	struct gpupart_records_function *to;
	char name[sizeof(to->name)];

	state_dir_copy_text(name, sizeof(name), from->name, sizeof(from->name));
	if (from->key == RECORDS_GRAPH_KEY)
		strcpy(name, RECORDS_GRAPH_NAME);
	/* If a function has no name, it has its own row. */
	to = *name ? reader_row(records->functions, sizeof(*to), &records->nr_functions, name) :
		     &records->functions[records->nr_functions++];
	to->count += from->count;
	to->ns += from->ns;
	if (from->longest_ns > to->longest_ns)
		to->longest_ns = from->longest_ns;
}

static void fill(const struct gpupart_records_reader *reader, struct gpupart_records *records)
{
	const struct state_records *copy = &reader->copy;

	records->on = true;
	sum_rings(copy, records);
	sum_graphs(reader, records);
	records->all_known = !records->unknown;
	records->untimed = copy->untimed;
	records->last_end_ns = copy->last_end;
	records->busy_ns = copy->busy_ns;
	records->kernels_ns = copy->kernels_ns;
	records->late_ns = copy->late_ns;
	for (unsigned int i = 0; i < STATE_NR_FUNCTIONS; i++)
		if (copy->functions[i].key && copy->functions[i].count)
			add_function(&copy->functions[i], records);
	qsort(records->functions, records->nr_functions, sizeof(records->functions[0]), by_ns);
}

/*
 * Another process may now have this pid. But only the original process holds the lock on the file.
 */
bool reader_lives(const struct gpupart_records_reader *reader)
{
	return !reader->pid || holder_is(reader->page_fd, reader->uid, reader->pid);
}

bool reader_read(struct gpupart_records_reader *reader, struct gpupart_records *records)
{
	memset(records, 0, sizeof(*records));
	strcpy(records->pci, reader->pci);
	if (!reader->pid)
		records_settle();
	if (!copy_records(reader))
		return false;
	if (reader->copy.on) {
		fold_rest(reader);
		if (!reader->pid)
			records_names(reader->copy.functions, NULL, cuda_loaded());
		fill(reader, records);
	}
	return true;
}

/*
 * Copies @own to the caller's struct, which may be shorter or longer than @own. A shorter struct
 * gets only the first members. In a longer struct, the additional members become 0.
 */
static int give(struct gpupart *gp, const struct gpupart_records *own,
		struct gpupart_records *records, size_t size)
{
	if (!size || size > MAX_SIZE)
		return ctx_fail(gp, -EINVAL, "the struct has %zu bytes but must have 1 to %d", size,
				MAX_SIZE);
	memset(records, 0, size);
	memcpy(records, own, size < sizeof(*own) ? size : sizeof(*own));
	return 0;
}

int gpupart_records_read(struct gpupart *gp, struct gpupart_records_reader *reader,
			 struct gpupart_records *records, size_t size)
{
	struct gpupart_records own;

	if (!reader_lives(reader) || !reader_read(reader, &own))
		return ctx_fail(gp, -ESRCH, "process %d has ended, or executes another program now",
				reader->pid);
	return give(gp, &own, records, size);
}

/*
 * Removes all rings except @ring. Streams may have used @ring before its current stream. Removes
 * the launches of these streams, too.
 */
static void leave_ring(struct state_records *copy, const struct records_ring *ring)
{
	uint64_t first = ring ? atomic_load(&ring->first) : 0;

	for (unsigned int n = 0; n < STATE_NR_RINGS; n++)
		if (!ring || n != ring->number)
			copy->rings[n] = (struct state_ring){ .issued = 0 };
		else if (copy->rings[n].folded < first || atomic_load(&ring->fresh)) {
			copy->rings[n].folded = first;
			copy->rings[n].busy_ns = 0;
			copy->rings[n].last_end = 0;
		}
}

int records_read_ring(struct gpupart *gp, struct gpupart_records_reader *reader,
		      const struct records *records,
		      const struct records_ring *ring, struct gpupart_records *result, size_t size)
{
	struct gpupart_records own = { .on = true };
	const struct state_records *copy = &reader->copy;
	const struct state_ring *shown;
	uint64_t earlier;

	records_settle();
	copy_records(reader);
	leave_ring(&reader->copy, ring);
	fold_rest(reader);
	strcpy(own.pci, reader->pci);
	sum_rings(copy, &own);
	for (unsigned int n = 0; n < copy->nr_graphs; n++) {
		const struct records_graph *graph = &records->graphs[n];
		const struct records_ring *on = graph->ring;

		if (!on || graph->mixed || (on == ring && copy->graph[n].lost))
			own.unknown += reader_graph(reader, n);
		else if (on == ring && atomic_load(&on->tmd) == graph->tmd)
			own.outstanding += reader_graph(reader, n);
	}
	/* Other launches of graphs may be running on this stream. */
	own.unknown += copy->graphs + copy->launching;
	own.all_known = !own.unknown;
	own.untimed = copy->untimed;
	own.late_ns = copy->late_ns;
	own.graphs = copy->graphs;
	if (ring) {
		shown = &copy->rings[ring->number];
		earlier = atomic_load(&ring->first) - records_base(ring->number);
		own.issued -= earlier;
		own.ended -= earlier;
		own.unrecorded -= ring->unrecorded;
		own.last_end_ns = shown->last_end;
		own.kernels_ns = own.busy_ns = shown->busy_ns;
	}
	return give(gp, &own, result, size);
}

/* ------------------------------------------------------------------- busy */

static bool map_all(struct gpupart_records_reader *reader)
{
	const off_t at = RECORDS_HEAD + (off_t)reader->gpu * RECORDS_STRIDE;
	struct stat st;
	void *map;

	if (!reader->pid) {
		reader->page = state_page_own;
		reader->section = records_file_find(reader->gpu);
		return reader->section;
	}
	if (!open_records(reader) || fstat(reader->records_fd, &st) ||
	    st.st_size < at + (off_t)sizeof(*reader->section) || fstat(reader->page_fd, &st) ||
	    st.st_size < (off_t)sizeof(*reader->page))
		return false;
	if (!reader->page) {
		map = mmap(NULL, sizeof(*reader->page), PROT_READ, MAP_SHARED, reader->page_fd,
			   0);
		reader->page = map == MAP_FAILED ? NULL : map;
	}
	if (!reader->page)
		return false;
	map = mmap(NULL, sizeof(*reader->section), PROT_READ, MAP_SHARED, reader->records_fd, at);
	reader->section = map == MAP_FAILED ? NULL : map;
	fault_catch();
	return reader->section;
}

static bool ring_busy(struct gpupart_records_reader *reader, const struct state_ring *ring,
		      unsigned int n)
{
	uint64_t issued = __atomic_load_n(&ring->issued, __ATOMIC_ACQUIRE);
	uint64_t waiting = __atomic_load_n(&ring->waiting, __ATOMIC_RELAXED);
	uint64_t folded, done = reader->done[n];
	const struct records_cell *cells = &reader->section->cells[records_first(n)];

	folded = __atomic_load_n(&ring->folded, __ATOMIC_RELAXED);
	if (folded > done && folded <= issued)
		done = folded;
	for (unsigned int left = records_entries(n); left && done < issued; left--, done++)
		if (!records_reached(&cells[(done + 1) % records_entries(n)], done + 1))
			break;
	reader->done[n] = done;
	return done < issued ||
	       (waiting && done < __atomic_load_n(&ring->after, __ATOMIC_RELAXED));
}

static bool graph_busy(const struct gpupart_records_reader *reader,
		       const struct state_records *records)
{
	uint64_t nr = __atomic_load_n(&records->nr_graphs, __ATOMIC_ACQUIRE);

	for (unsigned int n = 0; n < nr && n < STATE_NR_GRAPHS; n++)
		if (records_graph_left(&records->graph[n], &reader->section->graphs[n]) > 0)
			return true;
	return false;
}

/* Returns 0 or 1, like gpupart_records_busy(). The argument @arg is the reader. */
static int read_busy(void *arg)
{
	struct gpupart_records_reader *reader = arg;
	const struct state_records *records = &reader->page->records[reader->gpu];

	/* If recording has stopped, later launches are unknown. */
	if (!__atomic_load_n(&records->on, __ATOMIC_ACQUIRE) ||
	    __atomic_load_n(&records->nowhere, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&records->graphs, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&records->launching, __ATOMIC_ACQUIRE) || graph_busy(reader, records))
		return 1;
	for (unsigned int n = 0; n < STATE_NR_RINGS; n++) {
		const struct state_ring *ring = &records->rings[n];

		/*
		 * If this ring was already checked, or if no stream uses it, skip it. Most rings
		 * are unused.
		 */
		if ((__atomic_load_n(&ring->issued, __ATOMIC_ACQUIRE) != reader->done[n] ||
		     __atomic_load_n(&ring->waiting, __ATOMIC_RELAXED)) &&
		    ring_busy(reader, ring, n))
			return 1;
	}
	return 0;
}

int gpupart_records_busy(struct gpupart *gp, struct gpupart_records_reader *reader)
{
	int busy;

	if (__builtin_expect(!reader->section, 0)) {
		if (reader->pid && reader->uid != geteuid())
			return ctx_fail(gp, -EPERM,
					"process %d belongs to another user",
					reader->pid);
		if (!map_all(reader))
			return ctx_fail(gp, -EINVAL, "process %d has no records",
					reader->pid ? reader->pid : getpid());
	}
	busy = reader->pid ? fault_guard(read_busy, reader) : read_busy(reader);
	return busy != -EFAULT ? busy : ctx_fail(gp, -ESRCH,
						 "the files of process %d were truncated",
						 reader->pid);
}
