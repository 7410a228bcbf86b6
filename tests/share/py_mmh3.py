"""The filter of source document 003 that is in memory: a bit array, and the
seeds 17, 18, ... To be shared it is stored as it is: bit 0 is the highest bit
of the first byte, in a bitarray as in Redis.

Settings: CAPACITY ERROR."""

import murmurhash

from peer import peer, size


class MemoryFilter:
    def __init__(self, capacity, error_rate):
        self.hash_count, self.bit_count = size(capacity, error_rate)

    def use(self, client, key):
        self.client, self.key = client, key
        stored = client.get(key) or b""
        self.bits = bytearray(stored.ljust((self.bit_count + 7) // 8, b"\0"))

    def done(self):
        self.client.set(self.key, bytes(self.bits))

    def offsets(self, item):
        return [murmurhash.hash_bytes(item, i + 17) % self.bit_count for i in range(self.hash_count)]

    def add(self, item):
        for offset in self.offsets(item):
            self.bits[offset // 8] |= 128 >> offset % 8

    def __contains__(self, item):
        return all(self.bits[offset // 8] & 128 >> offset % 8 for offset in self.offsets(item))


peer(MemoryFilter)
