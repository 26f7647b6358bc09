// SPDX-License-Identifier: MIT
// A program of CUDA's runtime, linked statically: where its blocks ran, on one line.
#include <cstdio>

__global__ void census(unsigned int *seen)
{
	unsigned int sm;
	long long start = clock64();

	asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
	while (clock64() - start < 20000)
		;
	atomicAdd(seen + sm, 1);
}

int main()
{
	unsigned int *seen, nr = 0, counts[256];

	if (cudaMalloc(&seen, sizeof(counts)) || cudaMemset(seen, 0, sizeof(counts)))
		return 1;
	census<<<2048, 32>>>(seen);
	if (cudaMemcpy(counts, seen, sizeof(counts), cudaMemcpyDeviceToHost))
		return 1;
	for (unsigned int sm = 0; sm < 256; sm++)
		nr += counts[sm] > 0;
	printf("%u SMs\n", nr);
	return 0;
}
