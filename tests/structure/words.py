#!/usr/bin/env python3
"""The command says the library's words without their calls of C: programs/words.c has a phrase of its own for each
piece of advice. The library still says each of these phrases, and no word of it that names a call is without one.
Usage: words.py WORDS LIB
"""
import glob
import re
import sys

# A caller's mistakes, which the command does not make, and calls that it does not use.
NOT_OF_THE_COMMAND = ["use hibloom_async_%s", "hibloom_loop needs", "hibloom_setup.size", "(hibloom_store_deadline)"]

LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def literals(path):
    """Those that stand side by side are one."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    text = re.sub(r'"\s*\n?\s*"', "", re.sub(r"^#.*$", "", text, flags=re.M))
    return LITERAL.findall(text)


def main(words, lib):
    with open(words, encoding="utf-8") as file:
        pairs = re.findall(r'^    \{"((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)"\},$', file.read(), re.M)
    said = [(path, text) for path in sorted(glob.glob(lib + "/**/*.c", recursive=True)) for text in literals(path)]
    wrong = [] if len(pairs) > 10 else [f"only {len(pairs)} phrases in {words}"]
    for phrase, _ in pairs:
        if not any(phrase in text for _, text in said):
            wrong.append(f"{words}: the library no longer says: {phrase}")
    for path, text in said:
        own = text if "/memory/" not in path else ""  # no other process changes what is in ours
        for phrase, instead in pairs:
            own = own.replace(phrase, instead)
        if re.search(r"hibloom_[a-z]|attach it\b|open it\b", own) and " " in own and \
                not any(known in own for known in NOT_OF_THE_COMMAND):
            wrong.append(f"{words} has no words for: {text}")
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
