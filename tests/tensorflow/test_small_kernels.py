# SPDX-License-Identifier: Apache-2.0
"""Tests the plug-in small_kernels (plugins/), which covers features that cpu_sim does
not use: asynchronous kernels, custom ops, attributes of every kind, strings, the
properties of a run, the rendezvous, and variables."""

import os
import pathlib

import harness
import small_kernels


def plugin_path():
    named = os.environ.get("TFPLUG_SMALL_KERNELS")
    if named:
        return pathlib.Path(named).resolve()
    build = pathlib.Path(os.environ.get("TFPLUG_BUILD") or
                         harness.ROOT / "build/gcc")
    return build / "tests/tensorflow/plugins/libtfplug_small_kernels.so"


def run_each(function, cases):
    path = plugin_path()
    assert path.is_file(), f"build {path}, or name it in TFPLUG_SMALL_KERNELS"
    results = harness.run_each(function, cases, plugin=False, env={
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(path)})
    for result in results:
        assert result.ok, result
    return [result.value for result in results]


def test_asynchronous_kernels():
    ends = ["at once", "later", "twice", "error at once", "error later",
            "exception", "destroyed"]
    results = dict(zip(ends, run_each(small_kernels.asynchronous,
                                      [[e] for e in ends])))
    for how in ("at once", "later", "twice"):
        assert results[how] == [[1.0, 2.0], [1.0, 2.0]], how
    for how, message in (
            ("error at once", "op 'SmallAsync', node 'SmallAsync"),
            ("error at once", "busy"), ("error later", "late"),
            ("exception", "C++ exception: thrown"),
            ("destroyed", "destroyed its AsyncRun without calling Finish")):
        assert message in results[how], results[how]
    assert results["error later"].startswith("AbortedError: ")


def test_op_with_shape_function():
    good, empty, no_vector, zero = run_each(small_kernels.outer, [
        [[1.0, 2.0], [3.0, 4.0, 5.0], 2.0], [[], [1.0], 1.0],
        [[[1.0]], [3.0], 1.0], [[1.0], [3.0], 0.0]])
    assert good == {"shape": [2, 3], "result": [[6.0, 8.0, 10.0],
                                                [12.0, 16.0, 20.0]]}
    assert empty == {"shape": [0, 1], "result": []}
    # The shape function fails while the graph is built.
    assert no_vector["shape"] is None
    assert "Shape must be rank 1 but is rank 2" in no_vector["result"]
    # The kernel's construction fails, so the kernel does not run.
    assert zero["result"].startswith("InvalidArgumentError: ")
    assert "op 'SmallOuter', node 'SmallOuter': the factor is zero" in zero["result"]


def test_attributes():
    lines, missing, wrong_type = run_each(
        small_kernels.attributes, [[""], ["missing"], ["type"]])
    assert lines[6].startswith("function __inference_half")
    del lines[6]
    assert lines == [
        "flag no", "number 12", "text some text", "type bfloat16",
        "shape <unknown rank>", "tensor float[2] of 2.5", "functions 2",
        "element of numbers 1", "element of numbers -2",
        "element of shapes [1,?]", "element of shapes []"]
    for error in (missing, wrong_type):
        assert "op 'SmallAttributes', node 'SmallAttributes'" in error
    assert "attribute 'nothing'" in missing and "no such attribute" in missing
    assert "attribute 'number' as float" in wrong_type


def test_strings():
    joined, differ = run_each(small_kernels.join, [
        [["a", "b" * 40], ["x", "y"], ["", "z"]], [["a"], ["b", "c"]]])
    assert joined == ["ax", "b" * 40 + "yz"]
    assert "parts of different shapes: string[2] and string[1]" in differ


def test_run_info():
    [steps] = run_each(small_kernels.run_info, [[]])
    runs = [run for step in steps for run in step]
    for run in runs:
        assert run["inputs"] == "2"
        assert run["device"].endswith("/device:SMALL:0") and run["ordinal"] == "0"
        assert "SmallRunInfo" in run["node"] and run["input 1"]
        assert run["input 0 in host memory"] == "0"
        assert run["input 1 in host memory"] == "1"
        assert run["output in host memory"] == "1"
        assert run["input 5"] == run["output 5"] == "OUT_OF_RANGE"
        assert run["config"] == run["functions"] == "1"
        assert run["container"] == "localhost" and int(run["producer"]) > 1000
    assert [run["iteration"] for run in runs] == ["0", "1", "2"] * 2
    assert len({run["step"] for run in runs}) == 2
    assert len({run["frame"] for run in runs}) == 1


def test_rendezvous():
    """Kernels of one step wait for each other, in any order."""
    exchanged, aborted = run_each(small_kernels.exchange,
                                  [["send"], ["abort"]])
    assert exchanged == [[["1.0", "2.0"], ["3.0"], ["a", "b"]]] * 2
    assert "op 'SmallReceive', node 'SmallReceive" in aborted
    assert "aborted by a kernel" in aborted
    [eager] = run_each(small_kernels.exchange_in_eager_mode, [[]])
    assert eager == [[3.0], [1.0, 2.0]]


def test_variables():
    """Runs in this release; tools/tf-matrix runs the same checks in older ones."""
    [results] = run_each(small_kernels.variables, [[]])
    problem = small_kernels.variables_problem(results)
    assert not problem, problem


def test_variables_problem_finds_mistakes():
    good = {"assign": [4.0, 5.0, 6.0], "assign_sub": [3.5, 4.5, 5.5],
            "assign_add": [4.5, 5.5, 6.5], "in a function": [5.0, 6.0, 7.0],
            "wrong shape": "InvalidArgumentError: shapes",
            "read before": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
            "final value": [5.0, 6.0, 7.0]}
    assert not small_kernels.variables_problem(good)
    for name, wrong in (("final value", [4.0, 5.0, 6.0]), ("wrong shape", [1.0]),
                        ("assign_sub", "AbortedError: no"),
                        ("read before", [[1.0, 2.0, 3.0], [3.5, 4.5, 5.5]])):
        assert small_kernels.variables_problem({**good, name: wrong}), name


