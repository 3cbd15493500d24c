# SPDX-License-Identifier: Apache-2.0
"""Finds the regions of a model's functions: tools/coverage --regions.

    regions.py MODEL DEVICE_TYPE PLUGIN...

Runs in a process of its own, because TensorFlow makes regions when it runs a function:
each function runs once, with zeros, on the device. TFPLUG_LOG_REGIONS names the log."""

import os
import pathlib
import subprocess
import sys
import tempfile

_HERE = pathlib.Path(__file__).resolve()


def find(model, device_type, files):
    """Returns what region_log.read() does, for the model's functions, and the error of
    each function that failed."""
    import region_log  # pylint: disable=import-outside-toplevel
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "regions.log"
        run = subprocess.run(
            [sys.executable, "-B", str(_HERE), model, device_type, *map(str, files)],
            env={**os.environ, "TFPLUG_REGIONS": "1", "TFPLUG_LOG_REGIONS": str(log)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        found = region_log.read(log)
    found["failed"] = [line.removeprefix("failed: ") for line in
                       run.stdout.splitlines() if line.startswith("failed: ")]
    if run.returncode != 0:
        found["failed"].append(run.stderr.strip().rpartition("\n")[2] or
                               f"the process ended with status {run.returncode}")
    return found


def _zeros(spec):
    """Returns zeros for a tf.TensorSpec; dimensions that it leaves open are 2."""
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    dims = [] if spec.shape.rank is None else [2 if n is None else n for n in spec.shape]
    if spec.dtype == tf.string:
        return tf.fill(dims, "")
    return tf.zeros(dims, spec.dtype)


def _run(function):
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    arguments, named = tf.nest.map_structure(
        lambda spec: _zeros(spec) if isinstance(spec, tf.TensorSpec) else spec,
        function.structured_input_signature)
    function(*arguments, **named)


def _reason(error):
    """Returns the line of TensorFlow's message that follows the Python lines, and comes
    before the node's name."""
    lines = [line.strip() for line in str(error).splitlines()]
    return next((line for line in lines if line and not line.startswith(
        ("Graph execution error", "Detected at node", "File ", "[["))), "")


def _main(path, device_type, files):
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    from tensorflow.python.framework import load_library
    for file in files:
        load_library.load_pluggable_device_library(file)
    from coverage import model
    with tf.device(f"/device:{device_type}:0"):
        functions, _ = model.load(path)
        for name, function in functions.items():
            try:
                _run(function)
            except Exception as error:  # pylint: disable=broad-except
                print(f"failed: {name}: {type(error).__name__}: {_reason(error)}")


if __name__ == "__main__":
    sys.path[0] = str(_HERE.parents[1])
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import installed_plugins
    installed_plugins.hide()
    os.environ.pop("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", None)
    _main(sys.argv[1], sys.argv[2], sys.argv[3:])
