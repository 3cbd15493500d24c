# SPDX-License-Identifier: Apache-2.0
"""docs/reference/gpu_ops.md equals the kernels that the backends register."""

import importlib.util
import pathlib

import harness
import pytest

MAIN = pathlib.Path(__file__).resolve().parents[2] / "tools/lib/op_table/main.py"
SKIPPED = 77


def table():
    spec = importlib.util.spec_from_file_location("op_table", MAIN)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_is_current():
    run = harness.run_script(
        MAIN, "--check", "--reference", harness.small_plugin_path("reference_device"),
        "--cpu_sim", harness.plugin_path())
    if run.returncode == SKIPPED:
        pytest.skip(run.stdout.strip())
    assert run.returncode == 0, run.stdout + run.stderr[-2000:]


def test_differences():
    assert not table().differences("a\nb\n", "a\nb\n")
    assert table().differences("a\nb\n", "a\nc\n") == ["- b", "+ c"]
    assert table().differences("a\nb\n", "b\na\n")


class Kernels:
    """Stands for the kernels of a device."""

    def __init__(self, *sets):
        self.sets = {"Op": list(sets)} if sets else {}

    def has(self, op, combination):
        return table().Kernels.has(self, op, combination)


def test_cells():
    on_gpus = [{"T": "float, half", "Tidx": "int32, int64"}]
    cell, none = table().cell, Kernels()

    def text(backend, default=none):
        return cell("Op", on_gpus, backend, default)[0]

    assert text(Kernels({"T": {"float", "half"}})) == "all"
    assert text(Kernels({"T": {"float"}}), Kernels({"T": {"half"}})) == "all"
    assert text(none, Kernels({})) == "*TensorFlow*"
    assert text(none) == "–"
    assert text(Kernels({"T": {"float"}})) == "without f16"
    assert text(Kernels({"T": {"float", "half"}, "Tidx": {"int32"}})
                ) == "without i64"
    # Neither type is missing everywhere.
    assert text(Kernels({"T": {"float"}, "Tidx": {"int32"}},
                        {"T": {"half"}, "Tidx": {"int64"}})
                ) == "without f16 f32 i32 i64"


def test_types():
    assert table().types_text({"float", "half", "double", "bfloat16", "int8"}
                              ) == "floats i8"
    assert table().types_text({"uint64", "bool", "double"}) == "f64 u64 bool"
    assert table().missing_types(
        [{"a": "x"}, {"a": "y"}], [{"a": "y"}]) == {"y"}
