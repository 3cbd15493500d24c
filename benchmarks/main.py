# SPDX-License-Identifier: Apache-2.0
"""What tfplug costs, measured and written as Markdown: see tools/bench."""

import argparse
import pathlib
import platform
import sys
import tempfile

import building
import callgrind
import compile_time
import eager
import kernels
import model_steps

INTRODUCTION = """\
# What it costs

Written by `tools/bench --write docs/measured/bench.md`; do not edit. Last on this machine:
{machine}.
"""

INSTRUCTIONS = """\
## Instructions per call

The same device twice over one driver: `benchmarks/by_hand/by_hand.cc`, written
against the C API alone, and `benchmarks/by_hand/framework.h`, C++ classes.
Callgrind counts one call of each function of `SP_StreamExecutor` on the way of
success: all of it, with the driver, with `TF_SetStatus` and the other functions
of core, and with what libraries do (`malloc`, `memmove`). The last two columns
are the plug-in's own code alone. The goal: no ratio above 1.00.

| Function | By hand | Framework | Ratio | Own, by hand | Own, framework |
|---|--:|--:|--:|--:|--:|
{rows}

Both do the same: null is let pass, core's `struct_size` is looked at,
allocations are counted, the event behind `create_stream_dependency` is locked,
a `record_event` that fails waits for the device, since core polls the event all
the same, and a copy to the device that core has not ordered waits for the other
streams: `memcpy_htod:constant`, with one other stream, is such a copy;
`memcpy_htod` is one behind `create_stream_dependency`, as core makes all others.
The framework turns exceptions into statuses besides, at no cost on the way of
success.

What the figures rest on:

* A plug-in of ours calls core through a table that it has filled itself; one
  that is linked to `TF_SetStatus` goes through the linker's, which is one
  instruction more. Built with `-fno-plt`, the one by hand saves that; three
  ratios are above 1 then: `create_event` and `create_stream_dependency` (1.02)
  and `host_callback` (1.01).
* A failure is made in a cold function: `Failure` in `framework.h`, `Fail` in
  `by_hand.cc`. A hook that makes its status in place, where the compiler keeps
  room and registers for it, takes some 4 instructions more (9 at most).
"""

COMPILE = """\
## Time to compile

Processor time of `{compiler} -O2` for a file that only includes; medians of
{rounds} rounds, and of the ratios within each round.

| Includes | Seconds | ÷ C headers | ÷ C headers and Abseil |
|---|--:|--:|--:|
{rows}

The last line is the floor for whatever returns `absl::StatusOr`. A file that
only defines the device may include the device's half alone. All typed ops take
{ops:.3f} s (the limit: 0.1), the median of the differences within the rounds.
"""

SIZE = """\
## Size

The library of a minimal device, `tests/consumer/minimal_device.cc`, Abseil
included, stripped: **{kilobytes:.0f} KB** (the goal: below 200). Most of it is Abseil's
`Status` with what its payloads need (`Cord`).
"""

CPU_SIM = """\
## The simulated device

`examples/cpu_sim`, strict mode, one stream; medians, in wall time, which only
tells something on a machine that is idle otherwise. Bandwidth is that of copies
from host to device, enqueued and waited for, ÷ that of `memcpy` of as much.

| Measure | |
|---|--:|
| From enqueueing a host task to its start, stream awake | {awake} µs |
| The same, stream asleep for 0.5 ms | {asleep} µs |
| Cost of one of many tasks enqueued in a row | {task} ns |
{bandwidth}
"""


def machine():
    name = platform.machine()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            name = line.split(":")[1].strip()
            break
    compiler = building.run(*building.CXX, "-dumpfullversion").strip()
    return f"{name}; {building.CXX[0]} {compiler}"


def instructions(folder):
    host = building.build_program(
        [building.ROOT / "benchmarks/host.cc"],
        folder / "host",
        ["-Wl,--export-dynamic"],
    )
    by_hand, framework = building.build_plugins(folder)
    rows, worst = [], 0
    for slot in building.run(host, "--list").split():
        hand = callgrind.count(host, by_hand, slot, folder)
        ours = callgrind.count(host, framework, slot, folder)
        ratio = ours.total / hand.total
        worst = max(worst, ratio)
        rows.append(
            f"| `{slot}` | {hand.total:.0f} | {ours.total:.0f} | {ratio:.2f} |"
            f" {hand.own:.0f} | {ours.own:.0f} |"
        )
        building.say(rows[-1])
    return INSTRUCTIONS.format(rows="\n".join(rows)), worst <= 1


def compile_times(folder):
    measured, ops = compile_time.measure(folder)
    rows = [
        f"| {name} | {seconds:.2f} | {c_headers:.1f} | {floor:.2f} |"
        for name, seconds, c_headers, floor in measured
    ]
    text = COMPILE.format(
        compiler=building.CXX[0],
        rounds=compile_time.ROUNDS,
        ops=ops,
        rows="\n".join(rows),
    )
    return text, True


def size(folder):
    library = building.build_minimal(folder)
    return SIZE.format(kilobytes=library.stat().st_size / 1000), True


def cpu_sim(folder):
    example = building.ROOT / "examples/cpu_sim"
    program = building.build_program(
        [
            building.ROOT / "benchmarks/cpu_sim.cc",
            *sorted(example.glob("runtime/*.cc")),
        ],
        folder / "cpu_sim",
        ["-I", example],
    )
    values = dict(line.split() for line in building.run(program).splitlines())
    bandwidth = "\n".join(
        f"| Bandwidth ÷ `memcpy`'s, {name.split('_')[1]} KiB a copy |"
        f" {float(value):.2f} |"
        for name, value in values.items()
        if name.startswith("bandwidth")
    )
    text = CPU_SIM.format(
        awake=values["latency_awake_us"],
        asleep=values["latency_asleep_us"],
        task=values["task_ns"],
        bandwidth=bandwidth,
    )
    return text, True


# In the order of the document. A part gives one section, which begins with its
# title, and whether it is as good as it has to be.
PARTS = {
    "instructions": instructions,
    "kernels": kernels.launches,
    "eager": eager.eager,
    "compile": compile_times,
    "size": size,
    "cpu_sim": cpu_sim,
    "models": model_steps.models,
    "model_kernels": model_steps.kernels,
}
# Not measured unless asked for: it takes many minutes.
LONG = {"models", "model_kernels"}


def title(text):
    """"## Size" of a section."""
    return text.split("\n", 1)[0]


def sections(text):
    """{title: section} of a document that this wrote."""
    found = ["## " + part for part in text.split("\n## ")[1:]]
    return {title(part): part.rstrip("\n") + "\n" for part in found}


def merge(old, new):
    """The document with `new` sections and what it had beside them, in order;
    a part's title is a constant, so that it tells where an old section goes."""
    order = [title(text) for text in (
        INSTRUCTIONS, kernels.TEXT, eager.TEXT, COMPILE, SIZE, CPU_SIM,
        model_steps.TEXT, model_steps.KERNELS)]
    merged = sections(old) | {title(text): text for text in new}
    return "\n".join(merged[t] for t in order if t in merged)


def main():
    parser = argparse.ArgumentParser(prog="tools/bench")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--only", nargs="+", choices=PARTS,
                        default=[name for name in PARTS if name not in LONG])
    args = parser.parse_args()
    texts, good = [], True
    with tempfile.TemporaryDirectory() as folder:
        for name in args.only:
            building.say(f"{name} ...")
            text, part_is_good = PARTS[name](pathlib.Path(folder))
            texts.append(text)
            good = good and part_is_good
    introduction = INTRODUCTION.format(machine=machine())
    print("\n".join([introduction, *texts]))
    if args.write:
        old = args.write.read_text() if args.write.exists() else ""
        args.write.write_text(introduction + "\n" + merge(old, texts))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
