# SPDX-License-Identifier: Apache-2.0
"""Checks that headers compile in one file, each included twice, without warnings.

  headers_test.py INCLUDE_DIR COMPILE_COMMANDS PATTERN COMPILER [FLAG]...

PATTERN selects headers, such as tfplug/*.h, or tfplug/**/*.h for all of them.
headers_alone_test.py checks that each header compiles without the others. Only
the syntax is checked. The include paths are those that Meson wrote to
COMPILE_COMMANDS (compile_commands.json) for tests/doctest_main.cc, a target with
all dependencies of tfplug. Headers of other projects count as system headers.

tfplug/proto/proto.h needs protobuf and generated code and is tested by
tests/proto/proto_test.cc instead. Headers that include Eigen are tested by
tests/tensorflow/test_op_sweep.py, and those that include glslang by
examples/vulkan.
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


def find_headers(ours, pattern):
    """Returns the paths of the headers to test, relative to the directory `ours`."""
    texts = {str(path.relative_to(ours)): path.read_text()
             for path in ours.glob(pattern)}
    eigen = {name for name, text in texts.items()
             if "<Eigen/" in text or "<glslang/" in text}
    count = 0
    while count != len(eigen):  # Also those that include them through others.
        count = len(eigen)
        eigen |= {name for name, text in texts.items()
                  if any(f'"{each}"' in text for each in eigen)}
    return sorted(texts.keys() - eigen - {"tfplug/proto/proto.h"})


def compile_source(command, source):
    """Returns whether the source compiles, and the compiler's output."""
    result = subprocess.run(
        [*command, "-fsyntax-only", "-x", "c++", "-"], input=source, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return result.returncode == 0, result.stdout


def include_twice(header):
    return f'#include "{header}"\n' * 2


def main():
    ours = pathlib.Path(sys.argv[1]).resolve()
    pattern, *compiler = sys.argv[3:]
    headers = find_headers(ours, pattern)
    good, output = compile_source(
        compiler + WARNINGS + include_flags(sys.argv[2], ours),
        "".join(map(include_twice, headers)))
    print(f"{len(headers)} headers with {' '.join(compiler)}:",
          "all compile" if good else "FAILED\n" + output)
    return 0 if good and headers else 1


if __name__ == "__main__":
    sys.exit(main())
