// SPDX-License-Identifier: MIT
/* Assigns letters to jobs, reads the states of GPUs, and writes cells of a frame. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "cli/target/cuda.h"
#include "cli/top/top.h"
#include "cli/util/alloc.h"

volatile sig_atomic_t top_ended;

static void on_end(int sig)
{
	top_ended = sig;
}

void top_end_on(int sig)
{
	sigaction(sig, &(const struct sigaction){ .sa_handler = on_end }, NULL);
}

/* A known job keeps its letter. A new job gets the lowest letter that is free on its GPU. */
static void give_letters(struct top *top)
{
	const struct model *model = &top->model;
	const unsigned int nr = top->nr_letters + model->nr_rows + 1;
	bool *taken = alloc_zeroed(model->nr_gpus + 1, nr);

	top->nr_letters = 0;
	for (int pass = 0; pass < 2; pass++)
		for (unsigned int i = 0; i < model->nr_rows; i++) {
			struct model_row *row = &model->rows[i];

			if (row->job >= 0 || (pass && row->letter >= 0))
				continue;
			while (pass && taken[row->gpu * nr + ++row->letter])
				;
			if (row->letter >= 0)
				taken[row->gpu * nr + row->letter] = true;
			if (row->letter >= (int)top->nr_letters)
				top->nr_letters = row->letter + 1;
		}
	free(taken);
}

int top_take(struct top *top, double age)
{
	int status = model_take(&top->model, age);
	struct cuda_simulated found;

	if (status)
		return status;
	give_letters(top);
	for (unsigned int i = 0; i < top->model.nr_gpus; i++) {
		const struct model_gpu *of = &top->model.gpus[i];
		struct top_gpu *gpu = &top->gpus[i];

		/*
		 * If the libcuda.so.1 of this process simulates this GPU, the NVIDIA management
		 * library also simulates this GPU.
		 */
		if (i >= top->nr_gpus)
			gpu->reported =
				!of->simulated ||
				(getenv("GPUPART_SIM") && !cuda_find_simulated(of->pci, &found) &&
				 found.simulated && !strcmp(found.pci, of->pci) &&
				 !strcmp(found.capture, of->source));
		gpu->state = (struct nvml_state){ -1, -1, -1 };
		gpu->memory = gpu->memory_used = -1;
		if (!gpu->reported)
			continue;
		nvml_state(of->pci, &gpu->state);
		nvml_gpu_memory(of->pci, &gpu->memory_used, &gpu->memory);
		/* A simulated library knows only the memory of this process. */
		gpu->memory_used = of->simulated ? -1 : gpu->memory_used;
	}
	top->nr_gpus = top->model.nr_gpus;
	return 0;
}

/* ------------------------------------------------------------------- cells */

unsigned int top_put(struct top_view *view, unsigned int y, unsigned int x, unsigned int style,
		     const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	for (const char *c = text; *c && x < view->width && y < view->height; x++) {
		struct top_cell *cell = &view->cells[y * view->width + x];
		unsigned int len = 1;

		while (len < 3 && (c[len] & 0xc0) == 0x80)
			len++;
		memcpy(cell->bytes, c, len);
		cell->bytes[len] = 0;
		cell->style = style;
		c += len;
	}
	return x;
}

void top_print(struct out *out, const struct top_view *view)
{
	unsigned int nr_blank = 0;

	for (unsigned int y = 0; y < view->height; y++) {
		const struct top_cell *line = &view->cells[y * view->width];
		unsigned int end = view->width;

		while (end && (!*line[end - 1].bytes || !strcmp(line[end - 1].bytes, " ")))
			end--;
		nr_blank += !end;
		for (; end && nr_blank; nr_blank--)
			fputc('\n', out->file);
		for (unsigned int x = 0; x < end; x++)
			fputs(*line[x].bytes ? line[x].bytes : " ", out->file);
		if (end)
			fputc('\n', out->file);
	}
}
