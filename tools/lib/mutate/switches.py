# SPDX-License-Identifier: Apache-2.0
"""Mutants of C++ headers, and headers in which a variable selects the mutant.

A mutant is one change of one line. `Header.text()` has every mutant that can be
selected at run time: `if (a < b) {` becomes

    if ((MUTANT(7) ? (a <= b) : MUTANT(8) ? (!(a < b)) : (a < b))) {

on the same line, so that line numbers stay valid. Conditions, initializers,
returned expressions, whole statements, numbers, true and false can be switched if
they are on one line; changes elsewhere are left out. The changed text is seldom
ill-formed; the compiler finds those lines, and `drop` removes their mutants.
"""

import dataclasses
import re

# Patterns and their replacements. The spaces exclude template brackets, references
# and pointers.
CHANGES = [
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "),
    (r" == ", " != "), (r" != ", " == "),
    (r" && ", " || "), (r" \|\| ", " && "),
    (r" \+ ", " - "), (r" - ", " + "), (r" \* ", " / "), (r" / ", " * "),
    (r" % ", " / "), (r" \+= ", " -= "), (r" -= ", " += "),
    (r" << ", " >> "), (r" >> ", " << "), (r" & ", " | "), (r" \| ", " & "),
    (r"\+\+(?=\w)", "--"), (r"--(?=\w)", "++"),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
    (r"(?<![\w.])\d+\b(?![.'])", lambda found: str(int(found[0]) + 1)),
    (r"std::memory_order_(acquire|release|acq_rel|seq_cst)",
     "std::memory_order_relaxed"),
]
PURE = re.compile(r"\) (const )?= $")  # before the 0 of a pure virtual function
LITERAL = re.compile(r"true|false|\d+|std::memory_order_\w+")
# Lines whose expressions the compiler evaluates, or that have none.
IGNORED = re.compile(r"^\s*(#|//|static_assert|using |namespace |template |case |"
                     r"k\w+ = .*,$|$)|\bconstexpr\b|\\$|alignas|requires")
# Without declarations, among them those of TFPLUG_ASSIGN_OR_RETURN.
STATEMENT = re.compile(
    r"^(?!TFPLUG_ASSIGN_OR_RETURN\((?:const )?[\w:<>*& ,]+ \w+, )"
    r"(?!return\b|using\b|break\b|continue\b|delete\b|throw\b|goto\b|friend\b)"
    r"(\+\+|--)?[\w.\->()*:\[\]<>]+?"
    r"(\(.*\)| [-+|&^]?= .*|\+\+|--)?;$")
INITIALIZER = re.compile(r"^[\w:<>,*&.\->\[\]() ]+? (?:[-+*/|&^%]|<<|>>)?= ([^{\[].*);$")


@dataclasses.dataclass
class Mutant:
    header: object
    line: int  # 1 is the first
    changed: str  # the whole line
    region: tuple  # (begin, end) of the text that the switch replaces
    text: str  # its replacement; an empty statement is ""
    number: int = 0


def matching(code, at):
    """The index of the parenthesis that closes the one at `at`, or -1."""
    depth = 0
    for i in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[i], 0)
        if depth == 0:
            return i
    return -1


def is_balanced(code):
    return all(code.count(a) == code.count(b) for a, b in ("()", "{}", "[]"))


def in_raw_strings(lines):
    """Returns the indices of the lines with parts of raw strings that span lines."""
    found, end = set(), None
    for i, line in enumerate(lines):
        begin = re.search(r'R"(\w*)\(', line)
        if end is None and begin and f'){begin[1]}"' not in line[begin.end():]:
            end = f'){begin[1]}"'
        elif end is None:
            continue
        found.add(i)
        if end in line:
            end = None
    return found


def regions(code, starts):
    """Yields (begin, end) of the expressions of a line that can be switched, and
    True if it is a condition. `starts`: whether a statement begins here."""
    for found in re.finditer(r"\b(?:if|while) \(", code):
        end = matching(code, found.end() - 1)
        inside = code[found.end():end]
        if end > 0 and ";" not in inside and not re.search(r"\w [*&]?\w+ = ", inside):
            yield found.end(), end, True
    found = re.search(r"\bfor \(.*; (.*); (.*)\)", code)
    if found:
        yield *found.span(1), False
    found = re.search(r"\breturn ([^{\[].*);$", code)
    if found and is_balanced(found[1]):
        yield *found.span(1), False
    text = code.strip()
    found = INITIALIZER.match(text)
    if found and starts and is_balanced(text):
        indent = code.index(text)
        yield indent + found.start(1), indent + found.end(1), False


class Header:
    """A header and its mutants."""

    def __init__(self, path, name):
        self.path, self.name = path, name
        self.lines = path.read_text().splitlines()
        self.left_out = 0
        raw = in_raw_strings(self.lines)
        self.mutants = [m for i in range(len(self.lines)) if i not in raw
                        for m in self._mutate(i)]

    def _mutate(self, index):
        line = self.lines[index]
        if IGNORED.search(line):
            return
        code = line.split(" //")[0].rstrip()
        indent = len(code) - len(code.lstrip())
        before = next((self.lines[i].split(" //")[0].rstrip()
                       for i in range(index - 1, -1, -1)
                       if self.lines[i].strip() and
                       not self.lines[i].lstrip().startswith("//")), "")
        starts = before.endswith((";", "{", "}", ":")) or bool(
            re.match(r"\s*(\} )?(else )?(if|for|while) .*\)$", before))
        strings = [m.span() for m in re.finditer(r'"(\\.|[^"])*"|\'[^\']*\'', code)]
        found_regions = [region for region in regions(code, starts)
                         if not any(a < region[0] < b for a, b in strings)]
        is_statement = (starts and is_balanced(code) and
                        STATEMENT.match(code[indent:]) is not None)
        number = index + 1

        def region_of(begin, end):
            inner = [(b, e) for b, e, _ in found_regions if b <= begin and end <= e]
            if inner:
                return min(inner, key=lambda r: r[1] - r[0])
            if is_statement:
                return indent, len(code)
            return None

        for begin, end, is_condition in found_regions:
            if is_condition:
                text = f"!({code[begin:end]})"
                yield Mutant(self, number, code[:begin] + text + code[end:],
                             (begin, end), text)
        if is_statement:
            yield Mutant(self, number, ";", (indent, len(code)), "")
        for pattern, replacement in CHANGES:
            for found in re.finditer(pattern, code):
                begin, end = found.span()
                if any(a < end and begin < b for a, b in strings):
                    continue
                new = (replacement(found) if callable(replacement) else
                       found.expand(replacement))
                region = region_of(begin, end)
                if (region is None and LITERAL.fullmatch(found[0]) and
                        code[begin - 1] != "<" and code[end:end + 1] != ">" and
                        not PURE.search(code[:begin])):
                    region = begin, end
                if region is None:
                    self.left_out += 1
                    continue
                first, last = region
                yield Mutant(self, number, code[:begin] + new + code[end:], region,
                             code[first:begin] + new + code[end:last])

    def drop(self, line):
        """Removes the mutants of a line that does not compile; returns them."""
        dropped = [m for m in self.mutants if m.line == line]
        self.mutants = [m for m in self.mutants if m.line != line]
        return dropped

    def text(self):
        lines = list(self.lines)
        for number in sorted({m.line for m in self.mutants}):
            lines[number - 1] = self._switched(number)
        return "\n".join(lines) + "\n"

    def _switched(self, number):
        code = self.lines[number - 1].split(" //")[0].rstrip()
        indent = len(code) - len(code.lstrip())
        by_region = {}
        for mutant in self.mutants:
            if mutant.line == number:
                by_region.setdefault(mutant.region, []).append(mutant)
        statement = by_region.pop((indent, len(code)), [])
        # From right to left; a region inside of another is switched with it.
        for region in sorted(by_region, reverse=True):
            begin, end = region
            if any(a <= begin and end <= b for a, b in by_region if (a, b) != region):
                continue
            choices = "".join(f"MUTANT({m.number}) ? ({m.text}) : "
                              for other, group in by_region.items()
                              if begin <= other[0] and other[1] <= end
                              for m in group if other == region)
            code = f"{code[:begin]}({choices}({code[begin:end]})){code[end:]}"
        if statement:
            choices = "".join(f"if (MUTANT({m.number})) {{ {m.text} }} else "
                              for m in statement)
            code = f"{{ {choices}{{ {code.strip()} }} }}"
        return code
