#!/usr/bin/env python3
"""Adds that come too late: their key is gone, or holds another filter. Every order of their steps, on one key.

An add is SETBIT, then the guard in the same pipeline, and where the guard fails, undo: a script that takes back the bits
that this add turned from 0 to 1. Between any two of them the key may be dropped, evicted and made again, as a filter that
is as large as before or smaller; each process may stop for ever, or sleep.

The string has cells, one bit each. A filter of B cells has a tail of three behind them:
  B      a cell that is 0 where the tail is intact: a late bit here alters it
  B+1    a cell that is 1 where the tail is intact: a late bit does nothing here, and undo must not clear it
  B+2    what undo finds the tail by (it is never hit, or, with --deep, like any other cell that is 0)
What a late add sets behind B+2 makes the string longer than its filter, and so unreadable to who looks at its end.

Checked in every state:
  L1  an add that is OK was to the filter of its handle
  L2  as long as that filter is there, the bits of an add that was OK are in it: so undo never takes away what others rely on
  L3  where all processes are done and none is dead, no late bits are left: the key holds nothing or an intact filter, no
      longer than it should be; and a make alone ends

usage: late.py [--add N] [--replace N] [--evict N] [--deep] [--no-RULE ...] [--undo-all]
prints the number of states, or VIOLATION and the steps to it. RULE is one of
  guard   an add looks at the trailer before it says OK
  undo    after a guard that failed, bits are taken back
  search  undo finds the tail of a filter also where the string has grown, or the tail was altered
  intact  undo takes back bits of a tail only if that makes it intact: else it has turned them in a string that is gone
--undo-all: undo takes back bits within the bits of another filter, too
"""
import argparse
from collections import namedtuple

from life import Proc, Violation, explore

RULES = ('guard', 'undo', 'search', 'intact')
TAIL = 3
LARGE, SMALL = 5, 1  # cells of the bits
ADDS = ((0,), (0, 1), (0, 2), (0, 3), (0, 4))  # what an add to the large one may set; to the small one: its cell

# value: None or String. good: the adds that were OK, (id, cells).
World = namedtuple('World', 'value procs good evictions drawn')
# filter: None or (id, B). length, and which of the cells are 1.
String = namedtuple('String', 'filter length cells')


def new_filter(identity, size):
    return String((identity, size), size + TAIL, frozenset((size + 1,)))


def intact(s):
    return s.filter[1] not in s.cells and s.filter[1] + 1 in s.cells and s.filter[1] + 2 not in s.cells


class Model:
    def __init__(self, options):
        self.rule = {name: not getattr(options, 'no_' + name) for name in RULES}
        self.deep, self.undo_all = options.deep, options.undo_all
        self.acts = {'add': self.adder, 'replace': self.replacer}
        kinds = ['add'] * options.add + ['replace'] * options.replace
        self.start = World(new_filter(0, LARGE), tuple(Proc(kind, 'open', ()) for kind in kinds), frozenset(),
                           options.evict, 1)

    # ---- Processes

    def adder(self, w, p):
        kind, at, v = p
        s = w.value
        if at == 'open':
            if s is None or s.filter is None or not intact(s) or s.length != s.filter[1] + TAIL:
                yield w, Proc('done', 'not opened', ())
            else:
                for cells in ADDS if s.filter[1] == LARGE else ADDS[:1]:
                    yield w, Proc(kind, 'set', (s.filter[0], s.filter[1], cells))
        elif at == 'set':                     # SETBIT; its reply says which of the cells were 0
            identity, size, cells = v
            cells = tuple(c for c in cells if self.deep or not (s and s.filter and c == s.filter[1] + 2))
            before = s.cells if s is not None else frozenset()
            turned = tuple(c for c in cells if c not in before)
            length = max([s.length if s is not None else 0] + [c + 1 for c in cells])
            w = w._replace(value=String(s.filter if s is not None else None, length, before | frozenset(cells)))
            yield w, Proc(kind, 'guard', (identity, size, v[2], turned))
        elif at == 'guard':                   # GETRANGE of the trailer, at the offset where the handle knows it
            identity, size, cells, turned = v
            if not self.rule['guard'] or (s is not None and s.filter == (identity, size) and intact(s)):
                if s is None or s.filter is None or s.filter[0] != identity:
                    raise Violation('L1: an add is OK, and its filter is not there')
                yield w._replace(good=w.good | {(identity, cells)}), Proc('done', 'OK', ())
            else:
                yield w, Proc(kind, 'undo', (identity, turned)) if self.rule['undo'] and turned else Proc('done', 'failed', ())
        else:
            yield self.undo(w, *v), Proc('done', 'failed', ())

    def undo(self, w, identity, turned):
        s = w.value
        if s is None:
            return w
        cells, size = s.cells, None
        if s.filter is not None and (s.filter[1] + 2 not in s.cells if self.rule['search'] else
                                     intact(s) and s.length == s.filter[1] + TAIL):
            size = s.filter[1]                # it holds a filter, perhaps an altered one
            if s.filter[0] == identity:
                turned = ()                   # still mine
        if size is None:
            behind = 0                        # the first cell that may be taken back
            less = cells - frozenset(turned)
            if self.rule['search'] and s.filter is not None and s.filter[1] + 2 not in less:
                behind = s.filter[1]          # it was this very add that hid the tail
        else:
            behind = size + TAIL
            less = cells - frozenset(c for c in turned if c >= size)
            if not self.rule['intact'] or (not intact(s) and intact(s._replace(cells=less))):
                behind = size                 # the tail, too, if that makes it intact
        cells = cells - frozenset(c for c in turned if c >= behind or (self.undo_all and c < size))
        length = s.length
        if s.filter is not None:              # who looks for a tail behind nothing but zeros finds it now
            end = s.filter[1] + TAIL
            if length > end and not any(c >= end for c in cells):
                length = end
        elif not cells:
            return w._replace(value=None)
        return w._replace(value=String(s.filter, length, cells))

    def replacer(self, w, p):
        kind, at, v = p
        s = w.value
        if at == 'open':                      # drops what is there; it may also find nothing
            if s is not None and s.filter is not None and intact(s):
                yield w, Proc(kind, 'drop', s.filter)
            yield w, Proc(kind, 'make', ())
        elif at == 'drop':                    # unlink, if it is still that filter
            if s is not None and s.filter == v and intact(s):
                w = w._replace(value=None)
            yield w, Proc(kind, 'make', ())
        else:                                 # make: if there is nothing; late bits refuse it, and it tries again
            if s is None:
                for size in LARGE, SMALL:
                    yield w._replace(value=new_filter(w.drawn, size), drawn=w.drawn + 1), Proc('done', 'made', ())
            elif s.filter is not None:
                yield w, Proc('done', 'there', ())
            else:
                yield w, p

    # ---- Every next step, and what must hold

    def steps(self, w):
        for i, p in enumerate(w.procs):
            if p.kind in ('done', 'dead') or (i > 0 and w.procs[i - 1] == p):
                continue
            for n, after in self.acts[p.kind](w, p):
                yield '%s %d: %s %s -> %s' % (p.kind, i, p.at, p.local, after.at), n._replace(
                    procs=w.procs[:i] + (after,) + w.procs[i + 1:])
            yield '%s %d dies' % (p.kind, i), w._replace(procs=w.procs[:i] + (Proc('dead', p.kind, ()),) + w.procs[i + 1:])
        if w.evictions > 0 and w.value is not None:
            yield 'the key is evicted', w._replace(value=None, evictions=w.evictions - 1)

    def check(self, w):
        s = w.value
        if s is not None and s.filter is not None:
            for identity, cells in w.good:
                if identity == s.filter[0] and not s.cells.issuperset(cells):
                    raise Violation('L2: what an add relies on is gone')
        if any(p.kind in self.acts for p in w.procs) or Proc('dead', 'add', ()) in w.procs or s is None:
            return
        if s.filter is None:
            raise Violation('L3: late bits are left')
        if not intact(s) or s.length != s.filter[1] + TAIL:
            raise Violation('L3: an altered or grown filter is left')


def normal(w):
    """Equal states look equal: what was added to filters that are gone, and processes that are done, make no difference."""
    live = {w.value.filter[0]} if w.value is not None and w.value.filter is not None else set()
    live |= {p.local[0] for p in w.procs if p.local}
    procs = tuple(sorted(Proc(p.kind, '', ()) if p.kind == 'done' else p for p in w.procs))
    return w._replace(procs=procs, good=frozenset(g for g in w.good if g[0] in live))


def main():
    parser = argparse.ArgumentParser()
    for kind in ('add', 'replace', 'evict'):
        parser.add_argument('--' + kind, type=int, default=0)
    for flag in ['deep', 'undo-all'] + ['no-' + rule for rule in RULES]:
        parser.add_argument('--' + flag, action='store_true')
    model = Model(parser.parse_args())
    print('%d states: all hold' % explore(model, model.start, normal))


if __name__ == '__main__':
    main()
