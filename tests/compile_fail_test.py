# SPDX-License-Identifier: Apache-2.0
"""Checks that a wrong plug-in does not compile, and that the compiler says why.

  compile_fail_test.py COMPILE_COMMANDS FOLDER COMPILER [FLAG]...

Each *.cc in FOLDER names the words that the compiler's error must contain, one
`// expect: words` a line. At least one file, marked `// expect-success`, must
compile: it shows that the flags are right. In the folder of devices, two files
that each register a device must not link.
"""

import pathlib
import re
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
    # Compilers wrap and quote as they like.
    return result.returncode, re.sub(r"\s+", " ", result.stdout)


def check(compile_command, case):
    """What is wrong with how `case` fails; None if nothing is."""
    source = case.read_text()
    expected = re.findall(r"^// expect: (.+)$", source, re.MULTILINE)
    code, output = run(compile_command + ["-fsyntax-only", str(case)])
    if "// expect-success" in source:
        return None if code == 0 else f"does not compile: {output}"
    if not expected:
        return "has no `// expect: words`"
    if code == 0:
        return "compiles"
    errors = " ".join(re.findall(r"(?:error|note): .*?(?= [^ ]+:\d+:|$)", output))
    missing = [words for words in expected if words not in errors]
    if missing:
        return f"fails without the words {missing}: {output[:2000]}"
    return None


def check_link(compile_command, good):
    """Two files of one library must not register a device each."""
    with tempfile.TemporaryDirectory() as folder:
        objects = [f"{folder}/a.o", f"{folder}/b.o"]
        for output in objects:
            code, words = run(
                compile_command + ["-fPIC", "-c", str(good), "-o", output]
            )
            if code != 0:
                return f"does not compile: {words}"
        library = ["-shared", "-o", f"{folder}/plugin.so"]
        code, words = run([compile_command[0]] + library + objects[:1])
        if code != 0:
            return f"one alone does not link: {words}"
        code, words = run([compile_command[0]] + library + objects)
        if code == 0 or not re.search("multiple definition.*SE_InitPlugin", words):
            return f"link with another result: {words}"
    return None


def main():
    commands, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    compile_command = (
        sys.argv[3:]
        + headers_test.include_flags(commands, HERE.parent / "include")
        + ["-I", str(HERE)]
    )
    cases = sorted(folder.glob("*.cc"))
    problems = {case.name: check(compile_command, case) for case in cases}
    if not any("// expect-success" in case.read_text() for case in cases):
        problems["the folder"] = "has no file that must compile"
    if folder.name == "device":
        problems["two files with a device each"] = check_link(
            compile_command, folder / "good.cc")
    failed = {name: why for name, why in problems.items() if why is not None}
    for name, why in failed.items():
        print(f"---- {name} {why}")
    print(f"{len(problems) - len(failed)} of {len(problems)} as they should be")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
