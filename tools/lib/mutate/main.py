# SPDX-License-Identifier: Apache-2.0
"""Changes headers and reports the changes that no unit test detects.

  tools/mutate include/tfplug/graph/internal/output_block.h
  tools/mutate --sample 300 --seed 1 include/tfplug/*/internal/*.h

A mutant is one change of one line: another comparison or operator, another
constant, a negated condition, a removed statement, a weaker memory order. Every
unit test that includes one of the headers is compiled once, with copies of the
headers that contain all mutants (see switches.py). For each mutant, the tests that
execute the changed line then run until one fails. A mutant survives if all of them
pass. It needs a test, or is equivalent to the original.

The build folder must be configured: its files show how the tests are compiled.

Exit status: 0 if no mutant survives, 1 if some do, 2 for other failures.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import threading
import time

from switches import Header

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from included import included

ROOT = pathlib.Path(__file__).resolve().parents[3]

# Included first by every test. Writes the mutants that were reached to a file, also in
# forked children.
SWITCH = """
#include <fcntl.h>
#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
namespace tfplug_mutate {
struct State {
  int active = 0, trace = -1;
  std::atomic<bool> reached[COUNT + 1] = {};
  State() {
    if (const char* n = std::getenv("TFPLUG_MUTANT")) active = std::atoi(n);
    const char* const path = std::getenv("TFPLUG_MUTANT_TRACE");
    if (path == nullptr || *path == 0) return;
    trace = open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  }
};
inline State& GetState() { static State state; return state; }
inline bool Reach(int n) {
  State& state = GetState();
  if (state.trace >= 0 && !state.reached[n].exchange(true)) dprintf(state.trace, "%d ", n);
  return state.active == n;
}
constexpr bool Select(int n) { return !__builtin_is_constant_evaluated() && Reach(n); }
}
#define MUTANT(n) ::tfplug_mutate::Select(n)
"""


def output(*command):
    return subprocess.run([str(word) for word in command], check=True,
                          capture_output=True, text=True).stdout


def unit_tests(args, headers):
    """Yields (program, source, environment) of the unit tests that include a header."""
    paths = {header.path for header in headers}
    for test in json.loads(output(args.meson, "introspect", "--tests", args.build)):
        program = os.path.relpath(test["cmd"][0], args.build)
        source = ROOT / "tests" / f"{test['name']}.cc"
        if source.exists() and included(source) & paths and (
                not args.test or any(word in test["name"] for word in args.test)):
            yield program, source, test["env"]


def limit_memory():
    # Not of addresses: devices reserve many.
    resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))


class Test:
    """A test that is compiled with mutants, without the others of its program."""

    def __init__(self, build, program, source, environment, work):
        self.build = build
        self.name = str(source.relative_to(ROOT / "tests").with_suffix(""))
        self.environment = {**os.environ, **environment}
        # Relative, as the names that ninja knows.
        self.loaded = [os.path.relpath(path, build) for path in environment.values()
                       if path.startswith(f"{build}/") and path.endswith(".so")]
        commands = output("ninja", "-C", build, "-t", "commands",
                          program).splitlines()
        self.made = work / self.name.replace("/", "_")
        tests = re.compile(rf"{program}\.p/(?:\w+_test|meson-generated_\S+)\.cc\.o$")
        compile_line = next(c for c in commands for word in c.split(" -o ")[1:]
                            if tests.match(word.split()[0]))
        self.compile, link = map(shlex.split, (compile_line, commands[-1]))
        self.compile[self.compile.index("-o") + 1] = f"{self.made}.o"
        self.compile[self.compile.index("-c") + 1] = str(source)
        self.link = [word for word in link if not tests.match(word)]
        # Before the static libraries, of which the linker takes what is missing.
        at = self.link.index(program)
        self.link[at:at + 1] = [str(self.made), f"{self.made}.o"]
        # Sanitizers reserve a large part of the address space.
        self.is_sanitized = "-fsanitize=" in compile_line
        first = next(i for i, w in enumerate(self.compile) if w.startswith("-"))
        self.compile[first:first] = ["-w", f"-I{work}/include",
                                     "-include", f"{work}/switch.h"]
        self.reached, self.seconds = set(), 0.0

    def build_with(self, copies):
        """Compiles and links, without the lines that the compiler rejects. Returns why
        that failed, or nothing."""
        libraries = [word for word in self.link
                     if re.search(r"\.(a|so)$", word) and word[0] not in "/-"]
        output("ninja", "-C", self.build, *libraries, *self.loaded)
        while True:
            version = copies.version
            result = subprocess.run(self.compile, cwd=self.build, text=True,
                                    capture_output=True, check=False)
            if result.returncode == 0:
                break
            lines = result.stderr.splitlines()
            errors = [line for line in lines if "error:" in line]
            if not copies.drop(errors, version) and not copies.drop(lines, version):
                return "it does not compile:\n" + "\n".join(errors[:5])
        result = subprocess.run(self.link, cwd=self.build, text=True,
                                capture_output=True, check=False)
        return result.returncode and "it does not link:\n" + result.stderr[-1000:]

    def run(self, mutant=0, trace="", timeout=600.0):
        """Returns whether the test passes with this mutant. It ends with the first case
        that fails."""
        try:
            return subprocess.run(
                [self.made, "--abort-after=1"], cwd=self.build,
                stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout,
                check=False,
                preexec_fn=None if self.is_sanitized else limit_memory,
                env={**self.environment, "TFPLUG_MUTANT": str(mutant),
                     "TFPLUG_MUTANT_TRACE": str(trace)}).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def measure(self):
        """Runs the test without a mutant, and notes the mutants it reaches."""
        trace, begin = pathlib.Path(f"{self.made}.reached"), time.monotonic()
        if not self.run(trace=trace):
            return False
        self.seconds = time.monotonic() - begin
        if trace.exists():  # Not if the test reaches none.
            self.reached = set(map(int, trace.read_text().split()))
        return True


class Copies:
    """The headers with all mutants, which the tests are compiled with."""

    def __init__(self, headers, folder):
        self.headers = {header.name: header for header in headers}
        self.folder, self.lock, self.version = folder, threading.Lock(), 0
        self._write()

    def _write(self):
        for name, header in self.headers.items():
            copy = self.folder / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            new = copy.with_suffix(".new")
            new.write_text(header.text())
            new.replace(copy)

    def drop(self, messages, version):
        """Removes the mutants of the lines that the compiler's messages name. Returns
        whether to compile again: also if the headers are newer than `version`, because
        another test that is compiled at the same time may have removed the lines."""
        with self.lock:
            dropped = []
            for message in messages:
                found = re.search(r"/include/(tfplug/[\w/]+\.h):(\d+)", message)
                if found and found[1] in self.headers:
                    dropped += self.headers[found[1]].drop(int(found[2]))
            if dropped:
                self._write()
                self.version += 1
            return self.version != version


def prepare(args, headers, work, pool):
    """Compiles the tests; returns those that pass without a mutant."""
    copies = Copies(headers, work / "include")
    count = max(m.number for h in headers for m in h.mutants)
    (work / "switch.h").write_text(SWITCH.replace("COUNT", str(count)))
    tests = [Test(args.build, *test, work) for test in unit_tests(args, headers)]

    def make(test):
        problem = test.build_with(copies) or (
            "" if test.measure() else "it fails without a mutant")
        print(f"{test.name}: " + (
            f"left out: {problem}" if problem else
            f"reaches {len(test.reached)} mutants in {test.seconds:.1f} s"),
            file=sys.stderr, flush=True)
        return not problem

    # The first one finds most of the lines that do not compile.
    return [test for test, ok in
            zip(tests, [*map(make, tests[:1]), *pool.map(make, tests[1:])]) if ok]


def judge(mutant, tests):
    """Returns "killed", "not reached" or "survived"."""
    reaching = sorted((t for t in tests if mutant.number in t.reached),
                      key=lambda t: t.seconds)
    for test in reaching:
        if not test.run(mutant.number, timeout=10 + 10 * test.seconds):
            return "killed"
    return "survived" if reaching else "not reached"


def main():
    parser = argparse.ArgumentParser(
        prog="tools/mutate", description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("headers", nargs="+", help="such as shape.h, shape.h:20-40")
    parser.add_argument("--build", type=pathlib.Path,
                        default=ROOT / "build/clang",
                        help="a build folder (default: build/clang)")
    parser.add_argument("--test", action="append", default=[],
                        help="only tests whose name contains this")
    parser.add_argument("--sample", type=int, default=0,
                        help="only this many mutants, chosen at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--meson", default=os.environ.get("MESON", "meson"))
    parser.add_argument("-j", type=int, default=2, help="processes at a time")
    args = parser.parse_args()
    args.build = args.build.resolve()

    ranges = {}
    for argument in args.headers:
        path, first, last = re.fullmatch(r"(.*?)(?::(\d+)-(\d+))?", argument).groups()
        ranges.setdefault(pathlib.Path(path).resolve(), []).append(
            range(int(first or 0), int(last or 10**9) + 1))
    headers = [Header(path, str(path.relative_to(ROOT / "include"))) for path in ranges]
    for header in headers:
        header.mutants = [m for m in header.mutants
                          if any(m.line in lines for lines in ranges[header.path])]
    mutants = [m for h in headers for m in h.mutants]
    left_out = sum(header.left_out for header in headers)
    if args.sample and args.sample < len(mutants):
        mutants = random.Random(args.seed).sample(mutants, args.sample)
    if not mutants:
        print("There is nothing to change.", file=sys.stderr)
        return 2
    for number, mutant in enumerate(mutants, 1):
        mutant.number = number
    for header in headers:
        header.mutants = [m for m in header.mutants if m.number]
    headers = [header for header in headers if header.mutants]

    counts = {"killed": 0, "survived": 0, "not reached": 0}
    with (tempfile.TemporaryDirectory() as folder,
          concurrent.futures.ThreadPoolExecutor(args.j) as pool):
        tests = prepare(args, headers, pathlib.Path(folder), pool)
        if not tests:
            print("No unit test includes the headers and passes.", file=sys.stderr)
            return 2
        valid = [m for header in headers for m in header.mutants]
        for mutant, result in zip(valid, pool.map(lambda m: judge(m, tests), valid)):
            counts[result] += 1
            if result != "killed":
                print(f"{mutant.header.name}:{mutant.line}: {result}\n"
                      f"  - {mutant.header.lines[mutant.line - 1].strip()}\n"
                      f"  + {mutant.changed.strip()}", flush=True)
    alive = counts["survived"] + counts["not reached"]
    print(f"{len(valid)} mutants: {counts['killed']} killed, {counts['survived']} "
          f"survived, {counts['not reached']} not reached; "
          f"{100 * alive / max(1, len(valid)):.1f} % alive. "
          f"{len(mutants) - len(valid)} more do not compile; {left_out} changes of "
          "expressions that span lines were left out.")
    return 1 if alive else 0 if valid else 2


if __name__ == "__main__":
    sys.exit(main())
