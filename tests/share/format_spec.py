"""The text of a spec, and the positions of an item, by docs/format.md alone. What is stored: format.py."""

import struct

import xxhash

WORD = 2**64 - 1
BLOCK = 512


class Problem(Exception):
    """Its words begin with the library's name of the status."""


def shortest(value):
    for digits in range(1, 18):
        text = "%.*g" % (digits, value)
        if float(text) == value:
            return text


class Spec:
    NAMES = ("hash", "layout", "bits", "hashes", "segments", "counters", "seed", "empty", "capacity", "error", "growth",
             "window", "slices", "link", "chain")

    def __init__(self, text):
        self.text = text
        try:
            self.parse()
        except (KeyError, ValueError):
            raise Problem("ECORRUPT not a text: " + text)

    def parse(self):
        self.words = dict(word.split("=", 1) for word in self.text.split(" "))
        if self.words["hash"] not in ("xxh3", "siphash") or self.words["layout"] not in ("classic", "blocked", "partitioned"):
            raise ValueError  # the other hashes are not computed here
        self.layout = self.words["layout"]
        self.bits, self.hashes = int(self.words["bits"]), int(self.words["hashes"])
        self.segments = int(self.words.get("segments", "1"))
        self.width = int(self.words.get("counters", "1"))
        self.counts = "counters" in self.words
        self.link = int(self.words.get("link", "0"))
        self.has_links = "growth" in self.words or "window" in self.words
        self.seed = bytes.fromhex(self.words["seed"])
        if self.canonical() != self.text:
            raise ValueError
        self.keys = self.hashes if self.layout == "partitioned" else self.segments
        unit = BLOCK if self.layout == "blocked" else 1
        self.bitmap_bits = self.bits if self.segments == 1 else -(-self.bits // (self.segments * unit)) * unit
        self.bytes = (self.bitmap_bits * self.width + 7) // 8

    def canonical(self):
        w = dict(self.words)
        for name in ("bits", "hashes", "segments", "counters", "capacity", "growth", "window", "slices", "link"):
            if name in w:
                w[name] = str(int(w[name]))
        if self.segments == 1 and not (self.bits * self.width > 2**27 and self.layout != "partitioned"):
            w.pop("segments", None)
        w["seed"] = self.seed.hex()
        if "error" in w:
            w["error"] = shortest(float(w["error"]))
        return " ".join("%s=%s" % (name, w[name]) for name in self.NAMES if name in w)

    def key(self, name, i):
        return name if self.keys == 1 else b"%b:%d" % (name, i)

    def positions(self, item):
        """(key, bit) for each hash."""
        if item == b"" and self.words.get("empty") == "excluded":
            return []
        if self.words["hash"] == "siphash":
            lo, hi = siphash(self.seed, item)
        else:
            value = xxhash.xxh3_128_intdigest(item, int.from_bytes(self.seed, "big"))
            lo, hi = value & WORD, value >> 64
        segment, h, out = hi * self.segments >> 64, lo, []
        block = (h * (self.bitmap_bits // BLOCK) >> 64) * BLOCK
        for i in range(self.hashes):
            if self.layout == "blocked":
                h = (h * 6364136223846793005 + (hi | 1)) & WORD
                out.append((segment, block + (h >> 55)))
            else:
                out.append((i if self.layout == "partitioned" else segment, h * self.bitmap_bits >> 64))
                h = (h * 6364136223846793005 + (hi | 1)) & WORD
        return out


def siphash(key, data):
    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D ^ 0xEE, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def left(x, n):
        return (x << n | x >> (64 - n)) & WORD

    def rounds(n):
        for _ in range(n):
            v[0], v[2] = (v[0] + v[1]) & WORD, (v[2] + v[3]) & WORD
            v[1], v[3] = left(v[1], 13) ^ v[0], left(v[3], 16) ^ v[2]
            v[0], v[2] = (left(v[0], 32) + v[3]) & WORD, (v[2] + v[1]) & WORD
            v[1], v[3] = left(v[1], 17) ^ v[2], left(v[3], 21) ^ v[0]
            v[2] = left(v[2], 32)

    whole = len(data) // 8 * 8
    last = data[whole:].ljust(7, b"\0") + bytes([len(data) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", data[:whole] + last):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xEE
    rounds(4)
    lo = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    rounds(4)
    return lo, v[0] ^ v[1] ^ v[2] ^ v[3]
