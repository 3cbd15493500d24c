# SPDX-License-Identifier: Apache-2.0
"""Trains with several workers and devices in the TensorFlow of this Python, and prints
how far each result is from that of one device: see matrix.py.

  cells.py PLUGIN WORKERSxDEVICES...

Prints a JSON object per training: {"cell": [workers, devices, way]}, and "difference" or
"error".
"""

import json
import pathlib
import sys

import plugins

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "tests/tensorflow"))
import distribute_runs as runs  # noqa: E402
import harness  # noqa: E402


def train(plugin, workers, devices, ways=None):
    """Returns the results of each worker. One worker is a process with
    MirroredStrategy."""
    env = plugin.environment(workers * devices)
    if workers == 1:
        return [harness.run(runs.mirrored, ways, env=env)]
    own = [range(i * devices, (i + 1) * devices) for i in range(workers)]
    return harness.run_together(runs.in_worker, [[ways]] * workers, [
        {**each, **env, "TFPLUG_VISIBLE_DEVICES": each["TFPLUG_VISIBLE_DEVICES"]}
        for each in runs.cluster(own, worker=workers)])


def difference(found, expected, devices):
    """Returns the largest difference from one device, relative to the largest value of
    the same kind."""
    if found["devices"] != devices:
        raise ValueError(f"trained on {found['devices']}, not on {devices}")
    worst = 0.0
    for name, values in expected.items():
        if name != "devices":
            scale = max(map(abs, values))
            worst = max(worst, *(abs(a - b) / scale
                                 for a, b in zip(found[name], values, strict=True)))
    return worst


def explain(results):
    """Returns the first worker's error that is not about another worker."""
    failed = [each for each in results if not each.ok]
    texts = [each.error or f"the process ended with {each.died}" for each in failed]
    own = [text for text in texts if not text.startswith(
        ("Unavailable", "Cancelled", "DeadlineExceeded"))]
    print(*failed, sep="\n", file=sys.stderr, flush=True)
    return " ".join((own or texts)[0].split())[:300]


def report(cell, **result):
    print(json.dumps({"cell": cell, **result}), flush=True)


def measure(plugin, expected, workers, devices):
    """Reports all ways; together, or each alone if that fails."""
    ways = [list(expected)]
    results = train(plugin, workers, devices)
    if not all(each.ok for each in results):
        ways = [[way] for way in expected]
    for some in ways:
        if len(ways) > 1:
            results = train(plugin, workers, devices, some)
        for way in some:
            cell = [workers, devices, way]
            if not all(each.ok for each in results):
                report(cell, error=explain(results))
                continue
            names = [f"{plugin.type}:{i}" for i in range(devices)]
            try:
                report(cell, difference=max(difference(
                    each.value[way], expected[way], names) for each in results))
            except ValueError as error:
                report(cell, error=str(error))


def main(name, *sizes):
    plugin = plugins.PLUGINS[name]
    reference = harness.run(runs.on_one_device, env=plugin.environment(1))
    if not reference.ok:
        sys.exit(f"{plugin.name}, one device: {reference}")
    for way, result in reference.value.items():
        if not result["loss"][-1] < 0.8 * result["loss"][0]:
            sys.exit(f"{way} does not learn: equal results would show nothing")
    for size in sizes:
        measure(plugin, reference.value, *map(int, size.split("x")))


if __name__ == "__main__":
    main(*sys.argv[1:])
