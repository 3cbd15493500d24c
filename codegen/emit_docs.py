# SPDX-License-Identifier: Apache-2.0
"""Generates the tables of fields and functions in docs/reference/."""

import pathlib
import re
import string

_TEMPLATES = pathlib.Path(__file__).parent / "templates"
_LIBRARIES = {"framework": "framework", "cc": "cc", "pywrap": "python"}


def _fill(template, **holes):
    text = (_TEMPLATES / template).read_text(encoding="utf-8")
    return string.Template(text).substitute(holes)


def _cell(text):
    """Returns text for a table's cell: C++ names as code, Markdown escaped."""
    text = text.replace("[A-Z][A-Z_]*", "`[A-Z][A-Z_]*`")
    text = re.sub(r"(?<![`\w])((?:SP|SE|TF|TP)_\w+|tf\.\w+\.\w+|"
                  r"\w+::~?\w+(?:\([^)]*\))?)(?![`\w])", r"`\1`", text)
    return text.replace("|", r"\|").replace("<", "&lt;")


def _row(cells):
    assert all(cells), f"an empty cell: {cells}"
    return "| " + " | ".join(cells) + " |"


def field_tables(template, model, description):
    """Returns docs/reference/device_abi.md or docs/reference/graph_abi.md."""
    parts = []
    for name in description.structs():
        struct = model.structs[name]
        sizes = ", ".join(
            f"{l.struct_size} ({_span(l.since, l.until, model.newest)})"
            for l in struct.layouts)
        head = ["C field", "since", "set by", "required", "C++ hook",
                "default", "thread", "consequence of a failure"]
        rows = [_row(head), _row(["---"] * len(head))]
        for field in struct.newest.fields:
            entry = description.get(f"{name}.{field.name}")
            rows.append(_row([f"`{field.name}`", struct.field_since(field.name)]
                             + [_cell(entry[k]) for k in (
                                 "by", "required", "hook", "default", "thread",
                                 "failure")]))
        parts.append(f"## {name}\n\n{_cell(description.get(name)['about'])} "
                     f"`struct_size`: {sizes}.\n\n" + "\n".join(rows))
    threads = "\n".join(f"* **{k}**: {v}." for k, v in
                        description.threads.items())
    return _fill(template, threads=threads,
                 structs="\n\n".join(parts))


def capi(model):
    """Returns docs/reference/capi.md."""
    headers = {}
    for function in model.functions:
        headers.setdefault(function.header, []).append(function)
    parts = []
    for header, functions in sorted(headers.items()):
        rows = [_row(["function", "declared", "exported", "by library"]),
                _row(["---"] * 4)]
        for f in functions:
            declared = _span(_release(f.raws[0]["since"]),
                             _release(f.raws[-1]["until"]), model.newest)
            exported = ", ".join(_span(s, u or model.newest, model.newest)
                                 for s, u in f.spans())
            libraries = "; ".join(
                f"{_span(s, u, model.newest)}: "
                + ", ".join(_LIBRARIES[l] for l in libs)
                for s, u, libs in f.exports)
            rows.append(_row([f"`{f.name}`", declared, exported, libraries]))
        parts.append(f"## {header}\n\n" + "\n".join(rows))
    gone = [f for f in model.functions if f.last]
    gaps = [f for f in model.functions if f.gap]
    oldest = _release(model.versions[0])
    late = [f for f in model.functions if f.since != oldest]
    return _fill("capi.md.in", count=len(model.functions), gone=len(gone), gaps=len(gaps),
                 late=len(late), newest=model.newest,
                 entry_points=", ".join(f"`{n}`" for n in model.entry_points),
                 headers="\n\n".join(parts))


def _release(version):
    return ".".join(version.split(".")[:2])


def _span(since, until, newest):
    if until == newest:
        return f"{since}–"
    return since if since == until else f"{since}–{until}"
