# SPDX-License-Identifier: Apache-2.0
"""Generates gdb_script.h, which puts gdb_printers.py into each library."""

import pathlib
import string

_TEMPLATES = pathlib.Path(__file__).parent / "templates"


def gdb_script():
    script = (_TEMPLATES / "gdb_printers.py").read_text(encoding="utf-8")
    lines = (line.replace("\\", r"\\").replace('"', r"\"")
             for line in script.splitlines())
    return string.Template(
        (_TEMPLATES / "gdb_script.h.in").read_text(encoding="utf-8")).substitute(
            lines="\n".join(f'.ascii "{line}\\n"' for line in lines))
