"""The other side of the presets: the formulas of nine libraries (docs/presets.md) in
plain Python, on a real Redis. Nothing of the library is used, nor its hashes.

  python3 presets.py URI < LINES

A line is what to do, a key's name, and a preset's words:
  add NAME ITEM library NAME=VALUE...     prints 1 if the item is new, else 0
  has NAME ITEM library NAME=VALUE...     prints 1 if it is in, else 0
  size library NAME=VALUE...              prints m and k
  at HEX library NAME=VALUE...            prints the offsets of the item of these bytes; - is the empty one
What a library has beside its bits is made, kept and compared as it does it."""

import hashlib
import math
import struct
import sys
import zlib

import redis

U32, U64 = 2**32 - 1, 2**64 - 1
LN2 = math.log(2)


# ---- Hashes ----

def murmur64a(data, seed):
    mul = 0xC6A4A7935BD1E995
    h = seed ^ (len(data) * mul & U64)
    whole = len(data) // 8 * 8
    for (k,) in struct.iter_unpack("<Q", data[:whole]):
        k = k * mul & U64
        h = (h ^ ((k ^ k >> 47) * mul & U64)) * mul & U64
    if data[whole:]:
        h = (h ^ int.from_bytes(data[whole:], "little")) * mul & U64
    h = (h ^ h >> 47) * mul & U64
    return h ^ h >> 47


def murmur3_128(data):
    def rotl(x, n):
        return (x << n | x >> 64 - n) & U64

    def mix(h):
        h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & U64
        h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & U64
        return h ^ h >> 33

    def first(k):
        return rotl(k * 0x87C37B91114253D5 & U64, 31) * 0x4CF5AD432745937F & U64

    def second(k):
        return rotl(k * 0x4CF5AD432745937F & U64, 33) * 0x87C37B91114253D5 & U64

    h1 = h2 = 0
    whole = len(data) // 16 * 16
    for k1, k2 in struct.iter_unpack("<QQ", data[:whole]):
        h1 = (rotl(h1 ^ first(k1), 27) + h2) * 5 + 0x52DCE729 & U64
        h2 = (rotl(h2 ^ second(k2), 31) + h1) * 5 + 0x38495AB5 & U64
    rest = data[whole:]
    h2 ^= second(int.from_bytes(rest[8:], "little"))
    h1 ^= first(int.from_bytes(rest[:8], "little"))
    h1 ^= len(data)
    h2 ^= len(data)
    h1 = h1 + h2 & U64
    h2 = h2 + h1 & U64
    h1, h2 = mix(h1), mix(h2)
    h1 = h1 + h2 & U64
    return h1, h2 + h1 & U64


def murmur3_32(data, seed):
    def rotl(x, n):
        return (x << n | x >> 32 - n) & U32

    def scramble(k):
        return rotl(k * 0xCC9E2D51 & U32, 15) * 0x1B873593 & U32

    h, whole = seed, len(data) // 4 * 4
    for (k,) in struct.iter_unpack("<I", data[:whole]):
        h = rotl(h ^ scramble(k), 13) * 5 + 0xE6546B64 & U32
    h ^= scramble(int.from_bytes(data[whole:], "little")) ^ len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & U32
    h = (h ^ h >> 13) * 0xC2B2AE35 & U32
    return h ^ h >> 16


def highway_128(data):
    key = [0x9E3779B97F4A7C15, 0xF39CC0605CEDC834, 0x1082276BF3A27251, 0xF86C6A11D0C18E95]
    mul0 = [0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3]
    mul1 = [0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377]
    v0 = [m ^ k for m, k in zip(mul0, key)]
    v1 = [m ^ (k >> 32 | (k & U32) << 32) for m, k in zip(mul1, key)]

    def zipper(into, of):
        b, c = of[0].to_bytes(8, "little"), of[1].to_bytes(8, "little")
        low = bytes([b[3], c[4], b[2], b[5], c[6], b[1], c[7], b[0]])
        high = bytes([c[3], b[4], c[2], c[5], c[1], b[6], c[0], b[7]])
        return [into[0] + int.from_bytes(low, "little") & U64, into[1] + int.from_bytes(high, "little") & U64]

    def update(lanes):
        for i in range(4):
            v1[i] = v1[i] + mul0[i] + lanes[i] & U64
            mul0[i] ^= (v1[i] & U32) * (v0[i] >> 32)
            v0[i] = v0[i] + mul1[i] & U64
            mul1[i] ^= (v0[i] & U32) * (v1[i] >> 32)
        for to, of in ((v0, v1), (v1, v0)):
            to[0:2] = zipper(to[0:2], of[0:2])
            to[2:4] = zipper(to[2:4], of[2:4])

    def rotated(x, n):
        low, high = x & U32, x >> 32
        return (high << n | high >> 32 - n) % 2**32 << 32 | (low << n | low >> 32 - n) & U32

    whole = len(data) // 32 * 32
    for at in range(0, whole, 32):
        update(struct.unpack("<4Q", data[at:at + 32]))
    rest = data[whole:]
    if rest:
        n = len(rest)
        packet = bytearray(32)
        words = n // 4 * 4
        packet[:words] = rest[:words]
        if n & 16:
            packet[28:] = rest[-4:]
        elif n % 4:
            packet[16:19] = bytes([rest[words], rest[words + n % 4 // 2], rest[-1]])
        for i in range(4):
            v0[i] = v0[i] + (n << 32) + n & U64
            v1[i] = rotated(v1[i], n)
        update(struct.unpack("<4Q", bytes(packet)))
    for _ in range(6):
        update([v0[i] >> 32 | (v0[i] & U32) << 32 for i in (2, 3, 0, 1)])
    return v0[0] + mul0[0] + v1[2] + mul1[2] & U64, v0[1] + mul0[1] + v1[3] + mul1[3] & U64


def kryo5(text):
    utf16 = text.encode("utf-16-le")
    units = [int.from_bytes(utf16[i:i + 2], "little") for i in range(0, len(utf16), 2)]
    if 2 <= len(units) <= 32 and max(units) < 0x80:
        return bytes([3] + units[:-1] + [units[-1] | 0x80])
    number = len(units) + 1
    head = [3, 0x80 | number & 0x3F | (0x40 if number > 0x3F else 0)]
    number >>= 6
    while number:
        head.append(number & 0x7F | (0x80 if number > 0x7F else 0))
        number >>= 7
    return bytes(head) + b"".join(chr(unit).encode("utf-8", "surrogatepass") for unit in units)


# ---- Libraries: m, k, positions, keys ----

class Library:
    def __init__(self, words):
        self.words = words
        if "capacity" in words:
            self.n, self.p = int(words["capacity"]), float(words["error"])
            self.best = -(self.n * math.log(self.p)) / (LN2 * LN2)
        self.size()

    def places(self, name, item):
        """(key, offset) of each position."""
        return [(name, x) for x in self.positions(item)]

    def add(self, client, name, item):
        pipe = client.pipeline()
        for key, x in self.places(name, item):
            pipe.setbit(key, x, 1)
        return 0 in pipe.execute()

    def has(self, client, name, item):
        return all(client.getbit(key, x) for key, x in self.places(name, item))


class PyreBloom(Library):
    def size(self):
        self.m = int(self.best)
        self.k = math.ceil(LN2 * self.m / self.n)

    def positions(self, item):
        seed = 314159265
        for _ in range(self.k):
            yield murmur64a(item, seed) % self.m
            seed = (1664525 * seed + 1013904223) % 2**32

    def places(self, name, item):
        return [(f"{name}.{x // U32}", x % U32) for x in self.positions(item)]


class ScrapyRedis(Library):
    def size(self):
        self.m, self.k = int(self.words["bits"]), int(self.words["hashes"])

    def positions(self, item):
        text = item.decode("latin-1" if self.words.get("chars") == "latin1" else "utf-8")
        for seed in range(self.k):
            r = 0
            for c in text:
                r = (seed + 1) * r + ord(c)
            yield r & (self.m - 1)


class GoZero(Library):
    def size(self):
        self.m, self.k = int(self.words["bits"]), 14

    def positions(self, item):
        return [murmur3_128(item + bytes([i]))[0] % self.m for i in range(self.k)]


class Rueidis(Library):
    def size(self):
        self.m = math.ceil(self.best)
        self.k = math.floor(self.m / self.n * LN2 + 0.5)

    def positions(self, item):
        h1, h2 = murmur3_128(item)
        return [(h1 + i * h2 & U64) % self.m for i in range(self.k)]

    def places(self, name, item):
        return [("{%s}" % name, x) for x in self.positions(item)]

    def add(self, client, name, item):
        new = super().add(client, name, item)
        client.incrby("{%s}:c" % name, int(new))
        return new


class Redisson(Library):
    def size(self):
        self.m = int(self.best)
        self.k = max(1, math.floor(self.m / self.n * LN2 + 0.5))

    def positions(self, item):
        codec = self.words.get("codec", "kryo5")
        h1, h2 = highway_128(kryo5(item.decode()) if codec == "kryo5" else item)
        h = h1
        for i in range(self.k):
            yield (h & 2**63 - 1) % self.m
            h = h + (h1 if i % 2 else h2) & U64

    def config(self, client, name):
        key = f"{name}:config" if "{" in name else "{%s}:config" % name
        if not client.exists(key):
            client.hset(key, mapping={"size": self.m, "hashIterations": self.k, "expectedInsertions": self.n,
                                      "falseProbability": self.p})
        if client.hmget(key, "size", "hashIterations") != [str(self.m).encode(), str(self.k).encode()]:
            sys.exit("Bloom filter config has been changed")

    def add(self, client, name, item):
        self.config(client, name)
        return super().add(client, name, item)


class BloomfilterRb(Library):
    def size(self):
        self.m, self.k = int(self.words["bits"]), int(self.words["hashes"])

    def positions(self, item):
        seed = int(self.words["seeds"])
        return [zlib.crc32(item + b":%d" % (i + seed)) % self.m for i in range(self.k)]


class Taganaka(Library):
    def size(self):
        self.m = math.floor(self.best + 0.5)
        self.k = max(1, math.floor(LN2 * (self.m // self.n) + 0.5))

    def positions(self, item):
        h = struct.unpack(">5I", hashlib.sha1(item).digest())
        return [(h[i % 2] + i * h[2 + (i + i % 2) % 4 // 2]) % self.m for i in range(self.k)]


class Orestes(Library):
    def size(self):
        self.m = math.ceil(self.best)
        self.k = math.ceil(LN2 * self.m / self.n)

    def positions(self, item):
        if self.words.get("index") != "murmur3":
            a = murmur3_32(item, 0)
            return [(a + i * murmur3_32(item, a)) % self.m for i in range(self.k)]
        found, s, largest = [], 0, 2147483647 - 2147483647 % self.m
        while len(found) < self.k:
            s = murmur3_32(item, s)
            w = abs(s - 2**32 if s >= 2**31 else s)
            if w <= largest and s != 2**31:
                found.append(w % self.m)
        return found

    def places(self, name, item):
        return [(f"{name}:bits", x) for x in self.positions(item)]


class RedisBloom(Library):
    def size(self):
        """growth: it scales, and this is its first link."""
        self.error = min(self.p, 0.25) * (0.5 if "growth" in self.words else 1)
        self.per_item = abs(math.log(self.error)) / 0.480453013918201
        self.m = (max(1, int(self.n * self.per_item)) + 63) // 64 * 64
        self.k = math.ceil(0.693147180559945 * self.per_item)

    def positions(self, item):
        a = murmur64a(item, 0xC6A4A7935BD1E995)
        b = murmur64a(item, a)
        for i in range(self.k):
            x = (a + i * b & U64) % self.m
            yield x // 8 * 8 + 7 - x % 8  # its byte, and the bit from the other end


LIBRARIES = {"pyrebloom": PyreBloom, "scrapy-redis": ScrapyRedis, "go-zero": GoZero, "rueidis": Rueidis,
             "redisson": Redisson, "bloomfilter-rb": BloomfilterRb, "taganaka": Taganaka, "orestes": Orestes,
             "redisbloom": RedisBloom}


def main(uri):
    client = redis.Redis.from_url(uri)
    for line in sys.stdin.buffer:
        what, *rest = line.decode().split()
        name, item = (rest.pop(0), rest.pop(0)) if what in ("add", "has") else ("", "")
        hexadecimal = rest.pop(0).strip("-") if what == "at" else ""
        library = LIBRARIES[rest[0]](dict(word.split("=") for word in rest[1:]))
        if what == "size":
            print(library.m, library.k)
        elif what == "at":
            print(*library.positions(bytes.fromhex(hexadecimal)))
        else:
            print(int({"add": library.add, "has": library.has}[what](client, name, item.encode())))


if __name__ == "__main__":
    main(*sys.argv[1:])
