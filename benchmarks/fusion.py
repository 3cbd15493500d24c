# SPDX-License-Identifier: Apache-2.0
"""Measures what FuseElementwise changes, and prints docs/measured/fusion.md:

    tools/bench fusion [--rounds N] [--write FILE]

Training steps run on examples/cpu_sim, alternating with and without the pass in one
process. A chain of ops on 16M floats runs on each example device, compared with a
copy in memory."""

import argparse
import os
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "tests/tensorflow")]
import building  # noqa: E402
import harness  # noqa: E402

WARM_UP = 3  # steps
CHAIN = 1 << 24  # floats
CALLS = 8
MODELS = {
    "mlp": "MLP, five layers, ten variables, Adam",
    "transformer": "transformer of `tests/tensorflow/models.py`, Adam",
    "lstm": "LSTM of the same file, Adam",
    "lstm_unrolled": "the same, unrolled",
}
DEVICES = {"cpu_sim": "SIM", "opencl": "OPENCL", "cuda_like": "CUDA_LIKE"}

TEXT = """\
# Fusion of element-wise ops

Written by `tools/bench fusion --write docs/measured/fusion.md`; do not edit. What
[FuseElementwise](../guide/backend.md#fusion) changes, with TensorFlow {tensorflow}.

## Training steps

On examples/cpu_sim, whose own rules, such as `_FusedMatMul`, run before and win, in
both columns. Losses and weights are equal bit by bit with and without the pass.
*Ops* are the nodes of the executed graph that launch something, without Identity and
the like; a loop's nodes count once. Times are medians of {rounds} rounds in which a
step without and one with fusion alternate in one process, with one thread for
kernels and one for ops; ratios are medians of the rounds' ratios. The networks are
small: most of their time is that of TensorFlow's executor. What a user of Keras sees, with
default threads, is in [fit.md](fit.md).

| step | ops without | with | ratio | ms without | with | ratio | processor, ms | with | ratio |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
{steps}

## Memory

`Max((Abs(v) * 2 + 1) * v - 3, v) * v + 4`, a chain of 8 ops on 16M floats, compared with a
copy of the input in the host's memory by one thread: {calls} calls of its `tf.function`, until
an element of the last result is on the host, and as many copies. All three devices compute
on the processor: opencl is PoCL, which uses all {cores} cores; cpu_sim and cuda_like, with
the emulated driver, use one.

| device | chain, ms | without fusion, ms | copy, ms | chain, compared with the copy |
|---|--:|--:|--:|--:|
{chains}
"""


def time_steps(name, rounds):
    """Returns (numbers of ops, [[wall, processor time] of each round]), each without and
    with fusion."""
    import models
    import tensorflow as tf
    import test_fuse_elementwise as fusion
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.set_soft_device_placement(False)
    steps, counts, times, losses = [], [], ([], []), ([], [])
    for fuse in (False, True):
        fusion._set_fusion(fuse)
        with tf.device("/device:SIM:0"):
            model, inputs, labels = (
                fusion._mlp(models) if name == "mlp" else getattr(models, name)())
        step = lambda m=model, x=inputs, y=labels: float(m.train_on_batch(x, y))
        counts.append(len([op for op in fusion._step_ops(step)
                           if op not in fusion.UPDATES]))
        steps.append(step)
    for i in range(rounds + WARM_UP):
        for step, to, found in zip(steps, times, losses):
            start = time.perf_counter(), time.process_time()
            found.append(step())
            end = time.perf_counter(), time.process_time()
            if i >= WARM_UP:
                to.append([b - a for a, b in zip(start, end)])
    assert losses[0] == losses[1], losses
    return counts, times


def time_chain(kind, rounds):
    """Returns the seconds of a call [with fusion, without, of a copy] of each round."""
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)

    def chain(v):
        return tf.maximum((tf.abs(v) * 2.0 + 1.0) * v - 3.0, v) * v + 4.0

    functions = []
    with tf.device(f"/device:{kind}:0"):
        x = tf.random.stateless_uniform([CHAIN], [1, 2])
        for fuse in (True, False):
            os.environ["TFPLUG_FUSION"] = str(int(fuse))
            functions.append(tf.function(chain, jit_compile=False))
            functions[-1](x)
    source = x.numpy()
    copy = np.empty_like(source)

    def run(function):
        with tf.device(f"/device:{kind}:0"):
            for _ in range(CALLS):
                y = function(x)
            y[:1].numpy()

    def copy_all():
        for _ in range(CALLS):
            np.copyto(copy, source)

    ways = [*(lambda f=f: run(f) for f in functions), copy_all]
    found = []
    for i in range(rounds + WARM_UP):
        seconds = []
        for way in ways:
            start = time.perf_counter()
            way()
            seconds.append((time.perf_counter() - start) / CALLS)
        if i >= WARM_UP:
            found.append(seconds)
    return found


def steps_row(name, rounds):
    result = harness.run(time_steps, name, rounds, env={"CPU_SIM_THREADS": "1"})
    if not result.ok:
        raise SystemExit(f"tools/bench: {name}: {result}")
    counts, (without, fused) = result.value
    cells = [MODELS[name], *counts, f"{counts[1] / counts[0]:.2f}"]
    for i in (0, 1):
        cells += [f"{1e3 * statistics.median(t[i] for t in times):.2f}"
                  for times in (without, fused)]
        ratio = statistics.median(b[i] / a[i] for a, b in zip(without, fused))
        cells.append(f"**{ratio:.2f}**")
    return building.row(cells)


def chain_row(name, rounds):
    plugin = building.build_example(name)
    env = {"TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(plugin), "CPU_SIM_THREADS": "1"}
    if name == "cuda_like":
        driver = "examples/cuda_like/libcuda_like.so"
        build = pathlib.Path(os.environ["TFPLUG_BUILD"]).resolve()
        building.run("ninja", "-C", build, driver)
        env["CUDA_LIKE_DRIVER"] = str(build / driver)
    result = harness.run(time_chain, DEVICES[name], rounds, env=env, plugin=False)
    if not result.ok:
        raise SystemExit(f"tools/bench: {name}: {result}")
    medians = [f"{1e3 * statistics.median(t):.1f}" for t in zip(*result.value)]
    ratio = statistics.median(fused / copy for fused, _, copy in result.value)
    return building.row([name, *medians, f"**{ratio:.2f}**"])


def main():
    parser = argparse.ArgumentParser(prog="tools/bench fusion")
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    args = parser.parse_args()
    os.environ["TFPLUG_CPU_SIM"] = str(building.build_example("cpu_sim"))
    import importlib.metadata
    text = TEXT.format(
        tensorflow=importlib.metadata.version("tensorflow-cpu"), rounds=args.rounds,
        cores=os.cpu_count(), calls=CALLS,
        steps="\n".join(steps_row(name, args.rounds) for name in MODELS),
        chains="\n".join(chain_row(name, max(args.rounds // 5, 5))
                         for name in DEVICES))
    print(text, end="")
    if args.write:
        args.write.write_text(text)


if __name__ == "__main__":
    sys.exit(main())
