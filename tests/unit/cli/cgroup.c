// SPDX-License-Identifier: MIT
/*
 * Tests code that finds pods, containers and Slurm jobs in cgroup paths. Each manager writes such
 * paths in a different form.
 */
#include "tests/tap.h"
#include "cli/target/cgroup.c"

#define ID	"3f4e5d6c7b8a90123f4e5d6c7b8a90123f4e5d6c7b8a90123f4e5d6c7b8a9012"
#define OUTER	"aaaabbbbccccddddaaaabbbbccccddddaaaabbbbccccddddaaaabbbbccccdddd"
#define POD	"0a1b2c3d-1111-2222-3333-444455556666"
#define SLICED	"0a1b2c3d_1111_2222_3333_444455556666"

static const struct {
	const char *what, *text, *pod, *container, *slurm;
} rows[] = {
	{ "nothing", "", "", "", "" },
	{ "a login", "0::/user.slice/user-1000.slice/session-2.scope\n", "", "", "" },
	{ "kubelet with cgroupfs", "0::/kubepods/burstable/pod" POD "/" ID "\n", POD, ID, "" },
	{ "a guaranteed pod", "0::/kubepods/pod" POD "/" ID "\n", POD, ID, "" },
	{ "kubelet with systemd, containerd", "0::/kubepods.slice/kubepods-burstable.slice/"
	  "kubepods-burstable-pod" SLICED ".slice/cri-containerd-" ID ".scope\n", POD, ID, "" },
	{ "CRI-O", "0::/kubepods.slice/kubepods-pod" SLICED ".slice/crio-" ID ".scope/container\n",
	  POD, ID, "" },
	{ "version 1, many lines", "12:memory:/kubepods/besteffort/pod" POD "/" ID "\n"
	  "1:name=systemd:/kubepods/besteffort/pod" POD "/" ID "\n0::/\n", POD, ID, "" },
	{ "docker with systemd", "0::/system.slice/docker-" ID ".scope\n", "", ID, "" },
	{ "docker with cgroupfs", "0::/docker/" ID "\n", "", ID, "" },
	{ "podman of root", "0::/machine.slice/libpod-" ID ".scope/container\n", "", ID, "" },
	{ "podman of a user", "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-"
	  ID ".scope\n", "", ID, "" },
	{ "podman with cgroupfs", "0::/libpod_parent/libpod-" ID "\n", "", ID, "" },
	{ "a container in a container", "0::/docker/" OUTER "/kubepods/pod" POD "/" ID "\n", POD,
	  ID, "" },
	{ "Slurm, version 2", "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n",
	  "", "", "4711" },
	{ "Slurm, version 1", "4:memory:/slurm/uid_1000/job_12/step_batch\n0::/\n", "", "", "12" },
	{ "a job folder of someone else", "0::/user.slice/job_9/x\n", "", "", "" },
	{ "a line does not go on from the one before", "1:cpu:/slurm\n0::/job_9/x\n", "", "", "" },
	{ "a number that is too long", "0::/slurm/job_99999999999999999999/x\n", "", "", "" },
	{ "no number", "0::/slurm/job_/x\n0::/slurm/job_1x\n", "", "", "" },
	{ "63 digits", "0::/docker/"
	  "f4e5d6c7b8a90123f4e5d6c7b8a90123f4e5d6c7b8a90123f4e5d6c7b8a9012"
	  "\n", "", "", "" },
	{ "65 digits", "0::/docker/0" ID "\n0::/docker/" ID "0\n", "", "", "" },
	{ "digits and more", "0::/docker/" ID "x\n", "", "", "" },
	{ "no UUID", "0::/kubepods/pod" "0a1b2c3d-1111-2222-3333-44445555666" "/x\n", "", "", "" },
	{ "cut in a UUID", "0::/kubepods/pod0a1b2c3d-11", "", "", "" },
	{ "capital letters", "0::/docker/"
	  "3F4e5d6c7b8a90123f4e5d6c7b8a90123f4e5d6c7b8a90123f4e5d6c7b8a9012\n", "", "", "" },
	{ "no path", ID, "", "", "" },
	{ "no end of line", "0::/docker/" ID, "", ID, "" },
};

int main(void)
{
	struct cgroup_ids ids;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cgroup_parse(rows[i].text, &ids);
		tap_ok(!strcmp(ids.pod, rows[i].pod) && !strcmp(ids.container, rows[i].container) &&
		   !strcmp(ids.slurm, rows[i].slurm), "%s: pod '%s', container '%s', job '%s'",
		   rows[i].what, ids.pod, ids.container, ids.slurm);
	}
	memset(&ids, 'x', sizeof(ids));
	cgroup_read(999999999, &ids);
	tap_ok(!*ids.pod && !*ids.container && !*ids.slurm,
	       "of a process that is not there: nothing");
	return tap_done();
}
