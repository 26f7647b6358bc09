#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart topology --json: valid, the schema first, with the documented names and the capture's
# numbers.
. "$(dirname "$0")/tap.subr"

# ask EXPRESSION-OF-jq EXPRESSION-OF-python: the value as compact JSON.
if jq --version >/dev/null 2>&1; then
	ask() { jq -c "$1" "$tmp/out"; }
elif python3 -c '' 2>/dev/null; then
	ask() { python3 -c "
import json, sys
d = json.load(open(sys.argv[1]))
print(json.dumps($2, separators=(',', ':')))" "$tmp/out"; }
else
	skip "neither jq nor python3"
	tap_done
fi

for board in b e; do
	capture=tests/data/gh100-h200-$board/capture.txt
	try topology -i $capture --json
	is "$status$err" 0 "board $board: status"
	is "$(ask .schema 'd["schema"]')" '"gpupart/1"' "board $board: valid JSON with the schema"
	is "$(ask '[.command, .simulated]' '[d["command"], d["simulated"]]')" '["topology",false]' \
		"board $board: command, and not simulated"
	is "$(ask '[.nr_sms, .nr_tpcs, .nr_gpcs, .nr_ugpus]' \
		'[d[k] for k in ("nr_sms", "nr_tpcs", "nr_gpcs", "nr_ugpus")]')" "[132,66,8,2]" \
		"board $board: how many"
	is "$(ask '[.tpcs[].smids[]] | sort | . == [range(132)]' \
		'sorted(s for t in d["tpcs"] for s in t["smids"]) == list(range(132))')" true \
		"board $board: every SM once"
	for level in gpcs vgpcs ugpus; do
		is "$(ask "[.$level[].tpcs[]] | sort | . == [range(66)]" \
			"sorted(t for g in d['$level'] for t in g['tpcs']) == list(range(66))")" true \
			"board $board: every TPC in one of $level"
	done
done
is "$(sed -n 2p "$tmp/out" | tr -d ' ')" '"schema":"gpupart/1",' "the schema is the first key"
is "$(ask 'keys' 'sorted(d)')" \
	'["command","compute_class","gpcs","gpu","hash","nr_gpcs","nr_sms","nr_tpcs","nr_ugpus","schema","simulated","tpcs","ugpus","vgpcs"]' \
	"the names at the top"
is "$(ask '.gpu | keys' 'sorted(d["gpu"])')" \
	'["chip_id","driver","max_gpcs","max_tpcs_per_gpc","mig","name","origin","pci","simulated","source","uuid"]' \
	"the names of gpu"
is "$(ask '.tpcs[0] | keys' 'sorted(d["tpcs"][0])')" \
	'["cpc","gpc","measured_tmd_bit","smids","tpc","tpc_in_gpc","tpc_in_vgpc","ugpu","vgpc"]' \
	"the names of a TPC"
is "$(ask '.gpcs[0] | keys' 'sorted(d["gpcs"][0])')" \
	'["floorswept_tpc_phys","gpc","gpc_phys","present_tpc_phys","tpcs","ugpu"]' "the names of a GPC"
is "$(ask '[.gpcs[1].gpc_phys, .gpcs[1].floorswept_tpc_phys]' \
	'[d["gpcs"][1]["gpc_phys"], d["gpcs"][1]["floorswept_tpc_phys"]]')" '[5,[0,1,2]]' \
	"board e: GPC 1 is physical 5 and lacks positions 0-2"
is "$(ask '[.vgpcs[] | select(.singleton) | .tpcs[0]]' \
	'[v["tpcs"][0] for v in d["vgpcs"] if v["singleton"]]')" '[62,63,64,65]' "board e: the singletons"
is "$(ask '.gpu.uuid' 'd["gpu"]["uuid"]')" null "what is not known is null"
tap_done
