# SPDX-License-Identifier: Apache-2.0
"""Checks the structure of the project against its documentation.

  structure_test.py PROJECT

* Includes go one way. docs/architecture.md lists, for each directory of
  include/tfplug, the directories that it may include. An edge that is not
  listed, a listed edge that no header uses, a cycle between headers, and an
  include of another directory's internal/ that is not listed there are errors.
* Each directory has its own internal namespace, such as tfplug::ir_internal; that of
  base is tfplug::internal, which all may name. A header that names the internal
  namespace of another directory, other than a name from a header that
  docs/architecture.md lists as shared and that it includes, directly or not, is an
  error.
* The map is complete. docs/architecture.md names directories that exist, and together
  with their parents every directory that git tracks at that depth.
* docs/guide/debugging.md lists the environment variables that headers read.
* The project's pages name paths that exist, from the root, include/ or include/tfplug/;
  docs/architecture.md and the decisions also name functions that exist.
* docs/reference/rfcs.md names tests that exist.
* docs/architecture.md lists the records of docs/decisions by number and title. Each
  record has a status with a date, and the parts that docs/decisions/index.md describes.
* examples/opencl and examples/vulkan have at most as many lines of code as MOST_LINES
  says. Blank lines and lines with nothing but a comment do not count.
* The newest version in CHANGELOG.md is that of meson.build. (codegen/generate.py and the
  Python package read meson.build.)
* Of the headers, only base/internal/os.h includes those of the operating system's
  loader and addresses.
* Everything in namespace tfplug is hidden. A header with that namespace has one
  `#pragma GCC visibility push(hidden)` after its includes and one pop at its end.
"""

import pathlib
import re
import subprocess
import sys

OS_HEADER = "tfplug/base/internal/os.h"
OF_THE_OS = re.compile(r"^\s*#\s*include\s+<((?:dlfcn|link|sys/mman)\.h)>", re.M)
MOST_LINES = {"opencl": 470, "vulkan": 480}
INCLUDE = re.compile(r'^\s*#\s*include\s+["<](tfplug/[^">]+\.h)[">]', re.M)


def directory(header):
    """Returns the directory of a header: 'base' for 'tfplug/base/shape.h',
    'umbrella' for headers directly in tfplug/."""
    parts = pathlib.PurePath(header).parts
    return parts[1] if len(parts) > 2 else "umbrella"


def read_includes(root):
    """Returns {header: [included headers]}; paths begin with tfplug/."""
    include = root / "include"
    return {
        path.relative_to(include).as_posix(): INCLUDE.findall(path.read_text())
        for path in sorted((include / "tfplug").rglob("*.h"))
    }


def block_after(text, title):
    """Returns the lines of the first fenced block after the heading `title`."""
    section = text.split(f"\n## {title}\n", 1)[1]
    return section.split("```", 2)[1].split("\n", 1)[1].strip().splitlines()


def read_rules(page):
    """Returns {directory: {directories that it may include}} and the set of
    internal headers that other directories may include."""
    rules, shared = {}, set()
    for line in block_after(page, "Include direction"):
        name, _, rest = line.partition(":")
        if name.endswith(".h"):
            shared.add(f"tfplug/{name}")
        else:
            rules[name] = set(rest.split())
    return rules, shared


def check_edges(includes, rules, shared):
    wrong, used, used_shared = [], {}, set()
    for header, targets in includes.items():
        here = directory(header)
        if here not in rules:
            wrong.append(f"{header}: directory {here} has no line")
            continue
        for target in targets:
            there = directory(target)
            if here == there:
                continue
            used.setdefault(here, set()).add(there)
            if there not in rules[here]:
                wrong.append(f"{header} includes {target}: {here} must not "
                             f"include {there}")
            if "/internal/" in target and there != "base":
                used_shared.add(target)
                if target not in shared:
                    wrong.append(f"{header} includes {target}, which is "
                                 f"internal to {there}")
    for name, allowed in rules.items():
        for unused in sorted(allowed - used.get(name, set())):
            wrong.append(f"{name}: no header includes {unused}; "
                         "remove it from the list")
    wrong += [f"{name}: listed as shared, but no other directory includes it"
              for name in sorted(shared - used_shared)]
    return wrong


def included_by(includes, header):
    """Returns the headers that a header includes, directly or not."""
    found, left = set(), [header]
    while left:
        new = set(includes.get(left.pop(), ())) - found
        found |= new
        left += new
    return found


def check_namespaces(root, includes, rules, shared):
    """Checks which internal namespaces each header opens and names."""
    include, wrong = root / "include", []
    shared_text = {header: (include / header).read_text() for header in shared}
    for path in sorted((include / "tfplug").rglob("*.h")):
        header = path.relative_to(include).as_posix()
        here, text = directory(header), path.read_text()
        own = "internal" if here in ("base", "umbrella") else f"{here}_internal"
        for name in re.findall(r"^namespace (?:tfplug::)?(\w*internal) \{$", text, re.M):
            # base declares a class that the profiler defines.
            if name != own and (here, name) != ("base", "profiler_internal"):
                wrong.append(f"{header} opens namespace {name}, not {own}")
        for there, name in set(re.findall(r"\b(\w+)_internal::(\w+)", text)):
            if there not in rules or there == here or here == "base":
                continue
            declaring = {other for other, code in shared_text.items()
                         if directory(other) == there
                         and re.search(rf"\b{name}\b", code)}
            if not declaring:
                wrong.append(f"{header} names {there}_internal::{name}, which no "
                             "header listed as shared declares")
            elif not declaring & included_by(includes, header):
                wrong.append(f"{header} names {there}_internal::{name} and does not "
                             f"include {' or '.join(sorted(declaring))}")
    return wrong


def find_cycle(edges):
    """Returns a cycle, a list of nodes that ends with its first node, or None."""
    done, path = set(), []

    def visit(node):
        if node in path:
            return path[path.index(node):] + [node]
        if node in done:
            return None
        path.append(node)
        for target in sorted(edges.get(node, ())):
            cycle = visit(target)
            if cycle:
                return cycle
        path.pop()
        done.add(node)
        return None

    for node in sorted(edges):
        cycle = visit(node)
        if cycle:
            return cycle
    return None


def check_map(root, page, tracked):
    """Checks the table of `page` whose rows begin with a directory."""
    text = (root / page).read_text()
    listed = [path.rstrip("/")
              for path in re.findall(r"^\| `([\w./-]+/)` \|", text, re.M)]
    if not listed:
        return [f"{page}: has no map of directories"]
    wrong = [f"{page}: `{path}/` does not exist"
             for path in listed if path not in tracked]
    # A table that lists a directory must list all of its siblings, too.
    for parent in {str(pathlib.PurePath(p).parent) for p in listed}:
        siblings = {p for p in tracked - {"."}
                    if str(pathlib.PurePath(p).parent) == parent}
        covered = {p for p in siblings
                   if any(q == p or q.startswith(p + "/") for q in listed)}
        wrong += [f"{page}: `{p}/` is missing" for p in sorted(siblings - covered)
                  if not pathlib.PurePath(p).name.startswith(".")]
    return wrong


def check_paths(root, page):
    """Checks that every path in `page` exists."""
    text = (root / page).read_text()
    places = [root, root / "include", root / "include/tfplug"]
    return [f"{page}: `{path}` does not exist"
            for path in set(re.findall(r"`((?:[\w-]+/)+[\w.-]+\.\w+)`", text))
            if not path.startswith("absl/")
            and not any((place / path).exists() for place in places)]


def check_names(root, page):
    """Checks that every `Class::Function` in `page` exists."""
    text = (root / page).read_text()
    sources = "".join(p.read_text() for folder in ("include", "examples")
                      for p in sorted((root / folder).rglob("*"))
                      if p.suffix in (".h", ".cc"))
    wrong = []
    for scope, name in set(re.findall(r"`(\w+)(?:<\w+>)?::(\w+)(?:\(\))?`", text)):
        if not (re.search(rf"\b{scope}\b", sources)
                and re.search(rf"\b{name}\b", sources)):
            wrong.append(f"{page}: `{scope}::{name}` does not exist")
    return wrong


def check_tests(root, page):
    """Checks that each `file` followed by "cases" in `page` has these cases."""
    wrong, count = [], 0
    for file, cases in re.findall(r'`(tests/[^`]+)`((?:[\s,]*"[^"]+")+)',
                                  (root / page).read_text()):
        path = root / file
        source = path.read_text() if path.exists() else ""
        for case in re.findall(r'"([^"]+)"', cases):
            count += 1
            if case not in source:
                wrong.append(f"{page}: {file} has no {case!r}")
    return wrong if count else [f"{page} names no test"]


def check_decisions(root, page):
    """Checks the form of each decision, and the list of decisions in `page`."""
    listed = re.findall(r"^(\d+)\. \[(.+)\]\((decisions/.+)\)$", page, re.M)
    wrong, expected = [], []
    for number, path in enumerate(sorted((root / "docs/decisions").glob("0*.md")), 1):
        text = path.read_text()
        title = text.split("\n", 1)[0].removeprefix(f"# {number}. ")
        expected.append((str(number), title, f"decisions/{path.name}"))
        status = r"\n\n(Accepted|Replaced) on \d{4}-\d\d-\d\d"
        parts = "".join(rf"\n\n\*\*{part}\.\*\* [\s\S]+?" for part in
                        ("Context", "Alternatives", "Choice", "Consequences"))
        if not (path.name.startswith(f"{number:04}-") and
                re.fullmatch(rf"# {number}\. .+{status}.*\.{parts}\n", text)):
            wrong.append(f"{path.name}: is not in the form of docs/decisions/index.md, "
                         f"or its number is not {number}")
        wrong += check_names(root, path.relative_to(root))
    wrong += [f"docs/architecture.md: the decision {' '.join(row)} is not both listed "
              "and a record" for row in sorted(set(listed) ^ set(expected))]
    return wrong if expected else ["docs/decisions has no records"]


def check_visibility(root):
    """Checks the order of each header's marks: includes, push, namespaces, pop. A
    .def file is included where its rows are needed."""
    marks = {"#include": "i", "#pragma GCC visibility push(hidden)": "(",
             "namespace ": "n", "}  // namespace": "n",
             "#pragma GCC visibility pop": ")"}
    wrong = []
    for path in sorted((root / "include/tfplug").rglob("*.h")):
        lines = path.read_text().splitlines()
        order = "".join(mark for line in lines
                        for begin, mark in marks.items()
                        if line.startswith(begin) and not line.endswith('.def"'))
        if "n" in order and not re.fullmatch(r"i*\(n+\)", order):
            wrong.append(
                f"{path.relative_to(root)}: write `#pragma GCC visibility "
                "push(hidden)` after the includes, and `pop` after the namespaces")
    return wrong


def check_operating_system(root):
    """Checks that what a port to another system must replace is in one header."""
    found = {path.relative_to(root / "include").as_posix():
             OF_THE_OS.findall(path.read_text())
             for path in sorted((root / "include/tfplug").rglob("*.h"))}
    wrong = [f"{header} includes <{name}>: call the functions of {OS_HEADER}"
             for header, names in found.items() if header != OS_HEADER for name in names]
    return wrong + ([] if len(found.get(OS_HEADER, ())) == 3 else [
        f"{OS_HEADER} must include <dlfcn.h>, <link.h> and <sys/mman.h>"])


def check_version(root):
    version = re.search(r"^  version: '(.+)',$", (root / "meson.build").read_text(), re.M)
    newest = re.search(r"^## \[(\d.*?)\]", (root / "CHANGELOG.md").read_text(), re.M)
    return [] if version and newest and version[1] == newest[1] else [
        f"CHANGELOG.md describes {newest and newest[1]}, and meson.build has the version "
        f"{version and version[1]}"]


def check_variables(root):
    """docs/guide/debugging.md lists every environment variable that headers read."""
    read = {name for path in (root / "include").rglob("*.h") for name in
            re.findall(r'"(TFPLUG_[A-Z_]+)"', path.read_text())}
    listed = set(re.findall(r"^\| `(TFPLUG_\w+)",
                            (root / "docs/guide/debugging.md").read_text(), re.M))
    return [f"docs/guide/debugging.md and the headers disagree about {name}"
            for name in sorted(read ^ listed)]


def check_lines(root):
    wrong = []
    for example, most in MOST_LINES.items():
        files = (path for path in sorted((root / "examples" / example).iterdir())
                 if path.suffix in (".cc", ".h"))
        count = sum(1 for path in files for line in path.read_text().splitlines()
                    if line.strip() and not line.strip().startswith("//"))
        if count > most:
            wrong.append(f"examples/{example} has {count} lines of code")
    return wrong


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    page = (root / "docs/architecture.md").read_text()
    includes = read_includes(root)
    rules, shared = read_rules(page)
    wrong = check_edges(includes, rules, shared)
    wrong += check_namespaces(root, includes, rules, shared)
    for kind, edges in (("headers", includes), ("directories", rules)):
        cycle = find_cycle(edges)
        if cycle:
            wrong.append(f"cycle of {kind}: {' -> '.join(cycle)}")
    files = subprocess.run(["git", "-C", str(root), "ls-files"], check=True,
                           text=True, stdout=subprocess.PIPE).stdout.split()
    tracked = {str(parent) for f in files if (root / f).exists()
               for parent in pathlib.PurePath(f).parents}
    wrong += check_map(root, "docs/architecture.md", tracked)
    wrong += check_names(root, "docs/architecture.md")
    wrong += check_decisions(root, page)
    for path in files:
        if (path.endswith(".md") and (root / path).exists() and
                ("/" not in path or path.startswith("docs/"))):
            wrong += check_paths(root, path)
    wrong += check_tests(root, "docs/reference/rfcs.md")
    wrong += check_visibility(root)
    wrong += check_operating_system(root)
    wrong += check_lines(root)
    wrong += check_version(root)
    wrong += check_variables(root)
    edges = sum(len(allowed) for allowed in rules.values())
    print(f"{len(includes)} headers in {len(rules)} directories, {edges} "
          f"edges, {len(wrong)} mistakes")
    print("\n".join(wrong))
    return 1 if wrong or not includes else 0


if __name__ == "__main__":
    sys.exit(main())
