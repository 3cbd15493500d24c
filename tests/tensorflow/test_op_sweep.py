# SPDX-License-Identifier: Apache-2.0
"""tools/op-sweep finds planted mistakes, and none in the kernels of the reference
device."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import harness

TOOL = harness.ROOT / "tools/lib/op_sweep/main.py"


def _sweep(plugin, *options, env=None):
    """Returns the exit status and the report; `plugin` is the name of a small plug-in, or
    a path."""
    path = plugin if os.path.isabs(plugin) else harness.small_plugin_path(plugin)
    result = harness.run_script(TOOL, "--plugin", path, "--json", "-", *options, env=env)
    assert result.returncode <= 100, result.stderr
    return result.returncode, json.loads(result.stdout)


def test_it_finds_planted_mistakes():
    status, report = _sweep("wrong_kernels", "--cases", "24", "--seconds", "300")
    found = {}
    for each in report["mismatches"]:
        found.setdefault(each["op"], {})[each["kind"]] = each
    assert status == len(report["mismatches"])
    assert "nan" in found["Relu"]["value"]["difference"]
    assert "SIGABRT" in found["Abs"]["crash"]["difference"]
    assert "overwrites x" in found["Square"]["input"]["difference"]
    assert "want InvalidArgumentError" in found["ReluGrad"]["error"]["difference"]
    assert re.match(r"output 0: got the shape \[.*\], want \[.*\]: the kernel must allocate",
                    found["Maximum"]["shape"]["difference"]), found["Maximum"]
    assert "ran" in found["TfplugFusedMapV2"]["fusion"]["difference"]
    # Of these, TensorFlow has no kernel for the CPU.
    assert "SIGABRT" in found["WrongCrash"]["crash"]["difference"]
    assert "without setting output 0" in found["WrongOutput"]["error"]["difference"]
    assert ("got the shape [7]; want [3], of the op's shape function" in
            found["WrongShape"]["shape"]["difference"])
    assert report["no_reference"] == ["WrongNot"]
    assert not {"Neg", "WrongNot"} & set(found)
    assert report["device"] == "SMALL" and report["types_without_device"] == ["OTHER"]
    assert not report["not_reached"] and not report["no_valid_arguments"]
    assert not report["not_drawn"], report["not_drawn"]  # Not all ops can be fused.
    # The command in the report repeats the mismatch, with the same arguments.
    crash = found["Abs"]["crash"]
    assert "--case " + crash["case"] in crash["repeat"]
    status, report = _sweep("wrong_kernels", "--op", "Abs", "--types", crash["types"],
                            "--case", crash["case"])
    assert status == 1
    assert report["mismatches"][0]["arguments"] == crash["arguments"]


def test_cases_of_ops_that_the_cpu_lacks_are_run_and_counted():
    # The last of 16 cases is for a gradient, which such an op has not.
    status, report = _sweep("wrong_kernels", "--op", "WrongNot", "--cases", "16", "--seconds",
                            "300")
    assert (status, report["cases"]) == (0, 15)
    assert report["statuses"] == {"no reference": 15, "not run": 1}
    status, report = _sweep("wrong_kernels", "--op", "WrongCrash", "--case", "0")
    # Once more to confirm that it is not the CPU that crashes.
    assert (status, report["cases"], report["no_reference"]) == (1, 2, [])


def test_the_reference_device_agrees_with_the_cpu():
    # One case of each combination of types, the same ones on each machine.
    _, report = _sweep("reference_device", "--cases", "1", "--seconds", "600")
    # Without a primitive for it, each row is compared with the index of each update.
    mismatches = [each for each in report["mismatches"] if not (
        each["difference"].startswith("no progress") and harness.lets_kernels_update_variables()
        and each["op"].startswith(("ResourceScatter", "ResourceSparseApply")))]
    found = json.dumps(mismatches, indent=1)
    assert all(each["kind"] == "value" for each in mismatches), found
    # Sums of numbers near the largest one overflow or not, depending on the order in
    # which the CPU adds them. A wrong kernel differs in each of its types.
    assert len(mismatches) <= 2, found
    assert report["cases"] > 3000 and not report["not_reached"]
    assert not report["no_valid_arguments"] and not report["not_drawn"]


def test_fused_ops_have_the_results_of_single_ops():
    status, report = _sweep("reference_device", "--cases", "8", "--seconds", "600", "--op",
                            "TfplugFusedMapV2,TfplugFusedReduceV3,TfplugFusedMatMulV2")
    assert status == 0, json.dumps(report["mismatches"], indent=1)
    assert report["ops"] == 3 and report["statuses"] == {"ok": report["cases"]}
    assert report["cases"] == 8 * (4 + 2 * 12)  # types of MatMul, and of the others


def test_hostile_arguments_crash_wrong_kernels():
    status, report = _sweep("wrong_kernels", "--hostile", "--op", "Abs,Neg", "--cases", "32",
                            "--seconds", "300")
    assert status == len(report["mismatches"]) > 0
    for each in report["mismatches"]:
        assert (each["op"], each["kind"]) == ("Abs", "crash")
        assert "SIGABRT" in each["difference"]
        assert "--hostile" in each["repeat"]


def test_hostile_arguments_are_refused_or_computed():
    # One case of each op and type, or as many as a busy machine can;
    # tools/op-sweep --hostile --seconds 3600 runs more.
    _, report = _sweep(str(harness.plugin_path()), "--hostile", "--cases", "1", "--seconds",
                       "120", "--seed", "1")
    assert not report["mismatches"], json.dumps(report["mismatches"], indent=1)
    assert report["cases"] > 0 and not report["not_drawn"]


def report_of_an_undrawable_case():
    """Returns what a report says about a case for which no arguments can be drawn."""
    import types
    sys.path.insert(0, str(harness.ROOT / "tools/lib"))
    from op_sweep import draw, main, report, rows  # pylint: disable=C0415

    def refuse(case):
        raise draw.Undrawable("no such arguments")
    rows.draw_arguments = refuse
    unit = types.SimpleNamespace(op="Abs", types=(), id=1, type_text="", name="Abs",
                                 is_authors=False)
    options = types.SimpleNamespace(case="", hostile=False, plugin="p", seed=1)
    collected = report.Report(options, "SIM", [unit], [])
    for number in ("3", "5"):
        collected.add((0, [number], ""), [main.judge_case(options, unit, number, "", None, "")])
    return report.text(collected.document(seconds=9, seconds_of_cases=1.2,
                                          left_out=0, types_without_device=[])).splitlines()


def test_a_case_that_cannot_be_drawn_is_reported():
    result = harness.run(report_of_an_undrawable_case)
    assert result.ok, result
    at = result.value.index("Cases that could not be drawn (1):")
    assert result.value[at + 1] == "  Abs case 3 and 1 more: no such arguments"
    assert result.value[-1] == (
        "0 cases of 1 ops in 1 combinations of types in 1.2 s, and 7.8 s for the start of "
        "TensorFlow: 0 mismatches")


def differences_near_zero():
    """Returns, for each type, whether results differ that are three and five times the
    smallest normal number apart."""
    import types

    import numpy as np
    import tensorflow as tf
    sys.path.insert(0, str(harness.ROOT / "tools/lib"))
    from op_sweep import compare
    case = types.SimpleNamespace(op="Abs", args={})
    found = {}
    for name, exponent in compare._LOWEST.items():  # pylint: disable=W0212
        got, want = (np.array([numbers]).astype(tf.as_dtype(name).as_numpy_dtype) * (
            tf.as_dtype(name).as_numpy_dtype(2.0**exponent))
            for numbers in ((4, 6), (1, 1)))
        found[name] = compare._compare_floats(  # pylint: disable=W0212
            case, got, want, None, 0)[0].ravel().tolist()
    return found


def test_denormal_terms_that_the_cpu_flushes_are_no_mismatch():
    result = harness.run(differences_near_zero, plugin=False)
    assert result.ok, result
    assert result.value == {"float64": [False, True], "float32": [False, True],
                            "float16": [True, True], "bfloat16": [False, True]}


def test_the_text_of_a_report_ends_with_the_mismatches():
    result = harness.run(text_of_a_report, plugin=False)
    assert result.ok, result
    assert result.value == [
        "Explained differences (1):", "  why: op0, op1, op2, op3, op4, op5 and 3 more",
        "No CPU kernel to compare with: values are not judged (9):",
        *(f"  op{i}" for i in range(6)), "  and 3 more",
        "MISMATCH Abs seed=1 case=0 crash: SIGSEGV", "  arguments: x", "  repeat: this",
        "5 cases of 1 ops in 1 combinations of types in 1 s, and 1.0 s for the start of "
        "TensorFlow: 1 mismatches"]


def text_of_a_report():
    import collections
    sys.path.insert(0, str(harness.ROOT / "tools/lib"))
    from op_sweep import report
    ops = [f"op{i}" for i in range(9)]
    facts = dict(explained={"why": ops}, no_reference=ops, cases=5, ops=1, units=1, seconds=2,
                 seconds_of_cases=1, seed=1, no_valid_arguments={}, not_drawn={}, left_out=0,
                 mismatches=[{"op": "Abs", "types": "", "case": "0", "kind": "crash",
                              "difference": "SIGSEGV", "arguments": "x", "repeat": "this"}])
    return report.text(collections.defaultdict(list, facts)).splitlines()


def order_of_units():
    """Returns the order of the units of two ops with kernels of both kinds."""
    from tensorflow.core.framework import types_pb2
    sys.path.insert(0, str(harness.ROOT / "tools/lib"))
    from op_sweep import plan
    types = (types_pb2.DT_FLOAT, types_pb2.DT_HALF, types_pb2.DT_INT32)
    units = [plan.Unit(op, (("T", number),), frozenset(), True,
                       2 if op == "Relu" and number == types[1] or op == "Zeta" else 1)
             for op in ("Abs", "Relu", "Zeta") for number in types]
    return [[[unit.op, unit.is_authors] for unit in plan.in_order(units, seed)]
            for seed in range(20)]


def test_kernels_of_the_authors_classes_come_first():
    orders = harness.run(order_of_units)
    assert orders.ok, orders
    for order in orders.value:
        # Of each half, one choice of types of each op comes before the next one.
        assert order == [
            ["Relu", True], *[["Zeta", True]] * 3,
            *[["Abs", False], ["Relu", False]] * 2, ["Abs", False]]


def judge_unfused(authors_priority):
    """Judges a fused op without fusion; kernels of this priority are the author's."""
    from tensorflow.core.framework import types_pb2
    sys.path.insert(0, str(harness.ROOT / "tools/lib"))
    from op_sweep import fused, plan
    plan._PRIORITY_OF_AUTHORS = authors_priority
    run = fused.Expression.run
    fused.Expression.run = lambda self, device, fuse: run(self, device, False)
    unit = plan.Unit("TfplugFusedMapV2", (("T", types_pb2.DT_FLOAT),), frozenset(), False)
    verdict = fused.judge(unit, 1, 0, "/device:SIM:0", lambda *_: None)
    return [verdict.status, verdict.kind]


def test_ops_with_kernels_of_the_author_may_stay():
    made, own = harness.run_each(judge_unfused, [[2], [1]])
    assert made.ok and own.ok, (made, own)
    assert made.value == ["mismatch", "fusion"]
    assert own.value == ["ok", ""]


def test_the_authors_kernels_of_a_device_are_swept_in_any_time():
    # examples/cpu_sim has thousands of combinations, and three ops of its own.
    _, report = _sweep(str(harness.plugin_path()), "--seconds", "1", "--jobs", "1")
    own = set(report["authors_units"])
    assert {"TfplugAttention T=float32", "Where T=float32"} <= own
    assert report["units"] > 100 * len(own)
    missed = set(report["not_reached"])
    assert own - missed and len(missed) > 0.9 * report["units"]
    assert not missed & own or len(own - missed) == report["units"] - len(missed)


def test_the_time_is_kept():
    _, report = _sweep("wrong_kernels", "--seconds", "2")
    assert report["seconds_of_cases"] < 4, report["seconds_of_cases"]
    assert report["cases"] > 0 and report["left_out"] > 0


def test_a_later_run_continues(tmp_path):
    first = tmp_path / "first.json"
    first.write_text(json.dumps({"not_reached": ["Neg T=float32", "Gone T=float32"]}))
    # In a new process, as a user's command: see harness.py.
    status, report = _sweep("wrong_kernels", "--cases", "1", "--continue", str(first),
                            env={"PYTHONPATH": ""})
    assert (status, report["units"], report["cases"]) == (0, 1, 1)


def hang(pipe, _):
    """Answers tasks at once; the case 3 does not end."""
    from op_sweep import workers
    while True:
        _, numbers, _ = pipe.recv()
        for number in numbers:
            workers.begin(pipe, "device", number, "")
            time.sleep(100 if number == 3 else .05)
        pipe.send(("answer", numbers))


def test_a_case_that_hangs_is_cut_off(monkeypatch):
    monkeypatch.syspath_prepend(harness.ROOT / "tools/lib")
    from op_sweep import workers
    answers, cut = [], []
    clock = workers.Clock(1)

    def on_answer(task, answer):
        clock.start()
        answers.append(answer)
        return [task]  # as of a mismatch of which smaller ones are looked for
    workers.run_all(iter([("a", [1, 2], ""), ("b", [1, 3, 4], "")]), hang, None, 2,
                    on_answer, clock, lambda *each: cut.append(each))
    assert clock.seconds() < 3
    assert len(answers) > 3 and set(map(tuple, answers)) == {(1, 2)}
    ((task, number, seconds),) = cut
    assert task[0] == "b" and number == 3 and .5 < seconds < 3
    assert clock.left_out == 4  # of the one that hangs, and of the next one


def crash(pipe, _):
    """Logs before and in each case; the case 2 crashes."""
    from op_sweep import workers
    os.write(2, b"loads\n")
    while True:
        _, numbers, _ = pipe.recv()
        for number in numbers:
            workers.begin(pipe, "device", number, "")
            os.write(2, f"runs {number}\n".encode())
            if number == 2:
                os.kill(os.getpid(), signal.SIGKILL)
        pipe.send(("answer", numbers))


def test_the_log_of_a_crash_begins_with_its_case(monkeypatch):
    monkeypatch.syspath_prepend(harness.ROOT / "tools/lib")
    from op_sweep import workers
    crashes = []
    workers.run_all(iter([("a", [1, 2], "")]), crash, None, 1,
                    lambda _, answer: crashes.append(answer))
    assert [(each.how, each.log) for each in crashes] == [("SIGKILL", "runs 2\n")]


def test_a_crash_ends_the_command_that_runs_cases_itself():
    result = subprocess.run(
        [sys.executable, "-B", str(TOOL), "--plugin", harness.small_plugin_path("wrong_kernels"),
         "--jobs", "0", "--op", "WrongCrash", "--case", "0"],
        capture_output=True, text=True, check=False)
    assert result.returncode == -signal.SIGABRT, result.stderr
    status, report = _sweep("wrong_kernels", "--jobs", "0", "--op", "WrongNot", "--cases", "4")
    assert (status, report["cases"]) == (0, 4)


def test_a_crash_is_confirmed_after_the_time(monkeypatch):
    """Or it is no mismatch: the CPU's kernel may be what crashed."""
    monkeypatch.syspath_prepend(harness.ROOT / "tools/lib")
    from op_sweep import workers
    answers, cut = [], []
    clock = workers.Clock(5)
    more = [("c", [5], "crash"), ("d", [6, 7], "value"), ("e", [3], "crash")]

    def on_answer(task, answer):
        clock.start()
        answers.append(task[0])
        if task[0] == "a":
            time.sleep(5.1)
        return more if task[0] == "a" else []
    workers.run_all(iter([("a", [1], "")]), hang, None, 1, on_answer, clock,
                    lambda *each: cut.append(each[:2]))
    assert answers == ["a", "c"] and clock.left_out == 3
    assert cut == [(("e", [3], "crash"), 3)]


def test_arguments():
    for options in ([], ["--plugin", "missing.so"], ["--unknown"],
                    ["--plugin", str(TOOL), "--json", "/nowhere/report.json"]):
        result = subprocess.run([sys.executable, "-B", str(TOOL), *options],
                                capture_output=True, text=True, check=False)
        assert result.returncode == 125, result.stderr
        assert "tools/op-sweep: " in result.stderr
