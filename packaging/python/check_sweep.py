# SPDX-License-Identifier: Apache-2.0
"""The op sweep as a check: a sample of a plug-in's kernels against TensorFlow's."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

_HERE = pathlib.Path(__file__).resolve().parent
_MAIN = next(path for path in (_HERE / "tools/op_sweep/main.py",
                               _HERE / "../../tools/lib/op_sweep/main.py")
             if path.exists())
_NO_KERNEL = "The plug-in registers no kernel."
_SECONDS_OF_START = 240  # and of the last cases, each of which may hang for a minute


def check(plugin, seconds, seed, variables):
    """Yields (level, text) pairs. Begins no case after `seconds`."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        try:
            done = subprocess.run(
                [sys.executable, "-B", _MAIN, "--plugin", plugin, "--seed", str(seed),
                 "--seconds", str(seconds), "--json", report], check=False, text=True,
                errors="replace", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                timeout=seconds + _SECONDS_OF_START,
                env={**os.environ, **variables, "TFPLUG_PROGRAM": "tfplug op-sweep"})
        except subprocess.TimeoutExpired:
            yield "error", f"hangs: no end {_SECONDS_OF_START} s after the last case began"
            return
        if not report.exists():
            cause = " ".join(done.stderr.split())[-600:]
            yield "skipped" if _NO_KERNEL in cause else "error", cause
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
    yield "note", (f"{found['cases']} cases of {found['ops']} ops with seed {seed}, in "
                   f"TensorFlow {found['tensorflow']}; {len(found['not_reached'])} of "
                   f"{found['units']} combinations of types were not reached in "
                   f"{seconds:g} s")
