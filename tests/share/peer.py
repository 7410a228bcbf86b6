"""What the Python programs of the tests share: their command line and the items
they are given. Nothing of the library is used, nor its murmur3.

  python3 PROGRAM.py positions SETTINGS...         < ITEMS
  python3 PROGRAM.py fill|read URI KEY SETTINGS... < ITEMS

An item is its length in four bytes, the lowest first, and its bytes.
positions prints a line an item, read prints 1 or 0 an item."""

import math
import struct
import sys

import redis


def items():
    while head := sys.stdin.buffer.read(4):
        yield sys.stdin.buffer.read(struct.unpack("<I", head)[0])


def size(capacity, error_rate):
    """Both variants of source document 003 have these two formulas."""
    hash_count = math.ceil(-1.43 * math.log(error_rate))
    return hash_count, math.ceil(1.43 * hash_count * capacity)


def peer(make):
    """Runs a program. make(CAPACITY, ERROR) is a filter: offsets(item), add and
    `in`, and use(client, key) and done() around those two."""
    mode, *rest = sys.argv[1:]
    if mode == "positions":
        f = make(int(rest[0]), float(rest[1]))
        for item in items():
            print(",".join(map(str, f.offsets(item))))
        return
    uri, key, capacity, error_rate = rest
    f = make(int(capacity), float(error_rate))
    f.use(redis.Redis.from_url(uri), key)
    if mode == "fill":
        for item in items():
            f.add(item)
        f.done()
    elif mode == "read":
        for item in items():
            print(int(item in f))
    else:
        sys.exit(f"no such mode: {mode}")
