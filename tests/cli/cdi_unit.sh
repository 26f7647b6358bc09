#!/bin/sh
# SPDX-License-Identifier: MIT
# The program of gpupart-cdi.service: the CDI devices follow the plan, the node's setting and the
# options, stay if they are correct, and are removed if the plan does not apply. In a separate
# mount namespace.
if [ -z "${UNIT_TEST-}" ] && [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	exec unshare -m env UNIT_TEST=1 "$0"
fi
. "$(dirname "$0")/tap.subr"
capture=$PWD/tests/data/gh100-h200-e/capture.txt
units=$tmp/units
mkdir "$units"
for unit in gpupart-cdi.service gpupart-cdi.path; do
	sed "s|@bindir@|$BUILD/bin|; s|@libdir@|$BUILD/lib|" share/systemd/$unit >"$units/$unit"
done
setting() { sed -n "s/^$1=//p" "$units/gpupart-cdi.service"; }
# Every gpupart file that the service reads is watched, and so is the library.
is "$(sed -n 's/^PathChanged=//p' "$units/gpupart-cdi.path" | sort | tr '\n' ' ')" \
	"$(printf '%s\n' "$(setting ExecStart | grep -o '/[^ ]*/plan.json')" "$(setting EnvironmentFile | sed s,^-,,)" \
		/etc/gpupart/config "$BUILD/lib/libgpupart.so.0" | sort | tr '\n' ' ')" "the path unit watches what the devices are made of"
if command -v systemd-analyze >/dev/null 2>&1; then
	is "$(systemd-analyze verify --man=no "$units/gpupart-cdi.path" "$units/gpupart-cdi.service" 2>&1 | grep gpupart)" "" \
		"systemd-analyze verify finds nothing"
else
	skip "no systemd-analyze"
fi
if [ -z "${UNIT_TEST-}" ]; then
	skip "only root can try the unit, in a mount namespace of its own"
	tap_done
fi
cp -a /etc "$tmp/etc" && mount --bind "$tmp/etc" /etc && mount -t tmpfs none /run && mount -t tmpfs -o mode=1777 none /dev/shm || exit 1
rm -rf /etc/gpupart /etc/cdi
mkdir -p /etc/gpupart /etc/default "/etc/$(setting ConfigurationDirectory)" "$tmp/cache"
echo "OPTIONS=\"-i $capture\"" >/etc/default/gpupart-cdi
file=/etc/cdi/gpupart.json
# start: starts it like systemd, with systemd's form of the result: $status, $err.
start() {
	(
		. /etc/default/gpupart-cdi
		XDG_CACHE_HOME=$tmp/cache
		export OPTIONS XDG_CACHE_HOME
		eval "$(setting ExecStart)"
	) >"$tmp/out" 2>"$tmp/err"
	status=$?
	SERVICE_RESULT=success
	[ $status = 0 ] || SERVICE_RESULT=exit-code
	export SERVICE_RESULT
	eval "$(setting ExecStopPost | sed 's/\$\$/$/')"
	err=$(cat "$tmp/err")
}
plan() { "$gpupart" plan -i "$capture" "$@" --json >/etc/gpupart/plan.json; }
devices() { grep -o '"name": "[a-z]*"' $file | cut -d '"' -f 4 | tr '\n' ' '; }
plan --tenant llm:tpcs=8,gpcs --tenant batch:tpcs=5
start
is "$status $(devices)" "0 llm batch " "the plan's devices"
is "$(find "$tmp/cache" -type f | wc -l)" 2 "the self-check is made once: the map and the records are in the cache"
first=$(stat -c %i $file)
start
is "$status $(stat -c %i $file)" "0 $first" "the same again: the file stays"
plan --tenant llm:tpcs=8,gpcs --tenant other:tpcs=5
start
is "$status $(devices)" "0 llm other " "another plan: its devices"
echo "strict = yes" >/etc/gpupart/config
start
is "$status $(grep -c GPUPART_STRICT=1 $file)" "0 1" "the node becomes strict: so do the devices"
echo "OPTIONS=\"-i $capture --hold\"" >/etc/default/gpupart-cdi
start
is "$status $(grep -c '"/run/gpupart/cdi/simulated/' $file)" "0 2" "--hold in the options: a grant for each"
echo "OPTIONS=\"-i $PWD/tests/data/gh100-h200-b/capture.txt\"" >/etc/default/gpupart-cdi
start
has "$status $err" "2 gpupart cdi: --plan /etc/gpupart/plan.json: the plan was made for topology" "another board: it fails"
[ ! -e $file ]
ok $? "and leaves no devices of the first"
echo "OPTIONS=\"-i $capture\"" >/etc/default/gpupart-cdi
start
is "$status $(devices)" "0 llm other " "the first one again: they are there again"
rm /etc/gpupart/plan.json
start
[ $status != 0 ] && [ ! -e $file ]
ok $? "no plan: no devices"
tap_done
