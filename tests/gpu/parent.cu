// SPDX-License-Identifier: MIT
// Run by tests/gpu/frameworks.sh: a kernel that launches a kernel. Prints the number of SMs on
// which each of the two ran.
#include <cstdio>

__device__ void note(unsigned int *seen)
{
	unsigned int smid;

	asm("mov.u32 %0, %%smid;" : "=r"(smid));
	atomicAdd(seen + smid, 1);
	for (long long start = clock64(); clock64() - start < 20000; )
		;
}

__global__ void child(unsigned int *seen)
{
	note(seen);
}

__global__ void parent(unsigned int *seen)
{
	note(seen);
	if (!blockIdx.x && !threadIdx.x)
		child<<<264, 1024>>>(seen + 256);
}

int main()
{
	unsigned int *seen, sms[2] = { 0, 0 };

	if (cudaMallocManaged(&seen, 512 * sizeof(*seen)))
		return 1;
	for (int i = 0; i < 512; i++)
		seen[i] = 0;
	parent<<<264, 1024>>>(seen);
	if (cudaDeviceSynchronize())
		return 1;
	for (int i = 0; i < 512; i++)
		sms[i / 256] += seen[i] != 0;
	printf("the parent ran on %u SMs, its child on %u\n", sms[0], sms[1]);
	return 0;
}
