# SPDX-License-Identifier: Apache-2.0
"""The cost of a profile: steps of a CNN with and without one.

In one process, rounds of steps without and with a profile take turns, in random order
within each pair. TensorFlow's own tracers of the host and of Python are off, so that
the difference is the device's profiler.
"""

import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import building

ROUNDS, STEPS = 15, 20


def _measure(plugin):
    """Runs in a process of its own; prints the result as JSON."""
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.framework import load_library
    load_library.load_pluggable_device_library(plugin)
    layers = tf.keras.layers
    with tf.device("SIM:0"):
        model = tf.keras.Sequential([
            tf.keras.Input((28, 28, 1)),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(), layers.Conv2D(32, 3, padding="same"),
            layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling2D(),
            layers.Flatten(), layers.Dense(10)])
        model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(
            from_logits=True), jit_compile=False)
        draw = np.random.default_rng(0)
        images = draw.normal(size=(64, 28, 28, 1)).astype(np.float32)
        labels = draw.integers(0, 10, 64)
        options = tf.profiler.experimental.ProfilerOptions(
            host_tracer_level=0, python_tracer_level=0, device_tracer_level=1)

        def steps(is_profiled):
            with tempfile.TemporaryDirectory() as folder:
                if is_profiled:
                    tf.profiler.experimental.start(folder, options=options)
                begin = time.process_time()
                for _ in range(STEPS):
                    model.train_on_batch(images, labels)
                used = time.process_time() - begin
                if is_profiled:
                    tf.profiler.experimental.stop()
                    file, = pathlib.Path(folder).rglob("*.xplane.pb")
                    sizes.append(file.stat().st_size)
            return used / STEPS

        sizes = []
        steps(False)
        steps(True)
        pairs = []
        for _ in range(ROUNDS):
            order = random.sample([False, True], 2)
            times = {is_profiled: steps(is_profiled) for is_profiled in order}
            pairs.append((times[False], times[True]))
    print(json.dumps({"pairs": pairs, "bytes": statistics.median(sizes)}))


def _measure_pairs(plugin):
    """Returns (seconds of a step without, with, quartiles of the ratio,
    bytes of a profiled step)."""
    out = subprocess.run([sys.executable, "-B", __file__, plugin], check=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    result = json.loads(out.stdout.splitlines()[-1])
    ratios = [with_profile / without for without, with_profile in result["pairs"]]
    return (statistics.median(pair[0] for pair in result["pairs"]),
            statistics.median(pair[1] for pair in result["pairs"]),
            statistics.quantiles(ratios, n=4), result["bytes"] / STEPS)


def section(_):
    """Returns the section of docs/measured/bench.md."""
    plugin = str(building.build_cpu_sim())
    without, with_profile, (low, middle, high), size = _measure_pairs(plugin)
    text = f"""## A profile

A step of a CNN of two convolutions on `examples/cpu_sim`, 64 images of 28 × 28 pixels,
forward and backward with Adam: {STEPS} steps without and {STEPS} with a profile,
{ROUNDS} times, in random order, with TensorFlow's own tracers off. Processor time of
all threads, which depends less on other load. The goal: at most 3 % more.

| | Without a profile | With a profile | Ratio: median (quartiles) | Profile |
|---|--:|--:|--:|--:|
| a step | {1e3 * without:.2f} ms | {1e3 * with_profile:.2f} ms | {middle:.3f} ({low:.3f}–{high:.3f}) | {size / 1024:.0f} KiB |

While nothing is recorded, a launch takes as many instructions as without a profiler:
see above.
"""
    return text, True


if __name__ == "__main__":
    _measure(sys.argv[1])
