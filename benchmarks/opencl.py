# SPDX-License-Identifier: Apache-2.0
"""Measures examples/opencl and the generated kernels on this machine's OpenCL
driver, and prints docs/measured/opencl.md:

    tools/bench opencl [--rounds N] [--write FILE]

Opponents on the same driver: tinygrad, which also generates its kernels, CLBlast
(Debian: libclblast-dev), copies of the driver, and a launch written by hand."""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import building
import callgrind

TINYGRAD = "tinygrad==0.14.0"
STEPS = 30
FIRST = 5  # of the steps that are timed; tinygrad records the second and third
LAUNCHES = 100  # of benchmarks/launches.h

TEXT = """\
# Generated kernels on OpenCL

Written by `tools/bench opencl --write docs/measured/opencl.md`; do not edit. Measured
on {device}, the driver of which runs on the CPU; other work ran at the same time, so
only figures of one row may be compared.

## Training steps

Adam, wall time of a step that copies the loss back: medians of {rounds} rounds, in
which the processes alternate. tinygrad {tinygrad} (`DEV=CL`, `TinyJit`) uses the same
driver, network and batch. TensorFlow's CPU device (oneDNN) is given for comparison: it
uses neither OpenCL nor generated kernels.

| network | tinygrad, ms | tfplug, ms | times faster | TensorFlow's CPU, ms |
|---|--:|--:|--:|--:|
{training}

## First step of the CNN

A new process; the time includes what TensorFlow itself needs for tracing.

| caches | seconds |
|---|--:|
{first}

## Kernels

{kernels}

## Launches

Instructions of the calling thread for a launch of a sum of three vectors, compared with
one written by hand for this kernel and size: `clSetKernelArg` for each argument,
`clEnqueueNDRangeKernel` and `clFlush`; a command buffer with barriers, arguments in
memory, `vkCmdBindPipeline`, `vkCmdPushConstants` and `vkCmdDispatch`, and its
submission; or `cuCtxSetCurrent` and `cuLaunchKernel` (examples/cuda_like). tfplug's launches work for any size: the first one finds the loops,
the program and its parameters; later ones look these up, and are the ones that are
counted here. `MapFlat` looks up the expression and the number of elements: kernels use
it for tensors of equal shapes and scalars. `Map` describes and compares the dimensions
and strides of each operand.

| driver | by hand | MapFlat | ratio | Map | ratio |
|---|--:|--:|--:|--:|--:|
{launches}

CUDA takes all arguments in one call, so a launch by hand on a driver that does nothing is
a few dozen instructions. The others are tfplug's: a call through the table of primitives,
the comparison of the expression and the size with those of known launches, a copy of the
parameters, the list of arguments, and a status of each call.
"""


def build(folder):
    """Returns the program and the plug-in."""
    source = building.ROOT / "examples/opencl"
    program = building.build_program(
        [building.ROOT / "benchmarks/opencl.cc", source / "opencl.cc",
         source / "driver.cc"],
        folder / "opencl", ["-I", source, "-I", building.ROOT / "benchmarks"])
    return program, building.build_example("opencl")


def build_cuda_like(folder):
    """Returns the program that launches kernels with examples/cuda_like, and the
    emulated driver."""
    source = building.ROOT / "examples/cuda_like"
    program = building.build_program(
        [building.ROOT / "benchmarks/cuda_like.cc", source / "driver/driver.cc",
         *(source / f"{name}.cc" for name in ("backend", "blas", "cuda_like", "timer"))],
        folder / "cuda_like", ["-I", source, "-I", building.ROOT / "benchmarks"])
    return program, building.build_example("cuda_like", "libcuda_like.so")


def build_vulkan(folder):
    """Returns the program that launches kernels with examples/vulkan."""
    source = building.ROOT / "examples/vulkan"
    return building.build_program(
        [building.ROOT / "benchmarks/vulkan.cc", source / "vulkan.cc",
         source / "driver.cc"],
        folder / "vulkan", ["-I", source, "-I", building.ROOT / "benchmarks"],
        [f"-l{name}" for name in
         ("glslang", "MachineIndependent", "GenericCodeGen", "OGLCompiler",
          "OSDependent", "SPIRV", "SPIRV-Tools-opt", "SPIRV-Tools",
          "glslang-default-resource-limits")])


def python_of_tinygrad(folder):
    building.run(sys.executable, "-m", "venv", folder / "venv")
    python = folder / "venv/bin/python"
    building.run(python, "-m", "pip", "install", "--quiet", TINYGRAD)
    return python


def steps(python, device, model, count, plugin=None, **settings):
    command = [python, building.ROOT / "benchmarks/opencl_steps.py", device, model,
               count, *([plugin] if plugin else [])]
    result = subprocess.run([str(word) for word in command], text=True,
                            capture_output=True, env={**os.environ, **settings})
    if result.returncode != 0:
        raise SystemExit(f"Failed: {command}\n{result.stderr[-2000:]}")
    return json.loads(result.stdout.splitlines()[-1])


def training(folder, plugin, rounds):
    tinygrad = python_of_tinygrad(folder)
    ways = {"tinygrad": (tinygrad, "tinygrad"), "tfplug": (sys.executable, "OPENCL"),
            "cpu": (sys.executable, "CPU")}
    rows = []
    for model in ("mlp", "cnn"):
        times = {way: [] for way in ways}
        for _ in range(rounds):
            for way, (python, device) in ways.items():
                library = plugin if way == "tfplug" else None
                times[way].append(1e3 * statistics.median(
                    steps(python, device, model, STEPS, library)[FIRST:]))
        faster = statistics.median(
            a / b for a, b in zip(times["tinygrad"], times["tfplug"]))
        medians = {way: f"{statistics.median(t):.1f}" for way, t in times.items()}
        rows.append(building.row([model.upper(), medians["tinygrad"],
                                  medians["tfplug"], f"{faster:.1f}",
                                  medians["cpu"]]))
    return "\n".join(rows)


def first_steps(folder, plugin):
    settings = {"TFPLUG_CACHE_DIR": str(folder / "ours"),
                "POCL_CACHE_DIR": str(folder / "theirs")}
    rows = []
    for what in ("empty", "tfplug's and the driver's", "tfplug's alone"):
        if what == "tfplug's alone":
            settings["POCL_CACHE_DIR"] = str(folder / "empty")
        for path in settings.values():
            pathlib.Path(path).mkdir(exist_ok=True)
        first = steps(sys.executable, "OPENCL", "cnn", 20, plugin, **settings)[0]
        rows.append(building.row([what, f"{first:.2f}"]))
    return "\n".join(rows)


def launches(opencl, vulkan, cuda_like, emulator, folder):
    """Returns the rows of launches of the three programs."""
    rows = []
    for program, part, name in ((opencl, "launches", "OpenCL, this driver"),
                                (opencl, "stub", "OpenCL, returns at once"),
                                (vulkan, "stub", "Vulkan, returns at once"),
                                (vulkan, "working", "the same, at work"),
                                (cuda_like, "launches", "CUDA, emulated"),
                                (cuda_like, "stub", "CUDA, returns at once")):
        costs = []
        for function in ("measured_by_hand", "measured_flat", "measured_views"):
            report = folder / f"{program.name}.{part}.{function}"
            building.run("env", f"CUDA_LIKE_DRIVER={emulator}",
                         "valgrind", "--tool=callgrind", "--collect-atstart=no",
                         f"--toggle-collect=*{function}*", "--quiet",
                         f"--callgrind-out-file={report}", program, part)
            costs.append(sum(callgrind.self_costs(report).values()) / LAUNCHES)
        cells = [name, f"{costs[0]:,.0f}"]
        for cost in costs[1:]:
            cells += [f"{cost:,.0f}", f"{cost / costs[0]:.2f}"]
        rows.append(building.row(cells))
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(prog="tools/bench opencl",
                                     description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program, plugin = build(folder)
        kernels = building.run(program)
        device = re.search(r"Device: (.*)\n+", kernels)
        text = TEXT.format(
            device=device[1], rounds=options.rounds,
            tinygrad=TINYGRAD.partition("==")[2],
            kernels=kernels.replace(device[0], "").strip(),
            training=training(folder, plugin, options.rounds),
            first=first_steps(folder, plugin),
            launches=launches(program, build_vulkan(folder),
                              *build_cuda_like(folder), folder))
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
