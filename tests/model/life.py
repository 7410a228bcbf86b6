#!/usr/bin/env python3
"""How a filter of several keys is made, opened, repaired, expired, removed and lost: every order of its steps.

It explores every state that can be reached, where any process may stop for ever at any step or sleep as long as it likes.
A filter has two keys here, the root K0 and one more, K1. Each script and each read is one step on one key, as
docs/format.md says. Beside this file, late.py does the same for adds that come too late, forms.py for a filter of one key
and one of several under one name. run.py runs them all.

Checked in every state:
  I1  two handles of one root (generation and id) have the same key ids: nothing that one has added is silently missing to
      the other. (After a repair the old handles fail by the guard, for the id of a lost key never comes again.)
  I2  no step of an older generation destroys a key of a newer one
  I3  where all processes are done or dead, an open alone is OK, or it is loud, and then drop and open is OK, and so is
      repair and open. None of them goes on for ever.
  I4  nobody but a dropper takes away a key that the root lists
  I5  where all processes are done or dead, no key without a time to live is left that a root listed whose own has passed.
      (One that was made for nothing may be; the next creation under the name takes it over.)
I2 and I4 suppose a clock that does not step back. Where it does (--back), a helper of a lost filter may take away a key
of the next: loudly, and the model checks the rest.

usage: life.py [--open N] [--drop N] [--evict N] [--repair N] [--expire N] [--persist N] [--replace N] [--back N]
               [--full] [--race] [--no-RULE ...]
--back: so often the clock steps back. --full: the server refuses to mark a root. --race: a time to live is set and removed
at once, which may leave a key for ever; else one after the other.
prints the number of states, or VIOLATION and the steps to it. RULE is one of
  list    a handle wants the key ids that the root lists
  order   a key is made over an older generation only
  help    a repair takes a key of this generation that nobody lists, as it is
  spare   a key made for nothing is kept if the root is of its generation
  expire-order   a time to live is set on the root last, and removed from it first
  expire-list    a time to live is set on the root only if it lists the keys that have it
  repair-ttl     a repair gives the new key the root's time to live, and lists it only if that has not changed
  identity       a root that could not be marked is removed by its identity only
  raise   a root that meets a key of a newer generation takes one above it
  stamp   a filter that replaces another one takes a generation of that moment
  whole   a filter is replaced in one step, not key by key
"""
import argparse
import gc
import sys
from collections import deque, namedtuple
from functools import lru_cache

RULES = ('list', 'order', 'help', 'spare', 'expire-order', 'expire-list', 'repair-ttl',
         'identity', 'raise', 'stamp', 'whole')

# k0, k1: None or Key. t0, t1: whether it has a time to live. expired: what the last root listed whose time has passed.
World = namedtuple('World', 'k0 k1 t0 t1 clock procs handles evictions backs expired')
# state: C creating, R ready, X removing (root only). ids: the list, in a root that is ready.
Key = namedtuple('Key', 'gen id state ids')
Proc = namedtuple('Proc', 'kind at local')  # at: the step that comes next; kind done or dead: none
Root = namedtuple('Root', 'gen id')         # the identity of a root


class Violation(Exception):
    pass


class Model:
    def __init__(self, options):
        self.rule = {name: not getattr(options, 'no_' + name.replace('-', '_')) for name in RULES}
        self.repairs, self.backs, self.full, self.race = \
            options.repair > 0, options.back > 0, options.full, options.race
        self.drawn = 0
        self.acts = {'open': self.opener, 'drop': self.dropper, 'repair': self.repairer,
                     'expire': self.expirer, 'persist': self.expirer, 'replace': self.replacer}
        kinds = ['open'] * options.open + ['drop'] * options.drop + ['repair'] * options.repair + \
                ['expire'] * options.expire + ['persist'] * options.persist + ['replace'] * options.replace
        self.start = World(None, None, False, False, 0, tuple(Proc(kind, 'read', ()) for kind in kinds), frozenset(),
                           options.evict, options.back, None)

    # ---- Scripts on one key that several processes use

    def draw(self):
        """An id that was never drawn before."""
        self.drawn += 1
        return ('id', self.drawn)

    def make_k1(self, w, gen, ttl=False):
        """Over nothing, or over an older generation."""
        if w.k1 is not None and w.k1.gen > gen and not self.backs:
            raise Violation('I2: generation %d replaced one of %d' % (gen, w.k1.gen))
        if not self.backs and lists(w.k0, w.k1):
            raise Violation('I4: a listed key is replaced')
        return w._replace(k1=Key(gen, self.draw(), None, None), t1=ttl)

    def may_make_k1(self, w, gen):
        return w.k1 is None or w.k1.gen < gen or (not self.rule['order'] and w.k1.gen != gen)

    def unlink_k1(self, w, condition):
        return w._replace(k1=None, t1=False) if w.k1 is not None and condition(w.k1) else w

    def unlink_k0(self, w, condition):
        return w._replace(k0=None, t0=False) if w.k0 is not None and condition(w.k0) else w

    # ---- Processes: each yields (world, the process, a handle or None) for what its next step may lead to

    def opener(self, w, p):
        kind, at, v = p
        if at == 'read':                      # GETRANGE of the root's tail
            if w.k0 is None:
                yield w, Proc(kind, 'claim', ()), None
            elif w.k0.state == 'C':
                yield w, Proc(kind, 'make', (w.k0.gen, w.k0.id)), None
            elif w.k0.state == 'X':
                yield w, Proc(kind, 'unlink 1', (w.k0.gen,)), None
            else:
                yield w, Proc(kind, 'look', w.k0), None
        elif at == 'claim':                   # make root: if there is none, with a generation of the server's clock
            if w.k0 is None:
                gen, identity = w.clock + 10, self.draw()
                yield w._replace(k0=Key(gen, identity, 'C', None), t0=False, clock=gen, expired=None), \
                    Proc(kind, 'make', (gen, identity)), None
            else:
                yield w, Proc(kind, 'read', ()), None
        elif at == 'make':                    # make key 1
            gen, k0 = v
            if self.may_make_k1(w, gen):
                w = self.make_k1(w, gen)
                yield w, Proc(kind, 'flip', (gen, k0, w.k1.id, True)), None
            elif w.k1.gen == gen:
                yield w, Proc(kind, 'flip', (gen, k0, w.k1.id, False)), None
            elif self.rule['raise']:
                yield w, Proc(kind, 'raise', (gen, k0, w.k1.gen)), None
            else:
                yield w, Proc(kind, 'read', ()), None
        elif at == 'raise':                   # swap: the root's generation, if it is still that root and creating
            gen, k0, met = v
            if w.k0 is not None and w.k0[:3] == (gen, k0, 'C'):
                w = w._replace(k0=w.k0._replace(gen=met + 1))
            yield w, Proc(kind, 'read', ()), None
        elif at == 'flip':                    # swap: creating -> ready, with the list, if it is still that root
            gen, k0, k1, mine = v
            if w.k0 is not None and w.k0[:3] == (gen, k0, 'C'):
                yield w._replace(k0=Key(gen, k0, 'R', (k0, k1))), Proc(kind, 'read', ()), None
            elif mine and not (self.rule['spare'] and w.k0 is not None and w.k0.gen == gen):
                yield w, Proc(kind, 'tidy', (k1,)), None  # of a root that is gone; of a live one a repair may list it
            else:
                yield w, Proc(kind, 'read', ()), None
        elif at == 'tidy':                    # unlink what was made for nothing, by its id
            if w.k1 is not None and w.k1.id == v[0] and lists(w.k0, w.k1):
                raise Violation('I4: a listed key is tidied away')
            yield self.unlink_k1(w, lambda k: k.id == v[0]), Proc(kind, 'read', ()), None
        elif at == 'look':                    # GETRANGE of K1's trailer, held against the root's list
            if w.k1 is not None and w.k1.gen == v.gen and (w.k1.id == v.ids[1] or not self.rule['list']):
                yield from self.opened(w, kind, Root(v.gen, v.id), w.k1.id)
            else:
                yield w, Proc(kind, 'confirm', v), None
        elif at == 'confirm':                 # the root once more: if it has changed, look again
            yield (w, Proc('done', 'ECORRUPT', ()), None) if w.k0 == v else (w, Proc(kind, 'read', ()), None)
        elif at == 'unlink 1':                # unlink K1 of that generation
            yield self.unlink_k1(w, lambda k: k.gen == v[0]), Proc(kind, 'unlink 0', v), None
        elif at == 'unlink 0':                # unlink the root, removing, of that generation
            yield self.unlink_k0(w, lambda k: k.gen == v[0] and k.state == 'X'), \
                Proc('done', 'dropped', ()) if kind == 'drop' else Proc(kind, 'read', ()), None

    def opened(self, w, kind, root, k1):
        if kind == 'open':
            yield w, Proc('done', 'OK', ()), (root, k1)
        elif kind == 'expire':
            yield w, Proc(kind, 'set 1' if self.rule['expire-order'] else 'set 0', (root, k1)), None
        else:
            yield w, Proc(kind, 'persist 0', (root, k1)), None

    def dropper(self, w, p):
        kind, at, v = p
        if at == 'read':
            yield (w, Proc('done', 'ENOTFOUND', ()), None) if w.k0 is None else (w, Proc(kind, 'mark', w.k0[:2]), None)
        elif at == 'mark':                    # swap: -> removing, if it is still that root
            if w.k0 is not None and w.k0[:2] == v:
                yield w._replace(k0=Key(v[0], v[1], 'X', None)), Proc(kind, 'unlink 1', v), None
            else:
                yield w, Proc('done', 'EMISMATCH', ()), None
            if self.full:                     # refused: the server is full, and takes nothing but UNLINK
                yield w, Proc(kind, 'full 1', v), None
        elif at == 'full 1':
            yield self.unlink_k1(w, lambda k: k.gen == v[0]), Proc(kind, 'full 0', v), None
        elif at == 'full 0':                  # unlink the root by its identity
            if not self.rule['identity'] and w.k0 is not None and w.k0[:2] != v:
                raise Violation('I2: the root of another filter is removed')
            yield self.unlink_k0(w, lambda k: k[:2] == v), Proc('done', 'dropped', ()), None
        else:
            yield from self.opener(w, p)

    def repairer(self, w, p):
        """Makes the lost key anew, or takes the one that is there, and swaps it into the root's list."""
        kind, at, v = p
        if at == 'read':
            if w.k0 is None or w.k0.state != 'R':
                yield w, Proc('done', 'nothing', ()), None
            elif lists(w.k0, w.k1):
                yield w, Proc('done', 'intact', ()), None
            else:
                yield w, Proc(kind, 'remake', (w.k0, w.t0)), None
        elif at == 'remake':                  # make key 1, with the time to live that the root has
            root, ttl = v
            if w.k1 is not None and w.k1.gen == root.gen and (self.rule['help'] or w.k1.id == root.ids[1]):
                if self.rule['repair-ttl']:
                    w = w._replace(t1=ttl)
                yield w, Proc(kind, 'swap', (root, ttl, w.k1.id, False)), None
            elif self.may_make_k1(w, root.gen) or (w.k1.gen == root.gen and not self.rule['help']):
                w = self.make_k1(w, root.gen, ttl and self.rule['repair-ttl'])
                yield w, Proc(kind, 'swap', (root, ttl, w.k1.id, True)), None
            else:
                yield w, Proc('done', 'superseded', ()), None
        elif at == 'swap':                    # the list, if the root is still just that
            root, ttl, k1, mine = v
            if w.k0 == root and (w.t0 == ttl or not self.rule['repair-ttl']):
                yield w._replace(k0=root._replace(ids=(root.id, k1))), Proc('done', 'repaired', ()), None
            elif mine and not (self.rule['help'] and w.k0 is not None and w.k0.gen == root.gen):
                yield w, Proc(kind, 'tidy', (k1,)), None
            else:
                yield w, Proc(kind, 'read', ()), None
        else:
            for w, _, handle in self.opener(w, p):
                yield w, Proc('done', 'lost the race', ()), handle

    def expirer(self, w, p):
        kind, at, v = p
        if at == 'read' and (w.k0 is None or w.k0.state != 'R'):
            yield w, Proc('done', 'ENOTFOUND', ()), None
        elif at == 'set 1':                   # PEXPIRE of K1, one second longer than the root's, if it is still that key
            if w.k1 is not None and w.k1.id == v[1]:
                w = w._replace(t1=True)
                yield w, Proc(kind, 'set 0', v) if self.rule['expire-order'] else Proc('done', 'OK', ()), None
            else:
                yield w, Proc('done', 'ECORRUPT', ()), None
        elif at == 'set 0':                   # PEXPIRE of the root, if it is still that root, with that list
            root, k1 = v
            if w.k0 is not None and w.k0[:2] == root and w.k0.state == 'R' and \
                    (w.k0.ids[1] == k1 or not self.rule['expire-list']):
                w = w._replace(t0=True)
                yield w, Proc('done', 'OK', ()) if self.rule['expire-order'] else Proc(kind, 'set 1', v), None
            else:
                yield w, Proc('done', 'EMISMATCH', ()), None
        elif at in ('persist 0', 'persist 1'):
            root, k1 = v
            if at == 'persist 0':
                if w.k0 is None or w.k0[:2] != root:
                    yield w, Proc('done', 'ENOTFOUND', ()), None
                    return
                w = w._replace(t0=False)
            elif w.k1 is not None and w.k1.id == k1:
                w = w._replace(t1=False)
            first = 'persist 0' if self.rule['expire-order'] else 'persist 1'
            other = 'persist 1' if at == 'persist 0' else 'persist 0'
            yield w, Proc(kind, other, v) if at == first else Proc('done', 'OK', ()), None
        else:
            yield from self.opener(w, p)

    def replacer(self, w, p):
        """Has built a filter under another name, and puts it in the place of this one: both keys in one step."""
        kind, at, v = p
        if at == 'read':                      # made, with a generation of that time
            gen = w.clock + 10
            yield w._replace(clock=gen), Proc(kind, 'look at the name', (gen,)), None
        elif at == 'look at the name':
            if w.k0 is not None and w.k0.state != 'R':
                yield w, Proc('done', 'EBUSY', ()), None
            else:
                yield w, Proc(kind, 'replace', (v[0], w.k0 and w.k0[:2])), None
        elif at == 'replace':                 # rename both keys, if the root is still that one, or still none
            gen, old = v
            if (w.k0 and w.k0[:2]) != old or (w.k0 is not None and w.k0.state != 'R'):
                yield w, Proc('done', 'EBUSY', ()), None
                return
            if self.rule['stamp']:
                gen = max([w.clock + 10] + [k.gen + 1 for k in (w.k0, w.k1) if k is not None])
                w = w._replace(clock=max(w.clock, gen))
            root, key = self.draw(), self.draw()
            w = w._replace(k0=Key(gen, root, 'R', (root, key)), expired=None)
            if self.rule['whole']:
                yield w._replace(k1=Key(gen, key, None, None), t1=w.t0), Proc('done', 'OK', ()), (Root(gen, root), key)
            else:
                yield w, Proc(kind, 'key 1', (gen, root, key)), None
        elif at == 'key 1':
            gen, root, key = v
            if lists(w.k0, w.k1):
                raise Violation('I4: a listed key is replaced')
            yield w._replace(k1=Key(gen, key, None, None)), Proc('done', 'OK', ()), (Root(gen, root), key)

    # ---- Every next step, and what must hold

    def steps(self, w):
        for i, p in enumerate(w.procs):
            if p.at == 'read' and p.kind == 'persist' and not self.race and any(q.kind == 'expire' for q in w.procs):
                continue
            if p.kind in ('done', 'dead') or (i > 0 and w.procs[i - 1] == p):  # equals of one kind: the first will do
                continue
            for n, after, handle in self.acts[p.kind](w, p):
                yield '%s %d: %s -> %s' % (p.kind, i, p.at, after.at), n._replace(
                    procs=w.procs[:i] + (after,) + w.procs[i + 1:], handles=w.handles | {handle} if handle else w.handles)
            yield '%s %d dies' % (p.kind, i), w._replace(procs=w.procs[:i] + (Proc('dead', p.kind, ()),) + w.procs[i + 1:])
        if w.evictions > 0:
            if w.k0 is not None:
                yield 'K0 is evicted', w._replace(k0=None, t0=False, evictions=w.evictions - 1)
            if w.k1 is not None:
                yield 'K1 is evicted', w._replace(k1=None, t1=False, evictions=w.evictions - 1)
        if w.backs > 0:
            yield 'the clock steps back', w._replace(clock=w.clock - 15, backs=w.backs - 1)
        if w.t0:
            yield 'the time of K0 passes', w._replace(k0=None, t0=False, expired=w.k0.ids)
        if w.t1:
            yield 'the time of K1 passes', w._replace(k1=None, t1=False)

    def alone(self, w, kind):
        """What a process of that kind ends with if nobody else does anything, and the world after it."""
        w = w._replace(procs=(), handles=frozenset(), evictions=0, backs=0)
        p = Proc(kind, 'read', ())
        for _ in range(60):
            if p.kind == 'done':
                return p.at, w
            w, p, _ = next(iter(self.acts[p.kind](w, p)))
        return 'never ends', w

    def check(self, w):
        ids = {}
        for root, k1 in w.handles if not self.repairs else ():
            if ids.setdefault(root, k1) != k1:
                raise Violation('I1: generation %d has handles on different keys' % root.gen)
        if all(p.kind in ('done', 'dead') for p in w.procs):
            self.check_ttl(w)
            self.check_end(w)

    def check_ttl(self, w):
        ids = w.k0.ids if w.t0 else w.expired if w.k0 is None else None
        if ids and w.k1 is not None and w.k1.id == ids[1] and not w.t1:
            raise Violation('I5: a key outlives its root for ever')

    def check_end(self, w):
        result, after = self.alone(w, 'open')
        if result == 'OK':
            return
        if result != 'ECORRUPT':
            raise Violation('I3: open alone: %s' % result)
        if self.repairs:
            repaired, mended = self.alone(after, 'repair')
            result, mended = self.alone(mended, 'open')
            if result != 'OK' and not (self.backs and repaired == 'superseded'):
                raise Violation('I3: after ECORRUPT, repair (%s), open: %s' % (repaired, result))
        dropped, after = self.alone(after, 'drop')
        result, after = self.alone(after, 'open')
        if result != 'OK':
            raise Violation('I3: after ECORRUPT, drop (%s), open: %s' % (dropped, result))


def lists(root, key):
    return root is not None and key is not None and root.state == 'R' and root.gen == key.gen and root.ids[1] == key.id


def once_each(rename):
    """rename(v, table) numbers the ids in v in the order met. The same parts come in many states: each is looked through
    once, and renamed once for what the table says of its ids."""
    met, renamed = {}, {}

    def rename_part(v, table):
        ids = met.get(v)
        if ids is None:
            inside = {}
            rename(v, inside)
            ids = met[v] = tuple(inside)
        numbers = tuple([table.setdefault(i, len(table)) for i in ids])
        found = renamed.get((v, numbers))
        if found is None:
            found = renamed[v, numbers] = rename(v, dict(zip(ids, numbers)))
        return found
    return rename_part


def rename(v, table):
    if isinstance(v, tuple):
        if len(v) == 2 and v[0] == 'id':
            return ('id', table.setdefault(v, len(table)))
        values = [rename(x, table) for x in v]
        return type(v)(*values) if hasattr(v, '_fields') else tuple(values)
    return v


rename_part = once_each(rename)
text_of = lru_cache(maxsize=None)(repr)


def normal(w):
    """Equal states look equal: drawn ids are numbered in the order met, and processes of one kind are sorted."""
    procs = sorted(w.procs, key=lambda p: (p.kind, p.at, text_of(p.local))) if len(w.procs) > 1 else w.procs
    table = {}
    return World(rename_part(w.k0, table), rename_part(w.k1, table), w.t0, w.t1, w.clock,
                 tuple([rename_part(p, table) for p in procs]),
                 frozenset([rename_part(h, table) for h in sorted(w.handles, key=text_of)]), w.evictions, w.backs,
                 rename_part(w.expired, table))


def explore(model, start, normal):
    """Every state from start; returns their number. Ends the program at a violation, and prints how it comes to it."""
    gc.disable()  # states are trees that stay: to look for cycles in them takes a third of the time
    start = normal(start)
    via, queue = {start: None}, deque([start])
    while queue:
        w = queue.popleft()
        try:
            model.check(w)
            for name, n in model.steps(w):
                n = normal(n)
                if n not in via:
                    via[n] = (w, name)
                    queue.append(n)
        except Violation as problem:
            trace = []
            while via[w]:
                w, name = via[w]
                trace.append(name)
            print('VIOLATION', problem)
            print('\n'.join('  ' + x for x in reversed(trace)))
            sys.exit(1)
    return len(via)


def main():
    parser = argparse.ArgumentParser()
    for kind in ('open', 'drop', 'evict', 'repair', 'expire', 'persist', 'replace', 'back'):
        parser.add_argument('--' + kind, type=int, default=0)
    for flag in ['full', 'race'] + ['no-' + rule for rule in RULES]:
        parser.add_argument('--' + flag, action='store_true')
    model = Model(parser.parse_args())
    print('%d states: all hold' % explore(model, model.start, normal))


if __name__ == '__main__':
    main()
