# SPDX-License-Identifier: Apache-2.0
"""Checks that no two of several static libraries define the same symbol:
levels_test.py LIBRARY.a LIBRARY.a...

The libraries contain the same code compiled for different processors. If two of
them define one symbol, such as an inline function, the linker keeps one of the
definitions, which may use instructions that this machine lacks.
"""

import collections
import subprocess
import sys


def defined(library):
    """Returns the symbols that other objects see, weak ones included."""
    listed = subprocess.run(["nm", "--defined-only", library], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    entries = [line.split() for line in listed.splitlines()]
    return {entry[2] for entry in entries
            if len(entry) == 3 and entry[1].upper() == entry[1] or
            len(entry) == 3 and entry[1] in "uvw"}


def main():
    owners = collections.defaultdict(list)
    for library in sys.argv[1:]:
        names = defined(library)
        if not any("cpu_sim" in name for name in names):
            sys.exit(f"{library} defines no symbol of cpu_sim")
        for name in names:
            # A reference to the data of an exception handler, not code.
            if not name.startswith("DW.ref."):
                owners[name].append(library)
    shared = {n: l for n, l in owners.items() if len(l) > 1}
    for name, libraries in sorted(shared.items()):
        print(f"{name} is in each of {', '.join(libraries)}")
    return 1 if shared else 0


if __name__ == "__main__":
    sys.exit(main())
