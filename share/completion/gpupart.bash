# SPDX-License-Identifier: MIT
# gpupart for bash-completion: completion/words computes the candidates.
# shellcheck shell=bash
_gpupart()
{
	local cur prev words cword line before

	_init_completion -n := || return
	COMPREPLY=()
	# In readline, a new word begins after each of these characters. _init_completion cannot
	# change this.
	before=${cur%"${cur##*[:=]}"}
	while IFS= read -r line; do
		case $line in
		$'\tfiles')
			cur=${cur##*=}
			_filedir ;;
		$'\tprogram '*)
			_command_offset "${line##* }"
			return ;;
		*)
			line=${line%%$'\t'*}
			COMPREPLY+=("${line#"$before"}") ;;
		esac
	done < <(@datadir@/gpupart/completion/words "$cword" "${words[@]}" 2>/dev/null)
} &&
	complete -F _gpupart gpupart
