# SPDX-License-Identifier: Apache-2.0
"""Draws the losses and the throughput of trainings with several numbers of workers."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

COLOURS = ["#1b6ca8", "#a8430f", "#3c8031", "#6a3d9a"]


def draw(path, results, devices):
    """Draws `results`, a dict from the number of workers to the results of each worker.
    Returns the largest relative difference of a loss from that with one worker."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), dpi=110,
                                         layout="constrained")
    base = np.array(results[min(results)][0]["losses"])
    difference = 0.0
    for colour, (count, workers) in zip(COLOURS, sorted(results.items())):
        losses = np.array(workers[0]["losses"])
        label = f"{count} × {devices} device{'s' * (devices > 1)}"
        # Thick below thin, as the lines coincide.
        left.plot(np.arange(1, len(losses) + 1), losses, color=colour, label=label,
                  linewidth=5 - 3.5 * (count != min(results)),
                  alpha=0.45 if count == min(results) else 1)
        difference = max(difference, float(np.max(np.abs(losses / base - 1))))
        right.bar(label, np.mean([each["speed"] for each in workers]), color=colour)
    left.set(xlabel="step", ylabel="loss", yscale="log",
             title=f"The same losses (largest relative difference {difference:.0e})")
    left.legend(frameon=False)
    right.set(ylabel="images per second", title="Throughput of all workers together")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
    plt.close(figure)
    return difference
