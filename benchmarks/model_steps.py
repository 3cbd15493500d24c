# SPDX-License-Identifier: Apache-2.0
"""The time of a training step on cpu_sim, beside TensorFlow's CPU device."""

import os
import statistics
import sys

import building
import in_tensorflow

sys.path.append(str(building.ROOT / "tests/tensorflow"))

import harness  # noqa: E402

TEXT = """\
## Models on the simulated device

One training step (forward, gradients, `v.assign(v - 0.01 * g)`) in a
`tf.function`, on cpu_sim and on TensorFlow's CPU device as it is by default (with
oneDNN), in turn in one process; soft placement off, one thread for kernels on
either (`intra_op` and `inter_op` 1). Medians, and the medians of the ratios within
the rounds: of wall time, and of the processor time of all threads, which a busy
machine changes less. From process to process the CPU's figures differ by up to a
factor of two (the CNN: 33 and 60 ms of processor time), cpu_sim's by a tenth, so
that a ratio below 1 is no promise.

| Model | CPU, ms | cpu_sim, ms | Ratio | Ratio, processor time |
|---|--:|--:|--:|--:|
{rows}
"""

KERNELS = """\
## Kernels of the simulated device

What those steps are mostly made of, one op at a time, eagerly: processor time of
one, copied back once in ten; medians. Of small ones the launch is a large
part: for an eager op on a device TensorFlow does more (see above), and two threads
have to do with it.

| Op | CPU, ms | cpu_sim, ms | Ratio |
|---|--:|--:|--:|
{rows}
"""


def models(folder):
    """(text, True)."""
    del folder
    os.environ["TFPLUG_CPU_SIM"] = str(building.build_cpu_sim())
    rows = []
    for name in in_tensorflow.MODELS:
        answer = harness.run(in_tensorflow.time_model, name,
                             env={"TF_ENABLE_ONEDNN_OPTS": "1"})
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
            rows.append(f"| {name} | | does not run | | |")
            building.say(answer)
        building.say(rows[-1])
    return TEXT.format(rows="\n".join(rows)), True


def kernels(folder):
    """(text, True)."""
    del folder
    os.environ["TFPLUG_CPU_SIM"] = str(building.build_cpu_sim())
    answer = harness.run(in_tensorflow.time_kernels,
                         env={"TF_ENABLE_ONEDNN_OPTS": "1"})
    if not answer.ok:
        raise SystemExit(f"tools/bench: kernels: {answer}")
    rows = [f"| {name} | {t['CPU'] * 1e3:.2f} | {t['SIM'] * 1e3:.2f} |"
            f" {t['SIM'] / t['CPU']:.2f} |" for name, t in answer.value.items()]
    return KERNELS.format(rows="\n".join(rows)), True
