# SPDX-License-Identifier: Apache-2.0
"""Writes a page for each message in docs/reference/errors.md: what reports it, when,
and the remedy that the message names.

The messages come from codegen/messages.py, from which docs/reference/errors.md is
generated, too.
"""

import pathlib
import re
import sys
import textwrap

_ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(_ROOT / "codegen"), str(_ROOT / "packaging/python")]

import doctor_causes  # noqa: E402
import emit_errors  # noqa: E402

_LONGEST = 30  # lines of code
# The end of a message that begins with one of these is a remedy.
_REMEDY = re.compile(
    r"(?:^|; |\. )((?:override|use|write|derive|rebuild|redirect|include|register|"
    r"declare|mark|load|call|set|pass|keep|give|add|remove|link|install|run|see|try|"
    r"make|build|name|choose|return|let|put|replace|define|wrap|update|reshape|create|"
    r"convert|cast|select|report|reduce|split|start|assign|do not|pip|reinstall)\b.*)$",
    re.I)

_CLASS = re.compile(r"(?:template ?<.*> )?(?:class|struct|union) (?:\[\[.*?\]\] ?)?(\w+)[^;]*$")
_CONDITION = re.compile(r"(?:\} else )?(?:if|case)\b")
_FUNCTION = re.compile(r"(?!return\b|if\b|for\b|while\b|switch\b|static_assert\b)"
                       r"[^=(]*?((?:\w+(?:<[\w, ]*>)?::)*~?\w+)\(")
_NO_CODE = re.compile(r"#| *(?:public|private|protected):|[^ ].*\\$")
_COMMENT = re.compile(r" *// ?(?!-{3}|NOLINT)(.*)")


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
    if not (stage.root / "docs/reference/errors.md").exists():
        return []
    return [message
            for messages in emit_errors.find_all(stage.root / "include").values()
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
                *("> " + re.sub(r"([*_<\[\]\\#|])", r"\\\1", line)
                  for line in place.comment.splitlines()), ""]
    remedy = _REMEDY.search(_text(message))
    if remedy:
        out += ["## Remedy", "", emit_errors.cell(doctor_causes.sentence(remedy[1])), ""]
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
    """A header, to look up where a message is reported. The formatter indents what
    belongs to a line, so the lines above with less and less indentation are the
    statement, its conditions, the function and the classes."""

    def __init__(self, text):
        self.text = text
        self.lines = text.splitlines()

    def place(self, offset, with_callers=True):
        row = self.text.count("\n", 0, offset)
        place = _Place()
        place.line = row + 1
        statement = condition = function = None
        classes = []
        while row is not None:
            line = self.lines[row].strip()
            if name := _CLASS.match(line):
                classes.insert(0, name[1])
                if not place.comment:
                    place.comment = self.comment_above(row)
                    place.of_function, place.scope = False, name[1]
            elif function is None and _CONDITION.match(line):
                condition = row if condition is None else condition
            elif function is None and (name := _FUNCTION.match(line)) and self.is_body(row):
                function, place.function = row, name[1]
                place.comment = self.comment_above(row)
            elif statement is None:
                statement = row
            row = self.parent(row)
        shown = condition
        if function is not None and (
                condition is None or len(self.block(condition)) > _LONGEST):
            shown = function if len(self.block(function)) <= _LONGEST else statement
            if with_callers and shown == function:
                place.callers = self.callers(place.function)
        shown = next(row for row in (shown, statement, function, place.line - 1)
                     if row is not None)
        place.code = self.code(shown, place.line)
        if place.function and "::" not in place.function:
            place.function = "::".join([*classes, place.function])
        return place

    def parent(self, row):
        """Returns the line above that has less indentation and is code, or None."""
        indent = _indentation(self.lines[row])
        for above in range(row - 1, -1, -1):
            line = self.lines[above]
            if line.strip() and _indentation(line) < indent and not _NO_CODE.match(line):
                return above
        return None

    def block(self, row):
        """Returns the lines of the statement or definition that begins in a line."""
        end, indent = row + 1, _indentation(self.lines[row])
        while end < len(self.lines):
            line = self.lines[end]
            if line.strip() and _indentation(line) <= indent:
                if _indentation(line) < indent or not line.strip().startswith("}"):
                    break
                if not line.endswith("{"):
                    end += 1
                    break
            end += 1
        while not self.lines[end - 1].strip():
            end -= 1
        return self.lines[row:end]

    def is_body(self, row):
        """Returns whether a definition, not a call, begins in a line."""
        head = []
        for line in self.block(row):
            head.append(line)
            if line.endswith(("{", ";", "}")):
                break
        return "{" in head[-1]

    def callers(self, function):
        """Returns the code of up to three calls of a function, with the conditions."""
        found = {}
        for match in re.finditer(rf"\b{re.escape(function.split('::')[-1])}\(", self.text):
            place = self.place(match.start(), with_callers=False)
            if place.function and place.function.split("::")[-1] != function:
                found[place.code] = None
        return list(found)[:3]

    def code(self, row, line):
        """Returns the statement that begins in a row, at most _LONGEST lines around
        `line`."""
        lines = self.block(row)
        if len(lines) > _LONGEST:
            first = max(0, line - 1 - row - _LONGEST // 2)
            lines = lines[first:first + _LONGEST]
        return textwrap.dedent("\n".join(lines))

    def comment_above(self, row):
        lines = []
        while row > 0 and (_COMMENT.match(self.lines[row - 1]) or
                           self.lines[row - 1].strip().startswith("template <")):
            row -= 1
            if match := _COMMENT.match(self.lines[row]):
                lines.insert(0, match[1])
        return "\n".join(lines)


def _indentation(line):
    return len(line) - len(line.lstrip())
