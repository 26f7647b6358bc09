#!/bin/sh
# SPDX-License-Identifier: MIT
# A node's grant applies in user namespaces, such as those of rootless containers, with any
# environment.
. "$(dirname "$0")/tap.subr"
if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null || ! setpriv --reuid 4711 --clear-groups unshare -Ur true 2>/dev/null; then
	skip "only root makes grants, in namespaces of its own"
	tap_done
fi
if ! ${CC:-cc} -o "$tmp/census" tests/cli/census.c -ldl 2>"$tmp/err"; then
	skip "no C compiler"
	tap_done
fi
cat >"$tmp/give.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/private.h"

/*
 * Gives user 4711 4 TPCs as job argv[1], argv[2] is the checked map; without it, drops the job.
 * A job of another number than 0-7 is user 4712's: TPCs 2-65, or 10-65 for 0-9. Strict: $STRICT.
 */
int main(int argc, char **argv)
{
	struct gpupart_grant grant = { .uid = 4711, .nr_tpcs = 66, .set = gpupart_tpcset_first(4) };

	if (strcmp(argv[1], "0-7")) {
		grant.uid = 4712;
		grant.set = gpupart_tpcset_first(66);
		for (int tpc = 0; tpc < (strcmp(argv[1], "0-9") ? 2 : 10); tpc++)
			gpupart_tpcset_del(&grant.set, tpc);
	}

	grant.strict = getenv("STRICT");
	strcpy(grant.id, argv[1]);
	strcpy(grant.name, "7");
	strcpy(grant.pci, "0000:01:00.0");
	strcpy(grant.source, "rm");
	if (argc > 2)
		snprintf(grant.key, sizeof(grant.key), "%s", argv[2]);
	return argc > 2 ? gpupart_grant_put(NULL, &grant) : gpupart_grant_drop(NULL, argv[1]);
}
END
${CC:-cc} -iquote . -I include -I include/uapi -o "$tmp/give" "$tmp/give.c" "$BUILD/lib/libgpupart.so.0" "$BUILD/lib/libgpupart-manage.so.0" -Wl,-rpath,"$BUILD/lib" || exit 1
chmod 755 "$tmp"
cat >"$tmp/as" <<END
mount -t tmpfs none /run && mount -t tmpfs -o mode=1777 none /dev/shm || exit 120
# Its environment has the map of mask bits that run checked.
exec "$gpupart" run -i sample:h200-e -t 0-65 -- sh -c 'for grant in \$GRANT; do "$tmp/give" "\$grant" "\$GPUPART_CHECKED" || exit 121
		for patch in \$PATCH; do
			printf "\${patch#*=}" | dd of=/run/gpupart/jobs/\$grant bs=1 seek=\${patch%%=*} conv=notrunc status=none || exit 123
		done
	done
	[ -z "\$FREEZE" ] || mount -o remount,ro /run || exit 122
	exec setpriv --reuid "\$USER_ID" --clear-groups env XDG_CACHE_HOME=/dev/null "\$@"' - "\$@"
END
# sms GRANT USER COMMAND...: the number of SMs of the program, started by COMMAND.
sms() {
	grant=$1
	user=$2
	shift 2
	GRANT=$grant USER_ID=$user unshare -m sh "$tmp/as" "$@" "$tmp/census" lib/confine/probe.ptx 0 2>"$tmp/err" | wc -w
}
is "$(sms '' 4711 env)" 132 "no grant: the whole GPU"
is "$(sms 0-7 4712 env GPUPART_DISABLE=1)" 132 "another user's grant: the whole GPU"
is "$(sms 0-7 4711 env GPUPART_SET=0-65)" 8 "a grant of 4 TPCs holds"
for other in GPUPART_DISABLE=1 GPUPART_SET=0-65 GPUPART_SET=; do
	is "$(sms 0-7 4711 env $other unshare -Ur)" 8 "also for user 0 of a user namespace, $other"
	is "$(sms 0-7 4711 env $other unshare -U --map-user=4711)" 8 "for the same number, $other"
	is "$(sms 0-7 4711 env $other unshare -Ur unshare -U --map-user=5)" 8 "for another number in two of them, $other"
	is "$(sms 0-7 4711 env $other unshare -U)" 8 "and where no user is mapped, $other"
done
is "$(sms 0-7 4712 env GPUPART_SET=0-65 unshare -Ur)" 132 "another user's namespace is not held"
is "$(sms 0-7 4711 unshare -Ur "$gpupart" run -i sample:h200-e -t 0-65 --)" 8 "a run in it gets no more"
is "$(sms 0-7 0 env GPUPART_SET=0-65 unshare -Ur)" 132 "nor is root, whose namespace has the machine's root"

for other in GPUPART_JOB=0-9 GPUPART_JOB= GPUPART_DISABLE=1; do
	is "$(sms "0-7 0-9" 4711 env $other unshare -U)" 8 "no user is mapped: another user's grant is not his, $other"
done
is "$(sms "0-7 0-9" 4712 unshare -U)" 112 "nor is his the other's"
is "$(FREEZE=1 sms "0-7 0-8" 4711 env GPUPART_JOB=0-8 unshare -U)" 4 "/run is read only: what both grants allow"
is "$(FREEZE=1 sms "0-7 0-9" 4711 env GPUPART_JOB=0-9 unshare -U)" 0 "nothing in common: no CUDA"
has "$(cat "$tmp/err")" "hides which grant is this user's" "and why"
# Another version: the layout, at byte 12, has another number.
PATCH='12=\143'
export PATCH
is "$(sms 0-7 4711 env -u GPUPART_REPORT -u GPUPART_CHECKED GPUPART_SET=0-65)" 8 "a grant of another version holds: its header has the checked map"
is "$(sms 0-7 4711 env -u GPUPART_REPORT GPUPART_STRICT=0 GPUPART_SIM_FAULTS=no-table)" 132 "not strict: a program that cannot be confined runs"
has "$(cat "$tmp/err")" "launches are not confined" "and says so"
is "$(STRICT=1 sms 0-7 4711 env -u GPUPART_REPORT -u GPUPART_CHECKED GPUPART_STRICT=1)" 8 "a strict one of another version holds"
for other in GPUPART_STRICT=0 GPUPART_DISABLE=1 GPUPART_SET=0-65; do
	is "$(STRICT=1 sms 0-7 4711 env -u GPUPART_REPORT $other GPUPART_SIM_FAULTS=no-table)" 0 "and is strict: no CUDA where it cannot be confined, $other"
	has "$(cat "$tmp/err")" "strict: this process cannot use CUDA" "and why, $other"
done
# A version that left these bytes of the header 0: the environment has the map.
PATCH="$PATCH 279=\\0 360=$(printf '\\0%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20)"
is "$(STRICT=1 sms 0-7 4711 env -u GPUPART_REPORT GPUPART_SET=0-65 GPUPART_STRICT=1)" 8 "a header without the checked map: the environment's"
is "$(STRICT=1 sms 0-7 4711 env -u GPUPART_REPORT GPUPART_STRICT=1 GPUPART_SIM_FAULTS=no-table)" 0 "and the environment's strictness"
is "$(sms 0-7 4711 env -u GPUPART_REPORT -u GPUPART_CHECKED GPUPART_STRICT=0)" 132 "neither has it: not confined"
has "$(cat "$tmp/err")" "launches are not confined" "and says so"
unset PATCH

cat >"$tmp/no_proc" <<'END'
mount -t tmpfs none /proc && exec "$@"
END
is "$(sms 0-7 4711 env GPUPART_SET=0-65 unshare -Urm sh "$tmp/no_proc")" 8 "user 0 with a /proc of his own is held"
left=$(unshare -m sh -c "mount -t tmpfs none /run && '$tmp/give' 0-7 '' && ls -A /run/gpupart/jobs && '$tmp/give' 0-7 && ls -A /run/gpupart/jobs | wc -l")
is "$(echo "$left" | tail -n 1)" 0 "a grant that is dropped leaves nothing"
# Any user can open the folder of grants, and that is sufficient for a lock.
cat >"$tmp/set.c" <<'END'
#include <stdio.h>
#include "lib/private.h"

/* Changes the TPCs of job 0-7, as "gpupart set" does; prints why not. */
int main(void)
{
	struct gpupart_tpcset set = gpupart_tpcset_first(2);
	struct gpupart *gp;

	if (gpupart_open(&gp) || !gpupart_job_limit_set(gp, "0-7", &set, NULL))
		return 0;
	puts(gpupart_error(gp));
	return 1;
}
END
${CC:-cc} -iquote . -I include -I include/uapi -o "$tmp/set" "$tmp/set.c" "$BUILD/lib/libgpupart.so.0" "$BUILD/lib/libgpupart-manage.so.0" -Wl,-rpath,"$BUILD/lib" || exit 1
is "$(unshare -m sh -c 'mount -t tmpfs none /run && mount -t tmpfs -o mode=1777 none /dev/shm && "$0/give" 0-7 0 || exit 120
	setpriv --reuid 4711 --clear-groups flock /run/gpupart/jobs sleep 60 >/dev/null &
	while flock -n /run/gpupart/jobs true; do sleep 0.1; done
	"$0/set" && echo "$(setpriv --reuid 4711 --clear-groups flock -n /run/gpupart/jobs/.lock true 2>&1 | grep -c "Permission denied")"
	kill $!' "$tmp")" 1 "root changes a job's set while a user has locked the folder; the lock is root's alone"
tap_done
