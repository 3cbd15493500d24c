# SPDX-License-Identifier: Apache-2.0
"""Measures what communication costs between workers in network namespaces, and compares
a model of the step time, whose constants come from two workers, with up to eight.

The devices are cpu_sim's, one per worker. Needs root."""

import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import page
import plugins

sys.path.append(str(page.ROOT / "examples/distribute"))
import network  # noqa: E402
import train as example  # noqa: E402

SMALL, LARGE, COUNTED = 1, 1 << 20, 1 << 18  # floats of the sums
WIDTH, LAYERS = 256, 6  # of the trainings; as in cost_worker.py
GRADIENT = 4 * LAYERS * WIDTH ** 2  # bytes
BATCH, LARGE_BATCH = 64, 2048
# What a worker collects before it sends; see cost_worker.trainer.
PACKS = {"no sum": None, "one pack": 0, "two packs": GRADIENT // 2,
         "a pack per layer": GRADIENT // LAYERS}
ALONE, STEP = f"train {BATCH} None", f"train {BATCH} 0"


def add_options(parser):
    parser.add_argument("--links", nargs="+", type=network.parse, metavar="RATE,DELAY",
                        default=[network.parse("100mbit,5ms")])
    parser.add_argument("--workers", nargs="+", type=int, default=[2, 4, 8])
    parser.add_argument("--repeats", type=int, default=10)


def run(options):
    """Measures, prints and perhaps writes; returns whether the model holds."""
    alone = measure(1, None, options.repeats)
    pages, good = [], True
    for link in options.links:
        results = {count: measure(count, link, options.repeats)
                   for count in sorted({2, *options.workers})}
        text, fine = report(link, alone, results)
        pages.append(text)
        good = good and fine
        print(text)
    if options.write:
        page.write("Cost", TEXT.format(sections="\n\n".join(pages), layers=LAYERS,
                                       width=WIDTH, gradient=GRADIENT / 1e6))
    return good


def measure(count, link, repeats):
    """Returns the mean of the workers' results."""
    plugin = plugins.PLUGINS["cpu_sim"]
    options = {"type": plugin.type, "repeats": repeats, "packs": list(PACKS.values()),
               "batches": [BATCH, LARGE_BATCH], "floats": [SMALL, LARGE], "count": COUNTED if link else 0}
    print(f"{count} worker(s) ...", file=sys.stderr, flush=True)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        hosts = link and stack.enter_context(contextlib.closing(
            network.Network(count, *link)))
        places = [f"{address}:7000" for address in hosts.addresses] if hosts else [""]
        children = []
        for i in range(count):
            env = {**example.environment(places, i, [0], plugin.type),
                   **plugin.environment(1), "TF_ENABLE_ONEDNN_OPTS": "0"}
            options["link"] = hosts.device(i) if hosts else ""
            children.append(subprocess.Popen(
                [*(hosts.command(i) if hosts else []), sys.executable, "-B",
                 pathlib.Path(__file__).with_name("cost_worker.py"), folder / str(i),
                 json.dumps(options)], env=env))
            stack.callback(children[-1].kill)
        if any([child.wait(900) for child in children]):
            sys.exit("a worker failed")
        results = [json.loads((folder / str(i)).read_text()) for i in range(count)]
    return {key: average([each[key] for each in results]) for key in results[0]}


def average(values):
    """Returns the mean of numbers, lists of numbers, or dicts of numbers."""
    if isinstance(values[0], dict):
        return {key: average([each.get(key, 0) for each in values]) for key in values[0]}
    if isinstance(values[0], list):
        return [statistics.mean(part) for part in zip(*values)]
    return statistics.mean(values)


class Model:
    """The time of a step with N workers, from measurements with one and two.

    A ring passes 2 (N - 1) messages of G / N bytes from each worker to the next:
    reduce(N) = 2 (N - 1) (latency + G / (N bandwidth)). The step without it takes as long
    as with one worker, or longer if the workers share too few processors.
    """

    def __init__(self, alone, two):
        self.latency = two[f"reduce {SMALL}"][0] / 2  # seconds, of a message
        self.bandwidth = 4 * LARGE / (two[f"reduce {LARGE}"][0] -
                                      two[f"reduce {SMALL}"][0])  # bytes per second
        self.compute, self.processor = alone[ALONE]

    def reduce(self, count, size):
        return 2 * (count - 1) * (self.latency + size / count / self.bandwidth)

    def step(self, count, size, processors=None):
        shared = self.processor * count / processors if processors else 0
        return max(self.compute, shared) + self.reduce(count, size)


def report(link, alone, results):
    """Returns the text about a link, and whether the model is within a third."""
    model, processors = Model(alone, results[2]), os.cpu_count()
    rows, good = [], True
    for count, result in results.items():
        for name, measured, expected in (
                (f"sum of {4 * LARGE / 1e6:.1f} MB", result[f"reduce {LARGE}"][0],
                 model.reduce(count, 4 * LARGE)),
                ("training step", result[STEP][0],
                 model.step(count, GRADIENT, processors))):
            ratio = measured / expected
            good = good and 2 / 3 < ratio < 1.5
            rows.append([name, count, ms(measured), ms(expected), f"{ratio:.2f}"])
    checked = page.markdown(["", "workers", "measured", "model", "ratio"], rows)
    shares = [[count, ms(step), f"{100 * (1 - model.compute / step):.0f} %",
               f"{count * model.compute / step:.2f}",
               bound(model, count)]
              for count, step in ((1, model.compute), *(
                  (count, result[STEP][0]) for count, result in results.items()))]
    scaled = [[count, ms(model.step(count, GRADIENT)), ms(model.reduce(count, 0)),
               ms(model.reduce(count, GRADIENT) - model.reduce(count, 0)),
               bound(model, count)] for count in (2 ** i for i in range(11))]
    packs = [[count, batch, *(ms(result[f"train {batch} {pack}"][0])
                              for pack in PACKS.values())]
             for batch in (BATCH, LARGE_BATCH) for count, result in results.items()]
    moved = [[count, size(2 * (count - 1) / count * 4 * COUNTED), size(result["sent"]),
              *(size(result["copies"].get(kind, 0)) for kind in KINDS)]
             for count, result in results.items()]
    return SECTION.format(
        link=f"{link[0] / 1e6:g} Mbit/s and {link[1] * 1e3:g} ms",
        latency=ms(model.latency), bandwidth=model.bandwidth * 8 / 1e6,
        compute=ms(model.compute), checked=checked, processors=processors,
        shares=page.markdown(["workers", "step", "in the reduction",
                              "throughput ÷ one worker's", "bound by"], shares),
        scaled=page.markdown(["workers", "step", "latency", "transfer", "bound by"],
                             scaled),
        packs=page.markdown(["workers", "batch", *PACKS], packs),
        counted=size(4 * COUNTED), large=size(4 * LARGE), moved=page.markdown(
            ["workers", "a ring needs", "sent", *KINDS.values()], moved)), good


KINDS = {"MemcpyD2H": "device to host", "MemcpyH2D": "host to device",
         "MemcpyD2D": "within the device"}


def bound(model, count):
    """Returns what takes the largest part of a step."""
    latency = model.reduce(count, 0)
    parts = {"computation": model.compute, "latency": latency,
             "bandwidth": model.reduce(count, GRADIENT) - latency}
    return max(parts, key=parts.get)


def ms(seconds):
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def size(count):
    return f"{count / 1e6:.2f} MB"


SECTION = """### A link of {link}

Constants, from sums of 4 bytes and of {large} with two workers: {latency} for a message of the ring, {bandwidth:.0f} Mbit/s.
A step without reduction takes {compute}.

{checked}

The measured training step with more workers, each with the same batch:

{shares}

The same model on hosts of their own (here, {processors} processors serve all workers):

{scaled}

The gradients in packs (`bytes_per_pack`), the last layers' first. TensorFlow could send a pack while the device computes
the gradients of the next; where more packs take longer, this gains less than their messages cost:

{packs}

Bytes per worker for one sum of {counted}; copies as the profiler lists them:

{moved}"""

TEXT = """Written by `tools/distribute cost --write`: cpu_sim, a device per worker, each worker in a network namespace of
[examples/distribute/network.py](../../examples/distribute/network.py), all on one machine. Times are medians, averaged
over the workers. The training has {layers} layers of {width} × {width} weights, {gradient:.2f} MB of gradients.

The model: a ring passes 2 (N − 1) messages of G ÷ N bytes, so a sum of G bytes takes 2 (N − 1) (latency + G ÷ (N ×
bandwidth)), and a step the time of its computation more.

{sections}"""
