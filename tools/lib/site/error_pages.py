# SPDX-License-Identifier: Apache-2.0
"""Writes a page for each message in docs/reference/errors.md: what reports it, when,
and the remedy that the message names.

The messages come from codegen/messages.py, from which docs/reference/errors.md is
generated, too.
"""

import pathlib
import re
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "codegen"))

import api  # noqa: E402
import emit_errors  # noqa: E402
import headers  # noqa: E402

_LONGEST = 30  # lines of code
# The end of a message that begins with one of these is a remedy.
_REMEDY = re.compile(
    r"(?:^|; |\. )((?:override|use|write|derive|rebuild|redirect|include|register|"
    r"declare|mark|load|call|set|pass|keep|give|add|remove|link|install|run|see|try|"
    r"make|build|name|choose|return|let|put|replace|define|wrap|update|reshape|create|"
    r"convert|cast|select|report|reduce|split|start|assign|do not|pip|reinstall)\b.*)$",
    re.I)


def _file_names(messages):
    """Returns {message: name of the page}."""
    names = {}
    for message in messages:
        name = re.sub(r"[^a-z0-9]+", "-", _text(message).lower()).strip("-")[:60]
        name = name.strip("-")
        while name in names.values():
            name += "-2"
        names[message] = name
    return names


def _text(message):
    return message.text.removeprefix("tfplug: ")


def _all(stage):
    include = stage.root / "include"
    if not include.exists():
        return []
    return [message for messages in emit_errors.find_all(include).values()
            for message in messages]


def linked(text, stage):
    """Returns the text of docs/reference/errors.md with a link for each message."""
    for message, name in _file_names(_all(stage)).items():
        row = (f"| {emit_errors.cell(message.text)} | {message.kind} | "
               f"`{message.header}` |")
        if row not in text:
            sys.exit(f"docs/reference/errors.md lacks {message.text!r}; run "
                     "python3 codegen/generate.py")
        title, _, rest = row[2:].partition(" | ")
        text = text.replace(row, f"| [{title}](errors/{name}.md) | {rest}")
    return text


def write(stage):
    messages = _all(stage)
    names = _file_names(messages)
    trees = {}
    for message in messages:
        path = f"include/tfplug/{message.header}"
        if path not in trees:
            text = (stage.root / path).read_text(encoding="utf-8")
            trees[path] = _Source(text)
        stage.write(f"reference/errors/{names[message]}.md",
                    _page(message, trees[path], stage.page_of_header(path)))


def _page(message, source, link):
    place = source.place(message.offset)
    out = ["---", "orphan: true", "---",
           f"# {emit_errors.cell(message.text)}", "", _kind(message.kind), ""]
    header = f"`tfplug/{message.header}`"
    if link:
        header = f"[{header}](/{link})"
    by = f"`{place.function}` in " if place.function else ""
    out += [f"Reported by {by}{header}, line {place.line}:", "",
            "```cpp", place.code, "```", ""]
    if place.callers:
        out += [f"`{place.function.split('::')[-1]}` is called here:", ""]
        for code in place.callers:
            out += ["```cpp", code, "```", ""]
    if place.comment:
        about = place.function if place.of_function else place.scope
        out += [f"`{about}`:", "",
                *("> " + line for line in api.plain(place.comment).splitlines()), ""]
    remedy = _REMEDY.search(_text(message))
    if remedy:
        clause = remedy[1][0].upper() + remedy[1][1:]
        out += ["## Remedy", "", emit_errors.cell(clause.rstrip(".")) + ".", ""]
    out += ["[All error messages](/reference/errors.md)", ""]
    return "\n".join(out)


def _kind(kind):
    if kind == "log":
        return "A line in TensorFlow's log."
    if kind == "compile time":
        return 'An error of the compiler, whose message begins with "tfplug:".'
    code = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).upper()
    return (f"A status with the code `TF_{code}`, in Python "
            f"`tf.errors.{kind}Error`. If the C function that failed has no status, a "
            "line in TensorFlow's log.")


class _Place:
    """Where a message is reported. The comment is that of `function`, or of the class
    `scope` if it has none."""
    line = 0
    code = comment = function = scope = ""
    of_function = True
    callers = ()  # code, if `function` only makes the status


class _Source:
    """A header, to look up where a message is reported."""

    def __init__(self, text):
        self.text = text
        self.lines = text.splitlines()
        self.bytes = text.encode()
        self.tree = headers.parse(text)

    def place(self, offset, with_callers=True):
        at = len(self.text[:offset].encode())
        node = self.tree.descendant_for_byte_range(at, at + 1)
        place = _Place()
        place.line = node.start_point.row + 1
        statement = condition = function = None
        classes = []
        while node is not None:
            if statement is None and node.type.endswith(("_statement", "declaration")):
                statement = node
            if node.type in ("if_statement", "case_statement") and not function:
                condition = condition or node
            if node.type == "function_definition" and not function:
                function = node
                place.function = headers.name_of(node, self.bytes)
                place.comment = self.comment_before(node)
            name = node.child_by_field_name("name")
            if node.type in headers.CLASSES and name is not None:
                classes.insert(0, name.text.decode())
                if not place.comment:
                    place.comment = self.comment_before(node)
                    place.of_function, place.scope = False, classes[0]
            node = node.parent
        shown = condition
        if function and (not condition or self.rows(condition) > _LONGEST):
            shown = function if self.rows(function) <= _LONGEST else statement
            if with_callers and shown is function:
                place.callers = self.callers(place.function)
        place.code = self.code(shown or statement, place.line)
        if place.function and "::" not in place.function:
            place.function = "::".join([*classes, place.function])
        return place

    def callers(self, function):
        """Returns the code of up to three calls of a function, with the conditions."""
        found = {}
        for match in re.finditer(rf"\b{re.escape(function.split('::')[-1])}\(", self.text):
            place = self.place(match.start(), with_callers=False)
            if place.function and place.function.split("::")[-1] != function:
                found[place.code] = None
        return list(found)[:3]

    @staticmethod
    def rows(node):
        return node.end_point.row - node.start_point.row + 1

    def code(self, node, line):
        """Returns the lines of a node, at most _LONGEST around `line`."""
        first, last = line - 1, line - 1
        if node is not None:
            first, last = node.start_point.row, node.end_point.row
        if last - first >= _LONGEST:
            first = max(first, line - 1 - _LONGEST // 2)
            last = min(last, first + _LONGEST - 1)
        return headers.dedented("\n".join(self.lines[first:last + 1]))

    def comment_before(self, node):
        while node.parent is not None and node.parent.type in (
                "template_declaration", "field_declaration", "declaration"):
            node = node.parent
        lines, row = [], node.start_point.row - 1
        while row >= 0 and self.lines[row].lstrip().startswith("//"):
            lines.insert(0, self.lines[row])
            row -= 1
        return headers.comment_text(lines)
