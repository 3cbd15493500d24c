# SPDX-License-Identifier: Apache-2.0
"""Measures an eager op in stock TensorFlow on each device."""

import statistics
import sys

import building
import in_tensorflow

sys.path.append(str(building.ROOT / "tests/tensorflow"))

import harness  # noqa: E402

TEXT = """\
## An eager op in TensorFlow

`tf.raw_ops.Add` of two tensors of six floats in TensorFlow {release}, in a loop, on
the two devices of `benchmarks/by_hand`, on `examples/cpu_sim`, and with TensorFlow's
own CPU kernel: wall time of one op, medians of {rounds} rounds of {ops} ops on each
device in turn. A ratio is the median of the ratios within the rounds.

| Device | µs | Ratio |
|---|--:|--:|
{rows}

The kernels in `benchmarks/by_hand` run on the calling thread; those of cpu_sim
enqueue a task for the stream's thread, which on a machine with few cores competes
with the enqueueing thread. On a device, TensorFlow itself does more work than on the
CPU: it calls the allocator and keeps track of streams.
"""


def eager(folder):
    """Returns (text, True)."""
    by_hand, framework = building.build_plugins(folder)
    plugins = [by_hand, framework, building.build_example("cpu_sim")]
    answer = harness.run(in_tensorflow.time_ops, [str(p) for p in plugins],
                         plugin=False)
    if not answer.ok:
        raise SystemExit(f"tools/bench: the eager op failed: {answer}")
    release, times = answer.value

    def ratio(a, b):
        return statistics.median(x / y for x, y in zip(times[a], times[b]))

    def row(kind, name, other, reference):
        ratio_to = f"{ratio(kind, other):.2f} × {reference}" if other else ""
        seconds = statistics.median(times[kind])
        return f"| {name} | {seconds * 1e6:.1f} | {ratio_to} |"

    rows = [
        row("CPU", "TensorFlow's CPU", None, ""),
        row("BY_HAND", "by hand", "CPU", "CPU"),
        row("FRAMEWORK", "tfplug", "BY_HAND", "by hand"),
        row("SIM", "cpu_sim", "CPU", "CPU"),
    ]
    return TEXT.format(release=release, rounds=in_tensorflow.ROUNDS,
                       ops=in_tensorflow.OPS, rows="\n".join(rows)), True
