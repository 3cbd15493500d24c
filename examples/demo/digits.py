# SPDX-License-Identifier: Apache-2.0
"""Trains a Keras perceptron on scans of handwritten digits with model.fit, using
SGD and Adam, on the simulated device and on the CPU; compares the two and draws a
picture. tools/demo runs it; to run it yourself: python digits.py PICTURE, in an
environment that has the plug-in.

The exit status is 1 if the accuracy on the device is too low, the losses on the
device and on the CPU differ, or an op that computes ran on the CPU.
"""

import argparse
import os
import sys
import time

from training import OPTIMIZERS, Trainer, tf
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm
import picture

EPOCHS, BATCH = 20, 32
ACCURACY = 0.95  # at least
DIFFERENCE, COMPARED_STEPS = 1e-4, 50  # at most, relative


def train(device, optimizer, images, labels):
    """Returns a trainer and the Losses of its training."""
    trainer = Trainer(device, optimizer, images.shape[1], 10)
    words = f"{optimizer:<4} " + (
        "on the CPU   " if device == "CPU" else "on the device")
    with tqdm(total=EPOCHS * (len(images) // BATCH), desc=words, unit="step",
              file=sys.stdout, ncols=78) as progress:
        def on_step(loss):
            if progress.n % 20 == 19:
                progress.set_postfix(loss=f"{loss:.4f}", refresh=False)
            progress.update()
        losses = trainer.fit(images, labels, BATCH, EPOCHS, on_step)
    return trainer, losses


def print_devices():
    print(f"The devices of TensorFlow {tf.__version__}:")
    for device in tf.config.list_physical_devices():
        details = tf.config.experimental.get_device_details(device)
        name = details.get("device_name", "")
        print(f"  {device.name.replace('/physical_device:', '/device:')}",
              f"({name})" if name else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("picture", help="the .png file to write")
    parser.add_argument("--type", default="SIM", help="the device's type")
    arguments = parser.parse_args()
    path, device = arguments.picture, arguments.type

    print_devices()
    if not tf.config.list_physical_devices(device):
        sys.exit(f"TensorFlow has no {device} device; run tools/demo, which installs "
                 "the plug-in")

    data = load_digits()
    split = train_test_split(
        (data.data / 16).astype(np.float32), data.target.astype(np.int64),
        test_size=0.25, random_state=0, stratify=data.target)
    images, test_images, labels, test_labels = split
    steps = len(images) // BATCH
    images, labels = images[:steps * BATCH], labels[:steps * BATCH]
    print(f"{len(images)} training digits, {len(test_images)} test digits, "
          f"{EPOCHS} epochs of {steps} steps\n")

    start = time.monotonic()
    runs, failures = [], []
    for optimizer in OPTIMIZERS:
        counts, cpu_ops = Trainer(
            device, optimizer, images.shape[1], 10).ops_per_step(
                images[:BATCH], labels[:BATCH])
        trained = [train(d, optimizer, images, labels) for d in (device, "CPU")]
        predictions = [t.predict(test_images) for t, _ in trained]
        means = [np.array(l.means[:COMPARED_STEPS]) for _, l in trained]
        run = picture.Run(
            optimizer, [l.of_batches(steps) for _, l in trained],
            float(np.max(np.abs(means[0] / means[1] - 1))), predictions[0],
            [float((p == test_labels).mean()) for p in predictions])
        runs.append(run)
        if run.accuracies[0] < ACCURACY:
            failures.append(f"{optimizer}: the accuracy on the device is below "
                              f"{ACCURACY:.0%}")
        if not run.difference <= DIFFERENCE:
            failures.append(f"{optimizer}: the losses differ by more than "
                              f"{DIFFERENCE}")
        if cpu_ops or not counts[device]:
            failures.append(f"{optimizer}: ran on the CPU: {cpu_ops}")
        print(f"     {counts[device]} ops a step on the device, {counts['CPU']} "
              "on the CPU, which feed it; test accuracy "
              f"{run.accuracies[0]:.2%} on the device, {run.accuracies[1]:.2%} "
              "on the CPU;\n     largest relative difference of the losses in "
              f"the first {COMPARED_STEPS} steps: {run.difference:.1e}")

    print(f"\nAll trainings took {time.monotonic() - start:.0f} s")
    picture.draw(path, "A Keras perceptron, trained by model.fit on a device "
                 "made of C++ classes", runs, steps, test_images, test_labels)
    print(f"Picture: {os.path.relpath(path)}")
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
