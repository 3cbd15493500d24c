# SPDX-License-Identifier: Apache-2.0
"""Trains a Keras perceptron on scans of handwritten digits twice, on the
simulated device and on the CPU, compares, and draws a picture. tools/demo runs
it; by hand: python digits.py PICTURE, where TensorFlow finds the plug-in.

Exits with 1 where the device learns too little or other things than the CPU.
"""

import argparse
import os
import sys
import time

from training import Trainer, tf
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm
import picture

DEVICE, CPU = "/device:SIM:0", "/device:CPU:0"
EPOCHS, BATCH = 20, 32
ACCURACY = 0.95  # at least
DIFFERENCE, COMPARED_STEPS = 1e-4, 50  # at most, relative


def batches(images, labels):
    """The same for whoever asks: EPOCHS times all images, shuffled."""
    random = np.random.default_rng(1)
    for _ in range(EPOCHS):
        order = random.permutation(len(images))
        for i in range(0, len(order) - BATCH + 1, BATCH):
            chosen = order[i:i + BATCH]
            yield images[chosen], labels[chosen]


def train(trainer, words, images, labels):
    """The loss of each step."""
    losses = []
    total = EPOCHS * (len(images) // BATCH)
    with tqdm(batches(images, labels), words, total, unit="step",
              file=sys.stdout, ncols=78) as progress:
        for batch in progress:
            losses.append(trainer.step(*batch))
            if len(losses) % 20 == 0:
                progress.set_postfix(loss=f"{losses[-1]:.4f}", refresh=False)
    return losses


def print_devices():
    print(f"TensorFlow {tf.__version__} sees")
    for device in tf.config.list_physical_devices():
        details = tf.config.experimental.get_device_details(device)
        name = details.get("device_name", "")
        print(f"  {device.name.replace('/physical_device:', '/device:')}",
              f"({name})" if name else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("picture", help="where to write it: a .png")
    path = parser.parse_args().picture

    print_devices()
    if not tf.config.list_physical_devices("SIM"):
        sys.exit("the simulated device is not there: run tools/demo")
    # An op that the device cannot run is an error, not the CPU's to run.
    tf.config.set_soft_device_placement(False)

    data = load_digits()
    split = train_test_split(
        (data.data / 16).astype(np.float32), data.target.astype(np.int64),
        test_size=0.25, random_state=0, stratify=data.target)
    images, test_images, labels, test_labels = split
    print(f"{len(images)} digits to learn from, {len(test_images)} to be tested "
          f"with, {EPOCHS} epochs of {len(images) // BATCH} steps\n")

    start = time.monotonic()
    trainers = [Trainer(d, images.shape[1], 10) for d in (DEVICE, CPU)]
    counts = Trainer(DEVICE, images.shape[1], 10).ops_per_step(
        images[:BATCH], labels[:BATCH])
    losses = [train(t, words, images, labels)
              for t, words in zip(trainers, ("on the device", "on the CPU   "))]
    predictions = [t.predict(test_images) for t in trainers]
    accuracies = [float((p == test_labels).mean()) for p in predictions]
    compared = [np.array(l[:COMPARED_STEPS]) for l in losses]
    difference = float(np.max(np.abs(compared[0] / compared[1] - 1)))

    print("\nOps of the training on the device, by where they ran:")
    for device in sorted({"SIM:0", "CPU:0", *counts}, reverse=True):
        print(f"  {device:<7}{counts[device]:>4} a step, "
              f"{counts[device] * len(losses[0]):,} in all")
    print(f"Test accuracy: {accuracies[0]:.2%} on the device, "
          f"{accuracies[1]:.2%} on the CPU")
    print(f"Largest relative difference of the losses in the first "
          f"{COMPARED_STEPS} steps: {difference:.1e}")
    print(f"Both trainings took {time.monotonic() - start:.0f} s")

    picture.draw(path, "A Keras perceptron, trained on a device made of C++ "
                 "classes", losses, len(images) // BATCH, difference,
                 test_images, test_labels, predictions[0], accuracies)
    print(f"Picture: {os.path.relpath(path)}")

    if accuracies[0] < ACCURACY:
        sys.exit(f"the device has learnt too little: want {ACCURACY:.0%}")
    if not difference <= DIFFERENCE:
        sys.exit(f"the losses differ: want at most {DIFFERENCE}")
    if not counts.get("SIM:0"):
        sys.exit("nothing ran on the device")


if __name__ == "__main__":
    main()
