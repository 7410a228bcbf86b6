#!/usr/bin/env python3
"""A growing filter: its links are made, followed, added to, asked, given times to live and removed. Every order of steps.

Link 0 has the filter's name. A link whose state is g has a further one behind it; the chain of a further one is the id of
link 0. One item is added, by all adders; a link has it or has not. Each link is one key here (of several: life.py), and a
step is one script, or one read of bits with the guard behind them, on one link. Each process may stop for ever at any
step, or sleep as long as it likes.

Checked in every state:
  C1  an item whose add was OK before a look-up began is not denied by it: found, or an error. Also where links were lost
  C2  of all whose add was OK one at most is told that the item was new to this filter; and one, if none failed or died
  C3  where all processes are done or dead, no link is left that nobody can find, unless a grower has died; and who makes
      a filter then, and grows it, can do so
  C4  nobody but who removes a filter takes away a link that the one before it tells of, or that is the first
  C5  where all processes are done or dead, no link lives for ever when the first one does not; where none has died, none
      lives shorter than the first one

usage: chain.py [--links N] [--add N] [--look N] [--grow N] [--drop N] [--make N] [--expire N] [--persist N] [--evict N]
                [--forget N] [--old] [--ttl T] [--whole] [--no-RULE ...]
--old: at the beginning there is a filter of one link, else nothing; --ttl: with that time to live, 1 or 2.
--whole: no process dies. Expire gives the time to live 2.
--forget: so often a root says r again where it said g: a replica takes over that had not heard of it. Look-ups that are on
their way fail (ELOST); each other handle knows that a server was lost. C2 holds only before that.
prints the number of states, or VIOLATION and the steps to it. RULE is one of
  chain    a link counts only if it has the id of the first one
  further  a look-up goes on where the newest link says g
  older    an add looks for the item in all links but the newest first
  behind   an add reads the guard behind its bits (and not in front of them)
  decide   what turned a bit in a link that says g by then is not new yet
  verify   a link is made ready only if the one before it still says r, behind the claim
  proof    a link of another chain is removed only if link 0 is ours, behind that look at it
  swap     the swap to g compares identity and state
  undo     who meets no r in the end removes the link that it made
  ttl      a new link gets the time to live of the one before it
  later    and the swap to g is refused if that is longer by now, or the first one
  last     the first link gets a time to live if all others have it by then
  mark     who removes a filter marks the root first, and removes it last
  ahead    where a root says r an open looks one link further, and tells of what it finds there
  again    a handle that is open when a server is lost does so once more, before it asks
"""
import argparse
from collections import namedtuple
from functools import lru_cache

from life import Violation, explore, text_of

RULES = ('chain', 'further', 'older', 'behind', 'decide', 'verify', 'proof', 'swap', 'undo', 'ttl', 'later', 'last',
         'mark', 'ahead', 'again')

# links: None or Link each. good: chains in which the item was acknowledged. news: those where somebody was told it is new.
# lost: links have been evicted, or have expired. forgets: how often a root may still forget its g. drawn: ids so far, which are numbers in order of time.
World = namedtuple('World', 'links procs good news evictions lost forgets drawn')
# chain: the id of link 0. state: c creating, r ready, g ready and a further one is, x removing. ttl: 0, for ever; 1; 2, longer.
Link = namedtuple('Link', 'chain id state ttl has')
Proc = namedtuple('Proc', 'kind at local')
LONG = 2


class Model:
    def __init__(self, options):
        self.rule = {name: not getattr(options, 'no_' + name) for name in RULES}
        self.whole, self.links, self.forgets = options.whole, options.links, options.forget
        kinds = [kind for kind in ('add', 'look', 'grow', 'drop', 'make', 'expire', 'persist')
                 for _ in range(getattr(options, kind))]
        first = Link(0, 0, 'r', options.ttl, False) if options.old else None
        self.start = World((first,) + (None,) * (options.links - 1), tuple(Proc(kind, 'open', ()) for kind in kinds),
                           frozenset(), frozenset(), options.evict, False, options.forget, 1)

    # ---- Steps on one link

    def put(self, w, i, link):
        there = w.links[i]
        if link is None and there is not None and there.state != 'x' and self.is_found(w, i):
            raise Violation('C4: link %d is taken away' % i)
        return w._replace(links=w.links[:i] + (link,) + w.links[i + 1:])

    def is_found(self, w, i):
        first = w.links[0]
        return i == 0 or (first is not None and first.state in 'rg' and w.links[i].chain == first.id and
                          all(w.links[k] is not None and w.links[k].state == 'g' for k in range(i)))

    def guard(self, w, ids, i):
        """The state of link i, if it is the handle's."""
        link = w.links[i]
        return link.state if link is not None and link.id == ids[i] and link.state in 'rg' else None

    def alter(self, w, i, identity, **values):
        link = w.links[i]
        return self.put(w, i, link._replace(**values)) if link is not None and link.id == identity else None

    # ---- Processes: each yields (world, the process). A handle is the ids of the links that it knows

    def act(self, w, p):
        if p.at in ('open', 'ahead', 'keep', 'tell', 'follow', 'confirm', 'remove'):
            return getattr(self, p.at)(w, p)
        return getattr(self, p.kind + '_' + p.at)(w, p.local)

    def end(self, how='OK'):
        return Proc('done', how, ())

    def open(self, w, p):
        root = w.links[0]
        if p.kind == 'drop':
            yield w, self.end('ENOTFOUND') if root is None else \
                Proc('drop', 'mark' if root.state != 'x' else 'remove', (root.id, 1))
        elif root is None and p.kind == 'make':   # (that it is made step by step: life.py)
            yield self.put(w, 0, Link(w.drawn, w.drawn, 'r', 0, False))._replace(drawn=w.drawn + 1), self.end()
        elif root is None:
            yield w, self.end('ENOTFOUND')
        elif root.state == 'x':                   # goes on with the removal
            yield w, Proc(p.kind, 'remove', (root.id, 1))
        else:
            yield w, self.opened(p.kind, (root.id,), root.state, 0)

    def opened(self, kind, ids, state, at):
        """at: the link with which what it does goes on."""
        if state == 'g':
            return Proc(kind, 'follow', (ids, at))
        if self.forgets > 0 and self.rule['ahead'] and len(ids) < self.links:
            return Proc(kind, 'ahead', (ids, at))
        return self.go_on(kind, ids, at)

    def go_on(self, kind, ids, at):
        return {'add': Proc(kind, 'ask', (ids, at)), 'look': Proc(kind, 'ask', (ids, at, None)),
                'grow': Proc(kind, 'state', (ids,)), 'make': self.end(),
                'expire': Proc(kind, 'set' if len(ids) > 1 else 'first', (ids, max(at, 1))),
                'persist': Proc(kind, 'set', (ids, at))}[kind]

    def resume(self, go_on, rest):
        """A look-up that was in the middle of it goes on with what it had."""
        return go_on._replace(local=go_on.local[:2] + rest) if rest else go_on

    def ahead(self, w, p):                        # is the next link there, and not told of?
        ids, at, *rest = p.local
        link, before = w.links[len(ids)], w.links[len(ids) - 1]
        if link is None or link.state not in 'rg' or link.chain != ids[0]:
            yield w, self.resume(self.go_on(p.kind, ids, at), tuple(rest))
        elif not self.guard(w, ids, len(ids) - 1):
            yield w, self.end('failed')
        elif before.state == 'g':
            yield w, Proc(p.kind, 'follow', p.local)
        else:
            yield w, Proc(p.kind, 'keep', (p.local, before.ttl))

    def keep(self, w, p):
        ids = p.local[0][0]
        link = w.links[len(ids)]
        after = self.alter(w, len(ids), link.id, ttl=p.local[1]) if link is not None else None
        yield (w, self.end('failed')) if after is None else (after, Proc(p.kind, 'tell', p.local))

    def tell(self, w, p):
        local, ttl = p.local
        n = len(local[0]) - 1
        if not self.guard(w, local[0], n):
            yield w, self.end('failed')
        elif w.links[n].state != 'g' and not self.is_still(w.links[n], ttl):
            yield w, Proc(p.kind, 'ahead', local)
        else:
            yield self.put(w, n, w.links[n]._replace(state='g')), Proc(p.kind, 'follow', local)

    def follow(self, w, p):
        ids, at = p.local[:2]
        link = w.links[len(ids)]
        if link is not None and link.state in 'rg' and (link.chain == ids[0] or not self.rule['chain']):
            yield w, self.resume(self.opened(p.kind, ids + (link.id,), link.state, at), p.local[2:])
        else:
            yield w, Proc(p.kind, 'confirm', ids)

    def confirm(self, w, p):
        yield w, self.end('ECORRUPT' if self.guard(w, p.local, 0) else 'ENOTFOUND')

    def remove(self, w, p):                       # link after link, those of the chain; then the root
        chain, i = p.local
        after = Proc(p.kind, 'open', ()) if p.kind == 'make' else self.end('dropped')
        if i < len(w.links):
            link = w.links[i]
            if link is not None and (link.chain == chain or not self.rule['chain']):
                w = self.put(w, i, None)
            yield w, Proc(p.kind, 'remove', (chain, i + 1))
        else:
            root = w.links[0]
            yield (self.put(w, 0, None) if root is not None and root.id == chain and root.state == 'x' else w), after

    def drop_mark(self, w, v):
        marked = self.alter(w, 0, v[0], state='x')
        if marked is None:
            yield w, self.end('EMISMATCH')
        elif not self.rule['mark']:               # just the root, and then the others
            yield self.put(marked, 0, None), Proc('drop', 'remove', v)
        else:
            yield marked, Proc('drop', 'remove', v)

    # ---- An add

    def added(self, w, chain, new):
        if new and chain in w.news and w.forgets == self.forgets:
            raise Violation('C2: new to two')
        return w._replace(good=w.good | {chain}, news=w.news | {chain} if new else w.news), self.end()

    def add_ask(self, w, v):                      # in all but the newest
        ids, i = v
        if i == len(ids) - 1 or not self.rule['older']:
            yield from self.add_set(w, (ids, None)) if self.rule['behind'] else self.add_guard(w, (ids, None))
        elif not self.guard(w, ids, i):
            yield w, self.end('failed')
        elif w.links[i].has:
            yield self.added(w, ids[0], False)
        else:
            yield w, Proc('add', 'ask', (ids, i + 1))

    def add_set(self, w, v):
        ids, known = v
        n = len(ids) - 1
        link = w.links[n]
        turned = link is not None and link.id == ids[n] and not link.has
        if turned:
            w = self.put(w, n, link._replace(has=True))
        if self.rule['behind']:
            yield w, Proc('add', 'guard', (ids, turned))
        else:
            yield self.judge(w, ids, known, turned)

    def add_guard(self, w, v):
        ids, turned = v
        state = self.guard(w, ids, len(ids) - 1)
        if state is None:
            yield w, self.end('failed')
        elif self.rule['behind']:
            yield self.judge(w, ids, state, turned)
        else:
            yield w, Proc('add', 'set', (ids, state))

    def judge(self, w, ids, state, turned):
        if turned and state == 'g' and self.rule['decide']:
            return w, Proc('add', 'follow', (ids, len(ids)))
        return self.added(w, ids[0], turned)

    # ---- A look-up

    def look_ask(self, w, v):
        ids, i, begun = v
        begun = ids[0] in w.good if begun is None else begun
        state = self.guard(w, ids, i)
        if state is None:
            yield w, self.end('failed')
        elif w.links[i].has:
            yield w, self.end('yes')
        elif i < len(ids) - 1:
            yield w, Proc('look', 'ask', (ids, i + 1, begun))
        elif state == 'g' and self.rule['further']:
            yield w, Proc('look', 'follow', (ids, i + 1, begun))
        elif begun:
            raise Violation('C1: denied')
        else:
            yield w, self.end('no')

    # ---- Growing: ids, the time to live of the newest one, the id of the link that is to follow

    def grow_state(self, w, v):
        n = len(v[0])
        state = self.guard(w, v[0], n - 1)
        if state is None or n == len(w.links):
            yield w, self.end('failed' if state is None else 'full')
        else:
            yield w, self.end('grown') if state == 'g' else Proc('grow', 'place', v + (w.links[n - 1].ttl,))

    def grow_place(self, w, v):
        ids, ttl = v
        link = w.links[len(ids)]
        if link is None:
            yield w, Proc('grow', 'claim', v)
        elif link.chain == ids[0] or not self.rule['chain']:
            yield w, Proc('grow', 'verify' if link.state == 'c' else 'live', v + (link.id,))
        else:
            yield w, Proc('grow', 'prove' if self.rule['proof'] else 'clear', v + (link.id,))

    def grow_prove(self, w, v):                   # another chain's: is the first one ours all the same?
        yield w, Proc('grow', 'clear', v) if self.guard(w, v[0], 0) else self.end('failed')

    def unlink(self, w, v, states='crg'):
        ids, _, identity = v[:3]
        link = w.links[len(ids)]
        return self.put(w, len(ids), None) if link is not None and link.id == identity and link.state in states else w

    def grow_clear(self, w, v):
        yield self.unlink(w, v), Proc('grow', 'state', v[:1])

    def grow_claim(self, w, v):
        ids, ttl = v
        if w.links[len(ids)] is not None:
            yield w, Proc('grow', 'place', v)
            return
        link = Link(ids[0], w.drawn, 'c' if self.rule['verify'] else 'r', 0, False)
        yield self.put(w, len(ids), link)._replace(drawn=w.drawn + 1), \
            Proc('grow', 'verify' if self.rule['verify'] else 'live', v + (link.id,))

    def grow_verify(self, w, v):
        state = self.guard(w, v[0], len(v[0]) - 1)
        yield w, Proc('grow', 'flip', v) if state == 'r' else \
            Proc('grow', 'state', v[:1]) if state == 'g' else self.cannot(v, 'c')

    def cannot(self, v, states):
        return Proc('grow', 'undo', v + (states,)) if self.rule['undo'] else self.end('failed')

    def grow_flip(self, w, v):
        link = w.links[len(v[0])]
        if link is not None and link.id == v[2] and link.state == 'c':
            yield self.put(w, len(v[0]), link._replace(state='r')), Proc('grow', 'live', v)
        else:
            yield w, Proc('grow', 'state', v[:1])

    def grow_live(self, w, v):
        ids, ttl, identity = v
        after = self.alter(w, len(ids), identity, ttl=ttl) if self.rule['ttl'] else w
        yield (w, self.end('failed')) if after is None else (after, Proc('grow', 'swap', v))

    def is_still(self, link, ttl):                # as time passes
        return (link.ttl == 0) == (ttl == 0) and link.ttl <= ttl

    def grow_swap(self, w, v):
        ids, ttl, identity = v
        n = len(ids) - 1
        link = w.links[n]
        if not self.rule['swap'] and link is not None:
            yield self.put(w, n, link._replace(state='g')), self.end('grown')
        elif not self.guard(w, ids, n):
            yield w, self.cannot(v, 'crg')
        elif link.state == 'g':
            yield w, self.end('grown')
        elif self.rule['later'] and not self.is_still(link, ttl):
            yield w, Proc('grow', 'state', v[:1])
        else:
            yield self.put(w, n, link._replace(state='g')), self.end('grown')

    def grow_undo(self, w, v):
        yield self.unlink(w, v, v[3]), self.end('failed')

    # ---- Times to live: the first link's is set last, once the newest says r behind its own, and taken away first

    def live(self, w, kind, v, ttl):
        ids, i = v
        after = self.alter(w, i, ids[i], ttl=ttl)
        yield (w, self.end('failed')) if after is None else \
            (after, Proc(kind, 'newest' if i + 1 == len(ids) else 'set', (ids, i + 1)))

    def newest(self, w, kind, v, after):
        state = self.guard(w, v[0], len(v[0]) - 1)
        yield w, Proc(kind, 'follow', v) if state == 'g' else after if state else self.end('failed')

    def expire_set(self, w, v):
        return self.live(w, 'expire', v, LONG)

    def expire_newest(self, w, v):
        return self.newest(w, 'expire', v, Proc('expire', 'first', v))

    def expire_first(self, w, v):
        state = self.guard(w, v[0], 0)
        if state == 'g' and len(v[0]) == 1 and self.rule['last']:
            yield w, Proc('expire', 'follow', v)
        else:
            yield (self.alter(w, 0, v[0][0], ttl=LONG), self.end()) if state else (w, self.end('failed'))

    def persist_set(self, w, v):
        return self.live(w, 'persist', v, 0)

    def persist_newest(self, w, v):
        return self.newest(w, 'persist', v, self.end())

    # ---- Every next step, and what must hold

    def steps(self, w):
        for i, p in enumerate(w.procs):
            if p.kind in ('done', 'dead') or (i > 0 and w.procs[i - 1] == p):
                continue
            for n, after in self.act(w, p):
                yield '%s %d: %s %s -> %s' % (p.kind, i, p.at, p.local, after.at), n._replace(
                    procs=w.procs[:i] + (after,) + w.procs[i + 1:])
            if not self.whole:
                yield '%s %d dies' % (p.kind, i), w._replace(procs=w.procs[:i] + (Proc('dead', p.kind, ()),) + w.procs[i + 1:])
        for i, link in enumerate(w.links):
            if link is not None and w.evictions > 0:
                yield 'link %d is evicted' % i, self.lose(w, i)._replace(evictions=w.evictions - 1)
            if link is not None and link.ttl > 0 and self.goes_next(w, i):
                yield 'the time of link %d passes' % i, self.lose(w, i)

            if link is not None and link.state == 'g' and w.forgets > 0:
                yield 'link %d is told of no more' % i, self.put(w, i, link._replace(state='r'))._replace(
                    forgets=w.forgets - 1, procs=tuple(self.told(p) for p in w.procs))

    def told(self, p):
        """What a process does that knows of a server that was lost."""
        local = p.local[0] if p.at in ('keep', 'tell') else p.local
        if p.kind != 'look' or p.at not in ('ask', 'follow', 'ahead', 'keep', 'tell'):
            return p
        if len(local) > 2 and local[2] is not None:
            return self.end('failed')
        again = p.at == 'ask' and self.rule['again'] and len(local[0]) < self.links
        return Proc('look', 'ahead', (local[0], 0)) if again else p

    def lose(self, w, i):
        return w._replace(links=w.links[:i] + (None,) + w.links[i + 1:], lost=True)

    def goes_next(self, w, i):
        return all(k == i or link is None or link.ttl == 0 or (link.ttl, k > 0) >= (w.links[i].ttl, i > 0)
                   for k, link in enumerate(w.links))

    def check(self, w):
        if any(p.kind not in ('done', 'dead') for p in w.procs):
            return
        dead = any(p.kind == 'dead' for p in w.procs)
        root = w.links[0]
        failed = dead or any(p.at in ('failed', 'ECORRUPT', 'ENOTFOUND') for p in w.procs)
        if root is not None and root.id in w.good and root.id not in w.news and not failed:
            raise Violation('C2: new to nobody')
        for i, link in enumerate(w.links[1:], 1):
            if link is None:
                continue
            if not (Proc('dead', 'grow', ()) in w.procs or w.lost or w.forgets < self.forgets or self.is_found(w, i)) and \
                    not (root is not None and root.state == 'x'):
                raise Violation('C3: link %d is left' % i)
            if root is not None and link.state != 'c' and self.is_found(w, i) and \
                    ((root.ttl > 0 and link.ttl == 0) or (not dead and (root.ttl or LONG + 1) > (link.ttl or LONG + 1))):
                raise Violation('C5: link %d lives for %d, the first one for %d' % (i, link.ttl, root.ttl))
        self.check_alone(w)

    def alone(self, w, kind):
        w, p = w._replace(procs=(), evictions=0, good=frozenset(), news=frozenset()), Proc(kind, 'open', ())
        for _ in range(60):
            if p.kind == 'done':
                return p.at, w
            w, p = next(iter(self.act(w, p)))
        return 'never ends', w

    def check_alone(self, w):
        result, after = self.alone(w, 'make')
        if result == 'ECORRUPT':
            _, after = self.alone(after, 'drop')
            result, after = self.alone(after, 'make')
        if result != 'OK':
            raise Violation('C3: opened alone: %s' % result)
        result, after = self.alone(after, 'grow')
        if result not in ('grown', 'full'):
            raise Violation('C3: grown alone: %s' % result)
        if result == 'grown' and self.alone(after, 'look')[0] == 'failed':
            raise Violation('C3: what was grown alone cannot be asked')


def normal(w):
    """Equal states look equal: ids are numbered in their order, those that nobody knows any more are left out, and
    processes of one kind are sorted."""
    met = set()
    for link in w.links:
        if link is not None:
            met.update((link.chain, link.id))
    for p in w.procs:
        met.update(known(p))
    table = {old: new for new, old in enumerate(sorted(met))}
    links = tuple(link and link._replace(chain=table[link.chain], id=table[link.id]) for link in w.links)
    procs = tuple(sorted([rename_known(p, tuple([table[x] for x in known(p)])) for p in w.procs], key=text_of))
    return World(links, procs, frozenset(table[c] for c in w.good if c in table),
                 frozenset(table[c] for c in w.news if c in table), w.evictions, w.lost, w.forgets, len(table))


@lru_cache(maxsize=None)
def known(p):
    """The ids in what a process remembers: its handle, and that of a link which it makes or takes."""
    v = p.local
    if p.at in ('mark', 'remove'):
        return v[:1]
    if p.at == 'confirm':
        return v
    if p.at in ('keep', 'tell'):
        return v[0][0]
    return (v[0] if v else ()) + (v[2:3] if p.kind == 'grow' and p.at not in ('follow', 'ahead') else ())


def rename(p, table):
    v = p.local
    if p.at in ('mark', 'remove'):
        return p._replace(local=(table[v[0]],) + v[1:])
    if p.at == 'confirm':
        return p._replace(local=tuple(table[x] for x in v))
    if not v:
        return p
    if p.at in ('keep', 'tell'):
        return p._replace(local=((tuple(table[x] for x in v[0][0]),) + v[0][1:], v[1]))
    ids = tuple(table[x] for x in v[0])
    if p.kind == 'grow' and p.at not in ('follow', 'ahead') and len(v) > 2:
        return p._replace(local=(ids, v[1], table[v[2]]) + v[3:])
    return p._replace(local=(ids,) + v[1:])


@lru_cache(maxsize=None)
def rename_known(p, numbers):
    return rename(p, dict(zip(known(p), numbers)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--links', type=int, default=2)
    for kind in ('add', 'look', 'grow', 'drop', 'make', 'expire', 'persist', 'evict', 'forget', 'ttl'):
        parser.add_argument('--' + kind, type=int, default=0)
    for flag in ['old', 'whole'] + ['no-' + rule for rule in RULES]:
        parser.add_argument('--' + flag, action='store_true')
    model = Model(parser.parse_args())
    print('%d states: all hold' % explore(model, model.start, normal))


if __name__ == '__main__':
    main()
