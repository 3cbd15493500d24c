# SPDX-License-Identifier: Apache-2.0
"""Writes the reference of the headers that authors include: one page per header."""

import re
import sys

import headers

# Each directory with its heading. The others are generated from TensorFlow's ops or
# contain the mechanism.
_DIRECTORIES = {
    "": "Umbrellas", "device": "Devices", "kernel": "Kernels",
    "ir": "Expressions, views and reductions", "primitives": "Primitives",
    "host": "Primitives on the host", "compiled": "Primitives as generated source",
    "op_kernels": "Kernels from primitives",
    "graph": "Graphs", "patterns": "Patterns and rules", "passes": "Graph passes",
    "profiler": "Profiles", "testing": "Tests", "base": "Used everywhere",
    "proto": "Graphs as protobuf messages",
}
_PREFIX = "include/tfplug/"
# In comments: code, and names of C++ and of the C API that are to be shown as code.
_CODE = re.compile(r"""`[^`]*` | \b(?:\w+::)+~?\w+(?:\(\))? | \b\w+\(\)
    | \b(?:SP|SE|TF|TP)_\w+ | \bk[A-Z]\w+ | \b[A-Za-z]+_\w+ | \b[A-Z][a-z]+[A-Z]\w+""",
                   re.X)


def is_public(path):
    directory, _, name = path.removeprefix(_PREFIX).rpartition("/")
    return (path.startswith(_PREFIX) and name.endswith(".h")
            and directory in _DIRECTORIES)


def page_of(path):
    return "api/" + path.removeprefix(_PREFIX).removesuffix(".h") + ".md"


def plain(comment):
    """Returns the Markdown of a comment without links."""
    return _Writer([]).prose(comment, "")


class _Header:
    def __init__(self, path, text):
        self.name = path.removeprefix("include/")
        self.page = page_of(path)
        self.directory = path.removeprefix(_PREFIX).rpartition("/")[0]
        try:
            self.intro, self.groups = headers.read(text)
        except ValueError as error:
            sys.exit(f"{path}: {error}")


def _all(groups):
    for group in groups:
        yield group
        yield from _all(group.members)


class _Writer:
    """Writes pages. `targets` has the page and the label of each name."""

    def __init__(self, pages):
        self.pages = pages
        self.targets = {}
        self.short = {}  # name without scope: the names with scope
        labels = set()  # They do not distinguish case.
        for header in pages:
            for group in _all(header.groups):
                for name in group.names:
                    full = _join(group.scope, name)
                    if full in self.targets:
                        continue
                    label = "api-" + re.sub(r"\W+", "-", full).strip("-").lower()
                    while label in labels:
                        label += "-2"
                    labels.add(label)
                    self.targets[full] = (header.page, label)
                    if group.scope.split("::")[-1] != name:  # not a constructor
                        self.short.setdefault(name, []).append(full)

    def linked(self, token, scope):
        """Returns the target of a name in a comment, or None."""
        name = token.removesuffix("()").removeprefix("tfplug::")
        while True:
            full = _join(scope, name)
            if full in self.targets:
                return self.targets[full]
            if not scope:
                break
            scope = scope.rpartition("::")[0]
        # A name that one scope declares; not words such as "Device".
        known = self.short.get(name, [])
        return self.targets[known[0]] if len(known) == 1 else None

    def prose(self, text, scope):
        out, in_code = [], False
        for line in text.splitlines():
            if line.startswith("```"):
                in_code = not in_code
            elif not in_code:
                line = self.prose_line(line, scope)
            out.append(line)
        return "\n".join(out)

    def prose_line(self, line, scope):
        parts, end = [], 0
        for match in _CODE.finditer(line):
            token = match[0]
            bare = token.strip("`")
            target = self.linked(bare, scope.removesuffix("::"))
            is_word = re.fullmatch(r"[A-Z][a-z]+[A-Z]\w+", token)
            if is_word and target is None:
                continue  # TensorFlow, OpenCL, or a name of the C++ standard
            parts.append(_escaped(line[end:match.start()]))
            code = f"`{bare}`"
            parts.append(f"[{code}](#{target[1]})" if target else code)
            end = match.end()
        return "".join(parts) + _escaped(line[end:])

    def group(self, group, depth, page):
        out = [f"**{_escaped(group.banner)}**", ""] if group.banner else []
        if group.names:
            names = list(dict.fromkeys(group.names))
            for name in names:
                full = _join(group.scope, name)
                target, label = self.targets[full]
                if target == page and full not in self.labelled:
                    self.labelled.add(full)
                    out += [f"({label})=", ""]
            title = ", ".join(f"`{name}`" for name in names[:4])
            out += ["#" * min(depth, 6) + " " + title +
                    (", …" if len(names) > 4 else ""), ""]
        if group.code:
            out += ["```cpp", *group.code, "```", ""]
        if group.comment:
            out += [self.prose(group.comment, _join(group.scope, (group.names or [""])[0])), ""]
        for member in group.members:
            out += self.group(member, depth + 1, page)
        return out

    def page(self, header):
        self.labelled = set()
        out = [f"# {header.name}", ""]
        if header.intro:
            out += [self.prose(header.intro, ""), ""]
        out += ["```cpp", f'#include "{header.name}"', "```", ""]
        for group in header.groups:
            out += self.group(group, 2, header.page)
        return "\n".join(out)


def _join(scope, name):
    return f"{scope}::{name}" if scope else name


def _escaped(text):
    return re.sub(r"([*_<\[\]\\#|])", r"\\\1", text)


def write(stage):
    pages = [_Header(path, (stage.root / path).read_text(encoding="utf-8"))
             for path in sorted(stage.tracked)
             if is_public(path) and (stage.root / path).exists()]
    # Others contain the mechanism.
    pages = [page for page in pages if page.groups or page.intro]
    writer = _Writer(pages)
    index = ["# API", "", "Every header that authors include: its declarations, as they "
             "are written but without bodies, and their comments. The classes of "
             "TensorFlow's ops are [a list of their own](/reference/ops.md).", ""]
    for directory, title in _DIRECTORIES.items():
        here = [header for header in pages if header.directory == directory]
        index += [f"## {title}", ""]
        for header in here:
            names = dict.fromkeys(
                name for group in header.groups for name in group.names)
            index.append(f"* [{header.name}](/{header.page})" + ": " * bool(names)
                         + ", ".join(f"`{name}`" for name in names))
            # A navigation with every header would double the time of the build.
            stage.write(header.page, "---\norphan: true\n---\n" + writer.page(header))
        index.append("")
    stage.write("api/index.md", "\n".join(index))
