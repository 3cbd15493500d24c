# SPDX-License-Identifier: Apache-2.0
"""Trains with several workers and devices, plug-ins and releases of TensorFlow, and
compares the results with those of one device.

Results are kept in --results, and only what is missing there is run: a run that was
interrupted goes on.
"""

import json
import os
import subprocess
import sys

import page
import plugins

HERE = page.ROOT / "tools/lib/distribute"
sys.path.append(str(HERE.parent))
import environments  # noqa: E402

RELEASES = ("2.12.1", "2.15.1", "2.18.1", "2.21.0", "2.22.0rc0")
SIZES = ("1x1", "1x2", "2x1", "2x2", "4x1", "4x2")
WAYS = {"loop": "custom loop", "keras": "Keras 3 `fit`", "tf_keras": "`tf_keras`"}
LIMIT = 1e-4  # Adam enlarges differences of rounding.


def packages(release):
    """Returns what is installed beside TensorFlow, in the order of installation."""
    if environments.minor(release) < 16:
        return []  # It requires its own Keras, which is what tf_keras is later.
    # tf_keras requires a TensorFlow of the same release, and 2.22 has none yet.
    legacy = f"2.{min(environments.minor(release), 21)}.*"
    return [["keras==3.15.1"], ["--no-deps", f"tf_keras=={legacy}"]]


def add_options(parser):
    parser.add_argument("--releases", nargs="+", default=RELEASES)
    parser.add_argument("--plugins", nargs="+", default=list(plugins.PLUGINS),
                        choices=plugins.PLUGINS)
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="WORKERSxDEVICES")
    parser.add_argument("--results", default=page.ROOT / "build/distribute-matrix.jsonl")


def run(options):
    """Runs what is missing; returns whether all is equal or has a clear reason."""
    done = read(options.results)
    for release in options.releases:
        python = None
        for name in options.plugins:
            sizes = [size for size in options.sizes
                     if not any(key[:3] == (release, name, size) for key in done)]
            if sizes:
                python = python or environments.make(
                    f"distribute/{release}", release, options.python, packages(release))
                run_cells(options.results, python, release, name, sizes)
    done = {key: value for key, value in read(options.results).items()
            if key[0] in options.releases and key[1] in options.plugins and
            key[2] in options.sizes}
    text, good = table(done, options)
    print(text)
    if options.write:
        page.write("Equal to one device", TEXT.format(table=text, limit=f"{LIMIT:.0e}"))
    return good


def run_cells(path, python, release, name, sizes):
    print(f"{release}, {name}: {' '.join(sizes)} ...", file=sys.stderr, flush=True)
    env = dict(os.environ, **plugins.PLUGINS[name].environment(1))
    with subprocess.Popen([python, "-B", HERE / "cells.py", name, *sizes], env=env,
                          text=True, stdout=subprocess.PIPE) as child:
        with open(path, "a", encoding="utf-8") as file:
            for line in child.stdout:
                result = json.loads(line)
                print(release, name, line.strip(), file=sys.stderr, flush=True)
                print(json.dumps({"release": release, "plugin": name, **result}),
                      file=file, flush=True)
    if child.returncode:
        sys.exit(f"{release}, {name}: the cells ended with {child.returncode}")


def read(path):
    """Returns {(release, plug-in, size, way): result}."""
    found = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                result = json.loads(line)
                workers, devices, way = result["cell"]
                if way == "keras" and environments.minor(result["release"]) < 16:
                    way = "tf_keras"
                found[result["release"], result["plugin"], f"{workers}x{devices}",
                      way] = result
    return found


def table(done, options):
    """Returns the table, and whether each result is equal."""
    rows, good = [], True
    for release in options.releases:
        for name in options.plugins:
            for way, title in WAYS.items():
                row = [release, name, title]
                for size in options.sizes:
                    text, fine = cell(done.get((release, name, size, way)), release, way)
                    row.append(text)
                    good = good and fine
                rows.append(row)
    titles = [size.replace("x", " × ") for size in options.sizes]
    return page.markdown(["TensorFlow", "plug-in", "training", *titles], rows), good


def cell(result, release, way):
    """Returns the text of a cell, and whether it is as it should be."""
    if way == "keras" and environments.minor(release) < 16:
        return "has Keras 2", True
    if result is None:
        return "not run", False
    if "error" in result:
        return "FAILS: " + result["error"].replace("|", "/")[:80], False
    good = result["difference"] <= LIMIT
    return f"{'' if good else 'DIFFERS: '}{result['difference']:.0e}", good


TEXT = """Written by `tools/distribute matrix --write`. *2 × 1* is two workers with one device each, in two processes with
`MultiWorkerMirroredStrategy`; *1 × 2* is one process with `MirroredStrategy`. Each trains the same small convolutional
network (Keras) or two dense layers (custom loop) with the same global batches of 16 as `OneDeviceStrategy` on one device
of the same plug-in. A cell is the largest difference of any loss, metric, weight or prediction, relative to the largest
value of its kind; up to {limit} is equal. Keras also evaluates and predicts. In each cell, every worker must have
trained on the plug-in's devices.

{table}

opencl runs on PoCL, cuda_like on its emulated driver, all on one machine's processor. TensorFlow 2.12 and 2.15 have Keras
2 (the row `tf_keras`), and Keras 3 needs 2.16. In 2.22 the package `tf_keras` is that of 2.21."""
