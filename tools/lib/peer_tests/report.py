# SPDX-License-Identifier: Apache-2.0
"""Compares the results of tests on a device with those on the CPU."""

import collections
import dataclasses
import fnmatch
import functools
import json
import pathlib
import re
import textwrap

from peer_tests.runner import FAILED, PASSED


@dataclasses.dataclass
class Expectation:
    """Tests that fail on a device, and the reason."""

    pattern: str  # of their ids, as in a shell
    reason: str
    used: bool = False


def read_expectations(path, pinned=False):
    """Reads lines "PATTERN  REASON"; a line that begins with # is a comment, and one
    that begins with "pinned:" is for tests that are pinned only."""
    expectations = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, _, reason = line.removeprefix("pinned:").partition(" ")
        if not reason.strip():
            raise ValueError(f"{path}:{number}: a reason must follow {pattern}")
        if pinned or not line.startswith("pinned:"):
            expectations.append(Expectation(pattern, reason.strip()))
    return expectations


@functools.cache
def _ops_of_gpus():
    """Returns the names of the ops that have kernels for GPUs."""
    record = pathlib.Path(__file__).resolve().parents[3] / "codegen/gpu_ops.json"
    return {op["name"] for op in json.loads(record.read_text())["ops"]}


def without_kernel_for_gpus(text):
    """Returns the expectation of a failure for lack of a kernel that TensorFlow does not
    have for GPUs either, or None."""
    found = re.search(r"Could not satisfy device specification.*\[Op:(\w+)\]", text)
    if not found or found[1] in _ops_of_gpus():
        return None
    return Expectation("", f"A GPU has no other kernels of {found[1]}.")


@dataclasses.dataclass
class Failure:
    test: str
    text: str
    expectation: object  # or None

    @property
    def crashed(self):
        return self.text.startswith("crashed")


@dataclasses.dataclass
class Comparison:
    failures: list
    groups: dict  # name: [tests, failures, crashes]
    stale: list  # expectations of which every test passes

    @property
    def tests(self):
        return sum(group[0] for group in self.groups.values())

    @property
    def unexpected(self):
        return [f for f in self.failures if f.expectation is None]


def group_of(test):
    """Returns the folder of a test, such as keras/src/layers/core."""
    return test.partition("::")[0].rpartition("/")[0]


def compare(device, cpu, expectations):
    """`device` and `cpu`: {test: (outcome, message)}. The CPU has run what failed on the
    device; what fails there, too, does not count."""
    groups = collections.defaultdict(lambda: [0, 0, 0])
    failures, passing = [], []
    lost = {test: text for test, (outcome, text) in device.items()
            if outcome == FAILED and "::" not in test}  # of files
    for test in sorted({*device, *cpu}):
        outcome, text = device.get(
            test, (FAILED, lost.get(test.partition("::")[0], "was not run")))
        if outcome == FAILED and cpu.get(test, (FAILED,))[0] != PASSED:
            continue
        if outcome not in (PASSED, FAILED):
            continue
        group = groups[group_of(test)]
        group[0] += 1
        if outcome == PASSED:
            passing.append(test)
            continue
        found = next((e for e in expectations
                      if fnmatch.fnmatchcase(test, e.pattern)),
                     without_kernel_for_gpus(text))
        failures.append(Failure(test, text, found))
        group[1] += 1
        group[2] += failures[-1].crashed
    failing = {f.test for f in failures}
    stale = [e for e in expectations
             if fnmatch.filter(passing, e.pattern) and
             not fnmatch.filter(failing, e.pattern)]
    return Comparison(failures, dict(groups), stale)


def text(name, result):
    """Returns the lines for the terminal."""
    lines = [f"{name}: of {result.tests} tests, {result.tests - len(result.failures)} "
             f"pass, {len(result.failures)} fail although they pass on the CPU, "
             f"{len(result.unexpected)} of them unexpectedly"]
    for failure in result.failures:
        why = failure.expectation.reason if failure.expectation else failure.text
        kind = "expected" if failure.expectation else "FAILED"
        lines.append(f"  {kind}: {failure.test}: {why}")
    lines += [f"  passes, although a failure is expected: {e.pattern}"
              for e in result.stale]
    return "\n".join(lines)


def markdown(title, text, results):
    """Returns a page with a table for each of `results`, {name: Comparison}."""
    return "\n".join([f"# {title}", "", *_wrapped(text), *(
        section(name, "", result) for name, result in results.items())])


def section(name, text, result):
    """Returns the part of a page with the tables of a Comparison."""
    lines = [f"## {name}", "", *(_wrapped(text) if text else []),
             "| tests in | tests | pass | fail | crash |",
             "| --- | ---: | ---: | ---: | ---: |"]
    rows = sorted(result.groups.items())
    total = [sum(row[i] for _, row in rows) for i in range(3)]
    for group, (tests, failed, crashed) in [*rows, ("**all**", total)]:
        lines.append(f"| {group} | {tests:,} | {tests - failed:,} | "
                     f"{failed - crashed} | {crashed} |")
    lines.append("")
    if result.failures:
        reasons = collections.Counter(
            f.expectation.reason if f.expectation else
            f"unexplained: {_cell(f.test)}: {_cell(f.text)}" for f in result.failures)
        lines += ["| failures | reason |", "| ---: | --- |"]
        lines += [f"| {n} | {reason} |" for reason, n in reasons.most_common()]
        lines.append("")
    return "\n".join(lines)


def _wrapped(text):
    return [*textwrap.wrap(text, 120, break_on_hyphens=False), ""]


def _cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")[:200]
