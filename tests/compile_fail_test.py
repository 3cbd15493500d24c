# SPDX-License-Identifier: Apache-2.0
"""Checks that an incorrect plug-in is rejected with a helpful compiler error.

  compile_fail_test.py COMPILE_COMMANDS DIRECTORY COMPILER [FLAG]...

Each *.cc in DIRECTORY lists texts that the compiler's errors must contain, one
`// expect: TEXT` per line, and may limit the number of errors with
`// expect-errors: NUMBER`. The text of `// expect-first: TEXT` must be in clang++'s
first line, and in g++'s first five, of which most name the files that include. At least one file, marked `// expect-success`, must
compile, which shows that the flags are right. In the directory `device`, two
files that each register a device must not link. The headers that all files include
are compiled once, beforehand.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import headers_test

HERE = pathlib.Path(__file__).resolve().parent


def run(command):
    result = subprocess.run(
        command,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return result.returncode, result.stdout


def line_of(text, output):
    """Returns the number of the first line that contains `text`, from 1."""
    before = output.partition(text)[0]
    return before.count("\n") + 1


def count_errors(output):
    return len(re.findall(r":\d+: (?:fatal )?error: ", output))


def check(compile_command, case):
    """Returns the problem with the result of compiling `case`, or None."""
    source = case.read_text()
    early = re.findall(r"^// expect-first: (.+)$", source, re.MULTILINE)
    expected = early + re.findall(r"^// expect: (.+)$", source, re.MULTILINE)
    code, lines = run(compile_command + ["-fsyntax-only", str(case)])
    output = re.sub(r"\s+", " ", lines)  # Compilers break lines differently.
    if "// expect-success" in source:
        return None if code == 0 else f"does not compile: {output}"
    if not expected:
        return "has no line `// expect: TEXT`"
    if code == 0:
        return "compiles"
    errors = " ".join(re.findall(r"(?:error|note): .*?(?= [^ ]+:\d+:|$)", output))
    missing = [text for text in expected if text not in errors]
    if missing:
        return f"fails without the texts {missing}: {output[:2000]}"
    first = 1 if "clang" in compile_command[0] else 5
    late = [text for text in early if line_of(text, lines) > first]
    if late:
        return f"says {late} only after line {first}: {lines[:2000]}"
    allowed = re.search(r"^// expect-errors: (\d+)$", source, re.MULTILINE)
    if allowed and count_errors(output) > int(allowed.group(1)):
        return f"fails with {count_errors(output)} errors: {output[:2000]}"
    return None


def precompile(compile_command, cases, scratch):
    """Compiles the headers that all cases include; returns the flags that use them."""
    includes = [re.findall(r"^#include .+$", case.read_text(), re.MULTILINE)
                for case in cases]
    shared = [line for line in includes[0] if all(line in each for each in includes)]
    header = pathlib.Path(scratch) / "shared.h"
    header.write_text("".join(line + "\n" for line in shared))
    clang = ["-fpch-instantiate-templates"] if "clang" in compile_command[0] else []
    code, output = run(compile_command + clang + ["-x", "c++-header", str(header),
                                                  "-o", f"{header}.gch"])
    if not shared or code != 0:
        sys.exit(f"no headers to share: {shared}, {output}")
    return ["-include", str(header)]


def check_link(compile_command, good):
    """Checks that two files of one library cannot each register a device."""
    with tempfile.TemporaryDirectory() as scratch:
        objects = [f"{scratch}/a.o", f"{scratch}/b.o"]
        code, text = run(compile_command + ["-fPIC", "-c", str(good), "-o", objects[0]])
        if code != 0:
            return f"does not compile: {text}"
        shutil.copy(*objects)
        library = ["-shared", "-o", f"{scratch}/plugin.so"]
        code, text = run([compile_command[0]] + library + objects[:1])
        if code != 0:
            return f"one file alone does not link: {text}"
        code, text = run([compile_command[0]] + library + objects)
        if code == 0 or not re.search("multiple definition.*SE_InitPlugin", text):
            return f"unexpected result of linking two files: {text}"
    return None


def main():
    commands, directory = sys.argv[1], pathlib.Path(sys.argv[2])
    compile_command = (
        sys.argv[3:] + ["-fvisibility=hidden"]
        + headers_test.include_flags(commands, HERE.parent / "include")
        + ["-I", str(HERE)]
    )
    cases = sorted(directory.glob("*.cc"))
    with tempfile.TemporaryDirectory() as scratch:
        command = compile_command + precompile(compile_command, cases, scratch)
        problems = {case.name: check(command, case) for case in cases}
    if not any("// expect-success" in case.read_text() for case in cases):
        problems[directory.name] = "has no file that must compile"
    if directory.name == "device":
        problems["two files with a device each"] = check_link(
            compile_command, directory / "good.cc")
    failed = {name: why for name, why in problems.items() if why is not None}
    for name, why in failed.items():
        print(f"---- {name} {why}")
    print(f"{len(problems) - len(failed)} of {len(problems)} as expected")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
