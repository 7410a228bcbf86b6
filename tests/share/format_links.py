"""Growing filters, and sliding windows to be read, by docs/format.md alone: sections 15 and 16. What a link is: format.py.

  /usr/bin/python3 format_links.py create URI NAME SPEC   < ITEMS   makes the growing filter, adds the items
  /usr/bin/python3 format_links.py add|read URI NAME      < ITEMS   1 or 0 an item: new, or found
  /usr/bin/python3 format_links.py claim|clear|drop|show URI NAME
  /usr/bin/python3 format_links.py expire URI NAME SECONDS

claim: as a grower that dies once the next link is ready, and not told of. show: the text and trailer of each link."""

import math
import sys

import redis

from format import EPOCH, IDENTITY, LINKS, Filter, create, find, items, pipeline, remove
from format_scripts import SWAP, UNLINK
from format_spec import Problem, Spec


class Chain:
    def __init__(self, client, name, spec=None):
        """Opens it."""
        self.client, self.name = client, name
        self.links = [Filter(client, name, spec)]
        self.spec = self.links[0].spec
        if not self.spec.has_links:
            raise Problem("EMISMATCH it has no links: " + self.spec.text)
        self.id = self.links[0].trailers[0][IDENTITY][17:].decode()
        self.follow()
        while "growth" in self.spec.words and self.is_forgotten():
            self.grow()

    def is_forgotten(self):
        """The root of the newest link says r, and the next one is there, ready."""
        try:
            _, root = find(self.client, self.name_of(len(self.links)))
        except Problem:
            return False
        words = Spec(root.text).words
        return root.state in b"rg" and words.get("link") == str(len(self.links)) and words["chain"] == self.id

    def name_of(self, i):
        return b"%b:+%d" % (self.name, i)

    def follow(self):
        """The links of which the newest one tells."""
        while self.links[-1].grown:
            i = len(self.links)
            try:
                link = Filter(self.client, self.name_of(i), link=i)
                if link.spec.words["chain"] != self.id:
                    raise Problem("EMISMATCH of another chain")
            except Problem as problem:
                if not problem.args[0].startswith(("ENOTFOUND", "EMISMATCH")):
                    raise
                self.links[0].prove_root()
                raise Problem("ECORRUPT link %d is lost" % i)
            self.links.append(link)

    def is_newest(self):
        """Asked behind the bits: of several keys the root's guard need not have been there."""
        newest = self.links[-1]
        if newest.spec.keys > 1 and not newest.grown:
            newest.prove_root()
        return not newest.grown

    def contains(self, wanted):
        found, at = [False] * len(wanted), 0
        while True:
            for link in self.links[at:]:
                found = [a or b for a, b in zip(found, link.contains(wanted))]
            if self.is_newest():
                return found
            at = len(self.links)
            self.follow()

    def add(self, wanted):
        """Whether each is new; a few at a time, so that a link is hardly overfull."""
        step = max(int(self.spec.words["capacity"]) // 8, 1)
        return [new for begin in range(0, len(wanted), step) for new in self.add_some(wanted[begin:begin + step])]

    def add_some(self, wanted):
        is_new, left, asked = [False] * len(wanted), list(range(len(wanted))), 0
        if self.is_full():
            self.grow()
        while left:
            for link in self.links[asked:-1]:
                found = link.contains([wanted[i] for i in left])
                left = [i for i, there in zip(left, found) if not there]
            newest = self.links[-1]
            left = [i for i, turned in zip(left, newest.add([wanted[i] for i in left])) if turned]
            if self.is_newest():
                for i in left:
                    is_new[i] = True
                break
            asked = len(self.links)  # that one is not asked, it was set there
            self.follow()
        return is_new

    # ---- Growing

    def is_full(self):
        spec = self.links[-1].spec
        bits = spec.bitmap_bits * spec.segments
        count = sum(self.client.bitcount(spec.key(self.links[-1].name, n), 0, spec.bytes - 1) for n in range(spec.keys))
        return -bits / spec.hashes * math.log1p(-count / bits) > 0.9 * int(spec.words["capacity"])

    def next_spec(self):
        """The rule of sizes is the client's own, as long as the link keeps its part of the error rate."""
        i, w = len(self.links), dict(self.spec.words)
        capacity = int(w["capacity"]) * int(w["growth"]) ** i
        error = float(w["error"]) / 2 ** (i + 1)
        bits = math.ceil(1.05 * capacity * -math.log(error) / math.log(2) ** 2)
        unit = self.spec.segments * (512 if self.spec.layout == "blocked" else 1)
        if self.spec.layout == "blocked":
            bits = 2 * bits  # blocks are not equally full
        w.update(bits=str(-(-bits // unit) * unit), hashes=str(max(round(-math.log2(error)), 1)), capacity=str(capacity),
                 link=str(i), chain=self.id)
        return Spec(" ".join("%s=%s" % (name, w[name]) for name in Spec.NAMES if name in w))

    def state(self):
        """The newest link's time to live; None: there is a further one."""
        newest = self.links[-1]
        ttl = self.client.pttl(newest.spec.key(newest.name, 0))
        newest.prove_root()
        return None if newest.grown else ttl

    def grow(self):
        for _ in range(100):
            ttl = self.state()
            if ttl is None or (self.make() and self.tell(ttl)):
                self.follow()
                return
        raise Problem("EBUSY")

    def make(self):
        """Makes the next link, or takes the one that is there. False: begin again."""
        name, spec = self.name_of(len(self.links)), self.next_spec()
        try:
            _, root = find(self.client, name)
            words = Spec(root.text).words
            if words.get("link") != str(len(self.links)):
                raise Problem("EMISMATCH %r is in the way" % name)
            if words["chain"] != self.id:
                self.links[0].prove_root()  # ours, behind that look: so it was left over
                remove(self.client, name, root)
                return False
            spec = Spec(root.text)  # its sizes are its own
        except Problem as problem:
            if not problem.args[0].startswith("ENOTFOUND"):
                raise
        try:
            create(self.client, name, spec, self.must_be_newest)
        except Overtaken as problem:
            if problem.args[0] != "g":  # the filter is gone
                _, root = find(self.client, name)
                self.client.eval(UNLINK, 1, spec.key(name, 0), root.offset, root.trailer[IDENTITY], b"c")
            return False
        self.next = Filter(self.client, name, link=len(self.links))
        return True

    def must_be_newest(self):
        """Behind the claim."""
        newest = self.links[-1]
        try:
            newest.prove_root()
        except Problem:
            raise Overtaken("gone")
        if newest.grown:
            raise Overtaken("g")

    def tell(self, ttl):
        newest, later = self.links[-1], 1000 if len(self.links) == 1 else 0
        self.next.expire(ttl + later if ttl >= 0 else 0)
        key, offset, identity = newest.spec.key(newest.name, 0), newest.offsets[0], newest.identity(0)
        if self.client.eval(SWAP, 1, key, offset, identity, b"r", b"g", 0, "", "", ttl):
            newest.grown = True
            return True
        try:
            newest.prove_root()
        except Problem:
            remove(self.client, self.next.name, find(self.client, self.next.name)[1])
            raise
        return newest.grown

    # ---- All links

    def clear(self):
        at = 0
        while True:
            for link in self.links[at:]:
                link.clear()
            at = len(self.links)
            self.links[-1].prove_root()
            if not self.links[-1].grown:
                return
            self.follow()

    def expire(self, seconds):
        at = 0 if seconds == 0 else 1
        while True:
            for link in self.links[at:]:
                link.expire(seconds and seconds * 1000 + 1000)
            at = max(len(self.links), 1)
            self.links[-1].prove_root()
            if not self.links[-1].grown and (seconds == 0 or self.expire_first(seconds)):
                return
            self.links[-1].grown = True
            self.follow()

    def expire_first(self, seconds):
        return self.links[0].expire(seconds * 1000, b"r" if len(self.links) == 1 else b"") != 2


class Overtaken(Problem):
    """It is not to be made."""


class Window(Chain):
    """To be read: nothing here adds."""

    def contains(self, wanted):
        slices = int(self.spec.words["slices"])
        if len(self.links) != slices + 1:
            raise Problem("EBUSY it is being made")
        for _ in range(100):
            answers = [self.ask(i, wanted) for i in range(len(self.links))]
            seconds, micros = self.client.time()
            now = (seconds * 10**6 + micros) * slices // (int(self.spec.words["window"]) * 10**6)
            if None not in answers:
                return [any(bits and period >= now - slices for bits, period in each) for each in zip(*answers)]
        raise Problem("EBUSY")

    def ask(self, i, wanted):
        """(whether its bits are set, of which period) an item; None: a key was emptied since it was looked at."""
        link, emptied = self.links[i], False
        positions = [link.spec.positions(item) for item in wanted]
        touched = sorted({n for each in positions for n, _ in each})
        commands = [link.question(n, bit) for each in positions for n, bit in each]
        answers = pipeline(self.client, commands + [link.guard(n) for n in touched])
        periods = {}
        for n, answer in zip(touched, answers[len(commands):]):
            link.check(n, answer)
            emptied = emptied or answer != link.trailers[n]
            link.trailers[n] = answer
            periods[n] = self.period(i, int(answer[EPOCH:EPOCH + 10]))
        answers = iter(answers)
        found = [(all([next(answers) for _ in each]), periods[each[0][0]]) for each in positions]
        return None if emptied else found

    def period(self, i, epoch):
        """The greatest c that slice i may be for, and that had begun by that epoch."""
        slices, window = int(self.spec.words["slices"]), int(self.spec.words["window"])
        c = epoch * slices // (2 * window)
        while c % (slices + 1) != i or -(-2 * window * c // slices) > epoch:
            c -= 1
        return c if epoch > 0 else -LINKS


def chain_of(client, name):
    _, root = find(client, name)
    return Window(client, name) if "window" in Spec(root.text).words else Chain(client, name)


def main():
    mode, uri, name, *rest = sys.argv[1:]
    client, name = redis.Redis.from_url(uri), name.encode()
    if mode == "create":
        create(client, name, Spec(rest[0]))
        Chain(client, name, Spec(rest[0])).add(list(items()))
        return
    if mode == "drop":
        if not remove(client, name, find(client, name)[1]):
            raise Problem("EMISMATCH changed meanwhile")
        return
    chain = chain_of(client, name)
    if mode in ("add", "read"):
        print(*map(int, (chain.add if mode == "add" else chain.contains)(list(items()))), sep="\n")
    elif mode == "claim":
        chain.state()
        chain.make()
    elif mode == "clear":
        chain.clear()
    elif mode == "expire":
        chain.expire(int(rest[0]))
    elif mode == "show":
        for link in chain.links:
            print(link.spec.text, link.trailers[0].decode(), sep="")
    else:
        sys.exit("no such mode: " + mode)


if __name__ == "__main__":
    main()
