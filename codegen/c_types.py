# SPDX-License-Identifier: Apache-2.0
"""Parses the C types in the ABI history and formats C++ declarations."""

import re

_WIDTH = 80


def _matching_open(text):
    """Returns the index of the parenthesis that matches the last one of `text`."""
    depth = 0
    for i in range(len(text) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[i], 0)
        if depth == 0:
            return i
    raise ValueError(f"unbalanced parentheses: {text}")


def split_params(text):
    """Splits a parameter list at the top-level commas."""
    out, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += {"(": 1, ")": -1}.get(c, 0)
        if c == "," and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return out + [last] if last else out


class CType:
    """A C type: plain, array, function or pointer to function."""

    def __init__(self, text):
        self.text = text.strip()
        self.result = self.params = self.array = None
        self.is_pointer = False
        if self.text.endswith(")") and "unnamed" not in self.text:
            at = _matching_open(self.text)
            head = self.text[:at].rstrip()
            self.params = [CType(p) for p in split_params(self.text[at + 1:-1])]
            if head.endswith("(*)"):
                self.is_pointer, head = True, head[:-3]
            self.result = CType(head)
        elif self.text.endswith("]"):
            base, size = re.fullmatch(r"(.*?)\s*\[(\d+)\]", self.text).groups()
            self.text, self.array = base, int(size)

    @property
    def is_function(self):
        return self.params is not None

    def plain(self):
        """Returns the spelling of a type that is not a function, in Google style."""
        return re.sub(r"\s*\*\s*(?=(const)?)", "*", self.text).replace(
            "*const", "* const")

    def spell(self):
        """Returns the type on one line, without a name."""
        return self.declare("")

    def declare(self, name, params=None):
        """Returns the declaration of `name` on one line; `params` are the names of the
        parameters."""
        if not self.is_function:
            suffix = f"[{self.array}]" if self.array else ""
            return f"{self.plain()} {name}".rstrip() + suffix
        head, listed = self.parts(name, params)
        return f"{head}({', '.join(listed)})"

    def parts(self, name, params=None):
        """Returns the text before the parameter list, and the parameters."""
        inner = f"(*{name})" if self.is_pointer else name
        params = params if params is not None else [""] * len(self.params)
        if len(params) != len(self.params):
            raise ValueError(f"{name} has {len(self.params)} parameters, but "
                             "codegen/parameters.txt names "
                             f"{', '.join(params) or 'none'}")
        listed = [t.declare(n if t.text != "..." else "")
                  for t, n in zip(self.params, params)]
        return f"{self.result.spell()} {inner}", listed

    def pointer(self):
        """Returns the pointer to this function."""
        if self.is_pointer:
            return self
        copy = CType(self.text)
        copy.is_pointer = True
        return copy

    def canonical(self):
        """Returns the spelling that equal C++ types share: a function's type does not
        include top-level const of its parameters."""
        if not self.is_function:
            return self.spell()
        params = []
        for param in self.params:
            text = param.canonical()
            if not param.is_function:
                text = re.sub(r"(?<=\*) const$", "", text)
                text = text if "*" in text else re.sub(r"^const ", "", text)
            params.append(text)
        star = "(*)" if self.is_pointer else ""
        return f"{self.result.spell()} {star}({', '.join(params)})"

    def identifiers(self):
        return set(re.findall(r"[A-Za-z_]\w*", self.spell()))


def _pack(params, column, tail, first):
    """Packs `params` into lines that begin at `column`; the first one begins with
    `first`. Returns None if a line is too long."""
    lines = [first]
    for i, param in enumerate(params):
        end = ")" + tail if i == len(params) - 1 else ","
        fresh = lines[-1].endswith("(") or lines[-1].isspace()
        one = lines[-1] + ("" if fresh else " ") + param + end
        if len(one) <= _WIDTH:
            lines[-1] = one
            continue
        if not fresh:
            lines.append(" " * column)
        if len(lines[-1] + param + end) > _WIDTH:
            # A callback whose parameter list must be split.
            at = param.index(")(") + 2
            inner = _pack(split_params(param[at:-1]), column + at, end,
                          lines[-1] + param[:at]) if at > 1 else None
            if inner is None:
                return None
            lines[-1:] = inner
        else:
            lines[-1] += param + end
    return lines


def wrap_params(head, params, tail, indent):
    """Formats `head(params)tail` like clang-format's Google style: packed below
    the parenthesis, or indented by four columns if they do not fit there."""
    pad = " " * indent
    one = f"{pad}{head}({', '.join(params)}){tail}"
    if len(one) <= _WIDTH:
        return one
    column = indent + len(head) + 1
    if all(column + len(p) + len(tail) < _WIDTH for p in params):
        lines = _pack(params, column, tail, f"{pad}{head}(")
        if lines:
            return "\n".join(lines)
    column = indent + 4
    lines = _pack(params, column, tail, " " * column)
    if lines is None:
        raise ValueError(f"{head} does not fit in {_WIDTH} columns")
    return "\n".join([f"{pad}{head}("] + lines)
