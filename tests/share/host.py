"""Runs the programs of this folder, each in a fork: to load their modules takes ten times as long as most runs.

A line on descriptor 3 is one run: its input, its output, the program and its arguments, separated by tabs.
The exit status goes to descriptor 4. A fork ends without freeing what it has: that, too, takes as long as most runs."""

import gc
import os
import runpy
import sys
import traceback

import redis  # noqa: F401
import xxhash  # noqa: F401


def run():
    """The exit status of the program in sys.argv."""
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else end.code is not None
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


gc.freeze()
for line in os.fdopen(3):
    given, said, *sys.argv = line.rstrip("\n").split("\t")
    child = os.fork()
    if child == 0:
        os.dup2(os.open(given, os.O_RDONLY), 0)
        os.dup2(os.open(said, os.O_WRONLY), 1)
        status = run()
        sys.stdout.flush()
        os._exit(status)
    os.write(4, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
