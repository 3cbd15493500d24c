# SPDX-License-Identifier: Apache-2.0
"""One worker of a distributed training. train.py starts it with TF_CONFIG and, in
TFPLUG_VISIBLE_DEVICES, its devices; all workers run this program. In Slurm, srun does:

  srun -n 8 python worker.py --cluster slurm --out /shared/run

The exit status is 0 after the last step, and 75 if a worker or device failed: start all
again, and they continue from the last checkpoint.
"""

import argparse
import json
import os
import pathlib
import re
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import models  # noqa: E402
import package  # noqa: E402

keras = models.keras
TRY_AGAIN = 75  # EX_TEMPFAIL
# What TensorFlow reports in a worker that has no fault of its own.
OTHERS_FAULT = (tf.errors.UnavailableError, tf.errors.DeadlineExceededError,
                tf.errors.CancelledError, tf.errors.AbortedError)


def batches(images, labels, batch, first, last, seed):
    """Returns a dataset of the global batches of steps `first` to `last`: the same
    after a restart as without one."""
    per_epoch = len(images) // batch
    order = np.concatenate([
        np.random.default_rng([seed, epoch]).permutation(len(images))
        [:per_epoch * batch] for epoch in range(last // per_epoch + 1)])
    order = order[first * batch:last * batch]
    options = tf.data.Options()
    # Each worker takes its part of each batch.
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.DATA)
    return tf.data.Dataset.from_tensor_slices(
        (images[order], labels[order])).batch(batch).with_options(options)


class Checkpoints:
    """Saves and restores all that a training needs to go on. The first worker writes
    the files; the folder must be common to all."""

    def __init__(self, folder, is_chief, **parts):
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._checkpoint = tf.train.Checkpoint(step=self.step, **parts)
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, folder, max_to_keep=3)
        self._is_chief = is_chief

    def restore(self):
        """Restores the last checkpoint, if there is one. Returns the steps done."""
        if self._manager.latest_checkpoint:
            self._checkpoint.restore(
                self._manager.latest_checkpoint).assert_existing_objects_matched()
        return int(self.step.numpy())

    def save(self, step):
        self.step.assign(step)
        if self._is_chief:
            self._manager.save(checkpoint_number=step)


def train(options, strategy, is_chief, watchdog):
    """Trains; returns the losses of the steps that this process ran, and the images
    trained per second."""
    images, labels = models.digits()
    keras.utils.set_random_seed(options.seed)
    with strategy.scope():
        model = models.MODELS[options.model]()
        optimizer = keras.optimizers.Adam(0.002)
        optimizer.build(model.trainable_variables)
        checkpoints = Checkpoints(options.out / "checkpoints", is_chief, model=model,
                                  optimizer=optimizer)
    first = checkpoints.restore()
    if first:
        print(f"resumed after step {first}", flush=True)

    def replica_step(batch):
        x, y = batch
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(
                y, model(x, training=True))) / options.batch
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    @tf.function
    def step(batch):
        return strategy.reduce("SUM", strategy.run(replica_step, args=(batch,)), None)

    @tf.function
    def meet():
        strategy.run(lambda: tf.distribute.get_replica_context().all_reduce(
            "SUM", tf.ones([])))

    losses, times = [], []
    data = strategy.experimental_distribute_dataset(
        batches(images, labels, options.batch, first, options.steps, options.seed))
    for number, batch in enumerate(data, first + 1):
        losses.append(float(step(batch)))
        watchdog.beat()
        times.append(time.monotonic())
        if number % options.report == 0:
            speed = _speed(times[-options.report - 1:], options.batch)
            print(f"step {number}/{options.steps}  loss {losses[-1]:.6g}  {speed:.0f} "
                  "images/s", flush=True)
        if number % options.save_every == 0 or number == options.steps:
            checkpoints.save(number)
            meet()  # no worker goes on before the checkpoint is complete
        time.sleep(options.pause)
    digest = float(sum(np.abs(weight).sum() for weight in model.get_weights()))
    # The first steps trace functions.
    return {"first": first, "losses": losses, "weights": digest,
            "speed": _speed(times[min(5, len(times) // 2):], options.batch)}


def reason(message):
    """Returns TensorFlow's message without the places in the program."""
    lines = [re.sub(r"\{\{.*?\}\} ?|\[Op:.*?\]|Collective ops is aborted by: ", "",
                    line).strip() for line in message.splitlines()]
    return " ".join(line for line in lines if line and not line.startswith(
        ("Graph execution error", "Detected at node", "File ", "[["))
        and not line.endswith("derived errors ignored."))[:300]


def cluster_resolver(name):
    """Returns what finds the workers; None is TensorFlow's default, TF_CONFIG."""
    if name == "slurm":
        # The limits are of GPUs; TFPLUG_VISIBLE_DEVICES divides a node's devices.
        return tf.distribute.cluster_resolver.SlurmClusterResolver(
            port_base=7000, gpus_per_node=64, gpus_per_task=1, auto_set_gpu=False)
    return None


def _speed(times, batch):
    seconds = times[-1] - times[0] if len(times) > 1 else 0
    return (len(times) - 1) * batch / seconds if seconds else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--type", help="the devices' type")
    parser.add_argument("--model", choices=models.MODELS, default="cnn")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=96, help="of all workers together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=int, default=20, help="steps between lines")
    parser.add_argument("--save-every", type=int, default=20, metavar="STEPS")
    parser.add_argument("--timeout", type=float, default=60, metavar="SECONDS",
                        help="for a step; the first one has five times as long")
    parser.add_argument("--pause", type=float, default=0, metavar="SECONDS",
                        help="after each step, for demonstrations")
    parser.add_argument("--cluster", choices=["tf_config", "slurm"], default="tf_config",
                        help="where the workers' addresses are")
    options = parser.parse_args()

    distribute = package.distribute()
    watchdog = distribute.Watchdog(options.timeout, first=5 * options.timeout,
                                   exit_status=TRY_AGAIN)
    try:
        strategy = distribute.MultiWorkerMirroredStrategy(
            cluster_resolver(options.cluster), device_type=options.type)
        index = strategy.cluster_resolver.task_id or 0
        if options.batch % strategy.num_replicas_in_sync:
            sys.exit(f"--batch {options.batch} cannot be divided among "
                     f"{strategy.num_replicas_in_sync} devices")
        print(f"process {os.getpid()} trains on",
              ", ".join(strategy.extended.worker_devices), flush=True)
        result = train(options, strategy, index == 0, watchdog)
        strategy.leave()
    except tf.errors.OpError as error:
        print("another worker failed, so this one cannot go on:"
              if isinstance(error, OTHERS_FAULT) else "this worker failed:",
              f"{type(error).__name__}: {reason(error.message)}", flush=True)
        # TensorFlow's threads may wait for the failed worker: no ordinary exit.
        os._exit(TRY_AGAIN)
    except ValueError as error:
        print(f"cannot start: {error}", flush=True)
        os._exit(1)
    watchdog.stop()
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"worker-{index}.json").write_text(json.dumps(result))
    print(f"finished: loss {result['losses'][-1] if result['losses'] else 0:.4f}, "
          f"{result['speed']:.0f} images/s", flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
