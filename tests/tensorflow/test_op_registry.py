# SPDX-License-Identifier: Apache-2.0
"""codegen/op_registry.json equals the op registry of the installed TensorFlow."""

import pathlib

import harness
import pytest

CODEGEN = pathlib.Path(__file__).resolve().parents[2] / "codegen"
SKIPPED = 77


def check(record, **environment):
    run = harness.run_script(CODEGEN / "dump_op_registry.py", "--check", record,
                             env=environment)
    if run.returncode == SKIPPED:
        pytest.skip(run.stdout.strip())
    return run.returncode, run.stdout


def test_ops_equal_the_record():
    """Ops that a plug-in registers are not TensorFlow's."""
    code, output = check(CODEGEN / "op_registry.json",
                         TF_PLUGGABLE_DEVICE_LIBRARY_PATH=str(harness.plugin_path()),
                         PYTHONPATH="")  # in a new process: see harness.py
    assert code == 0, output


def test_difference_is_found(tmp_path):
    text = (CODEGEN / "op_registry.json").read_text(encoding="utf-8")
    broken = text.replace('"reduction_indices: Tidx"', '"axis: Tidx"')
    assert broken != text
    (tmp_path / "record.json").write_text(broken, encoding="utf-8")
    code, output = check(tmp_path / "record.json")
    assert code == 1
    assert "Sum: recorded" in output
    assert "python3 codegen/dump_op_registry.py" in output
