#!/usr/bin/env python3
"""Runs the models beside this file: those that must hold, and those with a rule left out, which must not.

One line a run; the exit status is 1 if one of them ends as it should not. A model that finds nothing when a rule is
left out has lost its power to find anything, so each rule has such a run. With $HIBLOOM_TEST_LONG there are larger ones.

usage: run.py [-v]    -v prints the steps to each violation"""
import os
import signal
import sys
import time
import traceback

sys.dont_write_bytecode = True  # leaves no compiled files behind in the tree
import chain, forms, late, life, merge  # noqa: E401, E402

MODELS = {'chain.py': chain, 'forms.py': forms, 'late.py': late, 'life.py': life, 'merge.py': merge}
SECONDS = 600 if 'HIBLOOM_TEST_LONG' in os.environ else 120  # of one run
HOLDS, BREAKS, KNOWN = 'holds', 'breaks', 'known'  # known: what the form does not keep, as docs/format.md says
RUNS = [
    # making, opening, losing, removing
    (HOLDS, 'life.py --open 2 --drop 1 --evict 1'),
    (HOLDS, 'life.py --open 3 --evict 1'),
    (BREAKS, 'life.py --open 3 --evict 1 --no-list'),
    (BREAKS, 'life.py --open 2 --drop 1 --evict 1 --no-order'),
    # removing where the server is full
    (BREAKS, 'life.py --open 2 --drop 1 --evict 1 --full --no-identity'),
    # repairing
    (HOLDS, 'life.py --open 2 --drop 1 --repair 1'),
    (HOLDS, 'life.py --open 1 --drop 1 --repair 1 --evict 1 --full'),
    (BREAKS, 'life.py --open 2 --repair 2 --evict 1 --no-help'),
    (BREAKS, 'life.py --open 2 --repair 1 --evict 1 --no-spare'),
    # times to live
    (HOLDS, 'life.py --open 1 --expire 1 --drop 1'),
    (HOLDS, 'life.py --open 2 --expire 1 --evict 1'),
    (HOLDS, 'life.py --open 1 --expire 1 --repair 1 --evict 1'),
    (HOLDS, 'life.py --open 1 --expire 1 --persist 1 --drop 1'),
    (BREAKS, 'life.py --open 1 --expire 1 --no-expire-order'),
    (BREAKS, 'life.py --open 1 --expire 1 --repair 1 --evict 1 --no-expire-list'),
    (BREAKS, 'life.py --open 1 --expire 1 --repair 1 --evict 1 --no-repair-ttl'),
    (KNOWN, 'life.py --open 1 --expire 1 --persist 1 --race'),
    # a clock that steps back
    (HOLDS, 'life.py --open 2 --drop 1 --back 1'),
    (HOLDS, 'life.py --open 2 --evict 1 --back 1'),
    (BREAKS, 'life.py --open 2 --drop 1 --back 1 --no-raise'),
    # replacing
    (HOLDS, 'life.py --open 1 --drop 1 --replace 1 --evict 1'),
    (HOLDS, 'life.py --open 1 --repair 1 --replace 1 --evict 1'),
    (HOLDS, 'life.py --open 1 --expire 1 --replace 1'),
    (HOLDS, 'life.py --open 2 --replace 1 --back 1'),
    (BREAKS, 'life.py --open 2 --replace 1 --evict 1 --no-stamp'),
    (BREAKS, 'life.py --open 1 --repair 1 --replace 1 --no-whole'),
    # a filter of one key and one of several, made under one name at once
    (HOLDS, 'forms.py --one 2 --several 1'),
    (HOLDS, 'forms.py --one 1 --several 1 --drop 1'),
    (HOLDS, 'forms.py --one 1 --several 1 --late 2'),
    (BREAKS, 'forms.py --one 1 --several 1 --no-look'),
    (BREAKS, 'forms.py --one 1 --several 1 --late 1 --no-late'),
    (BREAKS, 'forms.py --one 1 --several 1 --no-state'),
    # adds that come too late
    (HOLDS, 'late.py --add 1 --replace 2 --deep'),
    (BREAKS, 'late.py --add 1 --replace 1 --no-guard'),
    (BREAKS, 'late.py --add 1 --replace 1 --no-undo'),
    (BREAKS, 'late.py --add 2 --replace 1 --undo-all'),
    (BREAKS, 'late.py --add 2 --replace 2 --no-search'),
    (BREAKS, 'late.py --add 1 --replace 1 --no-intact'),
    (KNOWN, 'late.py --add 2 --replace 2 --deep'),
    # growing filters: adders and look-ups
    (HOLDS, 'chain.py --old --add 3 --grow 1'),
    (HOLDS, 'chain.py --old --add 2 --grow 1 --look 1'),
    (BREAKS, 'chain.py --old --add 1 --grow 1 --look 1 --no-further'),
    (BREAKS, 'chain.py --old --add 2 --grow 1 --no-older'),
    (BREAKS, 'chain.py --old --add 2 --grow 1 --no-behind'),
    (BREAKS, 'chain.py --old --add 2 --grow 1 --no-decide'),
    # where links are lost
    (HOLDS, 'chain.py --old --add 2 --grow 1 --look 1 --evict 1 --whole'),
    (BREAKS, 'chain.py --old --add 1 --grow 2 --look 1 --evict 1 --no-verify'),
    # where a root forgets that it has grown
    (BREAKS, 'chain.py --old --add 1 --grow 1 --look 1 --forget 1 --no-ahead'),
    (BREAKS, 'chain.py --old --add 1 --grow 1 --look 1 --forget 1 --no-again'),
    (KNOWN, 'chain.py --old --add 1 --grow 1 --look 1 --forget 1 --evict 1'),
    (KNOWN, 'chain.py --old --ttl 1 --grow 1 --expire 1 --look 1 --forget 1'),
    # removed, and made anew
    (HOLDS, 'chain.py --old --add 1 --grow 1 --drop 1 --make 1'),
    (HOLDS, 'chain.py --old --look 1 --grow 1 --drop 1 --make 1'),
    (BREAKS, 'chain.py --old --grow 2 --drop 1 --make 1 --no-chain'),
    (BREAKS, 'chain.py --old --grow 2 --drop 1 --make 1 --no-proof'),
    (BREAKS, 'chain.py --old --grow 1 --drop 1 --make 1 --no-swap'),
    (BREAKS, 'chain.py --old --grow 2 --drop 1 --whole --no-undo'),
    (BREAKS, 'chain.py --old --grow 1 --drop 1 --no-mark'),
    # given times to live
    (HOLDS, 'chain.py --old --grow 1 --expire 1 --add 1'),
    (HOLDS, 'chain.py --old --ttl 1 --grow 1 --expire 1 --drop 1'),
    (HOLDS, 'chain.py --old --ttl 1 --grow 1 --persist 1'),
    (BREAKS, 'chain.py --old --ttl 1 --grow 1 --no-ttl'),
    (BREAKS, 'chain.py --old --ttl 1 --grow 1 --expire 1 --no-later'),
    (BREAKS, 'chain.py --old --grow 1 --expire 1 --no-last'),
    (KNOWN, 'chain.py --old --ttl 1 --grow 2 --expire 1'),
    # adds by whole bitmaps: answers and temporary keys are lost, PSETEX comes late
    (HOLDS, 'merge.py --merge 3 --cut 1 --ttl'),
    (BREAKS, 'merge.py --merge 2 --no-unique'),
    (BREAKS, 'merge.py --merge 1 --cut 1 --no-done'),
    (BREAKS, 'merge.py --merge 1 --cut 1 --no-none'),
    (BREAKS, 'merge.py --merge 1 --move 1 --no-stored'),
    (BREAKS, 'merge.py --merge 1 --add 1 --lose 1 --no-whole'),
    (BREAKS, 'merge.py --merge 1 --lose 1 --no-doubt'),
    (BREAKS, 'merge.py --merge 1 --ttl --no-ttl'),
    (BREAKS, 'merge.py --merge 1 --no-bits-ttl'),
    (BREAKS, 'merge.py --merge 1 --no-before-ttl'),
    # cleared, removed, replaced, taken over by a replica
    (HOLDS, 'merge.py --merge 2 --add 1 --cut 1 --clear'),
    (HOLDS, 'merge.py --merge 2 --cut 1 --lose 1 --clear'),
    (HOLDS, 'merge.py --merge 2 --add 1 --cut 1 --drop'),
    (HOLDS, 'merge.py --merge 2 --add 1 --cut 1 --replace --ttl'),
    (HOLDS, 'merge.py --merge 2 --add 1 --fail 1'),
    (BREAKS, 'merge.py --merge 1 --add 1 --cut 1 --clear --no-epoch'),
    (BREAKS, 'merge.py --merge 1 --cut 1 --lose 1 --clear --no-anew'),
    (BREAKS, 'merge.py --merge 1 --replace --no-guard'),
    # refused, and then item by item
    (HOLDS, 'merge.py --merge 2 --add 1 --cut 1 --refuse 1'),
    (HOLDS, 'merge.py --merge 1 --add 1 --cut 1 --refuse 2 --clear'),
    (HOLDS, 'merge.py --merge 1 --add 1 --cut 1 --lose 1 --refuse 1 --move 1'),
    (BREAKS, 'merge.py --merge 1 --refuse 1 --no-kept'),
    (BREAKS, 'merge.py --merge 1 --cut 1 --refuse 1 --no-refused'),
    (BREAKS, 'merge.py --merge 1 --cut 1 --move 1 --refuse 1 --no-ever'),
    # while the filter grows
    (HOLDS, 'merge.py --merge 1 --add 1 --cut 1 --refuse 1 --grow 1'),
    (HOLDS, 'merge.py --merge 1 --add 1 --lose 1 --grow 1'),
    (HOLDS, 'merge.py --merge 2 --add 1 --grow 1 --several'),
    (BREAKS, 'merge.py --merge 1 --add 1 --grow 1 --no-decide'),
    (BREAKS, 'merge.py --merge 1 --add 1 --grow 1 --several --no-behind'),
]
LONG = [
    (HOLDS, 'life.py --open 2 --drop 1 --evict 1 --full'),
    (HOLDS, 'life.py --open 2 --repair 2 --evict 1'),
    (HOLDS, 'life.py --open 1 --drop 2 --evict 1'),
    (HOLDS, 'life.py --open 1 --drop 1 --repair 1 --evict 1 --back 1'),
    (HOLDS, 'forms.py --one 2 --several 1 --late 1'),
    (HOLDS, 'forms.py --one 1 --several 2 --evict 1'),
    (HOLDS, 'late.py --add 2 --replace 2'),
    (HOLDS, 'late.py --add 2 --replace 1 --evict 1'),
    (HOLDS, 'chain.py --old --add 3 --grow 2 --links 3 --whole'),
    (HOLDS, 'chain.py --old --add 1 --grow 2 --look 1 --evict 1'),
    (HOLDS, 'chain.py --old --add 2 --grow 1 --look 1 --forget 1'),
    (HOLDS, 'chain.py --old --add 1 --grow 2 --look 1 --forget 1 --links 3 --whole'),
    (HOLDS, 'chain.py --old --look 1 --grow 1 --drop 1 --make 1 --forget 1'),
    (HOLDS, 'chain.py --old --grow 2 --drop 1 --make 1'),
    (HOLDS, 'merge.py --merge 2 --add 1 --cut 2'),
    (HOLDS, 'merge.py --merge 2 --add 1 --cut 1 --lose 1 --some --parts 2'),
    (HOLDS, 'merge.py --merge 2 --clear --fail 1'),
    (HOLDS, 'merge.py --merge 2 --add 1 --grow 2'),
    (HOLDS, 'merge.py --merge 2 --add 1 --cut 2 --lose 1 --some --parts 2'),
    (HOLDS, 'merge.py --merge 2 --add 1 --cut 1 --lose 1 --clear'),
    (HOLDS, 'merge.py --merge 2 --clear --cut 1 --fail 1'),
    (HOLDS, 'merge.py --merge 2 --add 1 --cut 1 --lose 1 --refuse 1 --move 1'),
    (HOLDS, 'merge.py --merge 2 --add 1 --cut 1 --refuse 1 --clear'),
    (HOLDS, 'merge.py --merge 2 --add 1 --cut 1 --refuse 1 --grow 1'),
    (HOLDS, 'merge.py --merge 2 --add 1 --cut 1 --grow 2'),
    (HOLDS, 'merge.py --merge 1 --add 1 --cut 1 --lose 1 --refuse 1 --move 1 --grow 1'),
    (HOLDS, 'merge.py --merge 2 --add 1 --cut 1 --grow 1 --several'),
]


def run(command):
    """Its exit status, and all it said. In a process of its own, a fork, which need not read the models again."""
    model, *arguments = command.split()
    said, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(SECONDS)
            os.dup2(write, 1)
            os.dup2(write, 2)
            sys.argv = [model, *arguments]
            MODELS[model].main()
            status = 0
        except SystemExit as end:
            status = end.code
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)
    os.close(write)
    with os.fdopen(said) as pipe:
        text = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text


def main():
    wrong = 0
    runs = RUNS + LONG if 'HIBLOOM_TEST_LONG' in os.environ else RUNS
    for expected, command in runs:
        begin = time.monotonic()
        status, text = run(command)
        found = status == 1 and text.startswith('VIOLATION')
        held = status == 0 and text.endswith('all hold\n')
        right = held if expected == HOLDS else found
        wrong += not right
        lines = text.splitlines() or ['']
        print('%-6s %-70s %5.1f s  %s%s' % (expected, command, time.monotonic() - begin, lines[0], '' if right else '  FAILED'),
              flush=True)
        if not right or '-v' in sys.argv:
            print('\n'.join(lines[1:]))
    print('%d runs, %d failed' % (len(runs), wrong))
    sys.exit(wrong > 0)


if __name__ == '__main__':
    main()
