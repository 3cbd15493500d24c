# SPDX-License-Identifier: Apache-2.0
"""Collects verdicts and prints them."""

import collections
import os
import shlex

from op_sweep import draw, judge, workers

_MOST = 6  # lines of a list of explanations, and names in one, of the text
_SMALLER = [f"{n}.{size}" for size in (0, 1) for n in range(24)]


class Report:
    """The verdicts of all units: one mismatch of each kind per op and types."""

    def __init__(self, options, device, units, unknown):
        self._options, self._device = options, device
        self._units, self._unknown = units, unknown
        self._counts = collections.Counter()
        self._cases = collections.Counter()  # by unit
        self._run = collections.Counter()  # by unit: cases that the device ran
        self._valid = collections.Counter()  # by unit: accepted by the CPU
        self._tried = collections.Counter()  # by unit: without mistakes
        self._unreferenced = collections.Counter()  # by unit
        self._reasons = {}  # (unit, case) -> why no arguments were drawn
        self._explained = collections.defaultdict(set)  # ops by reason
        self._mismatches = {}  # (unit, kind) -> Verdict
        self._groups = set()  # (op, kind) of mismatches
        self._cpu_crashes = []
        self._cut_off = []

    def add_cut(self, task, number, seconds):
        """Records a case that still ran, or was to confirm a crash, at the end of the
        time."""
        at = task[0]
        unit = self._units[at]
        what = f"after {seconds:.0f} s"
        if workers.confirms_crash(task):  # It may be the CPU's kernel that crashes.
            self._mismatches.pop((at, "crash"), None)
            what = "crashed, but was not run again to confirm that"
        which = f"{unit.op} {unit.type_text}" + ("" if number == "" else f" case {number}")
        self._cut_off.append(f"{which}, {what}")

    def add(self, task, answer):
        """Records an answer; returns tasks that look for a shorter mismatch."""
        at, numbers, wanted = task
        if isinstance(answer, workers.Crash):
            return self._add_crash(at, numbers, wanted, answer)
        if isinstance(answer, str):
            raise RuntimeError(answer)
        further = []
        for verdict in answer:
            self._counts[verdict.status] += 1
            self._cases[at] += 1
            self._run[at] += verdict.status not in judge.IDLE
            self._valid[at] += verdict.valid
            self._tried[at] += draw.kind_of(verdict.number) == draw.VALID
            if wanted not in ("", verdict.kind):
                continue
            if verdict.status in (judge.NO_REFERENCE, judge.NOT_RUN):
                self._unreferenced[at] += 1
            elif verdict.status == judge.EXPLAINED:
                self._explained[verdict.text].add(self._units[at].op)
            elif verdict.status == judge.BAD_ARGUMENTS:
                self._reasons[at, verdict.number] = verdict.text
            elif verdict.status == judge.MISMATCH:
                further += self._add_mismatch(at, verdict)
        return further

    def _add_mismatch(self, at, verdict):
        key = at, verdict.kind
        known = self._mismatches.get(key)
        if known is None or _size(verdict.number) < _size(known.number):
            self._mismatches[key] = verdict
        group = self._units[at].op, verdict.kind
        # Each size of a hostile case is another one.
        if group in self._groups or self._options.case or self._options.hostile:
            return []
        self._groups.add(group)
        return [(at, _SMALLER, verdict.kind)]

    def _add_crash(self, at, numbers, wanted, crash):
        verdict = judge.Verdict(judge.MISMATCH, "crash", crash.how, crash.case,
                                str(crash.number))
        rest = numbers[numbers.index(crash.number) + 1:] if crash.number in numbers else []
        further = [(at, rest, "")] if rest else []
        known = self._mismatches.get((at, "crash"))
        if crash.phase == "CPU":
            unit = self._units[at]
            self._cpu_crashes.append(f"{unit.op} {unit.type_text} case {crash.number}")
            # A process may live on for a while after the CPU's kernel overwrote memory.
            if wanted == "crash" and known and known.number == verdict.number:
                del self._mismatches[at, "crash"]
            return further
        self._counts[judge.MISMATCH] += 1
        self._run[at] += 1
        cause = next((line for line in crash.log.splitlines() if line.strip() and
                      not line.startswith("WARNING:")), "")
        verdict.text += cause and f"; {cause.strip()[:200]}"
        more = self._add_mismatch(at, verdict)
        if not known:
            more.append((at, [crash.number], "crash"))
        # After two crashes of a unit, its other cases are not run.
        return [] if known else further + more

    def _repeat(self, unit, number):
        program = os.environ.get("TFPLUG_PROGRAM", "tools/op-sweep")
        parts = [*program.split(), "--plugin", str(self._options.plugin)]
        if self._options.device:
            parts += ["--device", self._options.device]
        if self._options.hostile:
            parts.append("--hostile")
        parts += ["--seed", str(self._options.seed), "--op", unit.op]
        if unit.type_text:
            parts += ["--types", unit.type_text]
        return shlex.join(parts + ["--case", number])

    def document(self, **facts):
        """Returns the report as a dictionary for JSON."""
        names = [unit.name for unit in self._units]
        some = range(len(names))
        return {
            **facts, "plugin": str(self._options.plugin), "device": self._device,
            "seed": self._options.seed, "units": len(names),
            "authors_units": [unit.name for unit in self._units if unit.is_authors],
            "ops": len({unit.op for unit in self._units}),
            "cases": sum(self._run.values()), "statuses": dict(self._counts),
            "mismatches": [
                {"op": self._units[at].op, "types": self._units[at].type_text,
                 "kind": kind, "case": verdict.number, "arguments": verdict.case,
                 "difference": verdict.text,
                 "repeat": self._repeat(self._units[at], verdict.number)}
                for (at, kind), verdict in sorted(self._mismatches.items(),
                                                  key=lambda item: item[0])],
            "explained": {reason: sorted(ops)
                          for reason, ops in sorted(self._explained.items())},
            "no_valid_arguments": {
                names[at]: f"the {self._judge_of(at)} rejects all"
                for at in some if self._tried[at] > 2 and self._run[at]
                and not self._valid[at] and not self._options.hostile},
            "not_drawn": {f"{names[at]} case {number}": reason
                          for (at, number), reason in sorted(self._reasons.items())},
            "no_reference": [names[at] for at in some if self._judge_of(at) == "device"],
            "not_reached": [names[at] for at in some if not self._cases[at]
                            and not any(unit == at for unit, _ in self._mismatches)],
            "unknown_ops": self._unknown, "cpu_crashes": self._cpu_crashes,
            "cut_off": self._cut_off}

    def _judge_of(self, at):
        """Returns what judged the arguments of a unit's cases."""
        return ("device" if self._cases[at] and self._unreferenced[at] == self._cases[at]
                else "CPU")


def _size(number):
    """Returns the rank of a case's size: small ones first."""
    return int(number.partition(".")[2] or 9)


def _list(title, values):
    if not values:
        return []
    more = [f"  and {len(values) - _MOST} more"] if len(values) > _MOST else []
    return [f"{title} ({len(values)}):", *(f"  {each}" for each in values[:_MOST]), *more]


def _names(values):
    more = f" and {len(values) - _MOST} more" if len(values) > _MOST else ""
    return ", ".join(values[:_MOST]) + more


def _by_op(reasons):
    """Returns a line for each op and reason of {op, types and case: reason}."""
    groups = {}
    for name, reason in reasons.items():
        groups.setdefault((name.split()[0], reason), []).append(name)
    return [name + (f" and {len(more)} more" if more else "") + (reason and f": {reason}")
            for (_, reason), (name, *more) in groups.items()]


def text(document):
    """Returns the report as text: the mismatches and their number come last."""
    lines = _list("Explained differences", [
        f"{reason}: {_names(ops)}" for reason, ops in document["explained"].items()])
    lines += _list("No valid arguments found", _by_op(document["no_valid_arguments"]))
    lines += _list("Cases that could not be drawn", _by_op(document["not_drawn"]))
    lines += _list("No CPU kernel to compare with: values are not judged",
                   _by_op(dict.fromkeys(document["no_reference"], "")))
    if document["not_reached"]:
        reached = document["units"] - len(document["not_reached"])
        lines.append(f"Reached in time: {reached} of {document['units']} combinations of types "
                     f"({100 * reached // document['units']} %); --json lists the others; "
                     "increase --seconds")
    lines += _list("Device types of kernels that no program can use: there is no device of them",
                   document["types_without_device"])
    lines += _list("Ops that TensorFlow lacks or has removed", document["unknown_ops"])
    lines += _list("Cases that crash TensorFlow's CPU kernel", document["cpu_crashes"])
    lines += _list("Cases cut off at the end of the time", document["cut_off"])
    if document["left_out"]:
        lines.append(f"Not begun at the end of the time: {document['left_out']} cases; "
                     "increase --seconds")
    groups = {}
    for each in document["mismatches"]:
        groups.setdefault((each["op"], each["kind"]), []).append(each)
    for (op, kind), group in sorted(groups.items()):
        each = min(group, key=lambda one: _size(one["case"]))
        name = f"{op} {each['types']}".strip()
        lines += [f"MISMATCH {name} seed={document['seed']} "
                  f"case={each['case']} {kind}: {each['difference']}",
                  f"  arguments: {each['arguments']}", f"  repeat: {each['repeat']}"]
        if len(group) > 1:
            lines.append("  also: " + "; ".join(
                one["types"] for one in group if one is not each))
    lines.append(
        f"{document['cases']} cases of {document['ops']} ops in {document['units']} "
        f"combinations of types in {document['seconds_of_cases']} s, and "
        f"{document['seconds'] - document['seconds_of_cases']:.1f} s for the start of "
        f"TensorFlow: {len(document['mismatches'])} mismatches")
    return "\n".join(lines)
