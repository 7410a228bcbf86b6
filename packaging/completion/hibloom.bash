# Completion of hibloom in bash. What there is to complete is asked of the command's own
# help, so it is right for whichever version is there; names of filters are asked of the server
# of -u or of $HIBLOOM_URL, for a second at most, and without a word where that fails.

# _hibloom_shown PROGRAM COMMAND: what shows its options, or, without one, those of all: the
# usage, and lines that begin with one. Other lines may show another program's.
_hibloom_shown() {
    "$1" help $2 2>/dev/null | grep -E '^usage|^ +-'
}

_hibloom_options() {
    _hibloom_shown "$1" "$2" | grep -oE '(^|[[ |(])--?[a-z][a-z-]*' | tr -d '[ |('
}

# _hibloom_takes_value PROGRAM COMMAND OPTION: whether the word behind it belongs to it. All is read: with -q grep would
# end before who writes to it, which may complain.
_hibloom_takes_value() {
    [[ $3 =~ ^--?[a-z-]+$ ]] && { _hibloom_shown "$1" "$2" && _hibloom_shown "$1" ''; } | grep -E -e "[[ |(]$3 [A-Za-z]" >/dev/null
}

# _hibloom_values PROGRAM COMMAND OPTION: what may follow it, where that is a choice of words
_hibloom_values() {
    "$1" help $2 2>/dev/null | sed -n "1s/.*[[ ]$3 \([^] ]*|[^] ]*\).*/\1/p" | tr '|' '\n' | grep '^[a-z]'
}

_hibloom_commands() {
    "$1" help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'
}

# _hibloom_operand PROGRAM COMMAND I: what its usage calls the operand with so many before it: NAME, FILE, ...
_hibloom_operand() {
    "$1" help "$2" 2>/dev/null | awk -v before="$3" 'NR == 1 {
        for (i = 6; i <= NF && $i ~ /^[A-Z]+(\.\.\.)?$/; i++)
            if (i == 6 + before || $i ~ /\./) { sub(/\.+/, "", $i); print $i; exit } }'
}

# _hibloom_names PROGRAM URI BEGINNING: filters of that server. The URI goes by the environment, as other
# users may see a password in a command line. A name that JSON has to escape is left out.
_hibloom_names() {
    local pattern
    [ -n "$2" ] || return
    pattern=$(sed 's/[][*?\\]/\\&/g' <<<"$3")
    HIBLOOM_URL=$2 timeout 1 "$1" --retry 0 list --json -- "$pattern*" </dev/null 2>/dev/null |
        sed -n 's/^{"name": "\([^"\\]*\)".*/\1/p'
}

_hibloom() {
    local program=$1 word option='' command='' uri=${HIBLOOM_URL-} operands=0 line commands i words='' name
    COMPREPLY=()
    # By blanks alone: COMP_WORDS breaks URIs and names at each colon.
    read -ra line <<<"${COMP_LINE:0:COMP_POINT}"
    [[ ${COMP_LINE:0:COMP_POINT} == *[[:blank:]] ]] && line+=('')
    word=${line[-1]}

    commands=$(_hibloom_commands "$program")
    for ((i = 1; i < ${#line[@]} - 1; i++)); do
        case ${line[i]} in
        -u | --uri) uri=${line[i + 1]} ;;
        --uri=*) uri=${line[i]#*=} ;;
        -u*) uri=${line[i]#-u} ;;
        esac
        case ${line[i]} in
        -*)
            option=${line[i]}
            _hibloom_takes_value "$program" "$command" "$option" && i=$((i + 1)) || option=''
            continue
            ;;
        esac
        option=''
        if [ -n "$command" ] && [ "$command" != stats ]; then # whose operands begin with a command
            operands=$((operands + 1))
        elif grep -qxF -e "${line[i]}" <<<"$commands"; then
            command=${line[i]}
        fi
    done
    [ $i = ${#line[@]} ] || option='' # its value is there already
    if [[ $word == --*=* ]]; then
        option=${word%%=*} word=${word#*=}
    fi

    if [ -n "$option" ]; then
        words=$(_hibloom_values "$program" "$command" "$option")
    elif [[ $word == -* ]]; then
        words="$(_hibloom_options "$program" "$command") $(_hibloom_options "$program" '')"
    elif [ -z "$command" ] || [ "$command" = stats ]; then
        words=$commands
    elif [ "$command" = help ]; then
        words="$commands spec"
    else
        case $(_hibloom_operand "$program" "$command" $operands) in
        NAME | A | B | FROM | BY)
            # Never by compgen -W, which would expand what is in a name.
            while IFS= read -r name; do
                COMPREPLY+=("$(printf %q "$name")")
            done < <(_hibloom_names "$program" "${uri//[\"\']/}" "${word//\\/}" | sort -u)
            ;;
        FILE)
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
            compopt -o filenames 2>/dev/null
            ;;
        esac
    fi
    [ -z "$words" ] || mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word" | sort -u)
    # What stands before the last colon stays in the line.
    if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*:}"}"}")
    fi
}

complete -F _hibloom hibloom
