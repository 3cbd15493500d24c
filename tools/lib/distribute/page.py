# SPDX-License-Identifier: Apache-2.0
"""The page docs/measured/distribute.md, one section per command of tools/distribute."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]
PATH = ROOT / "docs/measured/distribute.md"
TITLE = "# Several devices, processes and machines\n"


def markdown(head, rows):
    """Returns a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def write(heading, text):
    """Replaces the section, or appends it."""
    old = PATH.read_text(encoding="utf-8") if PATH.exists() else TITLE
    parts = re.split(r"^(?=## )", old, flags=re.MULTILINE)
    section = f"## {heading}\n\n{text.strip()}\n"
    for i, part in enumerate(parts):
        if part.startswith(f"## {heading}\n"):
            parts[i] = section
            break
    else:
        parts.append(section)
    PATH.write_text("\n".join(part.strip() + "\n" for part in parts), encoding="utf-8")
