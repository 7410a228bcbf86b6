#!/usr/bin/env python3
"""The folders of lib/ may include only what lies below them, so that what is
below can be read, tested and used without what is above. The order is written
in docs/internals.md under "## The source", and is read from there:

    base <- hash <- spec <- bits <- resp <- redis <- net <- net/routes <- filter
                    spec <- memory <- filter

A folder includes itself and whatever is left of it, over all lines; so memory
and redis do not include each other.
Usage: includes.py PAGE LIB
"""
import os
import re
import sys


def read_order(page):
    """For each folder those that it may include."""
    with open(page, encoding="utf-8") as file:
        section = re.search(r"^## The source\n(.*?)(?=^## |\Z)", file.read(), re.M | re.S)
    below = {}
    for line in (section.group(1) if section else "").splitlines():
        chain = re.findall(r"[\w/]+", line) if re.fullmatch(r"[\s`]*[\w/]+( *<- *[\w/]+)+[\s`]*", line) else []
        for folder in chain:
            below.setdefault(folder, {folder})
        for left, right in zip(chain, chain[1:]):
            below[right].add(left)
    for _ in below:  # as often as the longest chain could need
        for folders in below.values():
            folders.update(*[below[folder] for folder in folders])
    for folder, folders in below.items():
        for other in folders - {folder}:
            if folder in below[other]:
                sys.exit(f"{page}: {folder} and {other} are each below the other")
    return below


def includes_of(path):
    """Line numbers, and what is included there: a path, or None where only the preprocessor knows."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            match = re.match(r"\s*#\s*include\b\s*(.*)", line)
            if match:
                named = re.match(r'["<]([^">]+)[">]', match.group(1))
                yield number, named and named.group(1)


def folder_of(lib, source, included):
    """The folder of lib/ that an include is of; None: none of them."""
    beside = os.path.normpath(os.path.join(os.path.dirname(source), included))
    path = beside if os.path.exists(beside) else os.path.normpath(os.path.join(lib, included))
    return os.path.dirname(os.path.relpath(path, lib)) if os.path.exists(path) else None


def main(page, lib):
    below = read_order(page)
    if not below:
        sys.exit(f'{page}: no line like "base <- hash <- spec" under "## The source"')
    wrong, files, checked = [], 0, 0
    folders = sorted(os.path.relpath(path, lib) for path, _, _ in os.walk(lib) if path != lib)
    wrong += [f"lib/{folder} is not in the order of {page}" for folder in folders if folder not in below]
    wrong += [f"the order of {page} names {folder}, which is no folder of lib" for folder in below if folder not in folders]
    for folder in folders:
        for name in sorted(os.listdir(os.path.join(lib, folder))):
            if not name.endswith((".c", ".h")):
                continue
            source = os.path.join(lib, folder, name)
            files += 1
            for number, included in includes_of(source):
                other = folder_of(lib, source, included) if included else None
                if included is None:
                    wrong.append(f"{source}:{number}: an #include that cannot be read")
                elif other is not None:
                    checked += 1
                    if other not in below.get(folder, folders):
                        wrong.append(f"{source}:{number}: {folder} includes {other}, which is not below it: {included}")
    if checked == 0:
        wrong.append(f"no #include of one folder's file was found in {lib}")
    print(f"{checked} includes in {files} files of {len(folders)} folders")
    if wrong:
        sys.exit("\n".join(wrong))


main(*sys.argv[1:])
