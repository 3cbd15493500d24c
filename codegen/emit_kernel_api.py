# SPDX-License-Identifier: Apache-2.0
"""Generates docs/reference/kernel_api.md: the C++ for each function of the kernel C API."""

import configparser
import pathlib
import string

HERE = pathlib.Path(__file__).resolve().parent

# The headers whose every function must be described.
HEADERS = tuple("tensorflow/c/" + name for name in (
    "kernels.h", "kernels_experimental.h", "ops.h", "tf_buffer.h",
    "tf_datatype.h", "tf_status.h", "tf_tensor.h", "tf_tstring.h"))


def read_sections(path):
    """Returns {section: {C function: the C++ for it}}, in order."""
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",),
                                       comment_prefixes=("#",))
    parser.optionxform = str
    with open(path, encoding="utf-8") as file:
        parser.read_file(file)
    return {s: dict(parser[s]) for s in parser.sections()}


def kernel_api(model, path=HERE / "kernel_api.ini"):
    """Returns the page; exits with the functions that are missing or unknown."""
    sections = read_sections(path)
    functions = {f.name: f for f in model.functions if f.header in HEADERS}
    described = [name for rows in sections.values() for name in rows]
    wrong = [f"{n}: missing" for n in sorted(set(functions) - set(described))]
    wrong += [f"{n}: no such function"
              for n in sorted(set(described) - set(functions))]
    if wrong:
        raise SystemExit(f"{path.name}:\n  " + "\n  ".join(wrong))
    parts = []
    for section, rows in sections.items():
        title, _, headers = section.partition(": ")
        table = ["| C function | C++ | releases |", "| --- | --- | --- |"]
        for name, text in rows.items():
            f = functions[name]
            releases = ", ".join(f"{s}–{u or ''}" for s, u in f.spans())
            table.append(f"| `{name}` | {text} | {releases} |")
        names = ", ".join(f"`{h}`" for h in headers.split(", "))
        parts.append(f"## {title}\n\n{names}\n\n" + "\n".join(table))
    template = (HERE / "templates/kernel_api.md.in").read_text(encoding="utf-8")
    return string.Template(template).substitute(
        count=len(functions), newest=model.newest, sections="\n\n".join(parts))
