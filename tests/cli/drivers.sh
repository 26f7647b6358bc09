#!/bin/sh
# SPDX-License-Identifier: MIT
# The driver's table of callbacks, with fake libcuda.so files: which of them the library accepts,
# its messages about the others, what it leaves subscribed; and scripts/try-drivers with such
# packages.
. "$(dirname "$0")/tap.subr"
try=$BUILD/tests/drivers-try
libcuda=$BUILD/tests/drivers-libcuda.so
if [ ! -x "$try" ] || [ ! -e "$libcuda" ]; then
	skip "$try or $libcuda is not built: make tests"
	tap_done
fi

fake() {	# SETTINGS
	FAKE_DRIVER=$1 "$try" "$libcuda" >"$tmp/out" 2>"$tmp/err" </dev/null
	status=$?
	out=$(cat "$tmp/out")
	err=$(cat "$tmp/err")
}

# Like drivers 450, 460, 470, 580, and a larger one: hardware.md.
while read -r bytes features counted accepted; do
	fake "bytes=$bytes features=$features"
	is "$status $out" "0 $bytes | $counted | 0 | 0 0 0 0 | 1 | $accepted | 0 | accepted" "a table of $bytes bytes"
	is "$err" "left subscribed" "$bytes bytes: the subscription is left, and nothing enabled"
done <<END
72 0 - -
80 1 - 0
88 4 4 0-3
88 11 11 0-10
96 11 11 0-10
104 18 18 0-17
END

while IFS='|' read -r settings words left; do
	fake "$settings"
	is $status 1 "$settings: refused"
	has "$out" "refused: $words" "$settings: says what was found"
	is "$err" "$left" "$settings: left behind"
done <<END
none=1|this driver offers no launch callback|
bytes=0|this driver's callback table has an unknown size of 0 bytes: must be a multiple of 8 from 56|
bytes=7|this driver's callback table has an unknown size of 7 bytes:|
bytes=40|this driver's callback table has an unknown size of 40 bytes:|
bytes=48|this driver's callback table has an unknown size of 48 bytes:|
bytes=90|this driver's callback table has an unknown size of 90 bytes:|
bytes=0x40000000|this driver's callback table has an unknown size of 1073741824 bytes:|
empty=1|this driver's callback table lacks at least one of the entries 3, 4 and 6|
cbids=5|this driver's callback table of 96 bytes is unknown: enabling and disabling launch callback 4 returned 0 and 0|
cbids=3|this driver's callback table of 96 bytes is unknown: enabling and disabling launch callback 3 returned 1 and 1|
cbids=0|this driver's callback table of 96 bytes is unknown: enabling and disabling launch callback 0 returned 1 and 1|
refuse=3|this driver's callback table of 96 bytes is unknown: enabling and disabling launch callback 4 returned 3 and 3|
enable=2|this driver's callback table of 96 bytes is unknown: enabling and disabling launch callback 2 returned 2 and 2|
subscribe=210|another tool is already attached to the CUDA driver|
subscribe=801|this driver refused a launch callback: CUDA error (801)|
cbids=5 unsubscribe=801|the subscription stays until the process ends: entry 4 of the driver's callback table returned 801|left subscribed
END
FAKE_DRIVER='' "$try" /dev/null >"$tmp/out"
is "$? $(grep -c 'cannot be loaded' "$tmp/out")" "1 1" "a file that is no library"

command -v dpkg-deb >/dev/null || { skip "try-drivers: no dpkg-deb"; tap_done; exit; }
mkdir -p "$tmp/bin" "$tmp/package/DEBIAN" "$tmp/package/usr/lib"
printf 'Package: fake\nVersion: 1\nArchitecture: all\nMaintainer: none\nDescription: none\n' >"$tmp/package/DEBIAN/control"
cp "$libcuda" "$tmp/package/usr/lib/libcuda.so.555.1"
dpkg-deb --build "$tmp/package" "$tmp/fake.deb" >"$tmp/log" 2>&1
cat >"$tmp/bin/apt-get" <<END
#!/bin/sh
case "\$*" in
*indextargets*)	echo http://mirror.invalid/debian/ ;;
*download*)	for package in "\$@"; do :; done
		echo "\$*" >>"$tmp/asked"
		cp "$tmp/fake.deb" "\${package%%=*}_1_all.deb" ;;
esac
END
cat >"$tmp/bin/apt-cache" <<END
#!/bin/sh
for package in "\$@"; do :; done
[ \$package != libcuda1 ] || printf ' libcuda1 | %s | a\n' 555.1-1 550.2-1 550.1-1
END
chmod +x "$tmp/bin/apt-get" "$tmp/bin/apt-cache"
tried() {	# SETTINGS
	FAKE_DRIVER=$1 PATH=$tmp/bin:$PATH scripts/try-drivers >"$tmp/out" 2>"$tmp/err"
	status=$?
	out=$(cat "$tmp/out")
}
tried "bytes=88 features=11"
is "$status $(grep -c 'not available from this mirror' "$tmp/out") $(grep -c '| accepted |' "$tmp/out")" "0 5 2" \
	"try-drivers: packages that the mirror lacks are named, the others tried"
has "$out" "| libcuda1 | 550.2-1 | 88 | 11 | 0 | 0 0 0 0 | 1 | 0-10 | 0 | accepted |" "try-drivers: a row"
is "$(grep -c "Dir::State=" "$tmp/asked") $(grep -c "Dir::Cache=" "$tmp/asked")" "2 2" "try-drivers: apt has folders of its own"
is "$(grep -c mirror.invalid "$tmp/out")" 0 "try-drivers: its table names no mirror"
tried "bytes=88 cbids=5"
is "$status $(grep -c '| refused: ' "$tmp/out")" "1 2" "try-drivers: a driver that is refused"

# The output of scripts/capture-gpu about launches, made without the library.
dump=$BUILD/tests/gpu-launch_dump
LD_LIBRARY_PATH=$BUILD/lib/gpupart/sim GPUPART_SIM=$PWD/tests/data/gh100-h200-e/capture.txt "$dump" >"$tmp/out" 2>"$tmp/err"
is "$? $(wc -l <"$tmp/err")" "0 0" "launches are dumped"
is "$(grep -c '^callbacks = 1$' "$tmp/out") $(grep -c '^at-parameter = 0x20$' "$tmp/out")" "6 6" "six, each with what slot 4 points to"
# V04_00, clcbc0qmd.h: GRID_WIDTH, GRID_HEIGHT and GRID_DEPTH are bits 1055:1024, 1071:1056 and 1103:1088.
is "$(awk '/^at-parameter/ { tmd = $3 == "0x20" } tmd && $1 == "080" { print $2, $3, $4 }' "$tmp/out" | sed -n 2p)" \
	"3d000000 07000000 03000000" "a grid of 61x7x3 is seen there"
# The named GPU, with gpupart's forms of names, and none if there is no such GPU.
awk '/^checksum/ { exit } { sub(/^pci = .*/, "pci = 0000:0d:00.0"); sub(/^uuid = .*/, "uuid = GPU-01234567-89ab-cdef-0123-456789abcdef"); print }' \
	tests/data/gh100-h200-b/capture.txt >"$tmp/second"
hash=-3750763034362895579	# scripts/capture-from-tables
for byte in $(od -An -v -tu1 "$tmp/second"); do
	hash=$(((hash ^ byte) * 1099511628211))
done
printf 'checksum = %016x\n' "$hash" >>"$tmp/second"
dumped() {	# GPU: PCI address
	LD_LIBRARY_PATH=$BUILD/lib/gpupart/sim GPUPART_SIM=$tmp/second:$PWD/tests/data/gh100-h200-e/capture.txt \
		CUDA_DEVICE_ORDER=FASTEST_FIRST CUDA_VISIBLE_DEVICES=0 "$dump" "$1" 2>"$tmp/err" >"$tmp/out"
	echo "$? $(sed -n 's/^pci = //p' "$tmp/out")"
}
is "$(dumped 1)" "0 0000:0D:00.0" "launches are dumped of an index in PCI order"
is "$(dumped 0000:0d:00.0)" "0 0000:0D:00.0" "launches are dumped of a PCI address"
is "$(dumped GPU-01234567-89ab-cdef-0123-456789abcdef)" "0 0000:0D:00.0" "launches are dumped of a UUID"
is "$(dumped 01234567-89AB-cdef-0123-456789abcdef)" "0 0000:0D:00.0" "launches are dumped of a UUID without GPU-"
for gpu in GPU-nonsense 2 -1 0000:0e:00.0 ""; do
	is "$(dumped "$gpu")$(wc -c <"$tmp/out")" "1 0" "no launches are dumped of GPU '$gpu'"
done
is "$(dumped GPU-nonsense >/dev/null; cat "$tmp/err")" "launch_dump: no GPU has the UUID GPU-nonsense" "launch_dump names the GPU that is not there"
tap_done
