# SPDX-License-Identifier: Apache-2.0
"""Checks that each header compiles without the others, and without warnings.

  headers_alone_test.py INCLUDE_DIR COMPILE_COMMANDS COMPILER [FLAG]...

Compiling hundreds of files takes minutes, most of it for the headers of the
standard library. clang++ therefore compiles all headers once, each as a module of
its own that sees only what it includes. The library's headers and Abseil's are
modules too, so a missing #include <vector> is detected as well. Not every release
of clang++ and of the library supports this, so its errors are only suspicions:
a header with an error is compiled alone in the ordinary way. If two headers made
for the purpose, each without one #include, are not suspected, or if COMPILER is
not clang++, then all headers are compiled in the ordinary way.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import headers_test

# Each lacks an #include: the first one of the standard library, the second one of
# tfplug. All modules before them include both.
INCOMPLETE = {
    "without_vector.h": "#include <string>\n"
                        "inline std::vector<std::string> Names();\n",
    "without_shape.h": "#include \"tfplug/base/data_type.h\"\n"
                       "inline void Use(const tfplug::Shape& shape);\n",
}
INCLUDE = re.compile(r'^\s*#\s*include (?:<([^>]+)>|"(absl/[^"]+)")', re.MULTILINE)
# Headers of the system that are modules: those of C++, Abseil and C, and those in
# which the C library declares types for several of its headers.
MODULES = re.compile(
    r"/c\+\+/|/absl/|^/usr/include/(?:[^/]+-linux-[^/]+/)?"
    r"(?:(?:sys/)?[^/]+\.h$|bits/(?:stdint-|types/))")
# Headers that mean something else each time they are included.
REPEATABLE = {"assert.h", "cassert", "limits.h", "stdarg.h", "stddef.h"}
GUARD = re.compile(r"^\s*#\s*(?:ifndef|pragma once|if !\s*defined)", re.MULTILINE)


def system_modules(command, headers):
    """Returns the paths of the system's headers that the headers include, directly
    or not; those that they name come first."""
    named = sorted({name or absl for header in headers
                    for name, absl in INCLUDE.findall(header.read_text())})
    source = "".join(f"#include <{name}>\n" for name in named)
    output = subprocess.run(
        [*command, "-H", "-fsyntax-only", "-x", "c++", "-"], input=source, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True).stderr
    entered = re.findall(r"^\.+ (.+)$", output, re.MULTILINE)
    first = [next(path for path in entered if path.endswith("/" + name))
             for name in named]
    paths = map(pathlib.Path.resolve, map(pathlib.Path, first + entered))
    return [path for path in dict.fromkeys(paths)
            if MODULES.search(str(path)) and path.name not in REPEATABLE
            and GUARD.search(path.read_text(errors="replace"))]


def describe_module(name, attributes, headers):
    """Returns a module map of one module with a submodule for each header."""
    lines = [f'  module m{i} {{ header "{header}" export * }}'
             for i, header in enumerate(headers)]
    return "\n".join([f"module {name} {attributes}{{", *lines, "}\n"])


def compile_module(command, directory, name):
    """Returns the compiler's output."""
    command = [*command, f"-fmodule-name={name}", "-Xclang", "-emit-module",
               "-x", "c++", directory / "module.modulemap",
               "-c", "-o", directory / f"{name}.pcm", "-ferror-limit=0"]
    return subprocess.run(command, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False).stdout


def find_suspects(command, ours, headers):
    """Returns those of the headers with errors as modules, or None if modules do not
    work here."""
    if "clang" not in command[0]:
        return None
    command = command + ["-Xclang", "-fmodules", "-Xclang", "-fno-implicit-modules"]
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch).resolve()
        for name, text in INCOMPLETE.items():
            (directory / name).write_text(text)
        paths = [ours / header for header in headers]
        try:
            system = system_modules(command, paths)
        except (StopIteration, subprocess.CalledProcessError):
            return None
        incomplete = [directory / name for name in INCOMPLETE]
        (directory / "module.modulemap").write_text(
            describe_module("system", "[system] ", system)
            + describe_module("ours", "", paths + incomplete))
        output = compile_module(command, directory, "system")
        if not output:
            command += ["-Xclang", "-fmodules-local-submodule-visibility",
                        f"-fmodule-map-file={directory / 'module.modulemap'}",
                        "-Xclang", f"-fmodule-file={directory / 'system.pcm'}"]
            output = compile_module(command, directory, "ours")
        if not all(f"{path}:" in output for path in incomplete):
            print(f"clang++ does not isolate modules here:\n{output[:2000]}")
            return None
        return [header for header, path in zip(headers, paths)
                if f"{path}:" in output]


def main():
    ours = pathlib.Path(sys.argv[1]).resolve()
    command = (sys.argv[3:] + headers_test.WARNINGS
               + headers_test.include_flags(sys.argv[2], ours))
    headers = headers_test.find_headers(ours, "tfplug/**/*.h")
    suspects = find_suspects(command, ours, headers)
    failed = []
    for header in headers if suspects is None else suspects:
        good, output = headers_test.compile_source(
            command, headers_test.include_twice(header))
        if not good:
            failed.append(header)
            print(f"---- {header}\n{output[:1500]}")
    how = ("each in a file of its own" if suspects is None else
           f"as modules, {len(suspects)} also in a file of their own")
    print(f"{len(headers)} headers with {' '.join(sys.argv[3:])}, {how}:",
          "FAILED: " + " ".join(failed) if failed else "all compile alone")
    return 1 if failed or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
