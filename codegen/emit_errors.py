# SPDX-License-Identifier: Apache-2.0
"""Generates docs/reference/errors.md, the list of the headers' error messages."""

import pathlib
import string

from messages import find_messages

_TEMPLATE = pathlib.Path(__file__).parent / "templates/errors.md.in"
_TITLES = {
    "device": "Devices, streams and memory",
    "kernel": "Kernels, tensors and ops",
    "ir": "Expressions, views and reductions",
    "primitives": "Primitives and their defaults",
    "compiled": "Primitives as generated source",
    "op_kernels": "Kernels from primitives",
    "graph": "Graphs",
    "patterns": "Patterns and rules",
    "passes": "Graph passes and their registration",
    "profiler": "Profiles",
    "proto": "Graphs as protobuf messages",
    "base": "Everywhere",
}


def find_all(include):
    """Returns {title: messages}, sorted. A message of several headers occurs once."""
    root = include / "tfplug"
    found = {}
    for directory, title in _TITLES.items():
        messages = {}
        for path in sorted((root / directory).rglob("*.h")):
            header = path.relative_to(root).as_posix()
            text = path.read_text(encoding="utf-8")
            for message in find_messages(text, header):
                messages.setdefault(message.text, message)
        if not messages:
            raise ValueError(f"no message in {directory}; has it moved?")
        found[title] = sorted(messages.values(), key=_sort_key)
    return found


def errors(include):
    """Returns docs/reference/errors.md for the headers below `include`."""
    body = []
    for title, messages in find_all(include).items():
        body += [f"## {title}", "", "| message | kind | header |",
                 "| --- | --- | --- |"]
        body += [f"| {cell(m.text)} | {m.kind} | `{m.header}` |" for m in messages]
        body.append("")
    template = string.Template(_TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(body="\n".join(body).rstrip())


def _sort_key(message):
    text = message.text.removeprefix("tfplug: ").lstrip("…").lower()
    return message.kind == "compile time", text


def cell(text):
    """Returns the text with Markdown's special characters escaped."""
    return "".join("\\" + c if c in "|*_`[]" else "&lt;" if c == "<" else c
                   for c in text.removeprefix("tfplug: "))
