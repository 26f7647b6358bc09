// SPDX-License-Identifier: MIT
/*
 * page REGFILE topology|chip|engines|device_info|copy_topology|runlists [NAME BUS]: prints the
 * page that the module must show for a GPU with these registers. If the module must show no page,
 * the exit status is 2.
 */
#include "tests/kmod/regfile.h"
#include "kmod/text.h"

static char buffer[1 << 16];
static struct regfile file;
static struct gpu_engines engines;

static int unreadable(void)
{
	char sentence[TOPO_FAULT_LEN];

	gp_topo_fault_text(&file.reader.fault, sentence, sizeof(sentence));
	printf("unreadable: %s\n", sentence);
	return 2;
}

static int topology_page(struct text *text, const struct gpu_id *id, const char *name,
			 const char *bus)
{
	struct gpu_floorsweep fs;
	struct text_topology page = { .name = name, .bus_name = bus, .id = id, .fs = &fs };

	if (gp_topo_read(id->chip, &file.reader, &fs))
		return unreadable();
	gp_text_topology_memory(&page, &file.reader);
	gp_text_topology(text, &page);
	return 0;
}

static int engines_page(struct text *text, const struct gpu_id *id)
{
	struct text_engines page = { .chip = id->chip, .engines = &engines };

	if (gp_topo_read_engines(id->chip, &file.reader, &engines))
		return unreadable();
	gp_text_engines_copy(&page, &file.reader);
	gp_text_engines(text, &page);
	return 0;
}

static int runlists_page(struct text *text, const struct gpu_id *id)
{
	const struct topo_fault none = { 0 };
	struct gpu_runlist runlist = { 0 };
	bool complete = true, good;
	u32 base = 0;

	if (!gp_chip_cell(id->chip, CHIP_RUNLISTS) ||
	    gp_topo_read_engines(id->chip, &file.reader, &engines))
		return 2;
	gp_text_runlists_head(text, id->chip);
	while ((base = gp_topo_next_runlist(&engines, base))) {
		good = !gp_topo_read_runlist(&file.reader, &engines, base, &runlist);
		gp_text_runlist(text, &runlist, good ? &none : &file.reader.fault);
		complete &= good;
	}
	gp_text_add(text, "\ncomplete    %s\n", complete ? "yes" : "no");
	return 0;
}

int main(int argc, char **argv)
{
	struct text text = { .buf = buffer, .size = sizeof(buffer) };
	struct gpu_copy copy;
	struct gpu_id id;
	const char *page;
	int status = 0;

	if (argc < 3) {
		fprintf(stderr, "usage: page REGFILE PAGE [NAME BUS]\n");
		return 1;
	}
	page = argv[2];
	regfile_load(&file, argv[1]);
	if (gp_topo_identify(&file.reader, &id))
		return unreadable();
	if (!id.chip) {
		if (!strcmp(page, "topology"))
			gp_text_add(&text, "gpu         gpu0 0000:01:00.0\n");
		gp_text_refused(&text, &id);
		status = 2;
	} else if (!strcmp(page, "topology")) {
		status = topology_page(&text, &id, argc > 3 ? argv[3] : "gpu0",
				       argc > 4 ? argv[4] : "0000:01:00.0");
	} else if (!strcmp(page, "chip")) {
		gp_text_chip(&text, &id);
	} else if (!strcmp(page, "engines")) {
		status = engines_page(&text, &id);
	} else if (!strcmp(page, "runlists")) {
		status = runlists_page(&text, &id);
	} else if (!strcmp(page, "device_info")) {
		if (gp_topo_read_engines(id.chip, &file.reader, &engines))
			return unreadable();
		gp_text_device_info(&text, id.chip, &engines);
	} else if (!strcmp(page, "copy_topology")) {
		if (gp_topo_read_copy(id.chip, &file.reader, &copy))
			return unreadable();
		gp_text_copy_topology(&text, &copy);
	} else {
		fprintf(stderr, "no page %s\n", page);
		return 1;
	}
	if (text.overflow) {
		fprintf(stderr, "the page does not fit\n");
		return 1;
	}
	fwrite(buffer, 1, text.len, stdout);
	return status;
}
