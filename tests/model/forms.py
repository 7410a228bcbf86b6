#!/usr/bin/env python3
"""Two forms of one name: some make a filter of one key, NAME, and others one of several, whose root is NAME:0, at once.

Every order of their steps; each process may stop for ever, or sleep. Whoever makes a filter claims its place in the state
creating, then looks at the place of the other form, and only then swaps it to ready. Of two that meet, the one of several
gives way unless it is ready. The keys 1, 2, ... are left out: life.py has them. Late bits may make a string longer, and so
hide what it holds from all who look at its end, until they are taken back.

Checked in every state:
  F1  never are both forms ready
  F2  nobody but a dropper takes away a filter that is ready
  F3  where all processes are done or dead, an open alone of each form is OK or says EMISMATCH, and one of the two is OK

usage: forms.py [--one N] [--several N] [--drop N] [--evict N] [--late N] [--no-RULE ...]
prints the number of states, or VIOLATION and the steps to it. RULE is one of
  look   who makes a filter looks at the other place after the claim (and not only before it)
  late   that look takes a string with bits and no trailer for something that is there
  state  what gives way is taken away only if it is not ready by then
"""
import argparse
from collections import namedtuple

from life import Proc, Violation, explore, once_each, text_of

RULES = ('look', 'late', 'state')
ONE, SEVERAL = 0, 1

# places: of one key, of several; each None or Place. state: C creating, R ready, X removing (of several only).
World = namedtuple('World', 'places procs evictions late drawn')
Place = namedtuple('Place', 'id state hidden')
LATE = 'late bits'


class Model:
    def __init__(self, options):
        self.rule = {name: not getattr(options, 'no_' + name) for name in RULES}
        self.claimed = 'look' if self.rule['look'] else 'ready'  # the step after the claim
        kinds = ['one'] * options.one + ['several'] * options.several + ['drop'] * options.drop
        self.start = World((None, None), tuple(Proc(kind, 'read', ()) for kind in kinds), options.evict, options.late, 1)

    # ---- Scripts on one place

    def put(self, w, form, place):
        before, places = w.places[form], list(w.places)
        places[form] = place
        if before is not None and before.state == 'R' and place is None:
            raise Violation('F2: a filter that is ready is taken away')
        return w._replace(places=tuple(places))

    def see(self, w, form):
        there = w.places[form]
        return LATE if there is not None and there.hidden else there

    def swap(self, w, form, place, state):
        """Compares identity and state."""
        there = w.places[form]
        return self.put(w, form, there._replace(state=state)) if there is not None and there[:2] == place[:2] else w

    def unlink(self, w, form, place):
        there = w.places[form]
        if there is not None and there.id == place.id and (there.state == place.state or not self.rule['state']):
            return self.put(w, form, None)
        return w

    # ---- Processes: each yields (world, the process)

    def act(self, w, p):
        kind, at, v = p
        form = ONE if kind == 'one' else SEVERAL
        if at == 'read':                      # the two GETRANGEs of an open are two steps
            yield w, Proc(kind, 'read on', (self.see(w, ONE),))
        elif at == 'read on':
            yield w, self.judge(kind, form, v[0], self.see(w, SEVERAL))
        elif at == 'claim':                   # make root
            if w.places[form] is None:
                place = Place(w.drawn, 'C', False)
                yield self.put(w, form, place)._replace(drawn=w.drawn + 1), Proc(kind, self.claimed, (form, place))
            else:
                yield w, Proc(kind, 'read', ())
        elif at == 'look':                    # GETRANGE of the other place
            there = self.see(w, 1 - v[0])
            yield w, Proc(kind, 'ready', v) if there is None or (there == LATE and not self.rule['late']) else \
                Proc(kind, 'read', ())
        elif at == 'ready':
            yield self.swap(w, v[0], v[1], 'R'), Proc(kind, 'read', ())
        elif at == 'mark':                    # that of several: -> removing
            yield self.swap(w, SEVERAL, v[0], 'X') if self.rule['state'] else self.put(w, SEVERAL, None), \
                Proc(kind, 'read', ())
        elif at == 'unlink':
            yield self.unlink(w, *v), Proc(kind, 'read', ())
        elif at == 'drop':                    # by its handle: both steps of it in one
            there = w.places[v[0]]
            if there is not None and there.id == v[1].id:
                places = list(w.places)
                places[v[0]] = None
                w = w._replace(places=tuple(places))
            yield w, Proc('done', 'dropped', ())

    def judge(self, kind, form, one, several):
        """What to do about what an open has seen."""
        if LATE in (one, several):            # in its own place: wait; in the other: the look after the claim sees to it
            own, other = (one, several) if form == ONE else (several, one)
            if own == LATE or kind == 'drop':
                return Proc(kind, 'read', ())
            one, several = (own, None) if form == ONE else (None, own)
        if several is not None and several.state == 'X':
            return Proc(kind, 'unlink', (SEVERAL, several))
        if one is not None and several is not None:
            if several.state == 'C':
                return Proc(kind, 'mark', (several,))
            if one.state == 'C':
                return Proc(kind, 'unlink', (ONE, one))
            return Proc('done', 'two filters', ())
        there = (ONE, one) if one is not None else (SEVERAL, several)
        if there[1] is None:
            return Proc('done', 'ENOTFOUND', ()) if kind == 'drop' else Proc(kind, 'claim', ())
        if there[1].state == 'C':             # helps
            return Proc(kind, self.claimed, there)
        if kind == 'drop':
            return Proc(kind, 'drop', there)
        return Proc('done', 'OK' if there[0] == form else 'EMISMATCH', ())

    # ---- Every next step, and what must hold

    def steps(self, w):
        for i, p in enumerate(w.procs):
            if p.kind in ('done', 'dead') or (i > 0 and w.procs[i - 1] == p):
                continue
            for n, after in self.act(w, p):
                yield '%s %d: %s %s -> %s' % (p.kind, i, p.at, p.local, after.at), n._replace(
                    procs=w.procs[:i] + (after,) + w.procs[i + 1:])
            yield '%s %d dies' % (p.kind, i), w._replace(procs=w.procs[:i] + (Proc('dead', p.kind, ()),) + w.procs[i + 1:])
        for form in ONE, SEVERAL:
            there, places = w.places[form], list(w.places)
            if there is not None and (there.hidden or w.late > 0):
                places[form] = there._replace(hidden=not there.hidden)
                yield 'late bits in place %d' % form, w._replace(places=tuple(places), late=w.late - (not there.hidden))
        for form in (ONE, SEVERAL) if w.evictions > 0 else ():
            if w.places[form] is not None:
                places = list(w.places)
                places[form] = None
                yield 'place %d is evicted' % form, w._replace(places=tuple(places), evictions=w.evictions - 1)

    def alone(self, w, kind):
        w, p = w._replace(procs=(), evictions=0), Proc(kind, 'read', ())
        for _ in range(60):
            if p.kind == 'done':
                return p.at, w
            w, p = next(iter(self.act(w, p)))
        return 'never ends', w

    def check(self, w):
        if all(place is not None and place.state == 'R' for place in w.places):
            raise Violation('F1: both forms are ready')
        if any(p.kind not in ('done', 'dead') for p in w.procs) or any(p is not None and p.hidden for p in w.places):
            return
        for kind, other in ('one', 'several'), ('several', 'one'):
            first, after = self.alone(w, kind)
            second, _ = self.alone(after, other)
            if {first, second} != {'OK', 'EMISMATCH'}:
                raise Violation('F3: opened alone: %s, then the other form: %s' % (first, second))


def rename(v, table):
    if isinstance(v, Place):
        return v._replace(id=table.setdefault(v.id, len(table)))
    if isinstance(v, tuple):
        values = [rename(x, table) for x in v]
        return type(v)(*values) if hasattr(v, '_fields') else tuple(values)
    return v


rename_part = once_each(rename)


def normal(w):
    """Equal states look equal: ids are numbered in the order met, and processes of one kind are sorted."""
    table = {}
    procs = sorted([Proc(p.kind, '', ()) if p.kind in ('done', 'dead') else p for p in w.procs], key=text_of)
    places = rename_part(w.places, table)
    procs = tuple([rename_part(p, table) for p in procs])
    return World(places, procs, w.evictions, w.late, len(table))


def main():
    parser = argparse.ArgumentParser()
    for kind in ('one', 'several', 'drop', 'evict', 'late'):
        parser.add_argument('--' + kind, type=int, default=0)
    for rule in RULES:
        parser.add_argument('--no-' + rule, action='store_true')
    model = Model(parser.parse_args())
    print('%d states: all hold' % explore(model, model.start, normal))


if __name__ == '__main__':
    main()
