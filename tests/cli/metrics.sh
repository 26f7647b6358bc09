#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart metrics: its output for jobs on the simulated GPU, to a file and over HTTP; and that
# promtool, Debian's Prometheus and the dashboard's queries can read it.
. "$(dirname "$0")/tap.subr"
. tests/cli/metrics.subr
trap 'rm -f "$go" "$go".*; kill $servers 2>/dev/null; wait; umount "$tmp/full" 2>/dev/null; rm -rf "$tmp"' EXIT
servers=

# A board with a UUID that no other program uses.
uuid=GPU-01234567-89ab-cdef-0123-456789abcdef
awk -v u="$uuid" '/^checksum/ { exit } { sub(/^uuid = .*/, "uuid = " u); print }' tests/data/gh100-h200-e/capture.txt >"$tmp/board"
hash=-3750763034362895579	# scripts/capture-from-tables
for byte in $(od -An -v -tu1 "$tmp/board"); do
	hash=$(((hash ^ byte) * 1099511628211))
done
printf 'checksum = %016x\n' "$hash" >>"$tmp/board"
e="-i $tmp/board"
one=one$$ two=two$$ qos=qos$$
odd='a"b\c'

# not_served WHERE WORDS: refused with status 1, and not served.
printf '#!/bin/sh\nexec timeout 20 "%s" "$@"\n' "$gpupart" >"$tmp/limited"
chmod 755 "$tmp/limited"
command=$gpupart
not_served() {
	gpupart=$tmp/limited
	refused 1 "--listen $1: $2" metrics --listen "$1"
	gpupart=$command
}

# ------------------------------------------------------------------- invalid arguments
refused 2 "--of xml: must be openmetrics or prometheus" metrics --of xml
refused 2 "-o cannot be used with --listen" metrics --listen 127.0.0.1:1 -o "$tmp/x"
for where in 127.0.0.1 :9000 127.0.0.1: 127.0.0.1:0 127.0.0.1:65536 127.0.0.1:80x ::1:9000 '[::1:9000' '[::1]9000' '' '[]:80'; do
	refused 2 "--listen $where: " metrics --listen "$where"
done
not_served "192.0.2.1:19400" "Cannot assign requested address"
not_served "$tmp/none/sock" "No such file"
long=$tmp/$(printf '%0100d' 0)
not_served "$long" "File name too long"
echo text >"$tmp/file"
not_served "$tmp/file" "Address already in use"
not_served . "Is a directory"
is "$(cat "$tmp/file")" text "a file that is no socket stays"
refused 1 "-o $tmp/none/x.prom.totals: No such file" metrics -o "$tmp/none/x.prom"

# ------------------------------------------------------------------ another user's files
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null 2>&1; then
	mkdir -m 700 "$tmp/theirs"
	cp tests/data/gh100-h200-b/capture.txt "$tmp/theirs/capture"
	chown -R 4732 "$tmp/theirs"
	touch "$go.theirs"
	XDG_CACHE_HOME=$tmp/theirs setpriv --reuid 4732 --clear-groups "$gpupart" run --exec -i "$tmp/theirs/capture" -t 3 --name "theirs$$" -- "$tmp/work" "$go.theirs" 2>/dev/null &
	until_true has_rows "theirs$$" 1
	is "$("$gpupart" metrics | grep -c -e 'gpupart_info.*simulated="true"' -e "^gpupart_launches_total.*user=\"4732\"") $("$gpupart" top --once -d 0.1 | head -n 1 | grep -o simulated)" \
		"2 simulated" "root sees only another user's job, on a capture of that user's: metrics and top say simulated"
	rm "$go.theirs"
	wait
else
	skip "another user's capture: not root, or no setpriv"
fi

# ------------------------------------------------------------------------------- output
touch "$go" "$go.second" "$go.other" "$go.both"
"$gpupart" run --exec $e -t 0-3 --name "$one" --mem 2G -- "$tmp/work" "$go" 2>/dev/null &
"$gpupart" run $e -t 4-5 --name "$two" -- sh -c "'$tmp/work' '$go' & exec '$tmp/work' '$go.second'" 2>/dev/null &
"$gpupart" run --exec $e -t 6 --name odd -- env GPUPART_NAME="$odd" "$tmp/work" "$go" 2>/dev/null &
# Zombies whose parent, the shell above, waits for none of them.
"$gpupart" qos run $e --tenant "$qos:rate=1" --epoch 200ms -- "$tmp/work" "$go" >/dev/null 2>&1 &
until_true has_rows "$one" 1 && until_true has_rows "$two" 2 && until_true has_rows "$odd" 1 && until_true has_rows "$qos" 1
ok $? "five programs run"
until_true sh -c "'$gpupart' metrics | grep -q '^gpupart_qos_goal_met'"
try metrics
is "$status $err $(tail -n 1 "$tmp/out")" "0  # EOF" "metrics: OpenMetrics"
is "$(sed -n 's/^gpupart_info//p' "$tmp/out")" "{version=\"$("$gpupart" --version)\",simulated=\"true\"} 1" "it says that the GPU is simulated"
is "$(sed -n 's/^gpupart_tpcs//p' "$tmp/out")" "{uuid=\"$uuid\",pci=\"0000:01:00.0\",simulated=\"true\"} 66" "and the GPU's TPCs"
is "$(sed -n "s/^gpupart_qos_goal_met{.*name=\"$qos\".*} //p" "$tmp/out")" 1 "the goal of a tenant is met"
[ "$(sed -n "s/^gpupart_qos_score{.*name=\"$qos\".*} \([0-9]*\).*/\1/p" "$tmp/out")" -ge 1 ]
ok $? "and its score is 1 or more"
has "$out" "name=\"a\\\"b\\\\c\",user=\"$(id -un)\",uuid=\"$uuid\",pci=\"0000:01:00.0\"} 1" "a quote and a backslash in a name are escaped"

# Nothing changes: the same values as in ps.
touch "$go.hold" "$go.second.hold"
still() {
	"$gpupart" ps --json >"$tmp/ps.json"
	sleep 0.3
	"$gpupart" ps --json | cmp -s - "$tmp/ps.json"
}
until_true still
# value METRIC NAME: the sum of the samples of that name in $tmp/out.
value() {
	grep "^$1{.*name=\"$2\"" "$tmp/out" | awk '{ sum += $NF } END { printf "%.0f", sum }'
}
shown() {
	jq -r --arg n "$1" "$2" "$tmp/ps.json"
}
launches='[.processes[] | select(.name == $n).counters.launches] | add'
memory='[.tenants[] | select(.tenant == $n)][0] | "\(.used_bytes) \(.quota_bytes)"'
try metrics
is "$(value gpupart_launches_total "$one") $(value gpupart_launches_total "$two")" "$(shown "$one" "$launches") $(shown "$two" "$launches")" "launches are those of ps"
is "$(value gpupart_set_tpcs "$one") $(value gpupart_processes "$one") $(value gpupart_processes "$two")" "4 1 2" "so are TPCs and processes"
is "$(value gpupart_memory_bytes "$one") $(value gpupart_memory_quota_bytes "$one")" "$(shown "$one" "$memory")" "so are memory and quota"
is "$(grep -c "^gpupart_memory_quota_bytes" "$tmp/out")" 1 "a job without a quota has no sample of one"
[ "$(value gpupart_busy_seconds_total "$one")" -gt 0 ]
ok $? "the GPU was busy with it: $(value gpupart_busy_seconds_total "$one") s of the simulated GPU"
boards=$PWD/tests/data/gh100-h200-b/capture.txt:$PWD/tests/data/gh100-h200-e/capture.txt
env GPUPART_SIM="$boards" LD_LIBRARY_PATH="$BUILD/lib/gpupart/sim" "$gpupart" run --exec --gpu all -t 3,7 --name "both$$" -- "$tmp/work" "$go.both" 2>/dev/null &
until_true sh -c "'$gpupart' ps | grep -q both$$"
try metrics
is "$(grep '^gpupart_set_tpcs' "$tmp/out" | grep "both$$" | awk '{ print $NF }' | tr '\n' ' ')" "2 2 " "a run on two GPUs: its set on each"
is "$(grep "both$$" "$tmp/out" | grep -o 'job_id="[^"]*"' | sort -u | wc -l)" 1 "and one job_id for both"
is "$(grep '^gpupart_launches_total' "$tmp/out" | grep -c "both$$")" 1 "its launches are counted once"
rm -f "$go.both"
until_true sh -c "! '$gpupart' ps | grep -q both$$"
GPUPART_RECORDS=0 "$gpupart" run --exec $e -t 7 --name "dark$$" -- "$tmp/work" "$go" 2>/dev/null &
until_true sh -c "'$gpupart' ps | grep -q dark$$"
try metrics
is "$(grep -c "dark$$" "$tmp/out") $(grep "dark$$" "$tmp/out" | grep -c -e busy -e unrecorded)" "4 0" "without records there is no sample of busy time, and not 0"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null 2>&1; then
	is "$(setpriv --reuid 4731 --clear-groups "$gpupart" metrics | grep -c job_id)" 0 "another user sees none of these jobs"
	mkdir -m 777 "$tmp/other"
	XDG_CACHE_HOME=$tmp/other setpriv --reuid 4731 --clear-groups "$gpupart" run --exec -i sample:h200-e -t 8-9 --name "other$$" -- "$tmp/work" "$go.other" 2>/dev/null &
	until_true has_rows "other$$" 1
	setpriv --bounding-set -all,+dac_read_search,+sys_ptrace "$gpupart" metrics >"$tmp/out" 2>&1
	is "$? $(value gpupart_set_tpcs "other$$") $(grep -c "user=\"4731\"" "$tmp/out")" "0 2 6" "root with the capabilities of the unit sees another user's job and its records"
else
	skip "another user's jobs: not root, or no setpriv"
fi

# ------------------------------------------------------------------------- to a file
prom=$tmp/gpupart.prom
"$gpupart" metrics -o "$prom"
is "$? $(grep -c -e EOF -e UNIT "$prom") $(grep -c '^# TYPE gpupart_launches_total counter' "$prom")" "0 0 1" "-o FILE.prom: Prometheus' own format"
if command -v promtool >/dev/null 2>&1; then
	is "$(promtool check metrics <"$prom" 2>&1)" "" "promtool check metrics finds nothing"
else
	skip "no promtool"
fi
cp "$prom" "$tmp/out"
before="$(value gpupart_launches_total "$two") $(value gpupart_busy_seconds_total "$two")"
rm "$go.second"
until_true sh -c "[ \$('$gpupart' ps | grep -c '$two') = 1 ]"
try metrics -o "$prom"
is "$status $out $err" "0  " "-o says nothing"
cp "$prom" "$tmp/out"
is "$(value gpupart_processes "$two") $(value gpupart_launches_total "$two") $(value gpupart_busy_seconds_total "$two")" "1 $before" "a process of a job ends: its counters do not fall"
mkfifo "$tmp/pipe.prom"
gpupart=$tmp/limited
refused 1 "-o $tmp/pipe.prom: is a pipe without a reader" metrics -o "$tmp/pipe.prom"
gpupart=$command
# Another user's FIFO, which no process reads, may be in the place of the stored totals.
mkfifo "$tmp/fifo.prom.totals"
timeout 60 "$gpupart" metrics -o "$tmp/fifo.prom" 2>"$tmp/err"
is "$? $(grep -c "is not a file of this user: counts of ended processes are lost" "$tmp/err")" "0 1" "a FIFO beside the file is not written to"
"$gpupart" metrics --of prometheus >"$tmp/out"
[ "$(value gpupart_launches_total "$two")" -lt "${before% *}" ]
ok $? "without a file nothing keeps them"
if [ "$(id -u)" -eq 0 ] && mkdir "$tmp/full" && mount -t tmpfs -o size=64k full "$tmp/full" 2>/dev/null; then
	"$gpupart" metrics -o "$tmp/full/x.prom"
	cp "$tmp/full/x.prom" "$tmp/x.prom"
	dd if=/dev/zero of="$tmp/full/zeros" bs=4k >/dev/null 2>&1
	refused 1 "No space left on device" metrics -o "$tmp/full/x.prom"
	cmp "$tmp/x.prom" "$tmp/full/x.prom"
	is "$? $(ls -A "$tmp/full" | tr '\n' ' ')" "0 x.prom x.prom.totals zeros " "a full disk: the file is as it was, and nothing is left beside it"
	umount "$tmp/full"
else
	skip "a full disk: no tmpfs can be mounted here"
fi
ln -s /nowhere "$tmp/y.prom.totals"
try metrics -o "$tmp/y.prom"
is "$status $(wc -l <"$tmp/err") $(test -s "$tmp/y.prom" && echo there)" "0 1 there" "totals that cannot be read are lost, in one line"
"$gpupart" metrics -o "$tmp/z.prom"
sed -i 's/[^ ]*$/inf/' "$tmp/z.prom.totals"
"$gpupart" metrics -o "$tmp/z.prom"
is "$(grep -c '^gpupart_busy_seconds_total{.* inf$' "$tmp/z.prom") $(grep -c 'inf$' "$tmp/z.prom.totals")" "0 0" "nor are infinite ones taken up"
sed -i 's/[^ ]* [^ ]*$/-1e9 -1e9/' "$tmp/z.prom.totals"
"$gpupart" metrics -o "$tmp/z.prom"
is "$(grep -c '_total{.* -' "$tmp/z.prom")" 0 "nor such as are below zero"

# ------------------------------------------------------------------------- served
if [ ! -e "$BUILD/lib/gpupart/libgpupart-http.so" ] || ! command -v curl >/dev/null 2>&1; then
	skip "no libmicrohttpd-dev when this was built, or no curl"
	tap_done
fi
free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
ask() {
	curl -s --max-time 20 "$@"
}
# serve WHERE: in the background, until it answers; sets $server.
serve() {
	# not the answer of the previous one
	rm -f "$tmp/serve.err"
	"$gpupart" metrics --listen "$1" 2>"$tmp/serve.err" &
	server=$!
	servers="$servers $server"
	until_true grep -qs "serving HTTP at" "$tmp/serve.err"
}
sock=$tmp/metrics.sock
serve "$sock"
is "$(stat -c '%a %F' "$sock")" "600 socket" "a socket for its user alone"
not_served "$sock" "Address already in use"
has "$(ask --unix-socket "$sock" http://x/metrics)" "gpupart_launches_total{" "it answers there"
kill -9 $server
wait $server 2>/dev/null
[ -S "$sock" ]
ok $? "a server that is killed leaves its socket"
serve "$sock"
has "$(ask --unix-socket "$sock" http://x/metrics)" "gpupart_launches_total{" "and the next one takes its place"
kill $server
wait $server
is "$? $(ls "$sock" 2>/dev/null)" "0 " "SIGTERM: it ends with 0, and its socket is gone"
port=$(free_port)
serve "[::1]:$port"
if grep -q "answers" "$tmp/serve.err"; then
	has "$(ask "http://[::1]:$port/metrics")" "gpupart_launches_total{" "IPv6"
	kill $server
else
	skip "no IPv6 here"
fi
serve "127.0.0.1:$port"
at=http://127.0.0.1:$port
not_served "127.0.0.1:$port" "Address already in use"
is "$(ask -o /dev/null -w '%{http_code} %{content_type}' "$at/metrics")" "200 text/plain; version=0.0.4; charset=utf-8" "Prometheus' own format"
is "$(ask -H 'Accept: application/openmetrics-text;version=1.0.0' -o "$tmp/out" -w '%{http_code} %{content_type}' "$at/metrics") $(tail -n 1 "$tmp/out")" \
	"200 application/openmetrics-text; version=1.0.0; charset=utf-8 # EOF" "OpenMetrics to a reader that accepts it"
is "$(ask -o /dev/null -w '%{http_code}' "$at/") $(ask -o /dev/null -w '%{http_code}' -d x=y "$at/metrics") $(ask -I -o /dev/null -w '%{http_code}' "$at/metrics")" \
	"404 405 200" "another page, POST, HEAD"
# Unreadable data is an error, not an empty page: in a new mount namespace.
if [ "$(id -u)" -eq 0 ] && setpriv --bounding-set -all unshare --version >/dev/null 2>&1 && unshare -m true 2>/dev/null; then
	# shellcheck disable=SC2016 # for the inner shell
	is "$(unshare -m --propagation private sh -c 'mount -t tmpfs shm /dev/shm || exit
		setpriv --bounding-set -all "$0" metrics --listen "$1" 2>"$1.err" &
		for _ in $(seq 600); do
			grep -qs "answers http" "$1.err" && break
			sleep 0.1
		done
		chmod 0 /dev/shm
		curl -s --max-time 20 --unix-socket "$1" -w "%{http_code}" http://x/metrics
		kill $!
		wait $!' "$gpupart" "$tmp/closed")" "nothing could be read
500" "/dev/shm cannot be read: an error"
else
	skip "/dev/shm that cannot be read: not root, or no namespaces"
fi
# A client that sends half of a request and then nothing.
python3 -c 'import socket, sys, time
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.send(b"GET /metrics HTTP/1.1\r\n")
open(sys.argv[2], "w").close()
print(s.recv(1))
open(sys.argv[2] + ".closed", "w").close()' "$port" "$tmp/slow" >/dev/null 2>&1 &
until_true test -e "$tmp/slow"
clients=
for i in 0 1 2 3 4 5 6 7 8 9; do
	ask -o "$tmp/client.$i" "$at/metrics" &
	clients="$clients $!"
done
# shellcheck disable=SC2086 # a list
wait $clients
is "$(grep -lc 'gpupart_qos_goal_met' "$tmp"/client.? | wc -l) $(test -e "$tmp/slow.closed" && echo closed)" "10 " "ten clients at once are answered while a slow one waits"
mkfifo "$tmp/many"
# A hundred clients that each send a little repeatedly, so that none of them times out.
python3 -c 'import select, socket, sys
clients = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(100)]
for client in clients:
    client.send(b"GET /metrics HTTP/1.1\r\nX: ")
open(sys.argv[2], "w").close()
while not select.select([sys.stdin], [], [], 1)[0]:
    for client in clients:
        try:
            client.send(b"x")
        except OSError:
            pass' "$port" "$tmp/hundred" <"$tmp/many" &
exec 3>"$tmp/many"
until_true test -e "$tmp/hundred"
has "$(ask "$at/metrics")" "gpupart_launches_total{" "a hundred endless requests do not block other clients"
exec 3>&-
wait $!

# ------------------------------------------------------------------------- Prometheus
if ! command -v prometheus >/dev/null 2>&1; then
	skip "no prometheus (Debian: prometheus)"
	tap_done
fi
printf '%s\n' 'global: { scrape_interval: 1s }' 'scrape_configs:' \
	"- { job_name: gpupart, static_configs: [ { targets: [ '127.0.0.1:$port' ] } ] }" >"$tmp/prometheus.yml"
db=$(free_port)
prometheus --config.file="$tmp/prometheus.yml" --storage.tsdb.path="$tmp/db" --web.listen-address="127.0.0.1:$db" 2>"$tmp/prometheus.err" &
servers="$servers $!"
query() {
	ask --data-urlencode "query=$1" "http://127.0.0.1:$db/api/v1/query"
}
# result QUERY: the value, or nothing.
result() {
	query "$1" | jq -r '.data.result[].value[1]'
}
is_result() {
	[ "$(result "$1")" = "$2" ]
}
until_true is_result "count(gpupart_launches_total)" "$(grep -c ^gpupart_launches_total "$tmp/client.0")"
ok $? "Prometheus reads every job"
is "$(result 'up{job="gpupart"}')" 1 "all of it is right"
still
is "$(result "gpupart_launches_total{name=\"$one\"}") $(result "gpupart_memory_bytes{name=\"$one\"}") $(result "gpupart_memory_quota_bytes{name=\"$one\"}")" \
	"$(shown "$one" "$launches") $(shown "$one" "$memory")" "its values are those of ps"
is "$(query "gpupart_set_tpcs{name=\"a\\\"b\\\\c\"}" | jq -r '.data.result[0].metric | "\(.name) \(.uuid)"')" "$odd $uuid" "a name with a quote and a backslash, and the GPU's UUID, arrive"

# A process of a job ends while others launch.
touch "$go.second"
"$gpupart" run $e -t 10-11 --name "late$$" -- sh -c "'$tmp/work' '$go.second' 160 & exec '$tmp/work' '$go' 16" 2>/dev/null &
rm "$go.second.hold" "$go.hold"
until_true is_result "gpupart_launches_total{name=\"late$$\"}" 176
ok $? "two processes of one job: 176 launches"
rm "$go.second"
until_true is_result "gpupart_processes{name=\"late$$\"}" 1
is "$(result "gpupart_launches_total{name=\"late$$\"}") $(result "resets(gpupart_launches_total{name=\"late$$\"}[1m])") $(result "resets(gpupart_busy_seconds_total{name=\"late$$\"}[1m])")" \
	"176 0 0" "one ends: no counter of the job has fallen"

# Every query of the dashboard has data.
jq -r '.panels[].targets[].expr' share/grafana/gpupart.json | sed 's/\$__rate_interval/10s/g; s/\$user/.*/g; s/\$name/.*/g' >"$tmp/queries"
[ "$(wc -l <"$tmp/queries")" -ge 8 ]
ok $? "the dashboard has queries: $(wc -l <"$tmp/queries")"
has_data() {
	[ "$(query "$1" | jq '[.data.result[] | select(.value[1] != "NaN")] | length')" -gt 0 ]
}
while IFS= read -r expr; do
	until_true has_data "$expr"
	ok $? "data: $expr"
done <"$tmp/queries"
[ -z "${METRICS_PICTURE-}" ] || sleep 30
[ -z "${METRICS_PICTURE-}" ] || python3 tests/cli/metrics_picture.py "http://127.0.0.1:$db" share/grafana/gpupart.json 40 "$METRICS_PICTURE"
until_true test -e "$tmp/slow.closed"
ok $? "the slow client was let go"
tap_done
