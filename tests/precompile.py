# SPDX-License-Identifier: Apache-2.0
"""Precompiles a header with clang++, templates included, for the files that need it.

  precompile.py COMPILE_COMMANDS HEADER DEPFILE STAMP PRECOMPILED

The flags are those of the first file in COMPILE_COMMANDS (compile_commands.json) that
includes PRECOMPILED. Such a file also includes STAMP, a header without code: a compiler
names in its dependencies no precompiled header, nor what that contains. The sum of all
contents is in STAMP and, where ccache looks for it (CCACHE_PCH_EXTSUM), in
PRECOMPILED.sum: in two clones the sums are equal, the precompiled headers are not.
"""

import hashlib
import json
import pathlib
import shlex
import subprocess
import sys

# Flags that belong to one file, each with its argument.
OF_A_FILE = ("-include-pch", "-include", "-MQ", "-MF", "-o", "-c")


def flags_of_users(commands, precompiled):
    """Returns the compiler and the flags of the files that include `precompiled`."""
    entry = next(entry for entry in json.loads(pathlib.Path(commands).read_text())
                 if precompiled in entry["command"])
    words = iter(shlex.split(entry["command"]))
    return [word for word in words
            if word != "-MD" and not word.endswith("ccache")
            and not (word in OF_A_FILE and next(words))]


def main() -> int:
    commands, header, depfile, stamp, precompiled = sys.argv[1:]
    subprocess.run([*flags_of_users(commands, precompiled), "-fpch-instantiate-templates",
                    "-MD", "-MQ", stamp, "-MF", depfile, "-x", "c++-header", header,
                    "-o", precompiled], check=True)
    total = hashlib.sha256()
    for name in pathlib.Path(depfile).read_text().replace("\\\n", " ").split()[1:]:
        total.update(pathlib.Path(name).read_bytes())
    pathlib.Path(precompiled + ".sum").write_text(total.hexdigest())
    pathlib.Path(stamp).write_text(f"// {total.hexdigest()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
