# Completion of hibloom in bash. What there is to complete is asked of the command's own
# help, so it is right for whichever version is there.

# _hibloom_options PROGRAM COMMAND: the options of a command, or, without one, of all: those of
# its usage, and of lines that begin with one. Other lines may show another program's.
_hibloom_options() {
    "$1" help $2 2>/dev/null | grep -E '^usage|^ +-' | grep -oE '(^|[[ |(])--?[a-z][a-z-]*' | tr -d '[ |('
}

# _hibloom_values PROGRAM COMMAND OPTION: what may follow it, where that is a choice of words
_hibloom_values() {
    "$1" help $2 2>/dev/null | sed -n "1s/.*[[ ]$3 \([^] ]*|[^] ]*\).*/\1/p" | tr '|' '\n' | grep '^[a-z]'
}

_hibloom_commands() {
    "$1" help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'
}

_hibloom() {
    local program=$1 word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} command='' operands=0
    local commands i
    COMPREPLY=()
    # bash makes three words of --layout=blocked.
    if [ "$word" = = ]; then
        word=''
    elif [ "$option" = = ]; then
        option=${COMP_WORDS[COMP_CWORD - 2]}
    fi

    commands=$(_hibloom_commands "$program")
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -*) continue ;;
        esac
        if [ -n "$command" ] && [ "$command" != stats ]; then # whose operands begin with a command
            operands=$((operands + 1))
        elif grep -qxF -e "${COMP_WORDS[i]}" <<<"$commands"; then
            command=${COMP_WORDS[i]}
        fi
    done

    local words=''
    case $option in
    -u | --uri | -s | --spec) return ;;
    --[a-z]*) words=$(_hibloom_values "$program" "$command" "$option") ;;
    esac
    if [ -n "$words" ]; then
        :
    elif [[ $word == -* ]]; then
        words="$(_hibloom_options "$program" "$command") $(_hibloom_options "$program" '')"
    elif [ -z "$command" ] || [ "$command" = stats ]; then
        words=$commands
    elif [ "$command" = help ]; then
        words="$commands spec"
    elif [ $operands -gt 0 ] && "$program" help "$command" 2>/dev/null | head -n 1 | grep -q ' FILE'; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        compopt -o filenames 2>/dev/null
        return
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word" | sort -u)
}

complete -F _hibloom hibloom
