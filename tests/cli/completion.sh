#!/bin/sh
# SPDX-License-Identifier: MIT
# Completion: share/completion/words offers the words of --help that the command accepts, and
# running programs; the functions of bash and zsh complete them.
. "$(dirname "$0")/tap.subr"
unset GPUPART_JOB
b=$root/tests/data/gh100-h200-b/capture.txt
words=share/completion/words

# offers N WORD..: the candidates for word N; WORD0 is the command.
offers() {
	n=$1
	shift
	"$words" "$n" "$gpupart" "$@" | cut -f 1
}
# line WORDS: the words in one sorted line.
line() {
	sort | tr '\n' ' ' | sed 's/ $//'
}

# ---------------------------------------------------------------- commands and options
commands=$("$gpupart" --help | sed -n '/^Commands:/,/^$/s,^  \([a-z-]*\) .*,\1,p')
[ "$(echo "$commands" | wc -w)" -ge 18 ]
ok $? "the command has commands"
is "$(offers 1 '' | line)" "$(echo "$commands" | line)" "each of them is offered"
is "$(offers 1 to | line)" "top topology" "those that begin so"
is "$(offers 1 slurm- | line)" "slurm-conf slurm-node" "a name may have a hyphen"
is "$("$words" 1 "$gpupart" help)" "help	show how to use a command, with examples; also gpupart CMD --help" "and what each does"
is "$("$words" 1 "$gpupart" '' | grep -vc '^[a-z-]*	[a-z]')" 0 "without a column of the help's"
is "$(offers 2 help '' | line)" "$(echo "$commands" | grep -vx help | line)" "help: each of them"

# An option is known if the command does not report it as unknown. The first line is enough: 'top'
# ends when its output is closed.
known() {
	"$gpupart" "$@" 2>&1 </dev/null | head -n 1 | grep -q 'unknown option'
	[ $? -eq 1 ]
}
for command in $(echo "$commands" | grep -vx help); do
	case $command in
	qos) subs='run calibrate sim replay' ;;
	*) subs=- ;;
	esac
	for sub in $subs; do
		[ "$sub" = - ] && set -- "$command" || set -- "$command" "$sub"
		given=$(offers $(($# + 1)) "$@" -)
		# All of --help except Usage: the beginnings of its other lines.
		"$gpupart" "$command" --help | sed -n '/^Examples/q; /^  *-/{s/^  *//; s/  .*//; p;}' | grep -oE '(^|[ ,])--?[a-z][a-z-]*' |
			tr -d ' ,' | sort -u >"$tmp/help"
		[ -s "$tmp/help" ]
		ok $? "$*: --help has options"
		if [ "$sub" = - ]; then
			is "$(echo "$given" | sort | uniq -d | line)" "" "$*: and each once"
			missing=$(echo "$given" | sort -u | comm -13 - "$tmp/help" | line)
			is "$missing" "" "$*: every option of --help is offered"
		fi
		is "$("$words" $(($# + 1)) "$gpupart" "$@" - | grep -v '^--	' | grep -v '	[A-Za-z0-9]')" "" "$*: each says what it is"
		unknown=
		for option in $given; do
			[ "$option" = -- ] || [ "$option" = --help ] || known "$@" "$option" || unknown="$unknown $option"
		done
		is "$unknown" "" "$*: takes every option that is offered: $(echo "$given" | wc -w)"
	done
done
known topology --frobnicate
is $? 1 "one that is not there is not known"
is "$(offers 3 qos replay - | line)" "--help --json --of --output -o" "qos replay: its own options alone"
has "$(offers 2 stat - | line)" "--nr-tpcs" "stat: takes a set, as run does"
for command in topology plan sim trace slurm-conf 'qos sim'; do
	# shellcheck disable=SC2086 # one or two words
	set -- $command
	wanted=$("$gpupart" "$@" --of frobnicate 2>&1 </dev/null | sed -n 's/.*must be //p' | sed 's/,/ /g; s/ or / /' | tr -s ' ' '\n' | line)
	case $command in
	plan) wanted=$("$gpupart" plan --tenant a -i sample:h200 --of x 2>&1 | sed 's/.*must be //; s/,/ /g; s/ or / /' | tr -s ' ' '\n' | line) ;;
	trace) wanted=$("$gpupart" trace 0 -i sample:h200 --of x 2>&1 | sed 's/.*must be //; s/,/ /g; s/ or / /' | tr -s ' ' '\n' | line) ;;
	sim) wanted=$("$gpupart" sim figure-3 --of x 2>&1 | sed 's/.*must be //; s/,/ /g; s/ or / /' | tr -s ' ' '\n' | line) ;;
	'qos sim') wanted=$("$gpupart" qos sim qos-burst --of x 2>&1 | sed 's/.*must be //; s/,/ /g; s/ or / /' | tr -s ' ' '\n' | line) ;;
	esac
	[ -n "$wanted" ]
	ok $? "$command: says what --of takes: $wanted"
	is "$(offers $(($# + 2)) "$@" --of '' | line)" "$wanted" "$command: --of"
done

# ----------------------------------------------------------------------------- values
is "$(offers 3 topology -i '' | line)" "$({ printf '%s\n' '' kernel rm; find "$BUILD/share/gpupart/captures" -name '*.capture' | sed 's|.*/|sample:|; s/.capture$//'; } | line)" \
	"-i: sources, samples and files"
has "$(offers 5 run -t 0 -i sample:h200- | line)" "sample:h200-e" "-i: samples that begin so"
case $(offers 5 run -t 0 -i kern) in
*kernel*) ok 1 "run -i is no source" ;;
*) ok 0 "run -i is no source" ;;
esac
is "$(offers 5 run -i sample:h200 -g '' | line)" "0 1 2 3 4 5 6 7" "-g: the board's GPCs"
is "$(offers 3 run --input=sample:h200 --ugpus= | line)" "--ugpus=0 --ugpus=1" "--ugpus=: its uGPUs"
is "$(offers 5 run -i sample:h200 -g 0,1,7 | line)" "0,1,7" "-g 0,1,: the next one"
is "$(offers 4 trace -i sample:h200 a=ug | line)" "a=ugpu:0 a=ugpu:1" "trace: sets, with a name"
is "$(offers 2 bench '' | line)" "criteria dynamic isolation overhead overlap peers protect scaling slots software" "bench: its parts"
is "$("$gpupart" bench x -i sample:h200 2>&1 | sed 's/.*parts are //; s/,//g' | tr ' ' '\n' | line)" "$(offers 2 bench '' | line)" \
	"bench: they are the ones that it takes"
is "$(offers 2 sim '' | line)" "$({ "$gpupart" sim --list | cut -d ' ' -f 1; echo; } | line)" "sim: scenarios that ship, and files"
is "$(offers 4 sim figure-3 --run '' | line)" "partitioned unpartitioned" "sim --run: the runs of that scenario"
is "$(offers 2 qos '' | line)" "calibrate replay run sim" "qos: its commands"
is "$(offers 3 qos sim '' | line)" "$({ "$gpupart" sim --list | cut -d ' ' -f 1 | grep ^qos; echo; } | line)" "qos sim: scenarios with tenants"
is "$("$words" 2 "$gpupart" run --nr | cut -f 2)" "choose N TPCs close together" "a description is a whole clause"
is "$("$words" 2 "$gpupart" run --plan | cut -f 2)" "the set of tenant NAME in a plan from 'gpupart plan --json'" "also one of two lines"
is "$("$words" 5 "$gpupart" run -t 0 -- '' x)" "	program 5" "behind --: a program"
is "$(offers 4 topology -- x '')" "" "but not of a command that runs none"
"$gpupart" plan -i sample:h200 --tenant llm:min=4 --tenant batch --json -o "$tmp/plan.json"
is "$(offers 3 run --plan "$tmp/plan.json:" | line)" "$tmp/plan.json:batch $tmp/plan.json:llm" "--plan: tenants of a plan"
is "$(offers 3 run --nr-tpcs '')" "" "a number has no candidates"
# Names with characters of patterns and scripts: sed would run the command in the first.
hostile='touch owned #|e;i&'
cp "$tmp/plan.json" "$tmp/$hostile"
is "$(cd "$tmp" && "$root/$words" 3 "$gpupart" run --plan "$hostile:" | line)" "$hostile:batch $hostile:llm" "--plan: of any file's name"
[ ! -e "$tmp/owned" ]
ok $? "and no command in it is run"
is "$(offers 4 trace -i sample:h200 'a&|b=ug' | line)" 'a&|b=ugpu:0 a&|b=ugpu:1' "trace: any name"
is "$(offers 5 run -i sample:h200 -g '0\t,' | line)" "$(for i in 0 1 2 3 4 5 6 7; do printf '%s ' "0\t,$i"; done | sed 's/ $//')" "-g: what is typed stays"

# ------------------------------------------------------------------- running programs
${CC:-gcc} -o "$tmp/hold" tests/cli/hold.c -ldl || exit 1
mkfifo "$tmp/hold.in" "$tmp/hold.out"
"$gpupart" run --exec -i sample:h200 --name held-$$ --mem 1G -t 3-9 -- "$tmp/hold" <"$tmp/hold.in" >"$tmp/hold.out" 2>"$tmp/err" &
exec 8>"$tmp/hold.in" 9<"$tmp/hold.out"
read -r ready <&9
is "$ready" ready "a program runs"
pid=$("$gpupart" ps | awk -v n="held-$$" '$2 == n { print $1; exit }')
[ -n "$pid" ]
ok $? "ps shows it: $pid"
has " $(offers 2 set '' | line) " " held-$$ " "set: its name"
has " $(offers 3 set -p '' | line) " " $pid " "set -p: its pid"
has " $(offers 2 set --pid="$pid" | line) " " --pid=$pid " "set --pid=: its pid"
has " $(offers 3 run --name held- | line) " " held-$$ " "run --name: its name"
has " $(offers 3 run -t '' | line) " " 3-9 " "run -t: its set"
has " $(offers 3 topology --mark '' | line) " " 3-9 " "--mark: its set"
has " $(offers 3 topology --gpu '' | line) " " 0000:01:00.0 " "--gpu: its GPU"
has "$("$words" 3 "$gpupart" set -p '' | grep "^$pid	")" "held-$$ on 3-9" "and says what it is"

# ------------------------------------------------------------------------ bash and zsh
mkdir "$tmp/share" "$tmp/zsh"
sed "s|@datadir@/gpupart/completion|$root/share/completion|" share/completion/gpupart.bash >"$tmp/gpupart.bash"
sed "s|@datadir@/gpupart/completion|$root/share/completion|" share/completion/_gpupart >"$tmp/zsh/_gpupart"
# bash_says WORDS..: bash's completions of the last word; words as split by readline.
bash_says() {
	PATH=$BUILD/bin:$PATH bash --norc -c '
		. /usr/share/bash-completion/bash_completion && . "$1" && shift || exit
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_LINE=${COMP_LINE// : /:} COMP_LINE=${COMP_LINE// = /=}
		COMP_POINT=${#COMP_LINE}
		COMP_TYPE=9 COMP_KEY=9
		compopt() { :; }
		_gpupart gpupart "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
		printf "%s\n" "${COMPREPLY[@]}"' bash "$tmp/gpupart.bash" "$@" 2>"$tmp/err" | line
}
if ! command -v bash >/dev/null 2>&1 || [ ! -e /usr/share/bash-completion/bash_completion ]; then
	skip "bash: no bash-completion"
else
	is "$(bash_says gpupart to)" "top topology" "bash: commands"
	is "$(bash_says gpupart qos replay --)" "--help --json --of --output" "bash: options"
	is "$(bash_says gpupart topology -i sample : h200-a)" "h200-a" "bash: behind a colon only what comes after it"
	is "$(bash_says gpupart run -i sample : h200 --gpcs = 7)" "7" "bash: behind an equals sign"
	has " $(bash_says gpupart set -p "${pid%?}") " " $pid " "bash: pids of what runs"
	has " $(bash_says gpupart set held-) " " held-$$ " "bash: tenants and jobs"
	mkdir "$tmp/files"
	: >"$tmp/files/my.capture"
	is "$(bash_says gpupart topology -i "$tmp/files/")" "$tmp/files/my.capture" "bash: files"
	printf '#!/bin/sh\n' >"$tmp/files/my-program"
	chmod +x "$tmp/files/my-program"
	has "$(bash_says gpupart run -t 0 -- "$tmp/files/my-pro")" "my-program" "bash: a program"
	is "$(cat "$tmp/err")" "" "bash: without a word on stderr"
fi

# zsh_says LINE: the line after zsh's editor has inserted all matches.
zsh_says() {
	cat >"$tmp/drive.zsh" <<'END'
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1=; fpath=($1 \$fpath); autoload -U compinit; compinit -u -D"
zpty -w z "zstyle ':completion:all::::' completer _all_matches _complete"
zpty -w z "zstyle ':completion:all:*' old-matches false; zstyle ':completion:all:*' insert true"
zpty -w z "zle -C all complete-word _generic; bindkey '^A' all"
zpty -w z "show() { print -r -- \"=\$BUFFER=\" >$2; BUFFER=; zle accept-line }; zle -N show; bindkey '^X' show"
zpty -w z "print sta''rted >$2.ready"
repeat 100; do [[ -e $2.ready ]] && break; sleep 0.1; done
sleep 0.3
zpty -n -w z "$3"$'\x01\x18'
repeat 200; do [[ -s $2 ]] && break; sleep 0.1; done
zpty -d z
END
	rm -f "$tmp/zsh.out" "$tmp/zsh.out.ready"
	PATH=$BUILD/bin:$PATH HOME=$tmp TERM=vt100 timeout 60 zsh -f "$tmp/drive.zsh" "$tmp/zsh" "$tmp/zsh.out" "$1" >/dev/null 2>&1
	tr -s ' ' <"$tmp/zsh.out" | sed 's/ =$/=/'
}
if ! command -v zsh >/dev/null 2>&1; then
	skip "zsh: it is not here"
elif ! zsh -f -c 'zmodload zsh/zpty' 2>/dev/null; then
	skip "zsh: it has no zpty here"
else
	is "$(zsh_says 'gpupart to')" "=gpupart topology top=" "zsh: commands"
	is "$(zsh_says 'gpupart qos replay --')" "=gpupart qos replay --json --of --output --help=" "zsh: options"
	is "$(zsh_says 'gpupart topology -i sample:h200-a')" "=gpupart topology -i sample:h200-a=" "zsh: a sample"
	is "$(zsh_says 'gpupart run -i sample:h200 --ugpus=')" "=gpupart run -i sample:h200 --ugpus=0 --ugpus=1=" "zsh: uGPUs"
	is "$(zsh_says "gpupart set -p ${pid%?}")" "=gpupart set -p $pid=" "zsh: pids of what runs"
	is "$(zsh_says "gpupart set held-$$")" "=gpupart set held-$$=" "zsh: tenants and jobs"
fi
exec 8>&-
wait
tap_done
