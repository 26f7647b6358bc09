# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Functions shared by the lint programs: the list of files, code without comments, and TAP. For
# each rule, a lint program defines a function places_NAME and calls `rule NAME SENTENCE`. The
# function prints the places that break the rule. Usage: PROGRAM [-r RULE] [TREE].

lint_only=
if [ "${1-}" = -r ]; then
	lint_only=$2
	shift 2
fi
cd -- "${1:-$(dirname -- "$(readlink -f -- "$0")")/..}" || exit 2

lint_tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$lint_tmp"' EXIT
lint_count=0
lint_failed=0

# Prints the tracked and the new files. Without a git checkout, prints all files.
if [ -e .git ] && git ls-files >/dev/null 2>&1; then
	git ls-files -co --exclude-standard
else
	find . -type f ! -path './.git/*' ! -path './build/*' | sed 's|^\./||'
fi | sort | while read -r file; do
	[ -f "$file" ] && echo "$file"
done >"$lint_tmp/files"

# files REGEX: prints the file names that match REGEX.
files() {
	grep -E -- "$1" "$lint_tmp/files"
}

# Prints C code without comments and with empty strings. Each line has the form FILE:LINE:CODE.
# #include lines keep their string.
lint_code() {
	[ -e "$lint_tmp/code" ] || files '\.[ch]$' | tr '\n' '\0' | xargs -0 -r awk '
		FNR == 1 { comment = 0 }
		{
			out = ""
			n = length($0)
			string = ""
			include = !comment && $0 ~ /^[ \t]*#[ \t]*include/
			for (i = 1; i <= n; i++) {
				c = substr($0, i, 1)
				two = substr($0, i, 2)
				if (comment) {
					if (two == "*/") { comment = 0; i++ }
				} else if (string != "") {
					if (c == "\\") i++
					else if (c == string) { string = ""; out = out c }
				} else if (two == "/*") {
					comment = 1; i++; out = out " "
				} else if (two == "//") {
					break
				} else {
					if (!include && (c == "\"" || c == "\047")) string = c
					out = out c
				}
			}
			print FILENAME ":" FNR ":" out
		}' >"$lint_tmp/code"
	cat "$lint_tmp/code"
}

# code FILES PATTERN: searches the files whose names match FILES. Prints each line of code that
# matches PATTERN.
code() {
	lint_code | grep -E "^($1):[0-9]+:" | grep -E "^[^:]*:[0-9]+:.*($2)"
}

# but_not FILES: removes a line if the name of its file matches FILES.
but_not() {
	grep -vE "^$1:"
}

# rule NAME SENTENCE: runs one check. The TAP line of the check shows the first places that break
# the rule. This line may be truncated.
rule() {
	[ -z "$lint_only" ] || [ "$lint_only" = "$1" ] || return 0
	lint_count=$((lint_count + 1))
	lint_skip=
	"places_$1" >"$lint_tmp/places"
	if [ -n "$lint_skip" ]; then
		echo "ok $lint_count # SKIP $1: $lint_skip"
	elif [ -s "$lint_tmp/places" ]; then
		lint_failed=$((lint_failed + 1))
		more=$(($(wc -l <"$lint_tmp/places") - 5))
		[ $more -gt 0 ] && more=" | and $more more" || more=
		echo "not ok $lint_count - $1: $2: $(head -n 5 "$lint_tmp/places" | cut -c 1-140 |
			tr -s '\t ' ' ' | paste -sd '|' | sed 's/|/ | /g')$more"
	else
		echo "ok $lint_count - $1: $2"
	fi
}

lint_done() {
	if [ $lint_count -eq 0 ]; then
		echo "no rule named $lint_only" >&2
		exit 2
	fi
	echo "1..$lint_count"
	[ $lint_failed -eq 0 ]
	exit
}
