# SPDX-License-Identifier: Apache-2.0
"""What an eager op costs in stock TensorFlow, on each device."""

import statistics
import sys

import building
import in_tensorflow

sys.path.append(str(building.ROOT / "tests/tensorflow"))

import harness  # noqa: E402

TEXT = """\
## An eager op in TensorFlow

`tf.raw_ops.Add` of two tensors of six floats in TensorFlow {release}, in a loop, on
the devices of the yardstick and on `examples/cpu_sim`, beside TensorFlow's own
CPU kernel: wall time of one op, medians of {rounds} rounds of {ops} ops on each device
in turn; a ratio is the median of those within the rounds.

| Device | µs | Ratio |
|---|--:|--:|
{rows}

The yardstick's kernels run at once, on the calling thread; cpu_sim's put a task
on the stream's own thread, which on a machine of few cores competes with the
one that enqueues. On a device TensorFlow itself does more than on the CPU: the
allocator, and the stream's bookkeeping.
"""


def eager(folder):
    """(text, True)."""
    by_hand, framework = building.build_plugins(folder)
    plugins = [by_hand, framework, building.build_cpu_sim()]
    answer = harness.run(in_tensorflow.time_ops, [str(p) for p in plugins],
                         plugin=False)
    if not answer.ok:
        raise SystemExit(f"tools/bench: an eager op: {answer}")
    release, times = answer.value

    def ratio(a, b):
        return statistics.median(x / y for x, y in zip(times[a], times[b]))

    def row(kind, name, other, what):
        ratio_to = f"{ratio(kind, other):.2f} of {what}" if other else ""
        seconds = statistics.median(times[kind])
        return f"| {name} | {seconds * 1e6:.1f} | {ratio_to} |"

    rows = [
        row("CPU", "TensorFlow's CPU", None, ""),
        row("BY_HAND", "yardstick, by hand", "CPU", "the CPU's"),
        row("FRAMEWORK", "yardstick, framework", "BY_HAND", "by hand"),
        row("SIM", "cpu_sim", "CPU", "the CPU's"),
    ]
    return TEXT.format(release=release, rounds=in_tensorflow.ROUNDS,
                       ops=in_tensorflow.OPS, rows="\n".join(rows)), True
