# SPDX-License-Identifier: Apache-2.0
"""Turns the comments of a header into those that Doxygen reads.

A header's declarations become members of one group, named after the header, because
Breathe shows groups; banners ("---- Memory ----") become sections.
"""

import re

_COMMENT = re.compile(r"( *)//( ?)(.*)")
_BANNER = re.compile(r"( *)// -{3,} (.*?) -+")
# The type and the name of a function.
_FUNCTION = re.compile(r" *(?!return\b|static_assert|if\b|for\b|while\b|#)"
                       r"((?:template ?<.*> )?[\w:<>,&*\[\] ~]*?)\b(\w+)\(")


def group_of(name):
    """Returns the name of the group of a header, "tfplug/kernel/tensor.h"."""
    return re.sub(r"\W", "_", name)


def _escaped(text):
    """Returns the text of a comment without what Doxygen would take for a command, and
    with links for names such as AsyncRun but not for words such as Device."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else
                   re.sub(r"(?<![\w:])([A-Z][a-z]+)\b(?!::)", r"%\1",
                          re.sub(r"([<>@\\#])", r"\\\1", part)) for part in parts)


def _doxygen(block):
    """Returns the lines of a comment as Doxygen's Markdown, with indented code."""
    lines, code = [], False
    for i, line in enumerate(block):
        indented = line.startswith("  ")
        if code and line and not indented:
            code = False
            lines.append("@endcode")
        elif (indented and not code and not line.lstrip().startswith("* ") and
              (i == 0 or not block[i - 1] or block[i - 1].endswith(":"))):
            code = True
            lines.append("@code{.cpp}")
        lines.append(line[2:] if code else _escaped(line))
    return lines + ["@endcode"] * code


class _Converter:
    def __init__(self, name, text):
        self.group = group_of(name)
        self.lines = [line for line in text.splitlines()
                      if not re.match(r"#include|// SPDX", line)]
        self.out = [f"/// @defgroup {self.group} {name}", "/// @{"]
        self.section = None  # the indentation of the open section

    def close_section(self):
        if self.section is not None:
            self.out.append("/// @}")
            self.section = None

    def comment(self, i):
        """Converts the comment that begins in line i, and returns what follows it."""
        block = []
        while i < len(self.lines) and not _BANNER.fullmatch(self.lines[i]) and (
                match := _COMMENT.fullmatch(self.lines[i])):
            indent = match[1]
            block.append(match[3])
            i += 1
        block = _doxygen(block)
        following = self.lines[i] if i < len(self.lines) else ""
        if re.match(r"#|namespace|$", following.strip()):  # above no declaration
            if indent or any(line.startswith("namespace") for line in self.lines[:i]) or (
                    len(self.out) > 1 and "///" == self.out[1]):
                return i, [], None
            self.out[1:1] = ["///"] + [f"/// {line}" for line in block]
            return i, [], None
        self.out += [f"{indent}/// {line}".rstrip() for line in block]
        return i, block, _FUNCTION.match(following)

    def convert(self):
        i, shared, first = 0, [], None  # the comment of the last function, and itself
        while i < len(self.lines):
            line = self.lines[i]
            indent = len(line) - len(line.lstrip())
            if banner := _BANNER.fullmatch(line):
                self.close_section()
                if indent:
                    self.section = indent
                    self.out += [f"/// @name {_escaped(banner[2])}", "/// @{"]
                i += 1
                continue
            if _COMMENT.fullmatch(line):
                i, shared, first = self.comment(i)
                continue
            i += 1
            if not line.strip():
                shared = []
            elif self.section is not None and indent < self.section:
                self.close_section()
            if re.match(r"}  // namespace", line):
                self.out.append("/// @}")
            function = _FUNCTION.match(line)
            if (shared and first and function and re.search(r"[;}]$", self.lines[i - 2])
                    and indent == len(first[0]) - len(first[0].lstrip())
                    and (function[1].strip() == first[1].strip()
                         or function[2] in " ".join(shared))):
                self.out += ["/// " + line for line in shared]
            behind = re.fullmatch(r"( *[^ #/].*?) +//( .*)", line)
            self.out.append(f"{behind[1]}  ///<{_escaped(behind[2])}" if behind else line)
            if re.match(r"namespace .*{$", line):
                self.out += [f"/// @addtogroup {self.group}", "/// @{"]
        return "\n".join(self.out + ["/// @}", ""])


def converted(name, text):
    return _Converter(name, text).convert()
