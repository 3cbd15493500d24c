# SPDX-License-Identifier: Apache-2.0
"""Runs models on one plug-in in many releases of TensorFlow: see tools/tf-matrix."""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import models

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
import environments  # noqa: E402

ROOT = HERE.parents[2]
BUILD = pathlib.Path(os.environ.get("TFPLUG_BUILD") or ROOT / "build/gcc")
CPU_SIM = pathlib.Path(os.environ.get("TFPLUG_CPU_SIM") or
                       BUILD / "examples/cpu_sim/libtfplug_cpu_sim.so")
SMALL_KERNELS = pathlib.Path(os.environ.get("TFPLUG_TEST_PLUGINS") or
                             BUILD / "tests/tensorflow/plugins") / (
                                 "libtfplug_small_kernels.so")
RELEASES = ("2.12.1", "2.13.1", "2.14.1", "2.15.1", "2.16.2", "2.17.1",
            "2.18.1", "2.19.1", "2.20.0", "2.21.0", "2.22.0rc0", "nightly")
TIMEOUT_SECONDS = 900
UPDATES = "assign_add"


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def run_child(python, plugin, *arguments):
    """Runs child.py, with a plug-in installed unless `plugin` is None. Returns its
    results, and how the program ended if not as it should."""
    packages = next(python.parent.parent.glob("lib/python3*/site-packages"))
    plugins = packages / "tensorflow-plugins"
    shutil.rmtree(plugins, ignore_errors=True)
    plugins.mkdir()
    environment = dict(os.environ, TF_ENABLE_ONEDNN_OPTS="0", CPU_SIM_STRICT="1",
                       TF_CPP_MIN_LOG_LEVEL="1")
    with tempfile.NamedTemporaryFile("r") as found:
        try:
            if plugin:
                shutil.copy(plugin, plugins)
            run = subprocess.run(
                [python, "-B", HERE / "child.py", found.name, *arguments],
                env=environment, text=True, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, check=False, timeout=TIMEOUT_SECONDS)
            end = run.returncode and f"the process ended with {run.returncode}"
            output = run.stdout
        except subprocess.TimeoutExpired as hung:
            end, output = "the process hung", str(hung.stdout)
        finally:
            shutil.rmtree(plugins)
        results = [json.loads(line) for line in found]
    errors = [result["error"] for result in results if "error" in result]
    if end or errors:
        say(*arguments, "failed:", *errors, end or "", output[-3000:])
    return results, end


def run_models(python, plugin, names):
    """Returns {model: result}. All models run in one process, except those after one
    that ended the process."""
    results = {}
    while names:
        found, end = run_child(python, plugin, "models", *names)
        if end:
            found = found[:len(names) - 1] + [{"error": end}]
        results.update(zip(names, found))
        names = names[len(found):]
    return results


def cell(model, on_cpu, device):
    """Returns the text of a cell, and whether the result is acceptable."""
    cpu, note = on_cpu[model], ""
    if "error" in cpu and model in models.SAME_IN_FLOAT:
        cpu, note = on_cpu[models.SAME_IN_FLOAT[model]], " from float32"
    if "error" in cpu:
        # TensorFlow's fault; but if only the run with the plug-in aborts, it is ours.
        return ("the CPU fails" + (" too" if "error" in device else ", it does not"),
                "process" in cpu["error"] or
                "process" not in device.get("error", ""))
    if "error" in device:
        message = device["error"].replace("\n", " ").replace("|", "/")
        remedy = device.get("is_clear", False)
        return ("error: " if remedy else "FAILS: ") + message[:60], remedy
    difference = max(
        abs(a - b) / max(1e-3, abs(b))
        for a, b in zip(device["values"], cpu["values"]))
    good = difference <= models.TOLERANCE.get(model, 1e-4)
    text = f"{difference:.0e}{note}" if good else f"WRONG: {difference:.0e}{note}"
    if not device["on_device"]:
        return text + ", NOT ON THE DEVICE", False
    if device["on_cpu"]:
        text += "; on the CPU: " + ", ".join(device["on_cpu"])
    return text, good


def try_release(release, python, names):
    """Returns the row of the table, and whether all of its results are acceptable."""
    python = environments.make(f"tf-matrix/{release}", release, python)
    say(f"{release}: running ...")
    (about, *_), _ = run_child(python, None, "version")
    row, good = [about.get("tensorflow", release), about.get("numpy", "")], True
    trained = [name for name in names if name != UPDATES]
    needed = [models.SAME_IN_FLOAT.get(name, name) for name in trained]
    on_cpu = run_models(python, None, list(dict.fromkeys([*trained, *needed])))
    on_device = run_models(python, CPU_SIM, trained)
    for name in names:
        if name == UPDATES:
            # A process of its own: up to 2.18 TensorFlow cannot count the devices
            # of two plug-ins.
            (found, *_), end = run_child(python, SMALL_KERNELS, "update")
            text, fine = found.get("updates", "FAILS"), not end and "error" not in found
        else:
            text, fine = cell(name, on_cpu, on_device[name])
        say(f"{release}: {name}: {text}")
        row.append(text)
        good = good and fine
    return row, good


def markdown(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main():
    every = [*models.MODELS, UPDATES]
    parser = argparse.ArgumentParser(prog="tools/tf-matrix")
    parser.add_argument("releases", nargs="*", metavar="RELEASE",
                        help="default: " + " ".join(RELEASES))
    parser.add_argument("--models", nargs="+", choices=every, default=every)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()

    rows, good = [], True
    for release in args.releases or RELEASES:
        row, fine = try_release(release, args.python, args.models)
        rows.append(row)
        good = good and fine
    table = markdown(["TensorFlow", "NumPy", *args.models], rows)
    print(table)
    if args.write:
        digest = hashlib.sha256(CPU_SIM.read_bytes()).hexdigest()
        (ROOT / "docs/measured/tf_matrix.md").write_text(PAGE.format(
            table=table, digest=digest[:16], size=CPU_SIM.stat().st_size,
            descriptions="\n".join(f"* *{name}*: {build.__doc__}"
                                   for name, build in models.MODELS.items())))
    return 0 if good else 1


PAGE = """# One binary in many releases of TensorFlow

Written by `tools/tf-matrix --write` with one file, libtfplug_cpu_sim.so
({size} bytes, SHA-256 {digest}...), built once without any TensorFlow on the
include or link path.

In each stock wheel the same program runs twice: with the plug-in in
site-packages/tensorflow-plugins, and without a plug-in. It names no device. The
host cannot access the device's memory. Each model is compiled as users do,
`compile(optimizer, loss)`, and used with `fit`, `evaluate` and `predict`; without the
plug-in, `compile` turns off XLA. A cell is the largest relative difference of any
loss or mean of predictions between the two runs. An *error* is a failure whose message names the remedy. A
cell also lists the ops that computed something on the CPU. *From float32*: on the CPU,
TensorFlow lacks kernels (2.12 and 2.13 for batch normalization in bfloat16), so the
cell is the difference from the same model in float32.

{descriptions}
* *assign_add*: updates of a variable in place by a second plug-in,
  tests/tensorflow/plugins. 2.19 to 2.21 lack the C functions for them and return
  an error with a workaround.

{table}
"""


if __name__ == "__main__":
    sys.exit(main())
