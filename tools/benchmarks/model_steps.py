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
either (`intra_op` and `inter_op` 1). Medians in wall time, and the median of the
ratios within the rounds.

| Model | CPU, ms | cpu_sim, ms | Ratio |
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
            times = answer.value
            cpu, sim = (statistics.median(times[k]) for k in ("CPU", "SIM"))
            ratio = statistics.median(
                a / b for a, b in zip(times["SIM"], times["CPU"]))
            rows.append(f"| {name} | {cpu * 1e3:.1f} | {sim * 1e3:.1f} |"
                        f" {ratio:.2f} |")
        else:
            rows.append(f"| {name} | | does not run | |")
            building.say(answer)
        building.say(rows[-1])
    return TEXT.format(rows="\n".join(rows)), True
