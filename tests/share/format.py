"""A client of hibloom's filters that knows nothing but docs/format.md, for the tests. Its scripts:
format_scripts.py; texts and positions: format_spec.py.

It shares no code with the library: where the two do not agree, the document, the library or this file is wrong.

  /usr/bin/python3 format.py positions SPEC                  < ITEMS   the offsets of each item
  /usr/bin/python3 format.py create|plain URI NAME SPEC      < ITEMS   makes the filter (plain: without a script), adds the items
  /usr/bin/python3 format.py add|read URI NAME               < ITEMS   1 or 0 an item: new, or found
  /usr/bin/python3 format.py remove URI NAME                 < ITEMS   of a counting filter: 1 or 0 an item, whether it was in
  /usr/bin/python3 format.py late URI NAME                   < ITEMS   adds after the keys were deleted, prints what that gives
  /usr/bin/python3 format.py clear|drop|repair|show URI NAME
  /usr/bin/python3 format.py expire URI NAME SECONDS

An item is its length in four bytes, the lowest first, and its bytes."""

import os
import re
import struct
import sys
import time
import zlib

import redis

from format_scripts import CLEAR, COUNT, EXPIRE, MAKE, SWAP, UNDO, UNLINK
from format_spec import Problem, Spec

TRAILER = 92
TAIL = 2048 + TRAILER  # the longest text, and the trailer
STATE, IDENTITY, EPOCH = 37, slice(39, 72), 73  # columns of the trailer
AT_ONCE = 128          # keys in a pipeline
PIPELINE = 1000        # items in one
LINKS = 32             # of a growing filter


# ---- The trailer


class Record:
    FORM = re.compile(rb" (\d{4}) (\d{9}) (\d{5})/(\d{5}) ([0-9a-f]{8}) ([rcgx]) (\d{16}) ([0-9a-f]{16}) (\d{10}) hibloom1")

    def __init__(self, tail):
        """From the last bytes of a string, TAIL of them if it has so many. ECORRUPT where it is not sound."""
        m = self.FORM.fullmatch(tail[-TRAILER:])
        if not m:
            raise Problem("ECORRUPT a trailer that is not in the form")
        self.trailer = m[0]
        text, self.bytes, self.number, self.keys = (int(m[i]) for i in (1, 2, 3, 4))
        self.state, self.generation, self.id, self.epoch = m[6], int(m[7]), m[8], int(m[9])
        self.list_bytes = 16 * self.keys if self.number == 0 and self.keys > 1 else 0
        self.offset = self.bytes + self.list_bytes + text  # of the trailer
        if text + TRAILER > len(tail) or (len(tail) < TAIL and self.offset + TRAILER != len(tail)):
            raise Problem("ECORRUPT its length is not what its trailer says")
        self.text = tail[-TRAILER - text:-TRAILER].decode("latin-1")
        if m[5] != crc(self.text, self.trailer):
            raise Problem("ECORRUPT altered")
        spec = Spec(self.text)
        if (spec.bytes, spec.keys) != (self.bytes, self.keys):
            raise Problem("ECORRUPT the trailer is not that of the text")


def crc(text, trailer):
    return b"%08x" % zlib.crc32(text.encode() + trailer[:27])


def trailer(spec, number, state, generation, identity):
    head = b" %04d %09d %05d/%05d" % (len(spec.text), spec.bytes, number, spec.keys)
    return b"%b %b %b %016d %b %010d hibloom1" % (head, crc(spec.text, head), state, generation, identity, 0)


def draw():
    return os.urandom(8).hex().encode()


def same(a, b):
    """All columns of two trailers, but for the epoch; and ready is ready."""
    ready = a[STATE:STATE + 1] in (b"r", b"g") and b[STATE:STATE + 1] in (b"r", b"g")
    return a[:STATE] == b[:STATE] and (ready or a[STATE] == b[STATE]) and a[STATE + 1:EPOCH] == b[STATE + 1:EPOCH] and \
        a[EPOCH + 10:] == b[EPOCH + 10:]


# ---- Filters


def pipeline(client, commands):
    with client.pipeline(transaction=False) as pipe:
        for command in commands:
            pipe.execute_command(*command)
        return pipe.execute()


def tail_of(key):
    return "GETRANGE", key, -TAIL, -1


def place(tail, several):
    """The record of the filter of one key, or of the root of several, if there is one."""
    if not tail.endswith(b"hibloom1"):
        return None
    record = Record(tail)
    if not several and record.keys > 1:
        raise Problem("EMISMATCH a key of another filter")
    return record if not several or (record.keys > 1 and record.number == 0) else None


def find(client, name):
    """The key of the root, and its record. Of two that are there one has to give way."""
    for _ in range(100):
        tails = pipeline(client, [tail_of(name), tail_of(name + b":0")])
        one, several = place(tails[0], False), place(tails[1], True)
        if one is None or several is None:
            break
        if several.state not in b"rg":
            remove(client, name, several)
        elif one.state not in b"rg":
            client.eval(UNLINK, 1, name, one.offset, one.trailer[IDENTITY], b"c")
        else:
            raise Problem("EMISMATCH two filters of this name")
    if one is None and several is None:
        raise Problem("ENOTFOUND")
    return (name, one) if one is not None else (name + b":0", several)


class Filter:
    def __init__(self, client, name, spec=None, link=0):
        """Opens it. Link: that of a growing filter, or of a window, under its own name; one that is not ready is lost."""
        self.client, self.name = client, name
        for _ in range(100):
            asked = time.monotonic()
            root_key, root = find(client, name)
            if root.state == b"x":
                remove(client, name, root)
                raise Problem("ENOTFOUND")
            if Spec(root.text).link != link:
                raise Problem("EMISMATCH its text is: " + root.text)
            if root.state == b"c" and link > 0:
                raise Problem("ENOTFOUND")
            if root.state == b"c":
                create(client, name, Spec(root.text))
                continue
            self.spec = Spec(root.text)
            if spec is not None and spec.text != root.text:
                raise Problem("EMISMATCH its text is: " + root.text)
            if self.look(root_key, root):
                self.proved = asked
                return
        raise Problem("EBUSY")

    def look(self, root_key, root):
        """Each key's trailer, held against the list of the root."""
        self.trailers, self.grown = [root.trailer], root.state == b"g"
        self.offsets = [root.offset] + [self.spec.bytes + len(root.text)] * (root.keys - 1)
        if root.keys == 1:
            return True
        ids = self.client.getrange(root_key, root.bytes, root.bytes + root.list_bytes - 1)
        self.list = ids
        ids = [ids[i:i + 16] for i in range(0, root.list_bytes, 16)]  # shorter where the root is gone by now
        for i in range(1, root.keys, AT_ONCE):
            numbers = range(i, min(i + AT_ONCE, root.keys))
            self.trailers += pipeline(self.client, [self.guard(n) for n in numbers])
        if ids[0] == root.id and all(same(t, trailer(self.spec, n, b"r", root.generation, ids[n]))
                                     for n, t in enumerate(self.trailers) if n > 0):
            return True
        again = self.client.getrange(root_key, root.bytes, -1)
        if again[:root.list_bytes] == b"".join(ids) and same(again[-TRAILER:], root.trailer):
            raise Problem("ECORRUPT a key is lost")
        return False

    def guard(self, n):
        return ("GETRANGE", self.spec.key(self.name, n), self.offsets[n], self.offsets[n] + TRAILER - 1)

    def identity(self, n):
        return self.trailers[n][IDENTITY]

    def prove_root(self):
        self.check(0, pipeline(self.client, [self.guard(0)])[0])

    def check(self, n, answer):
        if n == 0 and answer[STATE:STATE + 1] == b"g" and same(answer, self.trailers[0]):
            self.grown = True
        if not same(answer, self.trailers[n]):
            if not self.client.exists(self.spec.key(self.name, n)):
                raise Problem("ENOTFOUND" if self.spec.keys == 1 or n == 0 else "ECORRUPT a key is lost")
            raise Problem("EMISMATCH or ECORRUPT")

    def prove(self, pipelines):
        """The root's guard, asked first where the last good one is old, or the call is long."""
        for _ in range(2):  # a proof that comes late is asked once more
            if pipelines == 1 and time.monotonic() - self.proved <= 0.1:
                return
            asked = time.monotonic()
            self.prove_root()
            self.proved, pipelines = asked, 1

    def places(self, item):
        """key number -> offsets of an item."""
        places = {}
        for n, bit in self.spec.positions(item):
            places.setdefault(n, []).append(bit)
        return places

    def count(self, items, by):
        """A step of a counting filter for each item: whether it was new (by 1), or was in (by -1)."""
        answers = []
        for item in items:
            answer = 0
            for n, bits in self.places(item).items():
                offsets = (bit * self.spec.width for bit in set(bits))
                answer = self.client.eval(COUNT, 1, self.spec.key(self.name, n), self.offsets[n], self.identity(n),
                                          self.spec.width, by, self.trailers[n][EPOCH:EPOCH + 10], *offsets)
                if answer < 0:
                    self.check(n, b"")
            answers.append(answer == 1)
        return answers

    def add(self, items):
        if self.spec.counts:
            return self.count(items, 1)
        self.prove(-(-len(items) // PIPELINE))
        is_new = []
        for begin in range(0, len(items), PIPELINE):
            all_places = [self.places(item) for item in items[begin:begin + PIPELINE]]
            touched = sorted({n for places in all_places for n in places})
            commands = [("BITFIELD", self.spec.key(self.name, n), *(w for bit in bits for w in ("SET", "u1", bit, 1)))
                        for places in all_places for n, bits in places.items()]
            asked = time.monotonic()
            answers = pipeline(self.client, commands + [self.guard(n) for n in touched])
            guards, turned = answers[len(commands):], {n: [] for n in touched}
            answers = iter(answers)
            for places in all_places:
                is_new.append(False)
                for n, bits in places.items():
                    for bit, old in zip(bits, next(answers)):
                        if old == 0:
                            turned[n].append(bit)
                            is_new[-1] = True
            self.judge(touched, guards, turned)
            self.proved = asked
        return is_new

    def judge(self, touched, guards, turned):
        bad = [n for n, answer in zip(touched, guards) if not same(answer, self.trailers[n])]
        for n in touched if bad else []:
            if turned[n]:
                self.client.eval(UNDO, 1, self.spec.key(self.name, n), self.identity(n), *reversed(turned[n]))
        for n in bad:
            self.check(n, b"")
        for n, answer in zip(touched, guards):
            self.check(n, answer)

    def question(self, n, bit):
        if self.spec.counts:  # nobody removes meanwhile in the tests that ask: else all counters of an item go in one command
            return "BITFIELD_RO", self.spec.key(self.name, n), "GET", "u%d" % self.spec.width, "#%d" % bit
        return "GETBIT", self.spec.key(self.name, n), bit

    def contains(self, items):
        found = []
        for begin in range(0, len(items), PIPELINE):
            all_positions = [self.spec.positions(item) for item in items[begin:begin + PIPELINE]]
            touched = sorted({n for positions in all_positions for n, _ in positions})
            commands = [self.question(n, bit) for positions in all_positions for n, bit in positions]
            answers = pipeline(self.client, commands + [self.guard(n) for n in touched])
            for n, answer in zip(touched, answers[len(commands):]):
                self.check(n, answer)
            answers = iter(answers)
            for positions in all_positions:
                found.append(bool(positions) and all([next(answers) not in (0, [0]) for _ in positions]))
        return found

    def each(self, numbers, script, *arguments):
        answers = []
        for n in numbers:
            answers.append(self.client.eval(script, 1, self.spec.key(self.name, n), self.offsets[n], self.identity(n), *arguments))
            if not answers[-1]:
                self.check(n, b"")
        return answers

    def clear(self):
        self.each(range(self.spec.keys), CLEAR, self.spec.bytes)

    def expire(self, ms, state=b""):
        """What the script says of the root."""
        root = (0,), EXPIRE, ms, self.spec.bytes, self.list if self.spec.keys > 1 else b"", state
        others = range(1, self.spec.keys), EXPIRE, (ms and ms + 1000), 0, b"", b""
        answers = [self.each(*keys) for keys in ((others, root) if ms else (root, others))]
        return answers[1 if ms else 0][0]


def make(client, spec, name, number, state, generation=b"", met=0, ttl=0):
    """A key of the filter: what the script answers, and the id drawn."""
    listed = b"0" * 16 * spec.keys if number == 0 and spec.keys > 1 else b""
    head = trailer(spec, number, state, 0, b"")[:IDENTITY.start]
    answer = client.eval(MAKE, 1, spec.key(name, number), spec.bytes, listed + spec.text.encode(), head, generation, draw(), met,
                         b"%05d" % number, ttl)
    if answer[0] == b"taken":
        raise Problem("EMISMATCH %r is in the way" % spec.key(name, number))
    return answer


def create(client, name, spec, before=None):
    """Makes the filter, or goes on where another has stopped. Before: what goes between it and the swap to ready."""
    for _ in range(100):
        try:
            root_key, root = find(client, name)
        except Problem as problem:
            if not problem.args[0].startswith("ENOTFOUND"):
                raise
            make(client, spec, name, 0, b"c")
            continue
        if root.text != spec.text:
            raise Problem("EMISMATCH its text is: " + root.text)
        if root.state == b"x":
            remove(client, name, root)
        elif root.state in b"rg" or finish(client, name, spec, root, before):
            return
    raise Problem("EBUSY")


def finish(client, name, spec, root, before):
    """The other keys of a root that is creating, a look at the other place of the name, and the swap that makes it ready."""
    generation, identity = b"%016d" % root.generation, root.trailer[IDENTITY]
    ids, mine, root_key, none = [root.id], [], spec.key(name, 0), b"0" * root.list_bytes
    for n in range(1, spec.keys):
        answer = make(client, spec, name, n, b"r", generation)
        if answer[0] == b"newer":
            above = b"%016d" % (int(answer[1]) + 1)
            client.eval(SWAP, 1, root_key, root.offset, identity, b"c", b"c", root.offset + IDENTITY.start, generation, above, "")
            return False
        ids.append(answer[2])
        if answer[0] == b"made":
            mine.append(n)
    tail = client.getrange(name if spec.keys > 1 else name + b":0", -TAIL, -1)
    if tail and (not tail.endswith(b"hibloom1") or place(tail, spec.keys == 1) is not None):
        time.sleep(0.001)
        return False  # both are there: find knows which has to give way; or late bits hide what is there
    if before is not None:
        before()
    if spec.keys == 1:
        ids = []
    if client.eval(SWAP, 1, root_key, root.offset, identity, b"c", b"r", spec.bytes, none, b"".join(ids), ""):
        return True
    at = root.offset + IDENTITY.start
    if client.getrange(root_key, at, at + 15) != generation:
        for n in mine:
            client.eval(UNLINK, 1, spec.key(name, n), spec.bytes + len(spec.text), generation + b" " + ids[n], "")
    return False


def plain(client, name, spec):
    """Makes the filter by plain commands, where nobody else makes, repairs or removes one of this name."""
    seconds, micros = client.time()
    generation = seconds * 1000000 + micros
    ids = [draw() for _ in range(spec.keys)]
    for n in reversed(range(spec.keys)):  # the root last
        listed = b"".join(ids) if n == 0 and spec.keys > 1 else b""
        value = bytes(spec.bytes) + listed + spec.text.encode() + trailer(spec, n, b"r", generation, ids[n])
        if not client.set(spec.key(name, n), value, nx=True):
            raise Problem("EMISMATCH %r is in the way" % spec.key(name, n))


def remove(client, name, root):
    """Whether it is removed; if not, it is not what it was."""
    spec = Spec(root.text)
    identity, root_key = root.trailer[IDENTITY], spec.key(name, 0)
    state = root.state
    heads = spec.has_links and spec.link == 0
    if (root.keys > 1 or heads) and state != b"x":
        try:
            if not client.eval(SWAP, 1, root_key, root.offset, identity, state, b"x", 0, "", "", ""):
                return False
            state = b"x"
        except redis.exceptions.ResponseError as error:
            if "OOM" not in str(error):
                raise
            # a full server: the other keys first, then, and the root by its identity
    for i in range(1, LINKS if heads else 1):
        remove_link(client, b"%b:+%d" % (name, i), root.id)
    for n in range(1, root.keys):
        client.eval(UNLINK, 1, spec.key(name, n), spec.bytes + len(spec.text), identity[:17], "")
    return client.eval(UNLINK, 1, root_key, root.offset, identity, state) == 1


def remove_link(client, name, chain):
    try:
        _, root = find(client, name)
    except Problem as problem:
        if not problem.args[0].startswith("ENOTFOUND"):
            raise
        return
    if Spec(root.text).words.get("chain") == chain.decode():
        remove(client, name, root)


def repair(client, name):
    for _ in range(100):
        root_key, root = find(client, name)
        if root.state != b"r" or root.keys == 1:
            return
        try:
            Filter(client, name)
            return
        except Problem as problem:
            if not problem.args[0].startswith("ECORRUPT a key is lost"):
                raise
        mend(client, name, Spec(root.text), root_key, root)
    raise Problem("EBUSY")


def mend(client, name, spec, root_key, root):
    generation, identity, ttl = b"%016d" % root.generation, root.trailer[IDENTITY], client.pttl(root_key)
    for n in range(1, spec.keys):
        at = spec.bytes + 16 * n
        old = client.getrange(root_key, at, at + 15)
        answer = make(client, spec, name, n, b"r", generation, ttl=max(ttl, 0) and ttl + 1000)
        if answer[0] == b"newer":
            raise Problem("EMISMATCH %r is newer" % spec.key(name, n))
        if answer[2] == old:
            continue
        if answer[0] == b"there" and ttl > 0:  # taken: it has no time to live yet, or an old one
            client.eval(EXPIRE, 1, spec.key(name, n), spec.bytes + len(spec.text), generation + b" " + answer[2], ttl + 1000, 0, "", "")
        if not client.eval(SWAP, 1, root_key, root.offset, identity, b"r", b"r", at, old, answer[2], ttl):
            return


# ---- The command line


def items():
    while head := sys.stdin.buffer.read(4):
        yield sys.stdin.buffer.read(struct.unpack("<I", head)[0])


def main():
    mode, *rest = sys.argv[1:]
    if mode == "positions":
        spec = Spec(rest[0])
        keyed = spec.layout == "partitioned"
        for item in items():
            print(",".join("%d:%d" % p if keyed else "%d" % p[1] for p in spec.positions(item)))
        return
    uri, name, *rest = rest
    client, name = redis.Redis.from_url(uri), name.encode()
    if mode in ("create", "plain"):
        (create if mode == "create" else plain)(client, name, Spec(rest[0]))
        Filter(client, name, Spec(rest[0])).add(list(items()))
    elif mode == "add":
        print(*map(int, Filter(client, name).add(list(items()))), sep="\n")
    elif mode == "read":
        print(*map(int, Filter(client, name).contains(list(items()))), sep="\n")
    elif mode == "remove":
        print(*map(int, Filter(client, name).count(list(items()), -1)), sep="\n")
    elif mode == "late":
        f = Filter(client, name)
        client.delete(*(f.spec.key(name, n) for n in range(f.spec.keys)))
        try:
            f.add(list(items()))
        except Problem as problem:
            print(problem.args[0].split()[0])
    elif mode == "drop":
        if not remove(client, name, find(client, name)[1]):
            raise Problem("EMISMATCH changed meanwhile")
    elif mode == "repair":
        repair(client, name)
    elif mode == "show":
        root_key, root = find(client, name)
        print(root.text, root.trailer.decode(), sep="")
    elif mode == "clear":
        Filter(client, name).clear()
    elif mode == "expire":
        Filter(client, name).expire(int(rest[0]) * 1000)
    else:
        sys.exit("no such mode: " + mode)


if __name__ == "__main__":
    main()
