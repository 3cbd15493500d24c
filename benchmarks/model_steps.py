# SPDX-License-Identifier: Apache-2.0
"""Compares a training step on cpu_sim with one on TensorFlow's CPU device."""

import os
import statistics
import sys

import building
import in_tensorflow

sys.path.append(str(building.ROOT / "tests/tensorflow"))

import harness  # noqa: E402

# oneDNN, and one thread for the kernels of cpu_sim as of TensorFlow.
ENVIRONMENT = {"TF_ENABLE_ONEDNN_OPTS": "1", "CPU_SIM_THREADS": "1"}

TEXT = """\
## Models on the simulated device

One training step (forward pass, gradients, `v.assign(v - 0.01 * g)`) in a
`tf.function`, on cpu_sim and on TensorFlow's CPU device with its default settings
(oneDNN), alternating in one process; soft placement off, one thread for kernels
(`intra_op`, `inter_op` and `CPU_SIM_THREADS` 1), tensors on the device, no metrics. A
user of Keras sees other figures: [fit.md](fit.md) has them. The figures are medians of the times and of the ratios
within the rounds, of wall time and of the processor time of all threads, which
depends less on other load. Between processes, the CPU's figures vary by up to a
factor of two (CNN: 33 and 60 ms of processor time), those of cpu_sim by a tenth, so
ratios below 1 are not guaranteed.

| Model | CPU, ms | cpu_sim, ms | Ratio | Ratio, processor time |
|---|--:|--:|--:|--:|
{rows}
"""

KERNELS = """\
## Kernels of the simulated device

The ops that take most of these steps, run eagerly: medians of {rounds} paired rounds of
{ops} ops, at the end of which one element is read, with one thread for kernels on both devices. The last column
is of the same op on tensors of one element, whose time is that of its launch:
TensorFlow does more work for an eager op on a device (see above), and two threads are
involved. Processor time is that of both.

| Op | CPU, us | cpu_sim, us | Ratio | Ratio of processor time | Ratio of the launches |
|---|--:|--:|--:|--:|--:|
{rows}
"""


def models(folder):
    """Returns (text, True)."""
    del folder
    os.environ["TFPLUG_CPU_SIM"] = str(building.build_example("cpu_sim"))
    rows = []
    for name in in_tensorflow.MODELS:
        answer = harness.run(in_tensorflow.time_model, name,
                             env=ENVIRONMENT)
        if answer.ok:
            wall = {kind: [t[0] for t in steps]
                    for kind, steps in answer.value.items()}
            ratios = [statistics.median(
                sim[i] / cpu[i] for sim, cpu in zip(answer.value["SIM"],
                                                    answer.value["CPU"]))
                for i in (0, 1)]
            cpu, sim = (statistics.median(wall[k]) for k in ("CPU", "SIM"))
            rows.append(f"| {name} | {cpu * 1e3:.1f} | {sim * 1e3:.1f} |"
                        f" {ratios[0]:.2f} | {ratios[1]:.2f} |")
        else:
            rows.append(f"| {name} | | failed | | |")
            building.say(answer)
        building.say(rows[-1])
    return TEXT.format(rows="\n".join(rows)), True


def kernels(folder):
    """Returns (text, True)."""
    del folder
    os.environ["TFPLUG_CPU_SIM"] = str(building.build_example("cpu_sim"))
    answer = harness.run(in_tensorflow.time_kernels,
                         env=ENVIRONMENT)
    if not answer.ok:
        raise SystemExit(f"tools/bench: the kernels failed: {answer}")
    times = answer.value

    def ratio(name, which):
        return statistics.median(sim[which] / cpu[which] for sim, cpu in zip(
            times[name]["SIM"], times[name]["CPU"]))

    def microseconds(name, kind):
        return statistics.median(wall for wall, _ in times[name][kind]) * 1e6

    rows = [f"| {name} | {microseconds(name, 'CPU'):.0f} |"
            f" {microseconds(name, 'SIM'):.0f} | {ratio(name, 0):.2f} |"
            f" {ratio(name, 1):.2f} | {ratio(f'{name}, one element', 0):.2f} |"
            for name in times if not name.endswith("one element")]
    return KERNELS.format(rows="\n".join(rows), rounds=in_tensorflow.ROUNDS,
                          ops=in_tensorflow.OPS_PER_ROUND), True
