# SPDX-License-Identifier: Apache-2.0
"""The cost of a profile: steps of a CNN with and without one.

In one process, rounds of steps without and with a profile take turns, in random order
within each pair. TensorFlow records events of its own even if its tracers are off; how
much that costs shows a copy of the plug-in without a profiler.

On a busy device, the times of the kernels in a profile add up to those of the steps.
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

ROUNDS, STEPS = 40, 20
TITLE = "## A profile"


def _busy(plugin, device):
    """Runs in a process of its own; prints the milliseconds of five steps and of their
    kernels as JSON."""
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.framework import load_library
    load_library.load_pluggable_device_library(plugin)
    from tensorflow.tsl.profiler.protobuf import xplane_pb2
    layers = tf.keras.layers
    with tf.device(f"{device}:0"), tempfile.TemporaryDirectory() as folder:
        model = tf.keras.Sequential([
            tf.keras.Input((32, 32, 3)),
            layers.Conv2D(64, 3, padding="same", activation="relu"),
            layers.Conv2D(64, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(128, 3, padding="same", activation="relu"),
            layers.Flatten(), layers.Dense(10)])
        model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(
            from_logits=True))
        draw = np.random.default_rng(0)
        batch = (draw.normal(size=(64, 32, 32, 3)).astype(np.float32),
                 draw.integers(0, 10, 64))
        for _ in range(3):
            model.train_on_batch(*batch)
        tf.profiler.experimental.start(folder)
        for i in range(5):
            with tf.profiler.experimental.Trace("train", step_num=i, _r=1):
                model.train_on_batch(*batch)
        tf.profiler.experimental.stop()
        file, = pathlib.Path(folder).rglob("*.xplane.pb")
        planes = xplane_pb2.XSpace.FromString(file.read_bytes()).planes
    steps = kernels = 0
    for plane in planes:
        for line in plane.lines:
            is_device = plane.name.startswith("/device") and "Compute" in line.name
            kernels += sum(event.duration_ps for event in line.events if is_device)
            steps += sum(event.duration_ps for event in line.events
                         if plane.event_metadata[event.metadata_id].name == "train")
    print(json.dumps([steps / 1e9, kernels / 1e9]))


def _cost(plugin):
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


def _in_process(*arguments):
    """Returns the result of a function above, in a process of its own."""
    out = subprocess.run([sys.executable, "-B", __file__, *arguments], check=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return json.loads(out.stdout.splitlines()[-1])


def _without_profiler(plugin, folder):
    """Returns a copy of `plugin` in which TensorFlow finds no TF_InitProfiler."""
    library = plugin.read_bytes()
    assert b"TF_InitProfiler\0" in library
    copy = pathlib.Path(folder) / plugin.name
    copy.write_bytes(library.replace(b"TF_InitProfiler\0", b"TF_InitProfileX\0"))
    return copy


def _cost_row(name, plugin):
    result = _in_process(str(plugin))
    without, with_profile = zip(*result["pairs"])
    ratios = [b / a for a, b in result["pairs"]]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return building.row([
        name, f"{1e3 * statistics.median(without):.2f} ms",
        f"{1e3 * statistics.median(with_profile):.2f} ms",
        f"{middle:.3f} ({low:.3f}–{high:.3f})",
        f"{result['bytes'] / STEPS / 1024:.0f} KiB"])


def _busy_rows():
    """Returns a row for each device."""
    plugins = {"cpu_sim": ("SIM", building.build_example("cpu_sim"))}
    if pathlib.Path("/etc/OpenCL/vendors").is_dir():
        plugins["opencl"] = ("OPENCL", building.build_example("opencl"))
    rows = []
    for name, (device, plugin) in plugins.items():
        steps, kernels = _in_process(str(plugin), device)
        rows.append(building.row([f"`examples/{name}`", f"{steps:.0f} ms",
                                  f"{kernels:.0f} ms", f"{kernels / steps:.3f}"]))
    return "\n".join(rows)


def section(_):
    """Returns the section of docs/measured/bench.md."""
    plugin = building.build_example("cpu_sim")
    with tempfile.TemporaryDirectory() as folder:
        rows = [_cost_row("TensorFlow's events alone",
                          _without_profiler(plugin, folder)),
                _cost_row("and the device's profiler", plugin)]
    text = f"""{TITLE}

A step of a CNN of two convolutions on `examples/cpu_sim`, 64 images of 28 × 28 pixels,
forward and backward with Adam: {STEPS} steps without and {STEPS} with a profile,
{ROUNDS} times, in random order, with TensorFlow's own tracers off. Processor time of
all threads, which depends less on other load. The goal: the device's profiler adds at
most 3 %.

| | Without a profile | With a profile | Ratio: median (quartiles) | Profile |
|---|--:|--:|--:|--:|
{chr(10).join(rows)}

While nothing is recorded, a launch takes as many instructions as without a profiler:
see above.

Five steps of a larger CNN, which keeps the device busy: its kernels, as the profile has
them, take about as long as the steps. The goal: within 5 %.

| | Steps | Kernels | Ratio |
|---|--:|--:|--:|
{_busy_rows()}
"""
    return text, True


if __name__ == "__main__":
    _busy(*sys.argv[1:]) if sys.argv[2:] else _cost(sys.argv[1])
