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
        yield "error", (f"{op} {each['types']}{also}, {kind}: {each['difference']}; "
                        f"repeat: {each['repeat']}")
    for case in found["cut_off"]:
        yield "note", f"cut off at the end of the time: {case}"
    reached = found["units"] - len(found["not_reached"])
    share = 100 * reached // found["units"]
    yield "note", (f"{found['cases']} cases with seed {seed}, in TensorFlow "
                   f"{found['tensorflow']}, in {reached} of the {found['units']} "
                   f"combinations of ops and types ({share} %) in {seconds:g} s; more with "
                   "--seconds, and those of one op with `tfplug op-sweep --plugin FILE.so "
                   "--op OP`")
