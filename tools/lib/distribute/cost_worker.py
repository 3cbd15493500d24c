# SPDX-License-Identifier: Apache-2.0
"""One worker whose communication cost.py measures.

  cost_worker.py RESULT OPTIONS    OPTIONS: JSON, see cost.py

Writes JSON to the file RESULT.
"""

import json
import os
import pathlib
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parents[2] / "examples/distribute"), str(HERE.parent / "profile")]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import package  # noqa: E402

LAYERS, WIDTH = 6, 256  # of the model


def timed(function, meet, repeats):
    """Returns the median of the wall-clock seconds and the mean of the processor's, of
    a call that begins at the same time in all workers."""
    function()
    times, processor = [], 0.0
    for _ in range(repeats):
        meet()
        begin, used = time.monotonic(), time.process_time()
        function()
        times.append(time.monotonic() - begin)
        processor += time.process_time() - used
    return float(np.median(times)), processor / repeats


def reducer(strategy, count):
    """Returns a function that sums `count` floats of each worker."""
    with strategy.scope():
        values = strategy.run(lambda: tf.ones([count]))

    @tf.function
    def reduce():
        return strategy.run(lambda value: tf.reduce_sum(
            tf.distribute.get_replica_context().all_reduce("SUM", value)[:1]),
            args=(values,))
    return lambda: [float(each) for each in strategy.experimental_local_results(reduce())]


def trainer(strategy, batch, bytes_per_pack):
    """Returns a function that trains a step with a model of equal layers and `batch`
    samples per worker. The sums of gradients are packed until `bytes_per_pack`; 0 packs
    all, and None omits the sums."""
    with strategy.scope():
        weights = [tf.Variable(
            tf.eye(WIDTH), aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
            for _ in range(LAYERS)]
        inputs = strategy.run(lambda: tf.ones([batch, WIDTH]))
    options = tf.distribute.experimental.CommunicationOptions(
        bytes_per_pack=bytes_per_pack or 0)

    def replica_step(x):
        with tf.GradientTape() as tape:
            for weight in weights:
                x = tf.tanh(x @ weight)
            loss = tf.reduce_mean(x * x)
        gradients = tape.gradient(loss, weights)
        if bytes_per_pack is not None:
            gradients = tf.distribute.get_replica_context().all_reduce(
                "MEAN", gradients, options)
        for weight, gradient in zip(weights, gradients):
            weight.assign_sub(0.01 * gradient)
        return loss

    @tf.function
    def step():
        return strategy.run(replica_step, args=(inputs,))
    return lambda: [float(each) for each in strategy.experimental_local_results(step())]


def copies(function, repeats):
    """Returns {kind of copy: bytes per call} of the device's copies."""
    import analysis
    import xspace
    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        for _ in range(repeats):
            function()
        tf.profiler.experimental.stop()
        trace = xspace.read(next(pathlib.Path(folder).rglob("*.xplane.pb")))
    found = {}
    for device in trace.devices:
        for name, (_, size, _) in analysis.analyze(device, trace).copies.items():
            found[name] = found.get(name, 0) + size / repeats
    return found


def main():
    options = json.loads(sys.argv[2])
    strategy = package.distribute().MultiWorkerMirroredStrategy(
        device_type=options["type"])
    meet = reducer(strategy, 1)
    repeats, result = options["repeats"], {}
    for count in options["floats"]:
        result[f"reduce {count}"] = timed(reducer(strategy, count), meet, repeats)
    for batch in options["batches"]:
        for pack in options["packs"]:
            result[f"train {batch} {pack}"] = timed(trainer(strategy, batch, pack), meet,
                                                    repeats)
    if options["count"]:
        function = reducer(strategy, options["count"])
        function()
        meet()
        before = bytes_sent(options["link"])
        for _ in range(repeats):
            function()
        meet()
        result["sent"] = (bytes_sent(options["link"]) - before) / repeats
        result["copies"] = copies(function, repeats)
    meet()
    pathlib.Path(sys.argv[1]).write_text(json.dumps(result))
    os._exit(0)


def bytes_sent(link):
    """Returns what this host has sent so far."""
    return int(pathlib.Path(f"/sys/class/net/{link}/statistics/tx_bytes").read_text())


main()
