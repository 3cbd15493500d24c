# SPDX-License-Identifier: Apache-2.0
"""What a kernel's launch costs: instructions, beside the same kernel by hand."""

import building
import callgrind

TEXT = """\
## Instructions per launch

The same kernels twice, on the devices above: `benchmarks/by_hand/kernels_by_hand.cc`
and `kernels_framework.cc`. Callgrind counts one run of each: all of it, with the
driver and with a core whose functions do what TensorFlow's do in as few
instructions as that takes (`benchmarks/kernel_host.cc`: a tensor handed out
is a handle on the heap). The last two columns are the plug-in's own code alone.
The goal: no ratio above 1.00.

| Kernel | By hand | Framework | Ratio | Own, by hand | Own, framework |
|---|--:|--:|--:|--:|--:|
{rows}

Both check each call of core's, free each tensor on each way out, and compare
what has to agree. By hand a run makes a `TF_Status` and deletes it; the framework's
kernel keeps one from run to run. In its own code the framework also looks at the
type of each tensor that it hands out as `flat<T>()`, at the stream's class, at
every dimension of an output (core ends the process over some), and at whether
every output was set.
"""

WHAT = {
    "Scale": "one input, an attribute",
    "Add": "two inputs, their shapes compared",
    "Fill": "the shape from host memory",
    "AsyncCopy": "asynchronous, finished by the stream",
}


def launches(folder):
    """(text, whether no ratio is above 1)."""
    host = building.build_program(
        [building.ROOT / "benchmarks/kernel_host.cc"],
        folder / "kernel_host",
        ["-Wl,--export-dynamic"],
    )
    by_hand, framework = building.build_plugins(folder)
    rows, worst = [], 0
    for op in building.run(host, "--list").split():
        hand = callgrind.count(host, by_hand, op, folder)
        ours = callgrind.count(host, framework, op, folder)
        ratio = ours.total / hand.total
        worst = max(worst, ratio)
        rows.append(
            f"| `{op}`: {WHAT[op]} | {hand.total:.0f} | {ours.total:.0f} |"
            f" {ratio:.2f} | {hand.own:.0f} | {ours.own:.0f} |"
        )
        building.say(rows[-1])
    return TEXT.format(rows="\n".join(rows)), worst <= 1
