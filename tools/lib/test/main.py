# SPDX-License-Identifier: Apache-2.0
"""Selects, counts and times tests for tools/test.

  main.py select BUILD PASSED CHANGED [SUITE]...   prints "run|same|missing TEST"
  main.py meson BUILD PASSED PART TIMES            prints "passed|failed|skipped TEST"
  main.py stale FOLDER PASSED PLUGIN...            prints files of pytest to run
  main.py pytest XML PART TIMES                    prints as meson does
  main.py fresh XML FOLDER PASSED PLUGIN...        remembers files whose tests passed
  main.py built NINJA_LOG BEFORE PART TIMES        adds the build's steps to TIMES
  main.py all_run BUILD...                         fails if a unit test is in none of them
  main.py report TIMES                             prints where the time went

With CHANGED=1, a test is left out ("same") if the contents of its program, of what it
depends on and of the files and directories among its arguments, and its arguments and
environment, are those of a test that passed: PASSED is the directory of their hashes.
A script that takes directories of C++ files, all or those of a pattern, also reads the
headers that these include, and any other one all headers. A script that takes the
project's root, or nothing but itself, may read anything, and runs after any change.

A file of tests for pytest reads the plug-ins, the modules of its folder that it or these
name, and tools/lib; one with a word of WIDE also docs, examples, packaging and tools.
"""

import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from included import included

ROOT = pathlib.Path(__file__).resolve().parents[3]
WIDE = {"ROOT", "docs", "examples", "package_environment", "packaging", "parents", "tools"}
PASSED_WORDS = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}


@functools.lru_cache(maxsize=None)
def content(path):
    """Returns the hash of a file, or of the files of a directory that git tracks or
    does not ignore."""
    path = pathlib.Path(path)
    if not path.is_dir():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    names = subprocess.run(
        ["git", "-C", path, "ls-files", "-z", "--cached", "--others",
         "--exclude-standard", "."], capture_output=True, check=True).stdout.split(b"\0")
    total = hashlib.sha256()
    for name in sorted(set(filter(None, names))):
        file = path / os.fsdecode(name)
        if file.is_file():
            total.update(name + content(file).encode())
    return total.hexdigest()


def introspect(build, what):
    meson = os.environ.get("MESON", "meson")
    return json.loads(subprocess.run([meson, "introspect", what, build], check=True,
                                     capture_output=True, text=True).stdout)


@functools.lru_cache(maxsize=None)
def compilers():
    return [subprocess.run([name, "--version"], capture_output=True, text=True,
                           check=False).stdout
            for name in ("g++", "clang++") if shutil.which(name)]


def key(test, build, outputs):
    """Returns the hash of all that a test reads, or None if that is unknown."""
    words = []
    paths = [name for target in test["depends"] for name in outputs[target]]
    for word in test["cmd"]:
        path = build / word
        if path.name == "compile_commands.json":
            continue  # Include paths, which are in the hash of the environment.
        if path.exists() and not (path.is_dir() and build in (path, *path.parents)):
            paths.append(path.resolve())
        words.append(word.replace(str(ROOT), ""))
    if any(pathlib.Path(path).suffix == ".py" for path in paths):
        # A script reads headers and other scripts beside it, or anything.
        folders = [path for path in map(pathlib.Path, paths) if path.is_dir()]
        if patterns := [word for word in test["cmd"] if "*" in word]:
            sources = [file for path in folders for each in patterns
                       for file in path.glob(each)]
            paths = [path for path in paths if pathlib.Path(path) not in folders]
            paths += sorted(sources)
        else:
            sources = [file for path in folders for each in ("*.cc", "*.h", "*.md")
                       for file in path.rglob(each)]
        paths += sorted(included(*sources)) if sources else [ROOT / "include"]
        paths += sorted((ROOT / "tests").glob("*.py"))
        if not any(pathlib.Path(word).is_absolute() and (build / word).is_dir()
                   for word in test["cmd"]) and not test["depends"]:
            paths.append(ROOT)
    environment = {name: value.replace(str(ROOT), "")
                   for name, value in test["env"].items()}
    try:
        contents = [content(path) for path in paths]
    except (OSError, subprocess.CalledProcessError):
        return None
    text = json.dumps([words, sorted(environment.items()), contents, compilers(),
                       os.environ.get("PKG_CONFIG_PATH"), sys.version])
    return hashlib.sha256(text.encode()).hexdigest()


def keys(build):
    """Returns {name of a test: (program, suites, key)}."""
    build = pathlib.Path(build).resolve()
    outputs = {target["id"]: target["filename"]
               for target in introspect(build, "--targets")}
    return {test["name"]: (build / test["cmd"][0],
                           {suite.split(":")[-1] for suite in test["suite"]},
                           key(test, build, outputs))
            for test in introspect(build, "--tests")}


def select(build, passed, changed, *suites):
    for name, (program, own, hashed) in keys(build).items():
        if suites and not own & set(suites):
            continue
        if not program.exists():
            print("missing", name)
        elif changed == "1" and hashed and (pathlib.Path(passed) / hashed).exists():
            print("same", name)
        else:
            print("run", name)


def meson(build, passed, part, times):
    folder = pathlib.Path(passed)
    folder.mkdir(parents=True, exist_ok=True)
    hashes = keys(build)
    log = pathlib.Path(build) / "meson-logs/testlog.json"
    for line in log.read_text(encoding="utf-8").splitlines():
        test = json.loads(line)
        result = PASSED_WORDS.get(test["result"], "failed")
        name = test["name"].split("tfplug:")[-1]
        print(result, test["name"])
        add_time(times, part, "tests", name, test["duration"])
        hashed = hashes[name][2]
        if result == "passed" and hashed:
            (folder / hashed).touch()
        if result == "failed":
            output = test.get("stdout", "") + test.get("stderr", "")
            print("----", test["name"], "returned", test["returncode"],
                  "and printed at the end:\n" + output[-3000:], file=sys.stderr)


def result_of(case):
    """Returns "passed", "failed" or "skipped" for a case of JUnit's XML."""
    kinds = {child.tag for child in case}
    return ("failed" if kinds & {"failure", "error"}
            else "skipped" if "skipped" in kinds else "passed")


def pytest(results, part, times):
    try:
        cases = list(xml.etree.ElementTree.parse(results).iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        cases = []
    for case in cases:
        module = case.get("classname", "")
        print(result_of(case), module + "." + case.get("name", ""))
        add_time(times, part, "tests", module.split(".")[-1], case.get("time", 0))
    if not cases:
        print("failed pytest (it ran no test)")


def pytest_keys(folder, *plugins):
    """Returns {file of tests: the hash of all that it reads}."""
    modules = {path.stem: path for path in pathlib.Path(folder).rglob("*.py")}
    words = {name: set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
             for name, path in modules.items()}

    def read_by(name):
        found, pending = set(), {name}
        while pending:
            each = pending.pop()
            found.add(each)
            pending |= (words[each] & modules.keys()) - found
        return found

    always = "".join(map(content, [*plugins, *sorted((ROOT / "tools/lib").glob("*.py"))]))
    wide = "".join(content(ROOT / name)
                   for name in ("docs", "examples", "packaging", "tools"))
    result = {}
    for name, path in sorted(modules.items()):
        if name.startswith("test_"):
            own = read_by(name)
            reads_more = any(words[each] & WIDE for each in own - {"harness"})
            text = "".join(content(modules[each]) for each in sorted(own))
            text += always + wide * reads_more + sys.version
            result[path] = hashlib.sha256(text.encode()).hexdigest()
    return result


def stale(folder, passed, *plugins):
    for path, hashed in pytest_keys(folder, *plugins).items():
        if not (pathlib.Path(passed) / hashed).exists():
            print(path)


def fresh(results, folder, passed, *plugins):
    failed, ran = set(), set()
    for case in xml.etree.ElementTree.parse(results).iter("testcase"):
        module = case.get("classname", "").split(".")[-1]
        ran.add(module)
        if result_of(case) == "failed":
            failed.add(module)
    pathlib.Path(passed).mkdir(parents=True, exist_ok=True)
    for path, hashed in pytest_keys(folder, *plugins).items():
        if path.stem in ran - failed:
            (pathlib.Path(passed) / hashed).touch()


def add_time(times, part, step, name, seconds):
    with open(times, "a", encoding="utf-8") as file:
        print(part, step, name, seconds, sep="\t", file=file)


def built(ninja_log, before, part, times):
    old = set(pathlib.Path(before).read_text().splitlines())
    for line in pathlib.Path(ninja_log).read_text().splitlines():
        fields = line.split("\t")
        if line not in old and len(fields) == 5:
            folder = str(pathlib.PurePath(fields[3].split(".p/")[0]).parent)
            name = pathlib.PurePath(fields[3]).name
            add_time(times, part, f"build {folder}", name,
                     (int(fields[1]) - int(fields[0])) / 1000)


def report(times):
    steps, parts = {}, {}
    for line in pathlib.Path(times).read_text().splitlines():
        part, step, name, seconds = line.split("\t")
        if step == "all":
            parts[part] = float(seconds), int(name)
            continue
        names = steps.setdefault((part, step), {})
        names[name] = names.get(name, 0) + float(seconds)
    print(f"{'seconds':>8}  part (two steps at a time on two processors)")
    for part, (seconds, processor) in parts.items():
        print(f"{seconds:8.0f}  {part}, {processor} of the processors")
        own = {step: names for (owner, step), names in steps.items() if owner == part}
        for step, names in sorted(own.items(), key=lambda each: -sum(each[1].values())):
            longest = sorted(names.items(), key=lambda each: -each[1])[:3]
            print(f"{'':8}  {sum(names.values()):8.0f}  {step}, {len(names)} in all: "
                  + ", ".join(f"{name} {seconds:.0f}" for name, seconds in longest))


def all_run(*builds):
    """Exits with a message if a unit test is in none of the builds."""
    names = {test["name"].split()[0] for build in builds
             for test in introspect(build, "--tests")}
    files = (ROOT / "tests").rglob("*_test.cc")
    left = sorted({str(file.relative_to(ROOT / "tests").with_suffix("")) for file in files}
                  - names)
    if left:
        sys.exit(f"In neither build: {', '.join(left)}. See tests/meson.build.")


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    {"select": select, "meson": meson, "pytest": pytest, "stale": stale,
     "fresh": fresh, "all_run": all_run, "built": built, "report": report}[command](*arguments)
