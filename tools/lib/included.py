# SPDX-License-Identifier: Apache-2.0
"""Finds the project's files that a C++ file includes."""

import functools
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = (ROOT / "tests", ROOT / "include")


@functools.lru_cache(maxsize=None)
def _direct(path):
    """Returns the files of the project that `path` names, in its folder or FOLDERS."""
    names = re.findall(r'^\s*#include [<"]([\w/.]+)[>"]', path.read_text(), re.M)
    found = ([folder / name for folder in (path.parent, *FOLDERS)
              if (folder / name).exists()] for name in names)
    return [files[0] for files in found if files]


def included(*paths):
    """Returns the files of the project that the files include, directly or not."""
    seen, new = set(), list(paths)
    while new:
        found = set(_direct(new.pop())) - seen
        seen |= found
        new += found
    return seen
