#!/bin/sh
# SPDX-License-Identifier: MIT
# The results of make install: libraries and pkg-config files, manual pages, completion, the unit,
# the example configurations, which are tested; and that debian/*.install contains all of them.
. "$(dirname "$0")/tap.subr"
unset GPUPART_JOB
dest=$tmp/dest
env -u MAKEFLAGS -u MFLAGS "${MAKE:-make}" -s install install-python B="$BUILD" DESTDIR="$dest" prefix=/usr libdir=/usr/lib/here \
	datadir=/usr/share bashcompdir=/usr/share/bash-completion/completions zshcompdir=/usr/share/zsh/site-functions \
	unitdir=/lib/systemd/system pythondir=/usr/lib/python3/dist-packages >"$tmp/log" 2>&1
ok $? "make install: $(tail -n 1 "$tmp/log")"
# A program with libgpupart.a cannot know the folder of the samples, so that it is compiled in.
in_archive() { grep -aoE '/[a-z/]+/gpupart/captures' "$1" | grep -v '^/share/' | sort -u; }
built=$(in_archive "$BUILD/lib/libgpupart.a")
for share in "${built%/gpupart/captures}" /elsewhere/share; do
	env -u MAKEFLAGS -u MFLAGS "${MAKE:-make}" -s install B="$BUILD" DESTDIR="$tmp/another place" libdir=/lib datadir="$share" >"$tmp/log" 2>&1
	is "$? $(in_archive "$tmp/another place/lib/libgpupart.a")" "0 $share/gpupart/captures" "libgpupart.a in $share looks for samples there"
	is "$(ar t "$tmp/another place/lib/libgpupart.a" | sort | sha256sum)" "$(ar t "$BUILD/lib/libgpupart.a" | sort | sha256sum)" "and has the same members"
done
for file in bin/gpupart lib/here/libgpupart.so lib/here/libgpupart.so.0 lib/here/libgpupart-manage.so.0 lib/here/libgpupart.a lib/here/gpupart/libgpupart-inject.so \
	lib/here/gpupart/sim/libcuda.so.1 include/gpupart.h include/gpupart_manage.h include/gpupart_tpcset.h include/linux/gpupart.h lib/here/pkgconfig/libgpupart.pc \
	share/man/man1/gpupart.1 share/man/man3/gpupart_attach.3 share/man/man4/gpupart.4 share/man/man7/gpupart.7 share/man/man8/gpupart-device-plugin.8 \
	share/bash-completion/completions/gpupart share/zsh/site-functions/_gpupart share/gpupart/completion/words \
	share/gpupart/captures/h200.capture share/doc/gpupart/examples/qos.yaml lib/python3/dist-packages/gpupart.py; do
	[ -e "$dest/usr/$file" ]
	ok $? "installs $file"
done
is "$(ls "$dest"/usr/share/man/man3/*.3 | wc -l)" "$(ls "$BUILD"/man/man3/*.3 | wc -l)" "all pages of man 3"
is "$(ls Documentation/man/*.[1-9] | wc -l)" "$(ls "$dest"/usr/share/man/man[1478]/* | wc -l)" "and the others"
! grep -rl '@[a-z]*dir@' "$dest/lib" "$dest/usr/share/bash-completion" "$dest/usr/share/zsh"
ok $? "no place of a folder was left in"
grep -q '/usr/share/gpupart/completion/words ' "$dest/usr/share/bash-completion/completions/gpupart"
ok $? "bash's completion knows where its words are"

# The simulated driver: fault injection is in builds only, for tests.
faulty() {
	GPUPART_SIM_FAULTS=no-table GPUPART_SIM=tests/data/gh100-h200-e/capture.txt LD_LIBRARY_PATH="$1" \
		"$gpupart" verify --quick 2>&1 | grep -c 'offers no launch callback'
}
is "$(faulty "$BUILD/lib/gpupart/sim") $(faulty "$dest/usr/lib/here/gpupart/sim")" "1 0" "the simulated driver that is installed plays no faults"

# pkg-config, as in a program's build.
if command -v pkg-config >/dev/null 2>&1; then
	config() {
		PKG_CONFIG_PATH="$dest/usr/lib/here/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$dest" pkg-config "$@"
	}
	is "$(config --modversion libgpupart libsmctrl | sort -u)" "$("$gpupart" --version)" "pkg-config: the version"
	source=Documentation/man/examples/gpupart_set_parse.c
	# shellcheck disable=SC2046 # lists of words
	${CC:-gcc} -o "$tmp/program" "$source" $(config --cflags --libs libgpupart) 2>"$tmp/err" &&
		LD_LIBRARY_PATH="$BUILD/lib" "$tmp/program" >"$tmp/out" 2>&1
	is "$? $(cat "$tmp/err" "$tmp/out" | tail -n 1)" "0 $(sed -n '/^\/\* Prints:/,$s/^ \* //p' "$source" | tail -n 1)" "a program is built by it"
	has "$(config --static --libs libgpupart)" "-lnl-genl-3" "statically with what the library needs"
	has "$(config --libs libsmctrl)" "-lsmctrl" "libsmctrl"
else
	skip "no pkg-config"
fi

# The unit.
unit=$dest/lib/systemd/system/gpupart-qos@.service
is "$(sed -n 's/^ExecStart=//p' "$unit")" "/usr/bin/gpupart qos run -f /etc/gpupart/qos/%i.yaml" "the unit starts what was installed"
is "$(sed -n 's/^User=//p' "$unit")" "%i" "as its user, not as root"
mps=$dest/lib/systemd/system/gpupart-mps.service
is "$(sed -n 's/^ExecStart=[^ ]*//p' "$mps")" " -d -M" "the node's MPS daemon is one of several users"
is "$(sed -n 's/^Environment=CUDA_MPS_PIPE_DIRECTORY=//p' "$mps")" "$(sed -n 's/^#define MPS_DAEMON_NODE "\(.*\)"/\1/p' cli/mps/mps_daemon.h)" "it is where the command and the plugin look for it"
is "$(sed -n 's|^RuntimeDirectory=|/run/|p; s|^PIDFile=\(.*\)/nvidia-cuda-mps-control.pid|\1|p' "$mps" | uniq)" /run/gpupart/mps "so are its directory and its pid file"
has "$(sed -n 's/^ExecStart=//p' "$dest/lib/systemd/system/gpupart-cdi.service")" "/usr/bin/gpupart cdi --plan " "the unit of CDI devices starts it, too"
library=$(sed -n 's/^PathChanged=\(.*libgpupart.*\)/\1/p' "$dest/lib/systemd/system/gpupart-cdi.path")
[ -e "$dest$library" ]
ok $? "and watches the library that was installed"
if command -v systemd-analyze >/dev/null 2>&1; then
	sed "s|^ExecStart=/usr/bin/gpupart|ExecStart=$gpupart|" "$unit" >"$tmp/gpupart-qos@.service"
	cp "$tmp/gpupart-qos@.service" "$tmp/gpupart-qos@root.service"
	is "$(systemd-analyze verify --man=no "$tmp/gpupart-qos@root.service" 2>&1 | grep gpupart)" "" "systemd-analyze verify finds nothing"
	sed "s|/usr/bin/nvidia-cuda-mps-control|$gpupart|" "$mps" >"$tmp/gpupart-mps.service"
	is "$(systemd-analyze verify --man=no "$tmp/gpupart-mps.service" 2>&1 | grep gpupart)" "" "nor in the unit of the node's MPS daemon"
	mkdir -p "$tmp/serve.service.d"
	printf '[Service]\nExecStart=/bin/true\n' >"$tmp/serve.service"
	sed "s|^ExecStart=/usr/bin/gpupart|ExecStart=$gpupart|" "$dest/usr/share/doc/gpupart/examples/drop-in.conf" >"$tmp/serve.service.d/gpupart.conf"
	is "$(systemd-analyze verify --man=no "$tmp/serve.service" 2>&1 | grep -e serve -e gpupart)" "" "nor in a unit with the drop-in"
	sed "s|/usr/bin/gpupart|$gpupart|" "$dest/lib/systemd/system/gpupart-metrics.service" >"$tmp/gpupart-metrics.service"
	is "$(systemd-analyze verify --man=no "$tmp/gpupart-metrics.service" 2>&1 | grep gpupart)" "" "nor in that of the metrics"
else
	skip "no systemd-analyze"
fi

# The drop-in, as systemd reads it: %p is the unit's name, %% a per cent sign, $PART is split at
# blanks.
drop=$dest/usr/share/doc/gpupart/examples/drop-in.conf
start=$(sed -n 's/%p/serve/; s|^ExecStart=/usr/bin/\(gpupart .*\) -- .*|\1|p' "$drop")
PART=$(sed -n 's/%%/%/; s/^Environment="PART=\(.*\)"$/\1/p' "$drop")
is "$start" 'gpupart run --exec --name serve $PART' "the drop-in runs what was installed"
# shellcheck disable=SC2016 # expanded by the program
out=$(PATH=$BUILD/bin:$PATH GPUPART_INPUT=sample:h200 sh -c 'PART=$1; eval "exec $2 -- env"' sh "$PART" "$start" 2>"$tmp/err" | grep -E '^GPUPART_(NAME|MEM|SET)=' | sort | tr '\n' ' ')
has "$out" "GPUPART_MEM=21474836480 GPUPART_NAME=serve GPUPART_SET=0" "its unit gets a quota, a name and a set: $out"
is "$(sed -n '/^ExecStart=/p' "$drop" | sed -n '1p;$=' | tr '\n' ' ')" "ExecStart= 2 " "and replaces the unit's own ExecStart"

# The commands accept the example configurations.
is "$(ls "$dest/usr/share/doc/gpupart/examples" | tr '\n' ' ')" "config.example drop-in.conf engine peers.py plan.yaml qos.yaml scenario.yaml " "seven examples, all of which are tried here but engine and peers.py, which need PyTorch and a GPU"
cd "$dest/usr/share/doc/gpupart/examples" || exit 1
try plan -i sample:h200 -f plan.yaml --json -o "$tmp/plan.json"
is "$status $err" "0 " "plan.yaml"
try run -i sample:h200 --plan "$tmp/plan.json:llm" -- env
has "$status $out" "GPUPART_NAME=llm" "plan.yaml: a program in a tenant's set"
try qos run -i sample:h200 --dry-run --epochs 2 -f qos.yaml
has "$status $out" "serve" "qos.yaml"
is "$status" 0 "qos.yaml: is right"
try sim scenario.yaml
has "$status $(echo "$out" | tail -n 1)" "0 " "scenario.yaml"
out=$(python3 -B engine/run.py --help)
has "$out" "--check-decode" "engine: finds its own files"
# Unchanged, and with the defaults in its comments enabled.
mkdir -p "$XDG_CONFIG_HOME/gpupart"
for text in 's/^#default.input/default.input/' 's/^#default/default/'; do
	sed "$text" config.example >"$XDG_CONFIG_HOME/gpupart/config"
	for name in $(sed -n 's/^set\.\([a-z]*\) = .*/\1/p' config.example); do
		try run "@$name" -- true
		has "$status $err" ", simulated" "config.example: @$name"
		is "$status" 0 "config.example: is right"
	done
done
rm "$XDG_CONFIG_HOME/gpupart/config"
cd "$root" || exit 1

# The pages that README and the manual refer to are installed too; their index has README's name.
pages=$(find README.md Documentation/man cli \( -name README.md -o -name '*.[1-9c]' \) -exec cat {} + | grep -oE 'Documentation/(user|internals)/[a-z0-9-]+\.md' | sort -u)
is "$(echo "$pages" | grep -vxFf debian/gpupart.docs)" "" "gpupart.docs has each page that is named: $(echo "$pages" | wc -l)"
is "$(printf '%s\n' Documentation/user/*.md Documentation/internals/*.md | grep -vxFf debian/gpupart.docs)" "" "and each that these lead to"
is "$(while read -r page; do [ -e "$page" ] || echo "$page"; done <debian/gpupart.docs)" "" "and all are there"

# Every file is in a package: debian/*.install has it, or its folder.
installed=$(cd "$dest" && find . ! -type d | sed 's|^\./||; s|zsh/site-functions|zsh/vendor-completions|' | sort)
left=
for file in $installed; do
	found=
	# The Slurm plugin, if Slurm's headers are installed: debian/rules excludes it.
	case $file in
	*/gpupart_spank.so | */gpupart.lua | */slurm-health) continue ;;
	esac
	for pattern in $(cat debian/*.install); do
		# shellcheck disable=SC2254 # patterns
		case $file in
		$pattern | $pattern/*) found=1 ;;
		esac
	done
	[ -n "$found" ] || left="$left $file"
done
is "$left" "" "each file that is installed belongs to a package: $(echo "$installed" | wc -l)"

# Uninstalling removes these files and no others.
mkdir -p "$dest/usr/share/gpupart/captures" "$dest/etc/gpupart"
: >"$dest/usr/share/gpupart/captures/mine.capture"
: >"$dest/etc/gpupart/config"
mv "$dest" "$dest of two words"
dest="$dest of two words"
# With a relative path, which install accepts too.
env -u MAKEFLAGS -u MFLAGS "${MAKE:-make}" -s uninstall B="$BUILD" DESTDIR="$(realpath --relative-to=. "$dest")" prefix=/usr libdir=/usr/lib/here \
	datadir=/usr/share bashcompdir=/usr/share/bash-completion/completions zshcompdir=/usr/share/zsh/site-functions \
	unitdir=/lib/systemd/system pythondir=/usr/lib/python3/dist-packages >"$tmp/log" 2>&1
is "$? $(cd "$dest" && find . ! -type d | sort | tr '\n' ' ')" "0 ./etc/gpupart/config ./usr/share/gpupart/captures/mine.capture " \
	"make uninstall: of $(echo "$installed" | wc -l) files what others put there is left"
is "$(cd "$dest" && find . -type d -path '*gpupart*' | sort | tr '\n' ' ')" "./etc/gpupart ./usr/share/gpupart ./usr/share/gpupart/captures " \
	"and of our folders those with such files"
tap_done
