# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of a kernel launch, compared with hand-written kernels."""

import building
import callgrind

TEXT = """\
## Instructions per launch

The same kernels are written twice for the devices above:
`benchmarks/by_hand/kernels_by_hand.cc` and `kernels_framework.cc`. Callgrind counts
one run of each, including the driver and a fake TensorFlow whose functions do the
necessary work in as few instructions as possible (`benchmarks/kernel_host.cc`; each
tensor is a handle on the heap). The last two columns count the plug-in's own code
only. The goal: no ratio above 1.00.

| Kernel | By hand | tfplug | Ratio | Own, by hand | Own, tfplug |
|---|--:|--:|--:|--:|--:|
{rows}

Both versions check every call to TensorFlow, free every tensor on every path, and
compare the shapes that must agree. By hand, each run creates and deletes a
`TF_Status`; tfplug's kernel reuses one. tfplug also validates the type
of each tensor accessed with `flat<T>()`, the class of the stream, each dimension of
an output (TensorFlow aborts on some values), and that all outputs were set.
"""

DESCRIPTIONS = {
    "Scale": "one input, one attribute",
    "Add": "two inputs whose shapes are compared",
    "Fill": "shape in host memory",
    "AsyncCopy": "asynchronous, completed by the stream",
}


def launches(folder):
    """Returns (text, whether no ratio is above 1)."""
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
            f"| `{op}`: {DESCRIPTIONS[op]} | {hand.total:.0f} | {ours.total:.0f} |"
            f" {ratio:.2f} | {hand.own:.0f} | {ours.own:.0f} |"
        )
        building.say(rows[-1])
    return TEXT.format(rows="\n".join(rows)), worst <= 1


REPEATED = """\
## Instructions per repeated launch

A region (`TFPLUG_REGIONS=1`) repeats the launches that it has recorded. Callgrind counts
what one costs on the host before the backend's primitive begins
(`benchmarks/region.cc`): the copy of its operands, and their addresses in this run. None
allocates memory or takes a lock.

| Launch | Operands | Instructions |
|---|--:|--:|
{rows}
"""


def repeated(folder):
    """Returns (text, True)."""
    program = building.build_program(
        [building.ROOT / "benchmarks/region.cc"], folder / "region")
    rows = []
    for line in building.run(program, "--list").splitlines():
        launch, operands = line.split()
        report = folder / f"region.{launch}"
        building.run("valgrind", "--tool=callgrind", "--collect-atstart=no",
                     "--toggle-collect=*measured*", "--quiet",
                     f"--callgrind-out-file={report}", program, launch,
                     callgrind.CALLS)
        costs = callgrind.self_costs(report)
        if any("malloc" in function for _, function in costs):
            raise RuntimeError(f"A repeated {launch} allocates memory.")
        count = sum(costs.values()) / callgrind.CALLS
        rows.append(building.row([f"`{launch}`", operands, f"{count:.0f}"]))
        building.say(rows[-1])
    return REPEATED.format(rows="\n".join(rows)), True
