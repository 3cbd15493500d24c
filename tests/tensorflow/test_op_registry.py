# SPDX-License-Identifier: Apache-2.0
"""codegen/op_registry.json equals the op registry of the installed TensorFlow."""

import pathlib
import shutil
import subprocess
import sys

import pytest

CODEGEN = pathlib.Path(__file__).resolve().parents[2] / "codegen"
SKIPPED = 77


def check(folder):
    run = subprocess.run(
        [sys.executable, str(folder / "dump_op_registry.py"), "--check"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        check=False)
    if run.returncode == SKIPPED:
        pytest.skip(run.stdout.strip())
    return run.returncode, run.stdout


def test_ops_equal_the_record():
    code, output = check(CODEGEN)
    assert code == 0, output


def test_difference_is_found(tmp_path):
    shutil.copy(CODEGEN / "dump_op_registry.py", tmp_path)
    record = (CODEGEN / "op_registry.json").read_text(encoding="utf-8")
    broken = record.replace('"reduction_indices: Tidx"', '"axis: Tidx"')
    assert broken != record
    (tmp_path / "op_registry.json").write_text(broken, encoding="utf-8")
    code, output = check(tmp_path)
    assert code == 1
    assert "Sum: recorded" in output
    assert "python3 codegen/dump_op_registry.py" in output
