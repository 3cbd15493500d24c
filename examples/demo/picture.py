# SPDX-License-Identifier: Apache-2.0
"""Draws the picture of the demo: the losses, and the predictions for test digits."""

import dataclasses

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

ROWS, COLUMNS = 8, 10
COLOURS = {"SGD": ("#1b6ca8", "#a9d0ee"), "Adam": ("#a8430f", "#f7c59f")}
WRONG_COLOUR = "#c8102e"


@dataclasses.dataclass
class Run:
    """The result of one optimizer; pairs are (device, CPU)."""

    optimizer: str
    losses: list  # of each batch
    difference: float  # the largest, relative, in the first steps
    predictions: np.ndarray  # the device's
    accuracies: list


def draw(path, title, runs, steps_per_epoch, images, labels):
    plt.rcParams.update({"font.size": 11, "font.family": "DejaVu Sans"})
    figure = plt.figure(figsize=(14, 7.4), dpi=110, facecolor="white",
                        layout="constrained")
    figure.suptitle(title, fontsize=16, fontweight="bold")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.05], wspace=0.04)
    _draw_losses(left, runs, steps_per_epoch)
    last = runs[-1]
    _draw_digits(right, last.optimizer, images, labels, last.predictions,
                 last.accuracies)
    figure.savefig(path)
    plt.close(figure)


def _draw_losses(figure, runs, steps_per_epoch):
    axes = figure.subplots()
    window = np.ones(steps_per_epoch) / steps_per_epoch
    words = []
    for run in runs:
        dark, light = COLOURS[run.optimizer]
        for values, place, colour, width in [
                (run.losses[1], "on the CPU", light, 6),
                (run.losses[0], "on the device", dark, 1.6)]:
            steps = np.arange(1, len(values) + 1)
            axes.semilogy(steps, values, color=colour, linewidth=0.5,
                          alpha=0.25)
            mean = np.convolve(values, window, "valid")
            axes.semilogy(steps[steps_per_epoch - 1:], mean, color=colour,
                          linewidth=width, solid_capstyle="round",
                          label=f"{run.optimizer} {place}")
        words.append(f"{run.optimizer} {run.difference:.1e}")
    axes.set_xlabel(f"training step ({steps_per_epoch} steps = 1 epoch)")
    axes.set_ylabel("cross-entropy [nats per image]")
    axes.set_title("Loss: each step (faint), mean of an epoch (bold)",
                   fontsize=13)
    axes.set_xlim(0, len(runs[0].losses[0]) + 1)
    axes.grid(True, which="major", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(loc="upper right", frameon=False)
    axes.text(0.03, 0.03, "largest relative difference in the first 50 steps:"
              "\n" + ", ".join(words), transform=axes.transAxes,
              color="#444444", bbox={"facecolor": "white", "edgecolor": "none",
                                     "alpha": 0.8})


def _draw_digits(figure, optimizer, images, labels, predictions, accuracies):
    wrong = predictions != labels
    figure.suptitle(
        f"Test digits, classified after {optimizer}: {accuracies[0]:.1%} right "
        f"({len(labels) - wrong.sum()} of {len(labels)}; CPU: "
        f"{accuracies[1]:.1%})", fontsize=13)
    grid = figure.subplots(ROWS, COLUMNS)
    # Shows all wrong predictions.
    right = np.flatnonzero(~wrong)
    places = max(0, ROWS * COLUMNS - wrong.sum())
    spread = np.linspace(0, len(right) - 1, places).astype(int)
    shown = np.sort(np.concatenate([np.flatnonzero(wrong), right[spread]]))
    for axes in grid.flat:
        axes.axis("off")
    for axes, i in zip(grid.flat, shown):
        axes.imshow(images[i].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        text = str(predictions[i])
        if wrong[i]:
            text += f", not {labels[i]}"
            axes.add_patch(plt.Rectangle((-0.5, -0.5), 8, 8, fill=False,
                                         edgecolor=WRONG_COLOUR, linewidth=2.5))
        axes.set_title(text, fontsize=10, pad=3,
                       color=WRONG_COLOUR if wrong[i] else "#333333",
                       fontweight="bold" if wrong[i] else "normal")
