#!/usr/bin/env python3
"""A bulk add that tells exactly what is new (lib/redis/transfer.h), on one key. Every order of its steps.

All processes add one item, whose two bits may lie in two parts of the key. A merger sends PSETEX of the bits to set,
and the script behind it. Then it reads the bits before, part by part, and UNLINKs them. If the script's answer is
lost, the script is sent again alone: PSETEX is spare. If it finds no bits to set, or the bits before are missing,
both are sent again; but if the bits were stored behind that answer, the script alone.

An adder goes item by item. So does a merger whose command was refused (no permission, or a slot that moves), or that
of another key, behind this one: so an add may follow a merge that is over. Where the filter grows, a link with the
state g has a further one behind it. Each looks in all links but the newest that it knows, and sets the item in that
one.

Another key changes nothing here, since all bits of an item lie in one, and each key has temporary names of its own.
Adds to a window never merge. A process that dies is one that takes no further step. Late bits of an
add, and their undo, are late.py's. How links are made, lost, or told of again, is chain.py's.

Checked in every state:
  M1  if all adds in one life of the filter (from one clear to the next) are OK, the item was new to one of them
  M2  it was new to one at most, but for those in doubt. None is in doubt unless a temporary key or an answer to PSETEX
      was lost; or one to the script was, and this was refused then; or the reading of the bits before was refused
  M3  if an add is OK the item is in; behind a failover, too, if the add waited for the replica
  M4  what has a temporary name has a time to live
  M5  the key keeps its own
  M6  nothing is set in a filter that took the name

usage: merge.py [--merge N] [--add N] [--cut N] [--lose N] [--move N] [--refuse N] [--fail N] [--grow N] [--parts N]
                [--clear] [--drop] [--replace] [--some] [--ttl] [--several] [--no-RULE ...]
--cut: answers are lost; the server may carry out what was sent, at any later time. --lose: a temporary key is lost.
--move: PSETEX comes behind the script, since it is sent to another server. --refuse: a command is. --fail: a replica
takes over, which may lack the last writes. --clear, --drop, --replace: once, by another client. --parts: of the bits
before. --some: one of the item's bits is set at the beginning. --ttl: the key has a time to live. --several: its link
has several keys, and the script does not see the root.
prints the number of states, or VIOLATION and the steps to it. RULE is one of
  unique      the temporary names are those of one merge
  guard       the script compares the key's identity
  done        it looks for the bits before first: if they are there, it was done
  none        without bits to set it does nothing
  epoch       it compares the epoch
  stored      if the bits were stored behind its answer, it is sent again alone
  whole       a part of the bits before that is not there is seen
  anew        then all is sent again
  doubt       if the bits were sent again, the item is new: the bits before prove nothing
  kept        what is new by a merge stays so where another key's is refused
  refused     if a refused script may have been carried out, the item is new
  ever        it may have been if the answer to any sending of it was lost, not the last one alone
  decide      what was set in a link that says g by then is not new yet
  behind      the root of several keys is asked behind the merge (and not in front of it)
  ttl         the key gets back its time to live
  bits-ttl    the bits to set have one
  before-ttl  the bits before have one
"""
import argparse
from collections import namedtuple
from functools import lru_cache

from life import Violation, explore, text_of

RULES = ('unique', 'guard', 'done', 'none', 'epoch', 'stored', 'whole', 'anew', 'doubt', 'kept', 'refused', 'ever',
         'decide', 'behind', 'ttl', 'bits-ttl', 'before-ttl')
FAULTS = ('cut', 'lose', 'move', 'refuse', 'fail', 'grow')
X = 0b11

# links: Key each, or None; replica: the same there, None: nobody waits for it. other: what another client will do.
World = namedtuple('World', 'links replica procs other left')
Left = namedtuple('Left', FAULTS)
# filter: 1 is the one that all have opened. state: r ready, g and a further one is.
Key = namedtuple('Key', 'filter epoch bits ttl state')
# The item is set in link `known` - 1; those in front of `asked` were asked. again: why the bits were sent again. names:
# what is there, of the bits to set (None, or: have they a time to live?) and those before (None or Key); on_replica:
# what is there. queue: commands without an answer; ghosts: those whose connection was cut. pending: (life, why) where
# the item is new, if this link decides; news: the same, once one has. doubt: why it is in doubt that an older link did
# not. life: where the add was OK.
Proc = namedtuple('Proc', 'kind at known asked epoch grown again stored repeated refused answer part read queue ghosts '
                          'names on_replica pending doubt news life')
NAMES = (None, None)


def new_proc(kind):
    return Proc(kind, 'begin', 0, 0, 0, False, '', '', False, False, '', 0, 0, (), (), NAMES, NAMES, (), '', (), None)


class Model:
    def __init__(self, options):
        self.rule = {name: not getattr(options, 'no_' + name.replace('-', '_')) for name in RULES}
        self.run = Left(*[getattr(options, fault) for fault in FAULTS])
        self.parts, self.several, self.grows = options.parts, options.several, options.grow > 0
        self.ttl, self.waits = options.ttl, options.fail > 0
        other = [o for o in ('clear', 'drop', 'replace') if getattr(options, o)]
        links = (Key(1, 0, 0b01 if options.some else 0, options.ttl, 'r'),)
        procs = [new_proc('merge')] * options.merge + [new_proc('add')] * options.add
        self.start = World(links, links if self.waits else None, tuple(procs), other[0] if other else None, self.run)

    # ---- The server

    def script(self, key, names, epoch):
        """The key and the names behind it, and what it says: a letter, the key's epoch and state."""
        bits, before = names
        if key is None or (self.rule['guard'] and key.filter != 1):
            return key, names, ('o', 0, 'r')
        if self.rule['done'] and before is not None:
            return key, (None, before), ('d', key.epoch, key.state)
        if self.rule['none'] and bits is None:
            return key, names, ('n', 0, 'r')
        if self.rule['epoch'] and key.epoch != epoch:
            return key, names, ('e', key.epoch, key.state)
        before = key._replace(ttl=self.rule['before-ttl'] or key.ttl)  # RENAME takes the time to live along
        key = key._replace(bits=key.bits | (X if bits is not None else 0), ttl=key.ttl and self.rule['ttl'])
        return key, (None, before), ('s', key.epoch, key.state)

    def carry_out(self, w, p, command):
        """The world and the process behind it, whose names may be another's, too; and the answer."""
        names, answer, i = p.names, None, p.known - 1
        if command[0] == 'PSETEX':
            names = (self.rule['bits-ttl'], names[1])
        elif command[0] == 'UNLINK':
            names = (names[0], None)
        elif command[0] == 'GETRANGE':
            answer = names[1]
        else:
            key, names, answer = self.script(w.links[i], names, command[1])
            if key is not w.links[i]:
                w = w._replace(links=w.links[:i] + (key,) + w.links[i + 1:])
        if names == p.names:
            return w, p, answer
        if not self.rule['unique']:
            w = w._replace(procs=tuple([q._replace(names=names) for q in w.procs]))
        return w, p._replace(names=names), answer

    # ---- A merger

    def send(self, p, again):
        return p._replace(at='merge', again=again, stored='', answer='', part=0, read=0,
                          queue=(('PSETEX',), ('EVAL', p.epoch, False)))

    def begin_merge(self, p):
        names = NAMES if self.rule['unique'] else p.names
        return self.send(p._replace(epoch=0, repeated=False, names=names, on_replica=names), '')

    def answered(self, p):
        """The first command in its queue is."""
        if p.queue[0][0] == 'EVAL':
            p = p._replace(repeated=p.queue[0][2] or (p.repeated and self.rule['ever']))
        return p._replace(queue=p.queue[1:])

    def refuse(self, p):
        """What else is on its way is answered, too."""
        p = self.answered(p)._replace(refused=True)
        return p if p.queue else self.give_up(p)

    def give_up(self, p):
        """It goes on item by item. If this merge may be done, the item that it has set is not new to the add."""
        why = 'unread' if p.answer in ('s', 'd') else p.again or ('repeated' if p.repeated else '')
        return p._replace(at='add', refused=False, pending=((None, why),) if why and self.rule['refused'] else ())

    def take(self, p, command, answer):
        p = self.answered(p)
        if command[0] == 'GETRANGE':
            return self.take_before(p, answer)
        if command[0] == 'PSETEX':
            p = p._replace(stored='behind')
        else:
            p = p._replace(stored='lost' if p.stored == 'lost' else '', answer=answer[0],
                           grown=p.grown or (answer[2] == 'g' and not self.several),
                           epoch=answer[1] if answer[0] in 'des' else p.epoch)
        return p if p.queue else self.judge_answer(p)

    def judge_answer(self, p):
        if p.refused:
            return self.give_up(p)
        if p.answer == 'o':
            return p._replace(at='failed')
        if p.answer == 'n' and not (p.stored == 'behind' and self.rule['stored']):
            return self.send(p, 'lost' if 'lost' in (p.stored, p.again) else 'sent again')
        if p.answer in 'ne':
            return p._replace(queue=(('EVAL', p.epoch, False),))
        return p._replace(at='read', part=0, read=0, queue=(('GETRANGE',),))

    def take_before(self, p, before):
        if before is None and self.rule['whole']:
            if self.rule['anew']:
                return self.send(p, p.again or 'sent again')
            return self.merged(p, (1, p.epoch), 'sent again')
        part = X if self.parts == 1 else 1 << p.part
        life = (before.filter, before.epoch) if before is not None else (1, p.epoch)
        p = p._replace(read=p.read | (before.bits & part if before is not None else 0), part=p.part + 1)
        if p.part < self.parts:
            return p._replace(queue=(('GETRANGE',),))
        if p.again and self.rule['doubt']:
            return self.merged(p, life, p.again)
        return self.merged(p, life, 'new' if p.read & X != X else None)

    def merged(self, p, life, why):
        """UNLINK may be carried out at any time now, or never: it is spare."""
        ghosts = p.ghosts + ((('UNLINK',),),)
        return p._replace(at='merged', ghosts=ghosts, pending=((life, why),) if why else (), life=life)

    # ---- All adders

    def begin_add(self, p):
        if p.asked < p.known - 1:
            return p._replace(at='look')
        if self.several and not self.rule['behind'] and p.kind == 'merge':
            return p._replace(at='ask root')
        return self.begin_merge(p) if p.kind == 'merge' else p._replace(at='add')

    def end(self, p, news):
        """If it is in doubt that the item was new in an older link, so it is in this one."""
        news = tuple(sorted({(life, p.doubt if why == 'new' and p.doubt else why) for life, why in news}))
        return p._replace(at='wait' if self.waits else 'OK', pending=(), news=news)

    def judge(self, p):
        """Does this link decide? If not, what is late sets nothing in it that is not set by now."""
        if not p.pending:
            return self.end(p, ())
        if p.grown and self.rule['decide']:
            doubt = p.doubt if any(why == 'new' for _, why in p.pending) else p.pending[0][1]
            return p._replace(at='follow', pending=(), doubt=doubt, asked=p.known, ghosts=())
        return self.end(p, p.pending)

    def add(self, w, p):
        i = p.known - 1
        key = w.links[i]
        if key is None or key.filter != 1:
            return w, p._replace(at='failed')
        life = (key.filter, key.epoch)
        pending = p.pending + (((life, 'new'),) if key.bits & X != X else ())
        p = p._replace(pending=tuple(sorted((at or life, why) for at, why in pending)), life=life)
        w = w._replace(links=w.links[:i] + (key._replace(bits=key.bits | X),) + w.links[i + 1:])
        return w, p._replace(at='guard') if self.grows else self.judge(p)

    def act(self, w, p):
        """The steps that it takes by itself."""
        if p.at == 'begin':
            for known in range(1, len(w.links) + 1):
                yield w, self.begin_add(p._replace(known=known))
        elif p.at == 'look':
            key = w.links[p.asked]
            found = key.bits & X == X
            yield w, self.end(p._replace(life=(1, 0)), ()) if found else self.begin_add(p._replace(asked=p.asked + 1))
        elif p.at == 'ask root':
            yield w, self.begin_merge(p._replace(grown=w.links[p.known - 1].state == 'g'))
        elif p.at == 'add':
            yield self.add(w, p)
        elif p.at == 'merged':
            yield w, p._replace(at='guard') if self.several and self.rule['behind'] else self.judge(p)
        elif p.at == 'guard':
            yield w, self.judge(p._replace(grown=p.grown or w.links[p.known - 1].state == 'g'))
        elif p.at == 'follow':
            yield w, self.begin_add(p._replace(known=len(w.links), grown=False))

    # ---- Every next step, and what must hold

    def cut(self, p):
        """Its connection is. PSETEX is spare, and once it is refused nothing is sent again. If it goes to another
        server, there are two connections."""
        yield self.resend(p, p.queue, ())
        if len(p.queue) == 2 and p.queue[1] == ('PSETEX',):
            yield self.resend(p, p.queue[1:], p.queue[:1])
            after = self.resend(p, p.queue[:1], p.queue[1:])
            yield after
            yield after._replace(queue=after.queue[::-1])

    def resend(self, p, lost, rest):
        again = tuple([('EVAL', c[1], True) if c[0] == 'EVAL' else c for c in lost if c[0] != 'PSETEX'])
        late = tuple([c[:2] for c in lost if c[0] != 'GETRANGE'])
        p = p._replace(queue=rest if p.refused else rest + again, ghosts=p.ghosts + ((late,) if late else ()),
                       stored='lost' if ('PSETEX',) in lost else p.stored)
        return p if p.queue else self.judge_answer(p)

    def steps_of(self, w, p):
        """Yields (what happened, the world, the process)."""
        for n, after in self.act(w, p):
            yield after.at, n, after
        if p.queue:
            n, after, answer = self.carry_out(w, p, p.queue[0])
            yield '%s -> %s' % (p.queue[0], answer), n, self.take(after, p.queue[0], answer)
        for g, ghost in enumerate(p.ghosts):
            n, after, answer = self.carry_out(w, p, ghost[0])
            rest = p.ghosts[:g] + ((ghost[1:],) if ghost[1:] else ()) + p.ghosts[g + 1:]
            yield '%s, late -> %s' % (ghost[0], answer), n, after._replace(ghosts=rest)
        if w.left.cut and p.queue:
            n = self.less(w, 'cut')
            for after in self.cut(p):
                yield 'cut off', n, after
        if w.left.move and len(p.queue) == 2 and p.queue[0][0] == 'PSETEX':
            yield 'PSETEX goes to another server', self.less(w, 'move'), p._replace(queue=p.queue[::-1])
        if w.left.refuse and p.queue:
            yield '%s is refused' % (p.queue[0],), self.less(w, 'refuse'), self.refuse(p)
        if w.left.refuse and p.at == 'merged':
            after = p._replace(at='add', pending=p.pending if self.rule['kept'] else ())
            yield 'the merge of another key is refused', self.less(w, 'refuse'), after
        if w.left.lose and p.names[0] is not None:
            yield 'the bits to set are lost', self.less(w, 'lose'), p._replace(names=(None, p.names[1]))
        if w.left.lose and p.names[1] is not None:
            yield 'the bits before are lost', self.less(w, 'lose'), p._replace(names=(p.names[0], None))

    def less(self, w, fault):
        return w._replace(left=w.left._replace(**{fault: getattr(w.left, fault) - 1}))

    def steps(self, w):
        for i, p in enumerate(w.procs):
            if i > 0 and w.procs[i - 1] == p:
                continue
            for name, n, after in self.steps_of(w, p):
                yield '%s %d: %s' % (p.kind, i, name), n._replace(procs=n.procs[:i] + (after,) + n.procs[i + 1:])
        first = w.links[0]
        if w.other and first is not None and first.filter == 1:
            then = {'clear': first._replace(epoch=first.epoch + 1, bits=0), 'drop': None,
                    'replace': Key(2, 0, 0, first.ttl, 'r')}[w.other]
            yield w.other, w._replace(links=(then,), other=None)
        if w.left.grow:
            links = w.links[:-1] + (w.links[-1]._replace(state='g'), Key(1, 0, 0, self.ttl, 'r'))
            yield 'the filter grows', self.less(w, 'grow')._replace(links=links)
        if self.waits:
            yield 'the replica has all', w._replace(replica=w.links, procs=tuple(
                [p._replace(on_replica=p.names, at='OK' if p.at == 'wait' else p.at) for p in w.procs]))
        if w.left.fail:
            yield 'the replica takes over', self.less(w, 'fail')._replace(
                links=w.replica, procs=tuple([self.over(p) for p in w.procs]))

    def over(self, p):
        """Its server is gone with all that was on its way. A call that comes to its end, or waits, is made again."""
        if p.queue:
            return next(self.cut(p))._replace(ghosts=(), names=p.on_replica)
        return p if p.at in ('begin', 'OK', 'failed') else new_proc(p.kind)

    def check(self, w):
        ended = [p for p in w.procs if p.at == 'OK']
        forgot = w.left.fail < self.run.fail
        over = all(p.at in ('OK', 'begin') for p in w.procs)
        key = w.links[0]
        for life in {p.life for p in ended}:
            new = [why for p in ended for at, why in p.news if at == life]
            later = [why for p in ended for at, why in p.news if at > life and why != 'new']
            if over and not new and not later and not forgot:
                raise Violation('M1: new to nobody, in life %s' % (life,))
            if new.count('new') > 1 and not forgot:
                raise Violation('M2: new to two')
            if key is not None and (key.filter, key.epoch) == life and not any(k.bits & X == X for k in w.links):
                raise Violation('M3: an add was OK, and the item is not in')
        if w.left.lose == self.run.lose and not forgot and any(why == 'sent again' for p in ended for _, why in p.news):
            raise Violation('M2: in doubt for no reason')
        if any(p.names[0] is False or (p.names[1] is not None and not p.names[1].ttl) for p in w.procs):
            raise Violation('M4: a temporary key stays for ever')
        if any(k is not None and k.ttl != self.ttl for k in w.links):
            raise Violation('M5: the time to live of the key has changed')
        if key is not None and key.filter != 1 and key.bits:
            raise Violation('M6: bits are set in a filter that took the name')


def normal(w):
    """Equal states look equal: what a process knows no more, and what is late and changes nothing, is left out."""
    procs = [tidy(p) for p in w.procs]
    return w._replace(procs=tuple(sorted(procs, key=text_of)) if len(procs) > 1 else tuple(procs))


@lru_cache(maxsize=None)
def tidy(p):
    if p.at in ('begin', 'merge', 'read'):
        return p._replace(ghosts=tuple(sorted(p.ghosts)))
    if p.names[0] is None and not any(('PSETEX',) in ghost for ghost in p.ghosts):
        p = p._replace(ghosts=(), names=NAMES, on_replica=NAMES)
    if p.at in ('OK', 'wait', 'failed'):
        p = p._replace(known=p.known if p.ghosts else 0, asked=0, grown=False)
    return p._replace(ghosts=tuple(sorted(p.ghosts)), epoch=0, again='', stored='', repeated=False, refused=False,
                      answer='', part=0, read=0, queue=())


def main():
    parser = argparse.ArgumentParser()
    for kind in ('merge', 'add') + FAULTS:
        parser.add_argument('--' + kind, type=int, default=0)
    parser.add_argument('--parts', type=int, default=1)
    for flag in ['clear', 'drop', 'replace', 'some', 'ttl', 'several'] + ['no-' + rule for rule in RULES]:
        parser.add_argument('--' + flag, action='store_true')
    options = parser.parse_args()
    if options.grow and (options.fail or options.clear or options.drop or options.replace):
        parser.error('where the filter grows no link is lost or cleared')
    model = Model(options)
    print('%d states: all hold' % explore(model, model.start, normal))


if __name__ == '__main__':
    main()
