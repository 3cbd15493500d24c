# SPDX-License-Identifier: Apache-2.0
"""The small plug-in of plugins/: what cpu_sim has no use for. Asynchronous
kernels, ops of an author's own, attributes of every kind, strings, what a kernel
may know of its run, and variables."""

import os
import pathlib

import harness
import small_kernels


def plugin_path():
    named = os.environ.get("TFPLUG_TOYS")
    if named:
        return pathlib.Path(named).resolve()
    build = pathlib.Path(os.environ.get("TFPLUG_BUILD") or
                         harness.ROOT / "build/gcc")
    return build / "tests/tensorflow/plugins/libtfplug_small_kernels.so"


def run_each(function, cases):
    path = plugin_path()
    assert path.is_file(), f"build {path}, or name it in TFPLUG_TOYS"
    results = harness.run_each(function, cases, plugin=False, env={
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(path)})
    for result in results:
        assert result.ok, result
    return [result.value for result in results]


def test_asynchronous_kernels():
    ends = ["at once", "later", "twice", "error at once", "error later",
            "exception", "dropped"]
    said = dict(zip(ends, run_each(small_kernels.asynchronous, [[e] for e in ends])))
    for how in ("at once", "later", "twice"):
        assert said[how] == [[1.0, 2.0], [1.0, 2.0]], how
    for how, words in (
            ("error at once", "op 'ToyAsync', node 'ToyAsync"),
            ("error at once", "not today"), ("error later", "late"),
            ("exception", "C++ exception: thrown"),
            ("dropped", "dropped its AsyncRun without a call of Finish")):
        assert words in said[how], said[how]
    assert said["error later"].startswith("AbortedError: ")


def test_op_with_shape_function():
    good, empty, no_vector, zero = run_each(small_kernels.outer, [
        [[1.0, 2.0], [3.0, 4.0, 5.0], 2.0], [[], [1.0], 1.0],
        [[[1.0]], [3.0], 1.0], [[1.0], [3.0], 0.0]])
    assert good == {"shape": [2, 3], "result": [[6.0, 8.0, 10.0],
                                                [12.0, 16.0, 20.0]]}
    assert empty == {"shape": [0, 1], "result": []}
    # Refused while the graph is built, which is what the function is for.
    assert no_vector["shape"] is None
    assert "Shape must be rank 1 but is rank 2" in no_vector["result"]
    # Refused by the kernel's construction; then it is not run.
    assert zero["result"].startswith("InvalidArgumentError: ")
    assert "op 'ToyOuter', node 'ToyOuter': the factor is zero" in zero["result"]


def test_attributes():
    words, absent, kind = run_each(small_kernels.attributes, [[""], ["absent"],
                                                     ["kind"]])
    assert words[6].startswith("function __inference_half")
    del words[6]
    assert words == [
        "flag no", "number 12", "text of mine", "type bfloat16",
        "shape <unknown rank>", "tensor float[2] of 2.5", "functions 2",
        "one of numbers 1", "one of numbers -2", "one of shapes [1,?]",
        "one of shapes []"]
    for said in (absent, kind):
        assert "op 'ToyAttributes', node 'ToyAttributes'" in said
    assert "attribute 'nothing'" in absent and "no such attribute" in absent
    assert "attribute 'number', as float" in kind


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
        assert run["device"].endswith("/device:TOY:0") and run["ordinal"] == "0"
        assert "ToyRunInfo" in run["node"] and run["input 1"]
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
    handed_over, aborted = run_each(small_kernels.exchange, [["send"], ["abort"]])
    assert handed_over == [[["1.0", "2.0"], ["3.0"], ["a", "b"]]] * 2
    assert "op 'ToyReceive', node 'ToyReceive" in aborted
    assert "no more of this" in aborted
    [eager] = run_each(small_kernels.exchange_in_eager_mode, [[]])
    assert eager == [[3.0], [1.0, 2.0]]


def test_variables():
    """This release's answer; tools/tf-matrix asks older ones, too."""
    [said] = run_each(small_kernels.variables, [[]])
    problem = small_kernels.variables_problem(said)
    assert not problem, problem


def test_what_is_wrong_with_variables_is_found():
    good = {"assign": [4.0, 5.0, 6.0], "assign_sub": [3.5, 4.5, 5.5],
            "assign_add": [4.5, 5.5, 6.5], "in a function": [5.0, 6.0, 7.0],
            "wrong shape": "InvalidArgumentError: shapes",
            "read before": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
            "at last": [5.0, 6.0, 7.0]}
    assert not small_kernels.variables_problem(good)
    for name, wrong in (("at last", [4.0, 5.0, 6.0]), ("wrong shape", [1.0]),
                        ("assign_sub", "AbortedError: no"),
                        ("read before", [[1.0, 2.0, 3.0], [3.5, 4.5, 5.5]])):
        assert small_kernels.variables_problem({**good, name: wrong}), name


