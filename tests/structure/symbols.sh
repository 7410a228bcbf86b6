#!/bin/sh
# What to ask, whom, and how to judge the answer does no I/O, so that blocking calls, a
# cluster's pipes and an event loop can all carry it: no object of lib/hash,
# lib/spec, lib/resp, lib/redis, lib/net/routes and lib/net/flights names a call on a socket or of hiredis'
# connection. lib/resp may use hiredis' reader, which only parses. And memory comes from the
# caller's functions: lib/base/alloc.c alone names those of the C library.
# Usage: symbols.sh LIB OBJECTS
#   LIB has the sources, OBJECTS the same folders with what they are compiled to
set -eu
lib=$1 objects=$2

# Also in the checked forms that _FORTIFY_SOURCE makes of them, __read_chk.
calls='socket|socketpair|connect|bind|listen|accept4?|shutdown|getaddrinfo|[gs]etsockopt
|(send|recv)(to|from|msg|mmsg)?|p?(read|write)(v|64|v2|v64|v64v2)?|fcntl(64)?|ioctl|close
|p?poll|p?select|epoll_[A-Za-z0-9_]+|fopen(64)?|open(at)?(64)?'
forbidden="^(__)?($(echo "$calls" | tr -d '\n'))(_chk|64)?$|^(freeReplyObject|redis[A-Z][A-Za-z0-9_]*)$"
reader='^(freeReplyObject|redisReader[A-Za-z0-9_]*)$'
memory='^(malloc|calloc|realloc|reallocarray|free|strn?dup|v?asprintf|aligned_alloc|posix_memalign)$'

files=0 all=
for folder in hash spec resp redis net/routes net/flights; do
    for source in "$lib/$folder"/*.c; do
        object=$objects/$folder/$(basename "$source" .c).o
        [ -f "$object" ] || { echo "$object is not there" >&2; exit 1; }
        files=$((files + 1)) all="$all $object"
    done
done
# shellcheck disable=SC2086 # one word an object
nm -A --undefined-only --format=posix $all | awk -v files=$files -v forbidden="$forbidden" -v reader="$reader" '
    { sub(/:$/, "", $1) }
    $2 ~ forbidden && !($1 ~ /\/resp\/[^\/]*$/ && $2 ~ reader) { print $1 " uses " $2; wrong++ }
    END { printf "%d objects: %d calls of sockets and files\n", files, wrong; exit !(NR && files && !wrong) }'

find "$objects" -name '*.o' ! -path '*/base/alloc.o' -exec nm -A --undefined-only --format=posix {} + |
    awk -v memory="$memory" '
    { sub(/:$/, "", $1) }
    $2 ~ memory { print $1 " uses " $2; wrong++ }
    END { printf "%d names: %d of memory\n", NR, wrong; exit !(NR && !wrong) }'
