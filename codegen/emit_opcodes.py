# SPDX-License-Identifier: Apache-2.0
"""Generates docs/reference/opcodes.md, the list of the operations of an Expression."""

import pathlib
import re
import string

_TEMPLATE = pathlib.Path(__file__).parent / "templates/opcodes.md.in"
_COLUMNS = {
    "SPECIAL": ["text", "operands", "types", "note"],
    "OPCODE": ["text", "C++", "floats", "integers", "bools", "ulps", "note"],
}
_TYPES = {"kAnything": "all", "kNumbers": "floats, integers"}


def opcodes(path):
    """Returns docs/reference/opcodes.md for opcodes.def."""
    body, note = [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("// ---- "):
            body += ["", f"## {line[8:]}", ""]
            note = []
        elif line.startswith("//"):
            note.append(line[3:])
        elif row := re.fullmatch(r"(OPCODE|SPECIAL)\((.*)\)", line):
            if not body[-1]:
                columns = _COLUMNS[row[1]]
                body += [_line(columns), _line(["---"] * len(columns))]
            body.append(_line(_cells(_arguments(row[2])) + [" ".join(note)]))
            note = []
    template = string.Template(_TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(body="\n".join(body).strip())


def _line(cells):
    return f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")


def _cells(arguments):
    _, text, *rest = arguments
    code = [f"`{a}`".replace("|", "\\|") if a else "" for a in rest]
    if len(rest) == 2:
        return [text.strip('"'), rest[0], _TYPES[rest[1]]]
    return [text.strip('"'), code[0], *code[3:6], rest[6]]


def _arguments(text):
    """Splits the arguments of a macro at the commas outside parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]
