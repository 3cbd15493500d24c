# SPDX-License-Identifier: Apache-2.0
"""Compares Keras' fit on the example devices with TensorFlow's CPU device, with and
without XLA, and with Keras on JAX, and prints docs/measured/fit.md:

    tools/bench fit [--rounds N] [--models NAME ...] [--ways WAY ...] [--write FILE]

TFPLUG_JAX_PYTHON names a Python with Keras and JAX; tools/bench sets it unless it is
set. TFPLUG_CUDA_LIKE and so on name plug-ins that need not be built."""

import argparse
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import tempfile

import building
from main import machine

HERE = pathlib.Path(__file__).resolve().parent
EPOCHS_BEFORE = 2  # of each process: the first one traces

TEXT = """\
# Keras' fit

Written by `{command}`; do not edit. Measured on
{machine}, {cores} cores; {versions}. Other work ran at the
same time (load {load} at the start and the end), so only figures of one row may be compared.

This is what a user sees: `model.fit` of NumPy arrays with Adam, one metric and the
progress bar, default threads everywhere; all costs of an epoch are included.
Milliseconds a step: medians of {rounds} epochs. Each way has a process of its own, and
the processes take turns after every epoch. A ratio is the median of those within the
rounds.

{tables}

{ways}

A dash: `fit` failed there.
"""
TITLES = {"named": "## Models", "held out": "## Held-out models\n\nNo kernel was tuned "
          "to these, but that for 1 x 1 filters was written with the first.",
          "large": "## Large models"}
EXAMPLES = {"SIM": "cpu_sim", "OPENCL": "opencl", "CUDA_LIKE": "cuda_like"}
WAYS = {"CPU": "CPU", "XLA": "CPU, XLA", "JAX": "JAX", **EXAMPLES}


class Trainer:
    """A process that trains a model in one way, an epoch at a time."""

    def __init__(self, name, way, plugins):
        python, backend = sys.executable, "tensorflow"
        if way == "JAX":
            python, backend = os.environ["TFPLUG_JAX_PYTHON"], "jax"
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [python, "-B", HERE / "fit_steps.py", name, way,
             *([plugins[way]] if way in plugins else [])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
            env={**os.environ, "KERAS_BACKEND": backend})

    def epoch(self):
        """Returns the milliseconds of a step, or None if the process has failed."""
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self.process.stdout.readline()
        return float(line) * 1e3 if line else None

    def close(self):
        """Returns the end of what the process wrote to standard error."""
        self.process.communicate()
        self.log.seek(0)
        return self.log.read()[-1500:]


def measure(name, ways, plugins, rounds):
    """Returns {way: milliseconds of a step in each round} of the ways that work."""
    trainers = {way: Trainer(name, way, plugins) for way in ways}
    times = {way: [] for way in ways}
    for i in range(EPOCHS_BEFORE + rounds):
        for way in list(times):
            took = trainers[way].epoch()
            if took is None:
                building.say(f"{name}, {way}: {trainers[way].close()}")
                del times[way]
            elif i >= EPOCHS_BEFORE:
                times[way].append(took)
    for way in times:
        trainers[way].close()
    return times


def row(title, times, ways, judged):
    """Returns the line of a model; `judged` is the way that is compared."""
    def ratio(*opponents):
        there = [times[way] for way in opponents if way in times]
        if judged not in times or not there:
            return "–"
        fastest = min(there, key=statistics.median)
        return f"{statistics.median(a / b for a, b in zip(times[judged], fastest)):.2f}"

    cells = [f"{statistics.median(times[way]):.3g}" if way in times else "–"
             for way in ways]
    return building.row([title, *cells, ratio("CPU"), ratio("CPU", "XLA"), ratio("JAX")])


def table(models, ways, plugins, rounds):
    judged = next((way for way in ways if way in EXAMPLES), None)
    name = WAYS.get(judged, "device")
    heads = [*(WAYS[way] for way in ways), f"{name} ÷ CPU",
             f"{name} ÷ faster of CPU, XLA", f"{name} ÷ JAX"]
    lines = [building.row(["`fit`, Adam", *heads]), "|---|" + "--:|" * len(heads)]
    for title, function in models.items():
        lines.append(row(title, measure(function, ways, plugins, rounds), ways,
                         judged))
    return "\n".join(lines)


def catalogue():
    """Returns {"named", "held out" or "large": {title: function}}, without importing
    Keras."""
    text = (HERE / "fit_models.py").read_text()
    found = {}
    for kind, name in (("named", "NAMED"), ("held out", "HELD_OUT"),
                       ("large", "LARGE")):
        body = re.search(rf"^{name} = {{\n(.*?)^}}", text, re.M | re.S)[1]
        found[kind] = dict(re.findall(r'"(.*)": (\w+),', body))
    return found


def versions(ways):
    def of(python, *packages):
        code = ("import importlib.metadata as m\n"
                f"for p in {packages}: print(p, m.version(p))")
        return building.run(python, "-c", code).splitlines()

    jax = of(os.environ["TFPLUG_JAX_PYTHON"], "jax") if "JAX" in ways else []
    return ", ".join(of(sys.executable, "tensorflow-cpu", "keras") + jax)


def jax_device():
    return building.run(os.environ["TFPLUG_JAX_PYTHON"], "-c",
                        "import jax; print(jax.devices()[0].device_kind)").strip()


def describe(way):
    """Returns the line of the page about a way."""
    text = {"CPU": "TensorFlow's CPU device (oneDNN), `jit_compile=False`",
            "XLA": "the same with `jit_compile=True`"}
    if way == "JAX":
        text[way] = f"Keras' JAX backend, on the device that JAX chooses: {jax_device()}"
    elif way in EXAMPLES:
        text[way] = f"`examples/{EXAMPLES[way]}`, `jit_compile=False`"
    return f"* {WAYS[way]}: {text[way]}."


def main():
    parser = argparse.ArgumentParser(prog="tools/bench fit",
                                     description=__doc__.split("\n\n")[0])
    found = catalogue()
    functions = {f: kind for kind, models in found.items() for f in models.values()}
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", nargs="+", choices=functions,
                        default=[f for f, kind in functions.items() if kind != "large"],
                        help="default: all but the large ones")
    parser.add_argument("--ways", nargs="+", choices=WAYS,
                        default=["CPU", "XLA", "JAX", "SIM"])
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    plugins = {way: building.build_example(EXAMPLES[way])
               for way in options.ways if way in EXAMPLES}
    before, tables = os.getloadavg()[0], []
    for kind, models in found.items():
        chosen = {t: f for t, f in models.items() if f in options.models}
        if chosen:
            tables.append(TITLES[kind] + "\n\n"
                          + table(chosen, options.ways, plugins, options.rounds))
    text = TEXT.format(
        machine=machine().partition(";")[0], cores=len(os.sched_getaffinity(0)),
        versions=versions(options.ways),
        load=f"{before:.1f} and {os.getloadavg()[0]:.1f}", rounds=options.rounds,
        tables="\n\n".join(tables),
        command=shlex.join(["tools/bench", "fit", *sys.argv[1:]]),
        ways="\n".join(describe(way) for way in options.ways))
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
