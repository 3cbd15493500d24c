# SPDX-License-Identifier: Apache-2.0
"""Copies tfplug's headers and changes the copy into another version, with another
layout of a variable that all functions use.

  other_version.py INCLUDE_DIR COPY OUTPUT DEPFILE
"""

import pathlib
import shutil
import sys

CHANGES = {
    "base/version.h": ("#define TFPLUG_VERSION ", "#define TFPLUG_VERSION 99"),
    "base/internal/tensorflow.h": (
        "inline capi::Functions tensorflow;",
        "inline capi::Functions moved;\ninline capi::Functions& tensorflow = moved;"),
}


def main():
    include, copy, output, depfile = map(pathlib.Path, sys.argv[1:])
    shutil.copytree(include, copy, dirs_exist_ok=True)
    for name, (before, after) in CHANGES.items():
        path = copy / "tfplug" / name
        text = path.read_text()
        assert text.count(before) == 1, f"{name}: {before}"
        path.write_text(text.replace(before, after))
    output.write_text("")
    headers = " ".join(map(str, sorted(include.rglob("*.h"))))
    depfile.write_text(f"{output}: {headers}\n")


if __name__ == "__main__":
    main()
