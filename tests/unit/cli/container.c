// SPDX-License-Identifier: MIT
/* The container that the name of a control group tells. */
#include "tests/tap.h"
#include "cli/util/container.c"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define INNER "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

int main(void)
{
	/* As the runtimes' documents and sources have them; podman's were seen. */
	static const struct {
		const char *text, *id, *words;
	} rows[] = {
		{ "0::/machine.slice/libpod-" ID ".scope/container\n", ID, "podman, systemd" },
		{ "9:name=systemd:/libpod_parent/libpod-" ID "\n8:pids:/libpod_parent/libpod-" ID
		  "\n0::/\n", ID, "podman, cgroupfs, the first version" },
		{ "0::/system.slice/docker-" ID ".scope\n", ID, "docker, systemd" },
		{ "12:pids:/docker/" ID "\n", ID, "docker, cgroupfs" },
		{ "0::/kubepods.slice/kubepods-pod8d3c0a5e_1b2c_4d5e_8f90_a1b2c3d4e5f6.slice/"
		  "cri-containerd-" ID ".scope\n", ID, "a pod's, containerd" },
		{ "0::/kubepods/besteffort/pod8d3c0a5e-1b2c-4d5e-8f90-a1b2c3d4e5f6/" ID "\n", ID,
		  "a pod's, cgroupfs" },
		{ "0::/docker/" ID "/docker/" INNER "\n", INNER, "one in another" },
		{ "0::/docker/" ID, ID, "without an end of line" },
		{ "", "", "no text" },
		{ "0::/\n", "", "the first group" },
		{ "0::/user.slice/user-0.slice/session-1.scope\n", "", "a session" },
		{ "0::/docker/" ID "0\n", "", "a digit more" },
		{ "0::/docker/0" ID "\n", "", "a digit before" },
		{ "0::/docker/x" ID "\n", "", "a letter before" },
		{ "0::/docker/" ID "x\n", "", "a letter behind" },
		{ ID, "", "no path" },
		{ "0::/docker/0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef\n",
		  "", "capital letters" },
	};
	char id[CONTAINER_ID_LEN], parsed[CONTAINER_ID_LEN], big[2 * MAX_TEXT];
	FILE *file;
	bool found;

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		found = container_parse(rows[i].text, id);
		tap_ok(!strcmp(id, rows[i].id) && found == !!*rows[i].id, "%s: '%s'",
		       rows[i].words, id);
	}
	memset(big, 'a', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	tap_ok(!container_parse(big, id) && !*id, "a name of any length");
	tap_ok(!container_of(0, id) && !*id, "a process that is not there");
	file = fopen("/proc/self/cgroup", "r");
	if (file) {
		big[fread(big, 1, MAX_TEXT, file)] = 0;
		fclose(file);
		found = container_of(getpid(), id);
		tap_ok(found == container_parse(big, parsed) && !strcmp(id, parsed),
		       "this process: '%s'", id);
	} else {
		tap_skip("no /proc/self/cgroup");
	}
	return tap_done();
}
