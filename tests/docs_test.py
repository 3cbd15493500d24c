#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the C++ examples in pages, or folders of pages, of the documentation.

  docs_test.py --cxx=COMPILER... PATH...   compiles those that are complete
  docs_test.py                             looks for all others in tests/

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

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Only what includes one of these may have it compiled already; the first wins.
COMMON = ("tfplug/testing.h", "tfplug/graph_pass.h", "tfplug/plugin.h")
BLOCK = re.compile(r"^```cpp\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def compile_complete(blocks, cxxs, flags):
    """Returns how many of the complete examples do not compile."""
    device = BLOCK.search((ROOT / "README.md").read_text())[1]
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wsuggest-override", "-Werror",
             "-fvisibility=hidden", f"-I{ROOT / 'include'}", *flags]
    folder = tempfile.TemporaryDirectory()

    @functools.cache
    def compiled(cxx, header):
        path = pathlib.Path(tempfile.mkdtemp(dir=folder.name), "common.h")
        clang = ["-fpch-instantiate-templates"] if "clang" in cxx else []
        subprocess.run([cxx, *flags, *clang, "-x", "c++-header",
                        ROOT / "include" / header, "-o", f"{path}.gch"], check=True)
        return ["-include", path]

    failed = 0
    for page, line, text in blocks:
        source = f'#line {line} "{page}"\n{text}'
        if "// Below the first page's device" in text:
            source = device + source
        header = next((each for each in COMMON
                       if re.search(f'^#include ["<]{each}[">]', source, re.M)), None)
        for cxx in cxxs if page.name == "README.md" else cxxs[:1]:
            result = subprocess.run(
                [cxx, *flags, *(compiled(cxx, header) if header else []),
                 "-fsyntax-only", "-x", "c++", "-"], input=source,
                capture_output=True, text=True)
            if result.returncode != 0:
                failed += 1
                print(result.stderr, file=sys.stderr)
    return failed


def look_for(blocks):
    """Returns how many of the fragments are in no test."""
    tests = "".join(path.read_text() for path in ROOT.glob("tests/**/*")
                    if path.suffix in (".cc", ".h"))
    failed = 0
    for page, line, text in blocks:
        if text not in tests:
            print(f"{page}:{line}: this code is in no file of tests/")
            failed += 1
    page = (ROOT / "docs/guide/backend.md").read_text()
    header = (ROOT / "include/tfplug/primitives/backend.h").read_text()
    for name in re.findall(r"virtual absl::Status (\w+)\(", header):
        if f"absl::Status {name}(" not in page:
            print(f"docs/guide/backend.md has no signature of {name}")
            failed += 1
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cxx", action="append")
    parser.add_argument("--flag", action="append", default=[],
                        help="a compiler flag, such as -I/usr/local/include")
    parser.add_argument("paths", nargs="*", type=pathlib.Path,
                        default=[ROOT / "README.md", ROOT / "docs"])
    args = parser.parse_args()

    pages = [page for path in args.paths
             for page in (sorted(path.rglob("*.md")) if path.is_dir() else [path])]
    blocks = [(page, text.count("\n", 0, block.start(1)) + 1, block[1])
              for page in pages for text in [page.read_text()]
              for block in BLOCK.finditer(text)
              if block[1].startswith("#include ") == bool(args.cxx)]
    failed = (compile_complete(blocks, args.cxx, args.flag) if args.cxx
              else look_for(blocks))
    print(f"{len(blocks)} examples, {failed} mistakes")
    return 1 if failed or not blocks else 0


if __name__ == "__main__":
    sys.exit(main())
