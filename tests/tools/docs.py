#!/usr/bin/env python3
"""Runs what README.md and docs/ show, so that what a newcomer copies works.

CONTRIBUTING.md, "Code in the documentation", has the conventions. Besides: links lead somewhere, and the lines of
docs/access.md are those that tests/fault/acl.c proves.
Usage: with-redis.sh docs.py INCLUDE BUILD [LINKER FLAG...]
       docs.py INCLUDE      only whether C and C++ compile with the headers there
"""
import glob
import os
import re
import subprocess
import sys

LINES_MAX = 150
OWN, OTHER = "redis://127.0.0.1:6379", "redis://other"
# What changes the machine, or is a test of its own.
NOT_HERE = {"make": "Makefile", "sudo": "Makefile", "hibloom bench": "tests/cli/bench.c", "hibloom import": "tests/cli/import.c",
            ".*BF.SCANDUMP": "tests/cli/import.c"}
# What also may exit otherwise than 0, which is a part of its answer.
MAY_EXIT = {"hibloom check seen < urls": 1, "hibloom check uids -s php-uids": 1, "hibloom stats --prometheus check": 1,
            "hibloom merge seen seen2": 2}
FRAME = """#include <hibloom/hibloom.h>
#include <stdio.h>
#include <string.h>

static int failed(const char *where, hibloom_status status, const hibloom_store *store)
{
    fprintf(stderr, "%%s: %%s: %%s\\n", where, hibloom_strerror(status), hibloom_store_error(store));
    return 1;
}
int main(void)
{
    hibloom_item items[] = {{"https://example.org/1", 21}, {"https://example.org/2", 21}, {"", 0}};
    size_t n = sizeof items / sizeof *items;
    bool answers[3], is_new = false, found = false;
    hibloom_store *store;
    hibloom *seen = NULL;
    hibloom_status status = hibloom_connect(&store, "%s", NULL);
    if (!status) status = hibloom_open(&seen, store, "seen", "capacity=1000000 error=0.01");
    if (status) return failed("the frame", status, store);
    (void)n, (void)answers, (void)is_new, (void)found;
%s
    hibloom_close(seen);
    hibloom_store_free(store);
    return 0;
}
"""
BEFORE = """set -e
printf 'https://example.org/%s\\n' '' 1 2 > urls
hibloom add seen -n 1M -p 0.01 < urls >/dev/null
"""
complaints = []


def complain(where, what):
    complaints.append(f"{where}: {what}")


def blocks(page):
    """(language, number of the first line, text) of each fenced block."""
    language, start, lines = None, 0, []
    with open(page, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.startswith("```"):
                if language is not None:
                    yield language, start, "".join(lines)
                    language = None
                else:
                    language, start, lines = line[3:].strip(), number + 1, []
            elif language is not None:
                lines.append(line)
            elif re.match(r" {4}(hibloom|redis-cli|make) ", line):
                complain(f"{page}:{number}", "a command that no block of sh has")
    if language is not None:
        complain(f"{page}:{start}", "a block without an end")


def programs(page):
    """(language, where, text) of each program of the page: its pieces of C are one, the last."""
    inside, first = "", None
    for language, line, text in blocks(page):
        where = f"{page}:{line}"
        numbered = f'#line {line} "{page}"\n{text}'
        if language == "c" and not re.search(r"\bmain\(", text):
            first = first or where
            inside += f"{numbered}    if (status) return failed(\"{where}\", status, store);\n"
        elif language in ("c", "cpp"):
            yield language, where, numbered
        elif language in ("python", "php"):
            yield language, where, text
        elif language != "sh":
            complain(where, f"a block of {language or 'nothing'} that no test knows")
    if first:
        yield "c", first, FRAME % (OWN, inside)


def run(where, command, **more):
    more.setdefault("input", b"")
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, **more)
    if done.returncode != 0:
        complain(where, f"exit {done.returncode}\n" + done.stdout.decode(errors="replace")[-2000:])
    return done.returncode == 0, done.stdout.decode(errors="replace")


class Place:
    """Where blocks run: a server, a directory with the command and its tools, compilers."""

    def __init__(self, include, build, link):
        self.include, self.link = os.path.abspath(include), [os.path.abspath(os.path.join(build, "libhibloom.a"))] + link
        self.dir, self.bin = os.environ["SCRATCH"], os.path.join(os.environ["SCRATCH"], "bin")
        self.uris = {OWN: os.environ["HIBLOOM_URL"], OTHER: os.environ["HIBLOOM_URL"] + "?db=1"}
        self.environment = dict(os.environ, PATH=f"{self.bin}:{os.environ['PATH']}", LD_LIBRARY_PATH=os.path.abspath(build))
        os.mkdir(self.bin)
        os.symlink(os.path.abspath(os.path.join(build, "hibloom")), os.path.join(self.bin, "hibloom"))
        self.tool("redis-cli", f'exec /usr/bin/env PATH="{os.environ["PATH"]}" redis-cli -s "{os.environ["REDIS_SOCKET"]}" "$@"')
        self.tool("pkg-config", f"echo -I{self.include} {' '.join(self.link)}")

    def tool(self, name, line):
        path = os.path.join(self.bin, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{line}\n")
        os.chmod(path, 0o755)

    def own(self, text):
        for uri, here in self.uris.items():
            text = text.replace(uri, here)
        return text

    def begin(self, page):
        """A server and a directory with no more than `urls`, their filter, and the programs that have names."""
        directory = os.path.join(self.dir, re.sub(r"\W", "_", page))
        os.mkdir(directory)
        for name, text in named_programs().items():
            with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                file.write(self.own(text))
        run(page, ["redis-cli", "FLUSHALL"], env=self.environment)
        run(page, ["bash", "-c", BEFORE], env=self.environment, cwd=directory)
        return directory


def named_programs():
    return {name: text for page in PAGES for language, _, text in blocks(page)
            for name in re.findall(r"\A/\* (\S+\.c):", text) if language == "c"}


def compiler(language, include):
    strict = ["-Wall", "-Wextra", "-Werror", f"-I{include}"]
    return ["c++", "-x", "c++", "-std=c++17"] + strict if language == "cpp" else ["cc", "-x", "c", "-std=c11"] + strict


def run_program(place, directory, language, where, text):
    name = os.path.join(directory, "program-" + where.rsplit(":", 1)[1])
    with open(name, "w", encoding="utf-8") as file:
        file.write(place.own(text))
    command = {"python": ["python3", name], "php": ["php", name]}.get(language)
    if command is None:
        libraries = ["-levent"] if "libevent" in text else []
        command = [name + ".out"]
        if not run(where, compiler(language, place.include) + ["-o", command[0], name, "-x", "none"] + place.link + libraries)[0]:
            return
    good, said = run(where, command, env=place.environment, cwd=directory)
    if good and language in ("python", "php") and said != "seen\n":
        complain(where, f"it asks for what is in, and says {said!r}")


def run_shell(place, directory, page):
    """The sh blocks of a page, as one script. What is not run here is looked at."""
    script, where = "set -e\n", None
    for language, line, text in blocks(page):
        if language != "sh":
            continue
        where = where or f"{page}:{line}"
        for command in text.splitlines():
            if not any(re.match(rf"{words}\b", command) for words in NOT_HERE):
                ends = [end for begin, end in MAY_EXIT.items() if command.startswith(begin)]
                own = place.own(command)
                script += f"at={page}:{line}\n" + (f"if {own}\nthen :; else test $? = {ends[0]}; fi\n" if ends else f"{own}\n")
            line += 1
    if where:
        run(where, ["bash", "-c", "trap 'echo \"stopped at $at\"' ERR\n" + script], env=place.environment, cwd=directory)


def look_at_commands(page):
    """make has the targets, and apt-get gets what the library needs."""
    with open("Makefile", encoding="utf-8") as file:
        targets = set(re.findall(r"^([\w-]+)(?: [\w-]+)*:", file.read(), re.M))
    with open("tests/tools/packages.sh", encoding="utf-8") as file:
        needed = set(re.search(r"^demo='(.*)'", file.read(), re.M).group(1).split()) - {"redis-server"}
    for language, line, text in blocks(page):
        for command in text.splitlines() if language == "sh" else []:
            for target in re.findall(r"^(?:sudo )?make ([\w-]+)", command):
                if target not in targets:
                    complain(f"{page}:{line}", f"make has no target {target}")
            packages = re.match(r"sudo apt-get install (.*)", command)
            if packages and set(packages.group(1).split()) != needed:
                complain(f"{page}:{line}", f"plain make needs {' '.join(sorted(needed))}")


def look_at_page(page):
    with open(page, encoding="utf-8") as file:
        text = file.read()
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        if not os.path.exists(os.path.join(os.path.dirname(page), link)):
            complain(page, f"a link that leads nowhere: {link}")
    if text.count("\n") > LINES_MAX and page != "docs/format.md":
        complain(page, f"more than {LINES_MAX} lines: split it, or leave out")


def look_at_access():
    """Each line of docs/access.md is that of tests/support/acl_lines.h, with +info for an application."""
    roles = {"app": "APPLYING", "reader": "READING", "adder": "ADDING", "loader": "MERGING", "maker": "MAKING", "replacer": "REPLACING"}
    expanded = subprocess.run(["cc", "-E", "-P", "-x", "c", "-"], check=True, stdout=subprocess.PIPE, text=True, input=
                              '#include "tests/support/acl_lines.h"\n' + "".join(f"{role} = {name};\n" for role, name in roles.items())).stdout
    proved = {role: "".join(re.findall(r'"([^"]*)"', text)) for role, text in re.findall(r"(\w+) = ((?:\s*\"[^\"]*\")+);", expanded)}
    proved["app"] += " +info"
    with open("docs/access.md", encoding="utf-8") as file:
        shown = {role: line.replace("'", "") for role, line in
                 re.findall(r"^redis-cli ACL SETUSER (\w+) on '>PASSWORD' (.*)$", file.read(), re.M)}
    for role in roles:
        if shown.get(role) != proved.get(role):
            complain("docs/access.md", f"{role}: tests prove another line\n  {shown.get(role)}\n  {proved.get(role)}")


def main(include, build=None, *link):
    place = Place(include, build, list(link)) if build else None
    count = 0
    for page in PAGES:
        look_at_page(page)
        look_at_commands(page)
        directory = place.begin(page) if place else None
        for language, where, text in programs(page):
            count += 1
            if place:
                run_program(place, directory, language, where, text)
            elif language in ("c", "cpp"):
                run(where, compiler(language, include) + ["-fsyntax-only", "-"], input=text.encode())
        if place:
            place.begin(page + "-sh")
            run_shell(place, os.path.join(place.dir, re.sub(r"\W", "_", page + "-sh")), page)
    look_at_access()
    for path in NOT_HERE.values():
        if not os.path.exists(path):
            complain("docs.py", f"{path} is gone, which runs what is not run here")
    print(f"{count} programs of {len(PAGES)} pages")
    if complaints:
        sys.exit("\n".join(complaints))


PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md"] + sorted(glob.glob("docs/*.md"))
main(*sys.argv[1:])
