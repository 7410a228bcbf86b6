"""The filter of source document 003 that is in Redis: the size of the one in
memory, and ten seeds whatever the error rate.

Settings: CAPACITY ERROR."""

import murmurhash

from peer import peer, size


class RedisFilter:
    seeds = (101, 103, 107, 109, 113, 127, 131, 137, 139, 149)

    def __init__(self, capacity, error_rate):
        self.bit_count = size(capacity, error_rate)[1]

    def use(self, client, key):
        self.client, self.key = client, key

    def done(self):
        pass

    def offsets(self, item):
        return [murmurhash.hash_bytes(item, seed) % self.bit_count for seed in self.seeds]

    def add(self, item):
        pipe = self.client.pipeline()
        for offset in self.offsets(item):
            pipe.setbit(self.key, offset, 1)
        pipe.execute()

    def __contains__(self, item):
        pipe = self.client.pipeline()
        for offset in self.offsets(item):
            pipe.getbit(self.key, offset)
        return all(pipe.execute())


peer(RedisFilter)
