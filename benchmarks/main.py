# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of tfplug and writes it as Markdown: see tools/bench."""

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
import profile_cost

INTRODUCTION = """\
# Cost

Written by `tools/bench --write docs/measured/bench.md`; do not edit. Measured on
{machine}.
"""

INSTRUCTIONS = """\
## Instructions per call

The same device is written twice over one driver: against the C API alone
(`benchmarks/by_hand/by_hand.cc`) and as C++ classes
(`benchmarks/by_hand/framework.h`). Callgrind counts the instructions of one
successful call of each function of `SP_StreamExecutor`, including the driver,
`TF_SetStatus` and other functions of TensorFlow, and libraries (`malloc`,
`memmove`). The last two columns count the plug-in's own code only. The goal: no
ratio above 1.00.

| Function | By hand | tfplug | Ratio | Own, by hand | Own, tfplug |
|---|--:|--:|--:|--:|--:|
{rows}

Both versions have the same behavior. They accept null, check `struct_size`, count
allocations, and lock the event used by `create_stream_dependency`. A
`record_event` that fails waits for the device, because TensorFlow polls the event
anyway. A copy to the device that TensorFlow has not ordered waits for the other
streams: `memcpy_htod:constant` is such a copy, with one other stream;
`memcpy_htod` follows a `create_stream_dependency`, as all other copies of
TensorFlow do. tfplug also converts exceptions to statuses, which costs
nothing on the fast path.

Two choices affect the figures:

* A tfplug plug-in calls TensorFlow through a table that it fills itself; a
  plug-in linked to `TF_SetStatus` calls through the linker's table, which takes
  one more instruction. Built with `-fno-plt`, the version by hand avoids that
  instruction; three ratios then exceed 1: `create_event` and
  `create_stream_dependency` (1.02) and `host_callback` (1.01).
* Failures are constructed in cold functions: `Failure` in `framework.h`, `Fail`
  in `by_hand.cc`. A hook that constructs its status in place takes about 4 more
  instructions (at most 9), because the compiler reserves stack and registers.
"""

COMPILE = """\
## Time to compile

Processor time of `{compiler} -O2` for a file that contains only these includes;
medians of {rounds} rounds, and of the ratios within each round.

| Includes | Seconds | ÷ C headers | ÷ C headers and Abseil |
|---|--:|--:|--:|
{rows}

The last line is the minimum for any header that returns `absl::StatusOr`. A file
that only defines a device can include the device's headers alone. All typed ops
take {ops:.3f} s (limit: 0.1), the median of the differences within the rounds.
"""

SIZE = """\
## Size

The stripped library of a minimal device, `tests/consumer/minimal_device.cc`,
including Abseil: **{kilobytes:.0f} KB** (goal: below 200). Most of it is Abseil's
`Status` and the `Cord` of its payloads.
"""

CPU_SIM = """\
## The simulated device

`examples/cpu_sim` in strict mode with one stream; medians of wall time, which are
meaningful only on an otherwise idle machine. Bandwidth is that of copies from host
to device, enqueued and awaited, ÷ that of `memcpy` of the same size.

| Measure | |
|---|--:|
| From enqueueing a host task to its start, stream busy polling | {awake} µs |
| The same, stream idle for 0.5 ms | {asleep} µs |
| Cost per task of many tasks enqueued in a row | {task} ns |
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


# In the order of the document. Each part returns a section, which begins with its
# title, and whether the section meets its goal.
PARTS = {
    "instructions": instructions,
    "kernels": kernels.launches,
    "regions": kernels.repeated,
    "eager": eager.eager,
    "compile": compile_times,
    "size": size,
    "cpu_sim": cpu_sim,
    "profile": profile_cost.section,
    "models": model_steps.models,
    "model_kernels": model_steps.kernels,
}
# Measured only on request: these take many minutes.
LONG = {"models", "model_kernels"}


def title(text):
    """Returns the first line of a section, such as "## Size"."""
    return text.split("\n", 1)[0]


def sections(text):
    """Returns {title: section} of a document written by this program."""
    found = ["## " + part for part in text.split("\n## ")[1:]]
    return {title(part): part.rstrip("\n") + "\n" for part in found}


def merge(old, new):
    """Returns the old document with its sections replaced by the `new` ones, in the
    order of PARTS. Sections are identified by their titles."""
    order = [title(text) for text in (
        INSTRUCTIONS, kernels.TEXT, kernels.REPEATED, eager.TEXT, COMPILE, SIZE, CPU_SIM,
        profile_cost.TITLE, model_steps.TEXT, model_steps.KERNELS)]
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
