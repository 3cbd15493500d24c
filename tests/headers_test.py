# SPDX-License-Identifier: Apache-2.0
"""Checks that each header compiles alone and included twice, without warnings.

  headers_test.py INCLUDE_DIR COMPILE_COMMANDS PATTERN COMPILER [FLAG]...

PATTERN selects headers, such as tfplug/*.h, or tfplug/**/*.h for all of them.
Only the syntax is checked. The include paths are those that Meson wrote to
COMPILE_COMMANDS (compile_commands.json) for tests/doctest_main.cc, a target with
all dependencies of tfplug. Headers of other projects count as system headers.

tfplug/proto/proto.h needs protobuf and generated code and is tested by
tests/proto/proto_test.cc instead. Headers that include Eigen are tested by
tests/tensorflow/test_backend_families.py.
"""

import json
import pathlib
import shlex
import subprocess
import sys

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wsuggest-override", "-Werror"]


def include_flags(commands, ours):
    """Returns the include paths of tfplug and its dependencies as flags."""
    entries = json.loads(pathlib.Path(commands).read_text())
    entry = next(e for e in entries
                 if e["file"].endswith("tests/doctest_main.cc"))
    words = shlex.split(entry["command"])
    flags = []
    for i, word in enumerate(words):
        if word == "-isystem":
            path = words[i + 1]
        elif word.startswith(("-I", "-isystem")):
            path = word.removeprefix("-isystem").removeprefix("-I")
        else:
            continue
        path = (pathlib.Path(entry["directory"]) / path).resolve()
        if path not in (ours, pathlib.Path("/usr/include")):
            flags += ["-isystem", str(path)]
    return ["-I", str(ours)] + flags


def main():
    ours = pathlib.Path(sys.argv[1]).resolve()
    pattern, *compiler = sys.argv[3:]
    includes = include_flags(sys.argv[2], ours)
    headers = sorted(
        str(path.relative_to(ours)) for path in ours.glob(pattern)
        if path != ours / "tfplug/proto/proto.h"
        and "Eigen/" not in path.read_text()
    )
    failed = []
    for header in headers:
        source = f'#include "{header}"\n#include "{header}"\n'
        command = compiler + WARNINGS + includes
        result = subprocess.run(
            command + ["-fsyntax-only", "-x", "c++", "-"],
            input=source,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if result.returncode != 0:
            failed.append(header)
            print(f"---- {header}\n{result.stdout}")
    print(f"{len(headers)} headers with {' '.join(compiler)}:", end=" ")
    print("FAILED: " + " ".join(failed) if failed else "all compile")
    return 1 if failed or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
