#!/bin/bash
# What bash and zsh complete, with the command that was built: bash by calling the
# function as it would, zsh by a real one that is typed at. Names of filters come from
# a server, and nothing but them: no error, no password, and nothing after a second.
# Usage: with-redis.sh completion-test.sh BUILD
set -u

build=$(cd "$1" && pwd) || exit
completion=$(cd "$(dirname "$0")/../../packaging/completion" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
cd "$dir" || exit
touch seen.hbl
failed=0
complain() { echo "completion-test: $*" >&2; failed=1; }

# The command, which writes down how it was called: others see that in a list of processes.
mkdir bin
printf '#!/bin/sh\nprintf "%%s\\n" "$*" >>"%s/calls"\nexec "%s/hibloom" "$@"\n' "$dir" "$build" >bin/hibloom
chmod +x bin/hibloom
PATH=$dir/bin:$PATH
# shellcheck disable=SC2016 # it must stay as it is
for name in seen 'day:monday' 'day:tuesday' 'two words' 'do$(touch ran)' 'star*' '[odd]'; do
    hibloom create "$name" -n 100 -p 0.1 || exit
done
server=$HIBLOOM_URL
unset HIBLOOM_URL

# As some programs start a shell: who writes to a pipe that nobody reads any more then says so.
trap '' PIPE
# shellcheck source=/dev/null
source "$completion/hibloom.bash"

# bash_offers EXPECTED LINE: what is offered at the end of the line. On a busy machine names may need more than their
# second, so this, as what is typed at zsh, has three tries.
bash_offers() {
    local said try
    COMP_LINE="hibloom $2" COMP_POINT=$((8 + ${#2}))
    for ((try = 0; try < 3; try++)); do
        _hibloom hibloom '' '' >printed 2>&1
        said="${COMPREPLY[*]}"
        [ "$said" = "$1" ] && break
    done
    [ "$said" = "$1" ] || complain "bash: '$2' gives '$said', not '$1'"
    [ ! -s printed ] || complain "bash: '$2' prints: $(cat printed)"
}
bash_offers 'check clear compare copy create' c
bash_offers 'repair replace' '-u redis://localhost rep'
bash_offers '--layout' 'add seen --l'
bash_offers '--read-from-replicas --retry' 'info seen --re'
bash_offers '--bare' 'save seen --b'
bash_offers 'blocked' 'add seen --layout bl'
bash_offers 'blocked classic partitioned' 'add seen --layout='
bash_offers 'lookup' 'add seen --prefer=l'
bash_offers 'off' 'uniq seen --near o'
bash_offers '' 'add seen '
bash_offers '' 'add -s '
bash_offers 'seen.hbl' 'restore seen se'
bash_offers 'seen.hbl' 'restore --retry 1s seen se'
bash_offers '' 'restore se'
bash_offers 'spec' 'help sp'
bash_offers 'check' 'stats --json chec'
bash_offers '--prometheus' 'stats --p'
bash_offers '--help' '--h'

# Names: of the server that the line names, or the variable, and of no other.
bash_offers '' 'check se'
[ ! -e calls ] || ! grep -q ' list' calls || complain "bash asks a server that nobody named"
bash_offers 'seen' "-u $server check se"
bash_offers 'seen' "check --uri=$server se"
bash_offers 'seen' "check -u '$server' -n 10 se"
HIBLOOM_URL=$server
bash_offers 'seen' 'check se'
bash_offers 'seen' 'stats replace two se'
bash_offers 'seen' 'drop one two se'
bash_offers '' 'expire seen se'
bash_offers '' 'copy seen se'
bash_offers '' 'positions se'
bash_offers '' 'check -n se'
bash_offers '' '-u redis://:s3cr3t@127.0.0.1:1 check se'
bash_offers '' '-u s3cr3t check se'
bash_offers 'monday tuesday' 'info day:' # what the colon ends is there
bash_offers 'two\ words' 'info two'
bash_offers 'do\$\(touch\ ran\)' 'info do'
bash_offers 'star\*' 'info star\*'
bash_offers '' 'info s*n'
bash_offers '\[odd\]' 'info \[o'

# While the server does not answer, it is given up before the library would, after 5 seconds.
redis=$(redis-cli -s "$REDIS_SOCKET" info server | sed -n 's/^process_id:\([0-9]*\).*/\1/p')
trap 'kill -CONT "$redis"; rm -rf "$dir"' EXIT
kill -STOP "$redis"
before=$SECONDS
bash_offers '' 'check se'
[ $((SECONDS - before)) -lt 5 ] || complain "bash waits for $((SECONDS - before)) seconds"
kill -CONT "$redis"

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
zsh_makes 'hibloom restore --retry 1s seen seen.hbl ' 'hibloom restore --retry 1s seen se'
zsh_makes 'hibloom check seen ' 'hibloom check se'
zsh_makes "hibloom -u $server info seen " "hibloom -u $server info se"
zsh_makes "hibloom --uri=$server stats drop one seen " "hibloom --uri=$server stats drop one se"
zsh_makes 'hibloom info day:monday ' 'hibloom info day:m'
zsh_makes 'hibloom info two\ words ' 'hibloom info two\ w'
zsh_makes 'hibloom info do\$\(touch\ ran\) ' 'hibloom info do'
zsh_makes 'hibloom info \[odd\] ' 'hibloom info \[o'
zsh_makes 'hibloom positions se' 'hibloom positions se'
zsh_makes 'hibloom check -n se' 'hibloom check -n se'
zsh_makes 'hibloom -u redis://:s3cr3t@127.0.0.1:1 check se' 'hibloom -u redis://:s3cr3t@127.0.0.1:1 check se'
export HIBLOOM_URL
for try in 1 2 3; do
    timeout 60 zsh -f typed.zsh "$completion" "${typed[@]}" >lines
    case $? in
    0) : >wrong ;;
    3) echo 'completion-test: no terminal to be had here, so zsh was not typed at' && exit $failed ;;
    *) echo 'it came to no end' >wrong ;;
    esac
    i=0
    while IFS= read -r line; do
        line=${line%$'\r'}
        [ "$line" = "${expected[i]}" ] || echo "'${typed[i]}' becomes '$line', not '${expected[i]}'" >>wrong
        i=$((i + 1))
    done <lines
    [ $i = ${#expected[@]} ] || echo "it answered $i of ${#expected[@]}" >>wrong
    [ -s wrong ] || break
done
[ ! -s wrong ] || complain "zsh, in try $try: $(cat wrong)"
[ ! -e ran ] || complain 'a shell runs what a name says'
! grep -q s3cr3t calls || complain "a password stands in a command line: $(grep s3cr3t calls)"
exit $failed
