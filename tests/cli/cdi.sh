#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart cdi: valid by the rules of the Container Device Interface, written completely or not at
# all, and sufficient: a program in a separate root that contains only the C library runs confined
# and is visible from outside.
. "$(dirname "$0")/tap.subr"
e="-i tests/data/gh100-h200-e/capture.txt"
if ! python3 -c '' 2>/dev/null; then
	skip "no python3"
	tap_done
fi
blocks=/dev/shm/gpupart-$(id -u)

# Checks the rules of SPEC.md of github.com/cncf-tags/container-device-interface, version 0.5.0:
# prints each violation, or nothing.
cat >"$tmp/valid.py" <<'END'
import json, re, sys
spec = json.load(open(sys.argv[1]))
wrong = []
def rule(good, words):
    if not good:
        wrong.append(words)
def keys(what, where, needed, optional=()):
    rule(isinstance(what, dict), where + " is no object")
    for key in needed:
        rule(key in what, where + " lacks " + key)
    for key in what:
        rule(key in needed or key in optional, where + " has " + key)
def path(text, where):
    rule(isinstance(text, str) and text.startswith("/"), where + " is no full path")
keys(spec, "the specification", ("cdiVersion", "kind", "devices"), ("containerEdits",))
rule(spec["cdiVersion"] == "0.5.0", "cdiVersion")
vendor, _, kind = spec["kind"].partition("/")
for part in vendor, kind:
    rule(re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]{0,61}[A-Za-z0-9]", part), "kind: " + part)
# Before 0.6.0 the class has no dot.
rule("." not in kind, "kind: a dot in the class")
rule(len(spec["devices"]) >= 1, "no device")
for device in spec["devices"]:
    keys(device, "a device", ("name", "containerEdits"))
    rule(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.:-]*[A-Za-z0-9]", device["name"]), "device name")
    rule([d["name"] for d in spec["devices"]].count(device["name"]) == 1, "a name twice")
for edits in [d["containerEdits"] for d in spec["devices"]] + [spec.get("containerEdits", {"env": []})]:
    keys(edits, "containerEdits", (), ("env", "deviceNodes", "mounts", "hooks"))
    rule(edits, "empty containerEdits")
    for variable in edits.get("env", []):
        rule(re.fullmatch(r"[^=]+=.*", variable), "env: " + variable)
    for node in edits.get("deviceNodes", []):
        keys(node, "a node", ("path",), ("hostPath", "type", "major", "minor", "fileMode",
                                         "permissions", "uid", "gid"))
        path(node["path"], "a node")
        rule(not node.get("permissions", "r").strip("rwm"), "permissions")
    for mount in edits.get("mounts", []):
        keys(mount, "a mount", ("hostPath", "containerPath"), ("options", "type"))
        path(mount["hostPath"], "hostPath")
        path(mount["containerPath"], "containerPath")
        rule(all(isinstance(o, str) for o in mount.get("options", [])), "options")
print("; ".join(wrong))
END
# ask EXPRESSION: evaluates it with the specification s in $tmp/spec, its device d (the device
# named $device, or the first), the merged edits e for a container of it, their variables v, and
# their mounts m by path.
ask() {
	python3 -c "
import json, sys
s = json.load(open(sys.argv[1]))
d = next(d for d in s['devices'] if sys.argv[2] in ('', d['name']))
e = {k: s['containerEdits'].get(k, []) + d['containerEdits'].get(k, [])
     for k in set(s['containerEdits']) | set(d['containerEdits'])}
v = dict(x.split('=', 1) for x in e['env'])
m = {m['containerPath']: m for m in e['mounts']}
print($1)" "$tmp/spec" "${device-}" 2>&1
}
# spec WORDS ARGS: writes a valid specification to $tmp/spec.
spec() {
	words=$1
	shift
	try cdi "$@"
	cp "$tmp/out" "$tmp/spec"
	is "$status $(python3 "$tmp/valid.py" "$tmp/spec" 2>&1)" "0 " "$words: valid"
}

spec "no set" $e
is "$(ask 'd["name"], v["GPUPART_SET"]')" "all 0-65" "no set: all"
is "$(ask '"GPUPART_NAME" in v')" False "no name: no GPUPART_NAME"
is "$(ask '"GPUPART_STRICT" in v')" False "no --strict: no GPUPART_STRICT"
spec "strict" $e -t 0-7 --strict
is "$(ask 'v.get("GPUPART_STRICT")')" 1 "--strict: GPUPART_STRICT=1"
spec "a list" $e -t 0-7,16
is "$(ask 'd["name"], v["GPUPART_SET"]')" "tpc0-7_16 0-7,16" "a list: its name has no comma"
spec "hex" $e --hex 1
is "$(ask 'd["name"], v["GPUPART_SET"]')" "tpc0 0" "hex: one TPC"
spec "every other" $e -t 0-65:2
is "$(ask 'v["GPUPART_SET"].count(",")')" 32 "every other TPC: whole"
spec "all there is" $e -g 0,1 --device half --name batch.1
is "$(ask 's["kind"], d["name"], v["GPUPART_NAME"]')" "gpupart.dev/simulated half batch.1" \
	"--device and --name; the kind says simulated"
has "$err" "simulated: containers with this device use no GPU" "a line on stderr says it too"
is "$(wc -l <"$tmp/err")" 1 "one line"
# The same variables as run sets.
"$gpupart" run $e -g 0,1 --name batch.1 -- env >"$tmp/run" 2>/dev/null
for name in SET GPU CHECKED NAME; do
	is "$(ask "v['GPUPART_$name']")" "$(sed -n "s/^GPUPART_$name=//p" "$tmp/run")" "GPUPART_$name is that of run"
done
is "$(ask 'v["CUDA_INJECTION64_PATH"] in m, v["GPUPART_SIM"] in m, v["LD_LIBRARY_PATH"] + "/libcuda.so.1" in m')" \
	"True True True" "what the environment names is mounted"
is "$(ask '[p for p in m if m[p]["hostPath"] == "'"$blocks"'"]')" "['$blocks']" "the folder of blocks is mounted"
is "$(ask 'sorted(p for p in m if "rw" in m[p]["options"])')" "['$blocks']" "it alone can be written"
is "$(ask 'sum("ro" in x["options"] for x in m.values()) == len(m) - 1')" True "all else is read only"
is "$(ask '"deviceNodes" in e, "hooks" in e')" "False False" \
	"a simulated GPU has no node; there are no hooks"
missing=$(ask '" ".join(x["hostPath"] for x in m.values())' | tr ' ' '\n' | while read -r path; do
	[ -e "$path" ] || echo "$path"; done)
emulated "has the libraries elsewhere: what is mounted" || is "$missing" "" "all that is mounted is there"
is "$(stat -c %a "$blocks")" 700 "the folder of blocks is 0700"
# Inside a run: the container is not a child of that run.
try run $e -t 0-3 -- "$gpupart" cdi -t 10
cp "$tmp/out" "$tmp/spec"
is "$status $(ask 'v["GPUPART_SET"]')" "0 10" "inside a run its limit is none of the container's"

# Two simulated GPUs: each is identified by its address, so both are there.
GPUPART_SIM=tests/data/gh100-h200-b/capture.txt:tests/data/gh100-h200-e/capture.txt \
	LD_LIBRARY_PATH=$BUILD/lib/gpupart/sim "$gpupart" cdi --gpu 1 -t 0 -o "$tmp/spec" 2>"$tmp/err"
is "$? $(python3 "$tmp/valid.py" "$tmp/spec")" "0 " "the second of two: valid"
is "$(ask '" ".join(m[c]["hostPath"].split("/")[-2] for c in v["GPUPART_SIM"].split(":"))')" \
	"gh100-h200-b gh100-h200-e" "both captures, in their order"
has "$(cat "$tmp/err")" "of $(ask 'v["GPUPART_GPU"]'), simulated" "and the address of the second"

# A plan: one device for each tenant, with the common parts once.
"$gpupart" plan $e --tenant llm:gpcs,min=8,mem=1G --tenant batch:min=8,spread --tenant a.b:tpcs=2 --json >"$tmp/plan.json"
spec "a plan" $e --plan "$tmp/plan.json"
has "$err" "wrote 3 simulated devices for 0000:01:00.0: containers with these devices use no GPU" "and says that they are simulated"
is "$(ask '[d["name"] for d in s["devices"]]')" "['llm', 'batch', 'a.b']" "a plan: the tenants' names"
is "$(python3 - "$tmp/plan.json" "$tmp/spec" <<'END'
import json, sys
plan, spec = (json.load(open(path)) for path in sys.argv[1:])
def tpcs(words):
    parts = [p.split("-") for p in words.split(",")]
    return {t for p in parts for t in range(int(p[0]), int(p[-1]) + 1)}
seen = set()
for tenant, device in zip(plan["tenants"], spec["devices"]):
    env = dict(e.split("=", 1) for e in device["containerEdits"]["env"])
    mine = tpcs(env["GPUPART_SET"])
    assert env["GPUPART_NAME"] == tenant["name"], env
    assert len(mine) == tenant["set"]["nr_tpcs"] and mine == tpcs(tenant["set"]["list"]), env
    assert not seen & mine, env
    seen |= mine
print(len(seen))
END
)" "$(python3 -c "import json; print(sum(t['set']['nr_tpcs'] for t in json.load(open('$tmp/plan.json'))['tenants']))")" \
	"each device has its tenant's set and name, and no two a TPC in common"
device=llm
is "$(ask 'v["GPUPART_TENANT"], v["GPUPART_MEM"], v["LD_AUDIT"] in m')" "llm 1073741824 True" "a quota, and what tells NVML of it"
is "$(ask 'v["GLIBC_TUNABLES"]')" glibc.rtld.optional_static_tls=163840 "and room for static TLS beside it"
device="batch"
is "$(ask 'any(k in v for k in ("GPUPART_TENANT", "GPUPART_MEM", "LD_AUDIT")), "GPUPART_CHECKED" in v')" "False True" \
	"a tenant without one has none"
device=
cp "$tmp/spec" "$tmp/first"
"$gpupart" cdi $e --strict --plan "$tmp/plan.json" 2>/dev/null | python3 -c '
import json, sys
s = json.load(sys.stdin)
for d in s["devices"]:
    print(d["name"], "GPUPART_STRICT=1" in s["containerEdits"]["env"] + d["containerEdits"]["env"])' >"$tmp/out"
is "$(tr '\n' ' ' <"$tmp/out")" "llm True batch True a.b True " "--strict: each device of a plan"
"$gpupart" plan $e --tenant llm:gpcs,min=8,mem=1G --tenant batch:min=8,spread --tenant a.b:tpcs=2 --json |
	"$gpupart" cdi $e --plan - >"$tmp/spec" 2>"$tmp/err"
cmp -s "$tmp/first" "$tmp/spec"
ok $? "from a pipe: the same, byte for byte"
spec "a prefix" $e --plan "$tmp/plan.json" --device gpu0
is "$(ask '[d["name"] for d in s["devices"]], v["GPUPART_NAME"]')" "['gpu0-llm', 'gpu0-batch', 'gpu0-a.b'] llm" \
	"--device: before the names of devices, not those of tenants"
spec "a quota of one set" $e -t 0-3 --name solo --mem 512M
is "$(ask 'v["GPUPART_TENANT"], v["GPUPART_MEM"], v["LD_AUDIT"] in m')" "solo 536870912 True" "--name and --mem"

# Invalid values are named, and the file is not changed.
echo old >"$tmp/file.json"
for bad in '' a -a a- _a a/b 'a b' a,b "$(printf 'a\nb')" 'ä1'; do
	try cdi $e -t 0 --device "$bad" -o "$tmp/file.json"
	is "$status $(grep -c -- "--device '" "$tmp/err")" "2 1" "--device '$(echo "$bad" | tr '\n' ' ')': refused"
done
for bad in '' x -1 1x 4294967295 99999999999 1: :1 1:x 1:2:3 ' 1'; do
	refused 2 "--uid '$bad'" cdi $e -t 0 --uid "$bad" -o "$tmp/file.json"
done
"$gpupart" plan -i sample:h200 --tenant llm --json >"$tmp/other.json"
"$gpupart" plan $e --tenant a --json >"$tmp/short.json"
refused 2 "--plan $tmp/other.json: the plan was made for topology" cdi $e --plan "$tmp/other.json" -o "$tmp/file.json"
refused 2 "'a' cannot be a device's name" cdi $e --plan "$tmp/short.json" -o "$tmp/file.json"
refused 2 "'$(printf '%251s' '' | tr ' ' a)': must be 2 to 250 letters" cdi $e --device "$(printf '%251s' '' | tr ' ' a)" -o "$tmp/file.json"
refused 2 "--plan $tmp/plan.json and -t: use only one of them" cdi $e --plan "$tmp/plan.json" -t 0 -o "$tmp/file.json"
refused 2 "--plan $tmp/plan.json and --name: use only one of them" cdi $e --plan "$tmp/plan.json" --name x -o "$tmp/file.json"
refused 2 "--plan $tmp/plan.json and --mem: use only one of them" cdi $e --plan "$tmp/plan.json" --mem 1G -o "$tmp/file.json"
refused 2 "--mem 1G: needs --name" cdi $e -t 0 --mem 1G -o "$tmp/file.json"
refused 2 "--mem none" cdi $e -t 0 --name x --mem none -o "$tmp/file.json"
refused 2 "--plan $tmp/none.json" cdi $e --plan "$tmp/none.json" -o "$tmp/file.json"
echo '{"schema": "gpupart/1", "command": "plan", "topology_hash": "0123456789abcdef", "tenants": []}' >"$tmp/empty.json"
refused 2 "this plan has no tenants" cdi $e --plan "$tmp/empty.json" -o "$tmp/file.json"
refused 2 "--name a b" cdi $e -t 0 --name "a b" -o "$tmp/file.json"
refused 2 66 cdi $e -t 66 -o "$tmp/file.json"
refused 2 "-n 67" cdi $e -n 67 -o "$tmp/file.json"
refused 2 7 cdi $e --gpu 7 -o "$tmp/file.json"
refused 2 "-i rm" cdi -i rm -o "$tmp/file.json"
refused 2 /nonexistent cdi -i /nonexistent -o "$tmp/file.json"
refused 2 extra cdi $e -o "$tmp/file.json" extra
refused 2 --nosuch cdi --nosuch
(
	export GPUPART_SIM_FAULTS=move-bit=7:0 XDG_CACHE_HOME="$tmp/unchecked"
	try cdi $e -g 0 -o "$tmp/file.json"
	has "$status $err" "1 gpupart cdi: mask bit" "mask bits that do not prove right: refused"
	exit $tap_failed
)
tap_failed=$?
tap_count=$((tap_count + 1))
is "$(cat "$tmp/file.json")" old "the file stays as it was"

# -o: complete, readable by the runtime with any umask, links kept, no temporary file left.
(umask 077; "$gpupart" cdi $e -g 0 -o "$tmp/new.json" 2>/dev/null)
is "$? $(stat -c %a "$tmp/new.json") $(python3 "$tmp/valid.py" "$tmp/new.json")" "0 644 " "-o: mode 0644"
chmod 400 "$tmp/new.json"
"$gpupart" cdi $e -g 0 -o "$tmp/new.json" 2>/dev/null
is "$? $(stat -c %a "$tmp/new.json")" "0 400" "-o: the mode of a file that is there stays"
kept=$(stat -c %i "$tmp/new.json")
"$gpupart" cdi $e -g 0 -o "$tmp/new.json" 2>/dev/null
is "$? $(stat -c %i "$tmp/new.json")" "0 $kept" "-o: the same again: the file stays"
"$gpupart" cdi $e -g 1 -o "$tmp/new.json" 2>/dev/null
[ "$(stat -c %i "$tmp/new.json")" != "$kept" ]
ok $? "-o: another set: another file"
"$gpupart" cdi $e -g 0 -o "$tmp/new.json" 2>/dev/null
mkdir "$tmp/links"
ln -s ../file.json "$tmp/links/link.json"
try cdi $e -g 0 -o "$tmp/links/link.json"
[ -L "$tmp/links/link.json" ] && cmp -s "$tmp/file.json" "$tmp/new.json"
ok $? "-o a link: where it leads is replaced"
if chown -h 1002 "$tmp/links/link.json" 2>/dev/null; then
	echo old >"$tmp/file.json"
	refused 1 "-o $tmp/links/link.json: is a symbolic link of another user" cdi $e -g 0 -o "$tmp/links/link.json"
	is "$(cat "$tmp/file.json")" old "-o another user's link: where it leads stays as it was"
	ln -s /dev/null "$tmp/links/link"
	chown -h 1002 "$tmp/links/link"
	refused 1 "-o $tmp/links/link: is a symbolic link of another" cdi $e -g 0 -o "$tmp/links/link"
	echo old >"$tmp/links/other.json"
	chown 1002 "$tmp/links/other.json"
	chmod 6777 "$tmp/links/other.json"
	try cdi $e -g 0 -o "$tmp/links/other.json"
	is "$status $(stat -c "%a %u" "$tmp/links/other.json")" "0 644 $(id -u)" \
		"-o another user's file: replaced, and its mode does not stay"
	chmod 4755 "$tmp/links/other.json"
	try cdi $e -g 0 -o "$tmp/links/other.json"
	is "$(stat -c %a "$tmp/links/other.json")" 755 "-o: no set-user-id bit stays"
else
	skip "no link of another user can be made here"
fi
echo old >"$tmp/file.json"
# A file size limit of one block, less than a specification.
if ! emulated "ends at the limit of a file's size itself: -o where there is no room"; then
	(trap '' XFSZ; ulimit -f 1; "$gpupart" cdi $e -g 0 -o "$tmp/file.json" 2>"$tmp/err")
	is "$? $(cat "$tmp/file.json")" "1 old" "-o where there is no room: 1, and the file stays"
	has "$(cat "$tmp/err")" "-o $tmp/file.json: File too large" "and it says so"
	is "$(find "$tmp" -name '.gpupart-*')" "" "and leaves nothing beside it"
fi
sh -c 'ulimit -f 1; "$@"; true' - "$gpupart" cdi $e -g 0 -o "$tmp/file.json" 2>/dev/null
is "$(cat "$tmp/file.json")" old "-o, killed while it writes: the file stays"
rm -f "$tmp"/.gpupart-*
refused 1 "-o $tmp/none/x.json" cdi $e -g 0 -o "$tmp/none/x.json"
refused 1 "-o $tmp: Is a directory" cdi $e -g 0 -o "$tmp"
# Writes to a device: a private copy, because root could replace /dev/full.
if mknod "$tmp/full" c 1 7 2>/dev/null && ! sh -c 'echo >"$0"' "$tmp/full" 2>/dev/null; then
	refused 1 "-o $tmp/full: No space left" cdi $e -g 0 -o "$tmp/full"
	[ -c "$tmp/full" ]
	ok $? "a device stays a device"
else
	skip "no device can be made here"
fi
mkfifo "$tmp/pipe"
refused 1 "-o $tmp/pipe: is a pipe without a reader" cdi $e -g 0 -o "$tmp/pipe"
# This shell reads it; the data stays in the pipe until then.
exec 3<>"$tmp/pipe"
"$gpupart" cdi $e -g 0 -o "$tmp/pipe" 2>/dev/null
status=$?
exec 4<"$tmp/pipe" 3>&-
cat <&4 >"$tmp/piped"
exec 4<&-
is "$status $(cmp "$tmp/piped" "$tmp/new.json" 2>&1)" "0 " "-o a pipe: it comes out there"
if [ -c /dev/full ]; then
	"$gpupart" cdi $e -g 0 >/dev/full 2>/dev/null
	is $? 1 "a full disk is noticed"
fi

# From here on in a new mount namespace with a private /dev/shm.
if ! unshare -m true 2>/dev/null || [ "$(id -u)" != 0 ]; then
	skip "namespaces cannot be made here by this user: no container tried"
	tap_done
fi
cat >"$tmp/apart" <<'END'
#!/bin/sh
mount -t tmpfs none /dev/shm && exec "$@"
END
chmod +x "$tmp/apart"
apart() { unshare -m "$tmp/apart" "$@"; }
chmod 755 "$tmp"

apart sh -c '"$0" cdi '"$e"' -g 0 --uid 1234:0 >"$1" && stat -c "%u %a" /dev/shm/gpupart-1234' \
	"$gpupart" "$tmp/spec" >"$tmp/out" 2>"$tmp/err"
is "$? $(cat "$tmp/out")" "0 1234 700" "--uid: the folder is made, that user's alone"
is "$(ask 'm["/dev/shm/gpupart-0"]["hostPath"]')" /dev/shm/gpupart-1234 "--uid OUTSIDE:INSIDE: from one to the other"
apart sh -c '"$0" cdi '"$e"' -g 0 --uid 1234 >"$1"' "$gpupart" "$tmp/spec" 2>"$tmp/err"
is "$(ask 'm["/dev/shm/gpupart-1234"]["hostPath"]')" /dev/shm/gpupart-1234 "--uid UID: the same in both"
# The node's setting: /etc is private to this test.
mkdir -p "$tmp/etc/gpupart"
cp -a /etc/ld.so.* /etc/passwd /etc/group "$tmp/etc/" 2>/dev/null
# node TEXT: a specification by a node with that file.
node() {
	printf "$1" >"$tmp/etc/gpupart/config"
	chmod "${2-644}" "$tmp/etc/gpupart/config"
	apart sh -c 'mount --bind "$0" /etc && exec "$@"' "$tmp/etc" "$gpupart" cdi $e -t 0-7 >"$tmp/spec" 2>"$tmp/err"
	status=$?
}
node 'strict = yes\n'
is "$status $(ask 'v.get("GPUPART_STRICT")')" "0 1" "strict = yes of the node: GPUPART_STRICT=1"
node 'strict = no\n'
is "$status $(ask '"GPUPART_STRICT" in v')" "0 False" "strict = no: none"
node 'strict = maybe\n'
is "$status $(cat "$tmp/spec" "$tmp/err")" "1 gpupart cdi: /etc/gpupart/config:1: strict = maybe: must be yes or no" "strict = maybe: refused"
node 'strict = yes\n' 666
is "$status $(ask '"GPUPART_STRICT" in v')" "0 False" "a file that others can write: none"
has "$(cat "$tmp/err")" "/etc/gpupart/config is ignored" "and says so"
why() { sed 's/^gpupart cdi: //;s/; without this directory.*//' "$tmp/err"; }
apart sh -c 'mkdir -m 755 /dev/shm/gpupart-0; "$0" cdi '"$e"' -g 0' "$gpupart" >"$tmp/out" 2>"$tmp/err"
is "$? $(why)" "1 /dev/shm/gpupart-0 is a directory of user 0 with mode 0755: must be a directory of user 0 with mode 0700" \
	"a folder that others get at is refused"
apart sh -c 'mkdir -m 700 /dev/shm/gpupart-0; chown 7 /dev/shm/gpupart-0; "$0" cdi '"$e"' -g 0' "$gpupart" \
	>"$tmp/out" 2>"$tmp/err"
has "$? $(why)" "1 /dev/shm/gpupart-0 is a directory of user 7 with" "another user's folder is refused"
apart sh -c ': >/dev/shm/gpupart-0; "$0" cdi '"$e"' -g 0' "$gpupart" >"$tmp/out" 2>"$tmp/err"
has "$? $(why)" "1 /dev/shm/gpupart-0 is a file of user" "a file in its place is refused"
apart sh -c 'mount -o remount,ro none /dev/shm; "$0" cdi '"$e"' -g 0' "$gpupart" >"$tmp/out" 2>"$tmp/err"
is "$? $(why)" "1 /dev/shm/gpupart-0: Read-only file system" "a /dev/shm that cannot be written: said"
if setpriv --reuid 1234 --clear-groups "$gpupart" --version >/dev/null 2>&1; then
	apart setpriv --reuid 1234 --clear-groups "$gpupart" cdi $e -g 0 --uid 0 >"$tmp/out" 2>"$tmp/err"
	is "$? $(why)" "1 /dev/shm/gpupart-0 does not exist: only root can create it for another user" \
		"no root: another user's folder cannot be made"
else
	skip "the command cannot be run as another user here"
fi

if emulated "has the libraries elsewhere: a container"; then
	tap_done
fi
# A container: a root with the C library, this program and the contents of the specification.
if ! ${CC:-cc} -o "$tmp/census" tests/cli/census.c -ldl 2>"$tmp/err"; then
	skip "no C compiler"
	tap_done
fi
cat >"$tmp/contain.py" <<'END'
import json, os, shutil, subprocess, sys
spec, root, program, arguments = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
device = os.environ.get("DEVICE")
spec = {} if spec == "-" else json.load(open(spec))
edits = {}
# Like a runtime: applies the edits of the whole file, then those of the requested device.
for one in [spec] + [d for d in spec.get("devices", []) if device in (None, d["name"])][:1]:
    for key, values in one.get("containerEdits", {}).items():
        edits[key] = edits.get(key, []) + values
def mount(*words):
    subprocess.check_call(["mount"] + list(words))
mount("-t", "tmpfs", "none", root)
for folder in "dev/shm", "proc", "tmp":
    os.makedirs(root + "/" + folder)
for line in subprocess.check_output(["ldd", program], text=True).splitlines():
    library = next((w for w in line.split() if w.startswith("/")), None)
    if not library:
        continue
    # The folder of the C library: libdl and others if they are separate files, and its loader,
    # which the libraries in LD_AUDIT need by name.
    for name in [os.path.basename(library), "libdl.so.2", "libpthread.so.0", "libm.so.6", "librt.so.1",
                 "ld-linux-x86-64.so.2"]:
        beside = os.path.join(os.path.dirname(library), name)
        if os.path.exists(beside):
            os.makedirs(root + os.path.dirname(beside), exist_ok=True)
            shutil.copy(beside, root + beside)
shutil.copy(program, root + "/program")
shutil.copy("lib/confine/probe.ptx", root + "/probe.ptx")
mount("-t", "tmpfs", "none", root + "/dev/shm")
mount("--rbind", "/proc", root + "/proc")
for m in edits.get("mounts", []):
    inside = root + m["containerPath"]
    if os.path.isdir(m["hostPath"]):
        os.makedirs(inside)
    else:
        os.makedirs(os.path.dirname(inside), exist_ok=True)
        open(inside, "w").close()
    mount("--bind", m["hostPath"], inside)
    mount("-o", ",".join(["remount"] + m["options"]), inside)
os.chroot(root)
os.chdir("/")
os.setuid(int(os.environ.get("CONTAINED_UID", os.getuid())))
environment = dict(e.split("=", 1) for e in edits.get("env", []))
environment.update(e.split("=", 1) for e in arguments if "=" in e)
os.execve("/program", ["/program", "/probe.ptx"] + [a for a in arguments if "=" not in a], environment)
END
mkdir "$tmp/root"
# contained SPECIFICATION VARIABLE=VALUE: runs it; sets $status, $out, $err.
contained() {
	unshare -m python3 "$tmp/contain.py" "$1" "$tmp/root" "$tmp/census" 42 "$2" >"$tmp/out" 2>"$tmp/err"
	status=$?
	out=$(cat "$tmp/out")
	err=$(cat "$tmp/err")
}
"$gpupart" cdi $e -t 0-7 --name inside -o "$tmp/spec" 2>/dev/null
smids=$("$gpupart" run $e -t 0-7 -- "$tmp/census" lib/confine/probe.ptx 0 2>/dev/null)
is "$(echo "$smids" | wc -w)" 16 "8 TPCs are 16 SMs"
contained "$tmp/spec" X=
is "$status $out" "42 $smids" "in the container: its status, on the SMs of the set"
is "$err" "" "and there is no message"
contained "$tmp/spec" GPUPART_DISABLE=1
is "$status $(echo "$out" | wc -w)" "42 132" "with GPUPART_DISABLE=1: on all"
contained "$tmp/spec" GPUPART_SIM_FAULTS=no-table
is "$status $(echo "$out" | wc -w)" "42 132" "one that cannot be confined: on all"
"$gpupart" cdi $e -t 0-7 --strict -o "$tmp/strict" 2>/dev/null
contained "$tmp/strict" X=
is "$status $out" "42 $smids" "strict: on the SMs of the set"
is "$err" "" "and there is no message"
contained "$tmp/strict" GPUPART_SIM_FAULTS=no-table
is "$status $out" "100 " "strict: one that cannot be confined gets no CUDA"
has "$err" "gpupart: strict: this process cannot use CUDA" "and says so"
# Held: no variable changes the set, for user 0 and for any user that it becomes. The grant is in
# a private /run.
held() {
	cat >"$tmp/held" <<-END
		mount -t tmpfs none /run && mkdir -p /run/gpupart/jobs || exit 120
		"$gpupart" cdi $e -t 0-7 --name inside --hold $1 --device held -o "$tmp/held.json" || exit 121
		exec python3 "$tmp/contain.py" "$tmp/held.json" "$tmp/root" "$tmp/census" 42 $2
	END
	unshare -m sh "$tmp/held" >"$tmp/out" 2>"$tmp/err"
	status=$?
	out=$(cat "$tmp/out")
	err=$(cat "$tmp/err")
}
if [ "$(id -u)" = 0 ]; then
	for change in X= GPUPART_DISABLE=1 GPUPART_SET=0-65 GPUPART_SET= GPUPART_CHECKED=; do
		held "" "$change"
		is "$status $out" "42 $smids" "--hold: on the SMs of the set, $change"
		export CONTAINED_UID=4711
		held "" "$change"
		is "$status $out" "42 $smids" "--hold: and as another user"
		unset CONTAINED_UID
	done
	is "$(python3 "$tmp/valid.py" "$tmp/held.json")" "" "--hold: valid"
	held --strict GPUPART_STRICT=0
	is "$status $out" "42 $smids" "--hold --strict: on the SMs of the set"
	held --strict "GPUPART_SIM_FAULTS=no-table GPUPART_STRICT=0"
	is "$status $out" "100 " "--hold --strict: one that cannot be confined gets no CUDA"
	is "$(unshare -m sh -c 'mount -t tmpfs none /run; "$@" >/dev/null; cd /run/gpupart/cdi && find . -type f' - \
		"$gpupart" cdi $e --hold --plan "$tmp/plan.json" 2>"$tmp/err" | sort | tr '\n' ' ')" \
		"./simulated/a.b/0-0 ./simulated/batch/0-0 ./simulated/llm/0-0 " "--hold: a grant for each device of a plan"
	# A failure leaves no grant: a full device, a folder that does not exist, a file that
	# cannot be replaced, a second grant that cannot be written, a capture whose path does not
	# fit into a grant.
	holds_nothing() {	# WORDS MESSAGE COMMANDS
		unshare -m sh -c 'mount -t tmpfs none /run; eval "$1"; echo "$?"; find /run/gpupart/cdi -name 0-0 2>/dev/null' - "$3" \
			>"$tmp/out" 2>"$tmp/err"
		is "$(cat "$tmp/out")" 1 "--hold, $1: fails and holds nothing"
		has "$(cat "$tmp/err")" "$2" "and says it"
	}
	cdi="'$gpupart' cdi $e --hold --plan '$tmp/plan.json'"
	holds_nothing "-o to a full device" "No space left" "$cdi -o /dev/full"
	holds_nothing "a full stdout" "No space left" "$cdi >/dev/full"
	holds_nothing "no folder" "No such file" "$cdi -o '$tmp/nowhere/spec'"
	holds_nothing "a file that something is mounted on" "busy" \
		"touch '$tmp/mounted'; mount --bind '$tmp/mounted' '$tmp/mounted'; $cdi -o '$tmp/mounted'"
	holds_nothing "a grant that cannot be written" "cannot be written" \
		"mkdir -p /run/gpupart/cdi/simulated; touch /run/gpupart/cdi/simulated/llm; $cdi -o '$tmp/unheld'"
	ok "$([ ! -e "$tmp/unheld" ]; echo $?)" "and then no specification is written"
	deep=$tmp/$(printf '%0200d/%0200d/%0200d' 0 0 0)
	mkdir -p "$deep"
	cp "$BUILD/share/gpupart/captures/h200-e.capture" "$deep/a.capture"
	holds_nothing "a path that no grant has room for" "--hold: $deep/a.capture: File name too long" \
		"'$gpupart' cdi -i '$deep/a.capture' -g 0 --hold >/dev/null"
	if setpriv --reuid 1234 --clear-groups "$gpupart" --version >/dev/null 2>&1; then
		apart setpriv --reuid 1234 --clear-groups "$gpupart" cdi $e -g 0 --hold >"$tmp/out" 2>"$tmp/err"
		has "$? $(cat "$tmp/err")" "2 gpupart cdi: --hold: only root" "--hold: refused for another user"
	fi
	# The node's daemon; a file stands for its socket.
	mkdir "$tmp/bin"
	ln -s "$root/tests/other_mps.sh" "$tmp/bin/nvidia-cuda-mps-control"
	unshare -m sh -c 'mount -t tmpfs none /run; "$@"' - "$gpupart" cdi $e -g 0 --mps >"$tmp/out" 2>"$tmp/err"
	has "$? $(cat "$tmp/err")" "1 gpupart cdi: --mps: /run/gpupart/mps: No such file" "--mps: no daemon: refused, and nothing is written"
	is "$(wc -c <"$tmp/out")" 0 "nothing on stdout"
	cat >"$tmp/node" <<-END
		mount -t tmpfs none /run && mkdir -p /run/gpupart/mps || exit 120
		export CUDA_MPS_PIPE_DIRECTORY=/run/gpupart/mps FAKE_MPS=/run PATH="$tmp/bin:\$PATH"
		nvidia-cuda-mps-control -d
		while [ ! -e /run/gpupart/mps/control ]; do sleep 0.05; done
		unset CUDA_MPS_PIPE_DIRECTORY
		"$gpupart" cdi $e -g 0 --mps
		kill \$(cat /run/gpupart/mps/*.pid)
	END
	unshare -m sh "$tmp/node" >"$tmp/spec" 2>"$tmp/err"
	is "$(ask 'v.get("CUDA_MPS_PIPE_DIRECTORY"), v.get("CUDA_MPS_PIPE_DIRECTORY") in m')" "/run/gpupart/mps True" \
		"--mps: its pipes are there, and named"
	is "$(python3 "$tmp/valid.py" "$tmp/spec")" "" "--mps: valid"
else
	skip "only root can hold"
fi
"$gpupart" cdi $e -t 0-7 --name inside -o "$tmp/spec" 2>/dev/null
# Shares of a plan: each on its set, none on the other's, and the quota is the reported memory.
"$gpupart" plan $e --tenant one:tpcs=8,gpcs,mem=2G --tenant two:tpcs=5 --json |
	"$gpupart" cdi $e --plan - -o "$tmp/shares" 2>/dev/null
for share in one two; do
	set=$(python3 -c "import json
print(next(e[12:] for d in json.load(open('$tmp/shares'))['devices'] if d['name'] == '$share'
           for e in d['containerEdits']['env'] if e.startswith('GPUPART_SET=')))")
	"$gpupart" run $e -t "$set" -- "$tmp/census" lib/confine/probe.ptx 0 2>/dev/null | tr ' ' '\n' >"$tmp/wanted.$share"
	DEVICE=$share contained "$tmp/shares" X=
	echo "$out" | tr ' ' '\n' >"$tmp/got.$share"
	is "$status $(cat "$tmp/got.$share")" "42 $(cat "$tmp/wanted.$share")" "share $share: on the SMs of its set"
done
is "$(cat "$tmp/got.one" "$tmp/got.two" | wc -l) $(cat "$tmp/got.one" "$tmp/got.two" | sort | uniq -d | wc -l)" "26 0" \
	"two shares: 13 TPCs, no SM of both"
mv "$tmp/census" "$tmp/census.kept"
${CC:-cc} -o "$tmp/census" tests/cli/memory_seen.c -ldl
DEVICE=one contained "$tmp/shares" X=
is "$status $out" "42 2048 MiB, 0 2" "share one: 2 GiB of memory, and no more to be had"
is "$err" "" "and there is no message"
DEVICE=two contained "$tmp/shares" X=
is "$status $(echo "$out" | sed 's/.*MiB/MiB/')" "42 MiB, 0 0" "share two has no quota: both"
mv "$tmp/census.kept" "$tmp/census"
# A specification of one board on another board: not confined to TPCs of other GPCs.
sed "s,$PWD/tests/data/gh100-h200-e/capture.txt,$PWD/tests/data/gh100-h200-b/capture.txt," "$tmp/shares" >"$tmp/moved"
DEVICE=one contained "$tmp/moved" X=
is "$status $(echo "$out" | wc -w)" "42 132" "on another board: it runs, and not on the set of the first"
has "$err" "gpupart: this program's launches are not confined: the mask bits of NVIDIA H200 (0000:01:00.0) were not checked" \
	"and says so"
# Visible from outside while it runs.
mkfifo "$tmp/in"
unshare -m python3 "$tmp/contain.py" "$tmp/spec" "$tmp/root" "$tmp/census" 42 wait <"$tmp/in" >"$tmp/seen" 2>&1 &
child=$!
exec 3>"$tmp/in"
for _ in $(seq 100); do
	[ -s "$tmp/seen" ] && break
	sleep 0.1
done
try doctor --no-launch $e
has "$out" " inside on TPCs 0-7 " "doctor outside sees it, its name and its set"
pid=$("$gpupart" ps --json | python3 -c 'import json, sys
print(*(p["pid"] for p in json.load(sys.stdin)["processes"] if p["name"] == "inside"))')
is "$(find "$blocks" -name "$pid.*.records" | wc -l)" 1 "its launches have records, though its user has no cache there"
try set inside -t 4-7
is "$status $("$gpupart" ps --json | grep -c '"list": "4-7"')" "0 1" "set outside changes its set"
exec 3>&-
wait $child
is $? 101 "it ends"
tap_done
