# SPDX-License-Identifier: Apache-2.0
"""Measures the compile time of plugin.h and of smaller sets of headers."""

import statistics

import building

ROUNDS = 9

PLUGIN = "`tfplug/plugin.h`: devices and kernels"
OPS = "`tfplug/plugin.h` and `tfplug/ops/all.h`: all typed ops"
C_HEADERS = [
    "tensorflow/c/experimental/stream_executor/stream_executor.h",
    "tensorflow/c/kernels.h",
    "tensorflow/c/tf_status.h",
]


def units():
    """Returns ({name: headers}, name of the C headers, name of the minimum: the C
    headers and the part of Abseil that hooks return)."""
    if building.tensorflow_include():
        c_headers, c_name = C_HEADERS, "TensorFlow's C headers"
    else:
        c_headers, c_name = ["tfplug/abi/abi.h"], "`tfplug/abi/abi.h`"
    floor = c_name + " and `absl/status/statusor.h`"
    found = {
        PLUGIN: ["tfplug/plugin.h"],
        OPS: ["tfplug/plugin.h", "tfplug/ops/all.h"],
        "`tfplug/device/register_device.h`: devices only": [
            "tfplug/device/register_device.h"
        ],
        "`tfplug/abi/abi.h`: all of the C API": ["tfplug/abi/abi.h"],
        c_name: c_headers,
        floor: c_headers + ["absl/status/statusor.h"],
    }
    return found, c_name, floor


def measure(folder):
    """Returns ([(name, median seconds, ÷ C headers, ÷ minimum)], seconds for all
    typed ops). Each round compiles each unit once; ratios and differences are
    medians over the rounds."""
    flags = [*building.INCLUDE, *building.abseil("--cflags")]
    if building.tensorflow_include():
        flags += ["-isystem", str(building.tensorflow_include())]
    found, c_headers, floor = units()
    sources = {}
    for i, (name, headers) in enumerate(found.items()):
        sources[name] = folder / f"unit{i}.cc"
        lines = [f'#include "{header}"\n' for header in headers]
        sources[name].write_text("".join(lines))
    rounds = [
        {
            name: building.compile_seconds(source, flags)
            for name, source in sources.items()
        }
        for _ in range(ROUNDS)
    ]

    def ratio(name, other):
        return statistics.median(times[name] / times[other] for times in rounds)

    ops = statistics.median(times[OPS] - times[PLUGIN] for times in rounds)
    return [
        (
            name,
            statistics.median(times[name] for times in rounds),
            ratio(name, c_headers),
            ratio(name, floor),
        )
        for name in sources
    ], ops
