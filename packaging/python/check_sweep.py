# SPDX-License-Identifier: Apache-2.0
"""The op sweep as a check: a sample of a plug-in's kernels against TensorFlow's."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

_HERE = pathlib.Path(__file__).resolve().parent
_MAIN = next(path for path in (_HERE / "tools/op_sweep/main.py",
                               _HERE / "../../tools/lib/op_sweep/main.py")
             if path.exists())
# Of plug-ins without kernels to compare.
_NO_KERNEL = ("The plug-in registers no kernel", "Select a device type with --device:",
              "no registered kernel has these ops and types")
_SECONDS_OF_START = 120  # and of the report
_LATE = 1.2  # times the limit: the sweep then cuts off its cases


def check(plugin, seconds, seed, variables):
    """Yields (level, text) pairs. Cases begin in `seconds`, the start not included."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        child = subprocess.Popen(
            [sys.executable, "-B", _MAIN, "--plugin", plugin, "--seed", str(seed),
             "--seconds", str(seconds), "--json", report], text=True,
            errors="replace", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env={**os.environ, **variables, "TFPLUG_PROGRAM": "tfplug op-sweep"},
            start_new_session=True)
        try:
            _, log = child.communicate(timeout=_LATE * seconds + _SECONDS_OF_START)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)  # its workers, too
            child.communicate()
            yield "error", f"hangs: no end {_SECONDS_OF_START} s after its cases"
            return
        if not report.exists():
            cause = " ".join(log.split())[-600:]
            yield ("skipped" if any(text in cause for text in _NO_KERNEL) else "error",
                   cause)
            return
        found = json.loads(report.read_text())
    by_op = {}
    for each in found["mismatches"]:
        by_op.setdefault((each["op"], each["kind"]), []).append(each)
    for (op, kind), group in by_op.items():
        each = group[0]
        also = f" (and {len(group) - 1} other types)" if len(group) > 1 else ""
        name = f"{op} {each['types']}".strip()
        yield "error", (f"{name}{also}, {kind}: {each['difference']}; "
                        f"repeat: {each['repeat']}")
    for case in found["cut_off"]:
        yield "note", f"cut off at the end of the time: {case}"
    alone = sorted({name.split()[0] for name in found["no_reference"]})
    if alone:
        more = f" and {len(alone) - 6} more" if len(alone) > 6 else ""
        yield "note", ("the values of ops without a CPU kernel are not judged: "
                       f"{', '.join(alone[:6])}{more}")
    yield "note", (f"{found['cases']} cases with seed {seed} in TensorFlow "
                   f"{found['tensorflow']}, in {found['seconds_of_cases']:g} s without its "
                   "start; those of one op: `tfplug op-sweep --plugin FILE.so --op OP`")
    yield from _reached(found)


def _reached(found):
    """Yields what a sweep that ran out of time did not try."""
    missed, authors = set(found["not_reached"]), set(found["authors_units"])
    if not missed:
        return
    reached, share = found["units"] - len(missed), 100 - 100 * len(missed) / found["units"]
    text = f"{reached} of the {found['units']} combinations of ops and types"
    if authors:
        text += (f", {len(authors - missed)} of the {len(authors)} of the plug-in's own "
                 "classes")
    text += "; more with --seconds"
    if share < 1:
        yield "skipped", f"less than 1 % reached: {text}"
    else:
        yield "partly", f"{int(share)} % reached: {text}"
