#!/bin/sh
# What an attacker who finds a fault in the library or the command meets, looked
# up in the files that `make` leaves: stack protector, checked calls of the C
# library (_FORTIFY_SOURCE), tables that are read-only once the loader has filled
# them, at the start (relro, now), no code on the stack and none that the loader
# would have to alter; and the command can be loaded anywhere (PIE).
# Usage: hardened.sh LIBRARY COMMAND
set -eu

wrong=0
# has FILE WHAT PATTERN READELF-OPTION
has() {
    readelf -W "$4" "$1" | grep -qE -e "$3" || { echo "$1: no $2"; wrong=$((wrong + 1)); }
}
for file in "$1" "$2"; do
    readelf -W -h "$file" >/dev/null # or it is no such file
    has "$file" 'stack protector' ' UND __stack_chk_fail' --dyn-syms
    has "$file" 'checked calls (FORTIFY)' ' UND __(mem|str|v?sn?printf|v?fprintf|read).*_chk(@| |$)' --dyn-syms
    has "$file" relro '^ *GNU_RELRO' -l
    has "$file" 'binding at the start' 'BIND_NOW|FLAGS_1.* NOW' -d
    has "$file" 'stack without code' '^ *GNU_STACK .* RW ' -l
    if readelf -W -d "$file" | grep -q TEXTREL; then
        echo "$file: the loader alters its code"
        wrong=$((wrong + 1))
    fi
done
has "$2" 'position-independent code (PIE)' '^ *Type: *DYN ' -h
has "$2" 'position-independent code (PIE)' 'FLAGS_1.* PIE' -d
echo "2 files: $wrong things wrong"
[ $wrong = 0 ]
