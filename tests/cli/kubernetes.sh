#!/bin/sh
# SPDX-License-Identifier: MIT
# The files of Documentation/user/examples/kubernetes are consistent: the shares are planned and
# are devices, the pods request the plugin's resources, paths and users are the same everywhere.
# Needs no cluster.
. "$(dirname "$0")/tap.subr"
examples=Documentation/user/examples/kubernetes
if ! python3 -c '' 2>/dev/null; then
	skip "no python3"
	tap_done
fi
for board in sample:h200 sample:h200-e; do
	try plan -i $board -f $examples/tenants.yaml --json
	is "$status $err" "0 " "tenants.yaml: a plan on $board"
	cp "$tmp/out" "$tmp/plan.json"
	try cdi -i $board --plan "$tmp/plan.json" -o "$tmp/cdi.json"
	is $status 0 "its shares are devices on $board"
done
# The resources of generic-cdi-plugin: VENDOR/CLASS-DEVICE; for a real GPU the class is "set".
resources=$(python3 -c "import json
print(*sorted('gpupart.dev/set-' + d['name'] for d in json.load(open('$tmp/cdi.json'))['devices']))")
is "$resources" "gpupart.dev/set-batch gpupart.dev/set-llm gpupart.dev/set-notebook" "the resources of the shares"
strange=$(echo "$resources" | tr ' ' '\n' | grep -vE '^[a-z.]+/[A-Za-z0-9][A-Za-z0-9_.-]{0,61}[A-Za-z0-9]$')
is "$strange" "" "names that Kubernetes takes"
for file in $examples/pods.yaml Documentation/user/kubernetes.md; do
	strange=$(grep -oE 'gpupart\.dev/set-[A-Za-z0-9_.-]+' $file | sort -u | while read -r name; do
		case " $resources " in *" $name "*) ;; *) echo "$name" ;; esac; done)
	is "$strange" "" "$file: asks for shares that there are"
	has "$(cat $file)" gpupart.dev/set-llm "$file: and for one"
done
for file in $examples/device-plugin.yaml Documentation/user/kubernetes.md share/systemd/gpupart-cdi.service; do
	has "$(cat $file)" /etc/cdi/gpupart.json "$file: the specification's path"
done
for file in $examples/device-plugin.yaml Documentation/user/kubernetes.md; do
	has "$(cat $file)" /etc/cdi/nvidia.json "$file: the path of NVIDIA's"
done
for file in $examples/pods.yaml Documentation/user/kubernetes.md; do
	is "$(grep -o 'runAsUser: [0-9]*' $file | sort -u)" "runAsUser: 1000" "$file: the user"
done
is "$(grep -o -- '--uid [0-9]*' Documentation/user/kubernetes.md | sort -u)" "--uid 1000" "and the same for gpupart cdi"
# The command accepts the arguments of the unit.
line=$(sed -n 's/^ExecStart=[^ ]*gpupart //p' share/systemd/gpupart-cdi.service |
	sed "s,/etc/gpupart/plan.json,$tmp/plan.json,;s,/etc/cdi/gpupart.json,$tmp/unit.json,;s,[$]OPTIONS,--uid $(id -u),")
# shellcheck disable=SC2086
try $line -i sample:h200-e
is "$status" 0 "the unit's command works"
cmp -s "$tmp/unit.json" "$tmp/cdi.json"
ok $? "and writes the same"
if python3 -c 'import yaml' 2>/dev/null; then
	for file in "$examples"/*.yaml; do
		said=$(python3 -c "import sys, yaml
for d in yaml.safe_load_all(open('$file')):
    assert 'tenants' in d or (d['apiVersion'] and d['kind'] and d['metadata']['name'])" 2>&1)
		is "$said" "" "$file: YAML, and objects"
	done
else
	skip "no python3-yaml"
fi
tap_done
