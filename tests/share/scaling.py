"""A filter of RedisBloom that scales, filled as docs/presets.md says that the module fills it, and dumped as
redis-cli prints that. Nothing of the library is used, nor its hashes.

  python3 scaling.py FILE CAPACITY ERROR GROWTH ITEMS OTHERS

adds "item 0", "item 1", ..., writes the dump, and prints how many links there are, how many of the items were
new, and how many of "other 0", "other 1", ... are in."""

import struct
import sys

from presets import RedisBloom


class Link(RedisBloom):
    """One more of the chain: it has an error rate of its own."""

    def __init__(self, capacity, error):
        super().__init__({"capacity": capacity, "error": error})
        self.items, self.bits = 0, bytearray(self.m // 8)

    def has(self, item):
        return all(self.bits[x // 8] & 0x80 >> x % 8 for x in self.positions(item))

    def add(self, item):
        self.items += 1
        for x in self.positions(item):
            self.bits[x // 8] |= 0x80 >> x % 8

    def header(self):
        return struct.pack("<QQQddIQB", len(self.bits), self.m, self.items, self.error, self.per_item, self.k, self.n, 0)


class Scaling:
    def __init__(self, capacity, error, growth):
        self.growth, self.links = growth, [Link(capacity, min(error, 0.25) / 2)]

    def has(self, item):
        return any(link.has(item) for link in self.links)

    def add(self, item):
        if self.has(item):
            return False
        newest = self.links[-1]
        if newest.items >= newest.n:
            self.links.append(Link(newest.n * self.growth, newest.error / 2))
        self.links[-1].add(item)
        return True

    def dump(self, file, piece):
        header = struct.pack("<QIII", sum(link.items for link in self.links), len(self.links), 5, self.growth)
        header = b"1\n" + header + b"".join(link.header() for link in self.links) + b"\n"
        file.write(header)
        iterator = 1
        for link in self.links:
            for at in range(0, len(link.bits), piece):
                data = link.bits[at:at + piece]
                iterator += len(data)
                file.write(b"%d\n%s\n" % (iterator, data))
        file.write(header)


def main(path, capacity, error, growth, items, others):
    scaling = Scaling(int(capacity), float(error), int(growth))
    new = sum(scaling.add(b"item %d" % i) for i in range(int(items)))
    with open(path, "wb") as file:
        scaling.dump(file, 1000)
    print(len(scaling.links), new, sum(scaling.has(b"other %d" % i) for i in range(int(others))))


if __name__ == "__main__":
    main(*sys.argv[1:])
