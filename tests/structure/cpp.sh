#!/bin/sh
# hibloom.hpp has each function of hibloom.h, but for those that C++ calls as they are.
# Usage: cpp.sh INCLUDE
set -eu

as_they_are='hibloom_version hibloom_version_number hibloom_set_allocator'
names=$(sed -n 's/^HIBLOOM_[AC][A-Z]* .*[ *]\(hibloom_[a-z_]*\)(.*/\1/p' "$1/hibloom/hibloom.h")
[ "$(echo "$names" | wc -l)" -gt 40 ] || { echo "cpp: the header has only: $names" >&2; exit 1; }
status=0
for name in $names; do
    case " $as_they_are " in *" $name "*) continue ;; esac
    grep -qw "$name" "$1/hibloom/hibloom.hpp" || { echo "cpp: hibloom.hpp lacks $name" >&2; status=1; }
done
exit $status
