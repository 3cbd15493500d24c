#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles every C++ example of README and docs/.

A fenced block that begins with an #include is a complete file, which must compile
without warnings, one with a line `// Below the first page's device` together with that.
Any other one must be a part of a test. Prints the file and line of each that is
neither. docs/guide/backend.md overrides every primitive. The first compiler gets all
pages, every one README's.
"""

import argparse
import functools
import pathlib
import re
import subprocess
import sys
import tempfile

# Only what includes one of these may have it compiled already; the first wins.
COMMON = ("tfplug/testing.h", "tfplug/graph_pass.h", "tfplug/plugin.h")
BLOCK = re.compile(r"^```cpp\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cxx", action="append", required=True)
    parser.add_argument("--flag", action="append", default=[],
                        help="a compiler flag, such as -I/usr/local/include")
    parser.add_argument("root", type=pathlib.Path)
    args = parser.parse_args()

    readme = (args.root / "README.md").read_text()
    device = BLOCK.search(readme)[1]
    tests = "".join(path.read_text() for path in args.root.glob("tests/**/*")
                    if path.suffix in (".cc", ".h"))
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wsuggest-override", "-Werror",
             "-fvisibility=hidden", f"-I{args.root / 'include'}", *args.flag]
    folder = tempfile.TemporaryDirectory()

    @functools.cache
    def compiled(cxx, header):
        path = pathlib.Path(tempfile.mkdtemp(dir=folder.name), "common.h")
        clang = ["-fpch-instantiate-templates"] if "clang" in cxx else []
        subprocess.run([cxx, *flags, *clang, "-x", "c++-header",
                        args.root / "include" / header, "-o", f"{path}.gch"], check=True)
        return ["-include", path]

    failed = count = 0
    for page in [args.root / "README.md", *sorted(args.root.glob("docs/**/*.md"))]:
        text = page.read_text()
        for block in BLOCK.finditer(text):
            count += 1
            line = text.count("\n", 0, block.start(1)) + 1
            if not block[1].startswith("#include "):
                if block[1] not in tests:
                    print(f"{page}:{line}: this code is in no file of tests/")
                    failed += 1
                continue
            source = f'#line {line} "{page}"\n{block[1]}'
            if "// Below the first page's device" in block[1]:
                source = device + source
            header = next((each for each in COMMON
                           if re.search(f'^#include ["<]{each}[">]', source, re.M)), None)
            for cxx in args.cxx if page.name == "README.md" else args.cxx[:1]:
                result = subprocess.run(
                    [cxx, *flags, *(compiled(cxx, header) if header else []),
                     "-fsyntax-only", "-x", "c++", "-"], input=source,
                    capture_output=True, text=True)
                if result.returncode != 0:
                    failed += 1
                    print(result.stderr, file=sys.stderr)
    page = (args.root / "docs/guide/backend.md").read_text()
    header = (args.root / "include/tfplug/primitives/backend.h").read_text()
    for name in re.findall(r"virtual absl::Status (\w+)\(", header):
        if f"absl::Status {name}(" not in page:
            print(f"docs/guide/backend.md has no signature of {name}")
            failed += 1
    print(f"{count - failed} examples compile, {failed} do not")
    return 1 if failed or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
