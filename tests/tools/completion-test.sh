#!/bin/bash
# What bash and zsh complete, with the command that was built: bash by calling the
# function as it would, zsh by a real one that is typed at.
# Usage: completion-test.sh BUILD
set -u

PATH=$(cd "$1" && pwd):$PATH || exit
completion=$(cd "$(dirname "$0")/../../packaging/completion" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
cd "$dir" || exit
touch seen.hbl
failed=0

# shellcheck source=/dev/null
source "$completion/hibloom.bash"

# bash_offers EXPECTED WORD...: what is offered for the last word; = is a word of its own
bash_offers() {
    local expected=$1 said
    shift
    COMP_WORDS=(hibloom "$@")
    COMP_CWORD=$#
    _hibloom hibloom "${*: -1}" ''
    said="${COMPREPLY[*]}"
    [ "$said" = "$expected" ] || { echo "completion-test: bash: '$*' gives '$said', not '$expected'" >&2; failed=1; }
}
bash_offers 'check clear compare copy create' c
bash_offers 'repair' -u redis://localhost repa
bash_offers '--layout' add seen --l
bash_offers '--read-from-replicas --retry' info seen --re
bash_offers '--bare' save seen --b
bash_offers 'blocked' add seen --layout bl
bash_offers 'blocked classic partitioned' add seen --layout = ''
bash_offers 'lookup' add seen --prefer = l
bash_offers 'off' uniq seen --near o
bash_offers '' add seen ''
bash_offers '' add -s ''
bash_offers 'seen.hbl' restore seen se
bash_offers '' restore se
bash_offers 'spec' help sp
bash_offers 'check' stats --json chec
bash_offers '--prometheus' stats --p
bash_offers '--help' --h

zsh -n "$completion/_hibloom"
cat >typed.zsh <<'END'
zmodload zsh/zpty
# A shell that completes at a tab; what stands in its line is printed at ^X.
zpty shell 'TERM=dumb PS1= zsh -f' || exit 3
zpty -w shell "fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; setopt no_beep no_auto_menu no_list_ambiguous
print_line() { print -r -- \"<<\$BUFFER>>\"; BUFFER=; zle reset-prompt }; zle -N print_line; bindkey '^X' print_line
bindkey '^I' complete-word; zstyle ':completion:*' list false; print rea\dy"
zpty -r shell line '*ready*'
shift
for typed; do
    zpty -w -n shell "$typed"$'\t\x18'
    zpty -r shell line '*<<*>>*' || exit 1
    line=${line##*<<}
    print -r -- "${line%%>>*}"
done
zpty -d shell
END
# zsh_makes EXPECTED TYPED
typed=() expected=()
zsh_makes() { expected+=("$1") typed+=("$2"); }
zsh_makes 'hibloom repair ' 'hibloom repa'
zsh_makes 'hibloom -u redis://localhost compare ' 'hibloom -u redis://localhost comp'
zsh_makes 'hibloom add seen --layout ' 'hibloom add seen --la'
zsh_makes 'hibloom add seen --layout blocked ' 'hibloom add seen --layout b'
zsh_makes 'hibloom add seen --prefer=lookup ' 'hibloom add seen --prefer=l'
zsh_makes 'hibloom restore seen seen.hbl ' 'hibloom restore seen se'
zsh_makes 'hibloom help spec ' 'hibloom help sp'
zsh_makes 'hibloom stats check ' 'hibloom stats chec'
timeout 60 zsh -f typed.zsh "$completion" "${typed[@]}" >lines
case $? in
0) ;;
3) echo 'completion-test: no terminal to be had here, so zsh was not typed at' && exit $failed ;;
*) echo 'completion-test: zsh came to no end' >&2 && failed=1 ;;
esac
i=0
while IFS= read -r line; do
    line=${line%$'\r'}
    [ "$line" = "${expected[i]}" ] ||
        { echo "completion-test: zsh: '${typed[i]}' becomes '$line', not '${expected[i]}'" >&2; failed=1; }
    i=$((i + 1))
done <lines
[ $i = ${#expected[@]} ] || { echo "completion-test: zsh answered $i of ${#expected[@]}" >&2; failed=1; }
exit $failed
