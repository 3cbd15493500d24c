# SPDX-License-Identifier: Apache-2.0
"""What tools/models runs. Each model gets a process of its own, by the harness of
tests/tensorflow; TFPLUG_CPU_SIM names another plug-in than the built one."""

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/tensorflow"), str(ROOT / "examples/demo")]
import harness  # noqa: E402
import model_runs  # noqa: E402

STRICT = {"CPU_SIM_STRICT": "1"}
SIM0, SIM1, CPU = "/device:SIM:0", "/device:SIM:1", "/device:CPU:0"
# With True: the normalisations frozen, see model_runs.compare.
MODELS = [("mlp", False), ("cnn", False), ("mobilenet_v2", True),
          ("resnet50", True), ("lstm", False), ("lstm_unrolled", False),
          ("gru", False), ("gru_unrolled", False), ("transformer", False)]
# With batch normalisations in training, beside float64.
DEEP = {"mobilenet_v2": {"size": 160, "batch": 8},
        "resnet50": {"size": 128, "batch": 8}}
SEEDS, MOST = 3, 2.0  # the device's error, of the CPU's
WORDS = {
    "mlp": "perceptron", "cnn": "digits' CNN", "mobilenet_v2": "MobileNetV2",
    "resnet50": "ResNet50", "lstm": "LSTM classifier",
    "lstm_unrolled": "the same, unrolled", "gru": "GRU classifier",
    "gru_unrolled": "the same, unrolled",
    "transformer": "transformer classifier, two blocks",
}
INFERENCE, GRADIENTS, ACCURACY, EPOCHS = 1e-4, 1e-3, 0.97, 12
STEPS = 10000


class Report:
    """Lines of Markdown, and what is not as it should be."""

    def __init__(self):
        self.lines, self.complaints = [], []

    def add(self, *lines):
        self.lines += lines
        print(*lines, sep="\n", flush=True)

    def table(self, *heads):
        self.add("", "| " + " | ".join(heads) + " |", "| --- " * len(heads) + "|")

    def row(self, *cells):
        self.add("| " + " | ".join(str(cell) for cell in cells) + " |")

    def check(self, good, words):
        if not good:
            self.complaints.append(words)

    def value(self, result, words):
        """What a run has returned; None if it failed."""
        if not result.ok:
            self.complaints.append(f"{words}: {str(result)[:600]}")
            return None
        return result.value


def compare_models(report):
    report.add("## Inference and one training step", "",
               "The largest difference of any output and of the loss, relative "
               "to the largest value on the CPU; of gradients, the norm of the "
               "difference relative to the norm of that tensor, for the tensor "
               "where it is largest. Step: loss and gradients on the device and "
               "on the CPU, one call after the first, on a machine with other "
               "work to do (`tools/bench` measures). *Frozen*: with batch "
               "normalisations as in inference; in training, see below.")
    report.table("model", "input", "parameters", "inference", "loss",
                 "gradients", "gradient tensors", "nodes on the device, the CPU",
                 "step [ms]")
    for name, frozen in MODELS:
        words = WORDS[name] + (", frozen" if frozen else "")
        found = report.value(harness.run(model_runs.compare, name, {}, frozen,
                                         env=STRICT), words)
        if found is None:
            report.row(words, *["-"] * 7, "failed")
            continue
        ops, seconds = found["ops"], found["seconds"]
        report.row(words, " x ".join(map(str, found["shape"])),
                   f"{found['parameters']:,}", f"{found['inference']:.1e}",
                   f"{found['loss']:.1e}", f"{found['gradients']:.1e}",
                   f"{found['tensors']}, {found['tiny']} of rounding",
                   f"{ops.get('SIM:0', 0)}, {ops.get('CPU:0', 0)}",
                   f"{seconds[0] * 1e3:.1f}, {seconds[1] * 1e3:.1f}")
        report.check(found["inference"] <= INFERENCE, f"{words}: inference")
        report.check(found["gradients"] <= GRADIENTS,
                     f"{words}: gradient of {found['worst']}")
        report.check(ops.get("SIM:0", 0) > 0, f"{words}: nothing on the device")


def compare_deep_models(report):
    report.add("", "## Gradients with batch normalisation in training", "",
               "The norm of the difference of all gradients of a training step, "
               "by that of all gradients. *SiLU*: the network with SiLU in place "
               "of ReLU; device and CPU agree. With ReLU and weights at random, "
               "gradients are no smooth function of the input: an "
               "activation that rounding carries over a corner of its ReLU opens "
               "or closes it, and the normalisations carry the change through "
               "all other activations of the batch. So the CPU is "
               "this far from the same step in float64, and from itself when "
               "its input is scaled by 1 + 3e-7; no two devices can agree better "
               "than that. What is checked for those: the device's error, against "
               f"float64, is at most {MOST:g} times the CPU's (root mean square "
               "over the seeds, which draw weights and inputs; of the CPU, with "
               "and without the scaling).")
    report.table("model", "input", "seed", "device from float64",
                 "CPU from float64", "CPU, scaled, from float64",
                 "device from CPU")
    for name, options in DEEP.items():
        for smooth in (True, False):
            words = WORDS[name] + (", SiLU" if smooth else "")
            rows = report.value(harness.run(
                model_runs.gradient_errors, name, options,
                1 if smooth else SEEDS, smooth,
                env={**STRICT, "CPU_SIM_MEMORY": "16G"}), words)
            if rows is None:
                continue
            size = options["size"]
            shape = f"{options['batch']} x {size} x {size} x 3"
            for seed, row in enumerate(rows):
                report.row(words, shape, seed, *(f"{e:.1e}" for e in row))
                report.check(not smooth or row[3] <= GRADIENTS,
                             f"{words}: gradients, {row[3]:.1e} from the CPU's")
            device = sum(row[0]**2 for row in rows) / len(rows)
            cpu = sum(row[1]**2 + row[2]**2 for row in rows) / (2 * len(rows))
            ratio = (device / cpu)**0.5
            report.row(words, shape, "all", f"{ratio:.2f} of the CPU's",
                       "", "", "")
            report.check(ratio <= MOST, f"{words}: {ratio:.2f} of the CPU's "
                         "error against float64")


def learn_digits(report):
    import numpy as np
    found = {}
    for device in (SIM0, CPU):
        found[device] = report.value(harness.run(
            model_runs.learn_digits, device, EPOCHS, env=STRICT),
            f"digits on {device}")
    if None in found.values():
        return
    losses = [np.array(found[d]["losses"]) for d in (SIM0, CPU)]
    accuracy = [found[d]["accuracy"] for d in (SIM0, CPU)]
    difference = np.abs(losses[0] / losses[1] - 1)
    report.add("", "## The digits' CNN, trained", "",
               f"Adam, {EPOCHS} epochs of {len(losses[0]) // EPOCHS} steps, "
               f"from the same weights with the same batches. Accuracy on "
               f"unseen digits: {accuracy[0]:.2%} on the device, "
               f"{accuracy[1]:.2%} on the CPU. The losses of the first 20 steps "
               f"differ by {difference[:20].max():.1e}, relative; then "
               "rounding grows, as it does between any two orders of addition.")
    report.check(accuracy[0] >= ACCURACY, f"digits: {accuracy[0]:.2%}")
    draw_digits(losses, accuracy, found[SIM0]["predictions"])


def draw_digits(losses, accuracy, predictions):
    import numpy as np
    import picture
    images, labels = model_runs.unseen_digits()
    run = picture.Run("Adam", losses,
                      float(np.abs(losses[0] / losses[1] - 1)[:50].max()),
                      np.array(predictions), accuracy)
    path = ROOT / "build/models.png"
    path.parent.mkdir(exist_ok=True)
    picture.draw(path, "A Keras CNN, trained on a device made of C++ classes",
                 [run], len(losses[0]) // EPOCHS, images, labels)
    print(f"Picture: {path.relative_to(ROOT)}")


def split_models(report):
    report.add("", "## A part on each device", "",
               "A perceptron's layers on two devices, ten steps of training: "
               "the largest difference of a loss or a weight from the same on "
               "the CPU alone.")
    report.table("first layer", "second layer", "difference")
    for first, second in ((SIM0, CPU), (CPU, SIM0), (SIM0, SIM1)):
        found = report.value(harness.run(model_runs.split_model, first, second,
                                         env=STRICT), f"{first}, {second}")
        if found:
            report.row(first[8:], second[8:], f"{found['difference']:.1e}")
            report.check(found["difference"] <= 1e-5, f"{first}, {second}")


def run_long(report):
    report.add("", f"## {STEPS:,} steps of the perceptron", "",
               "By Keras' Adam. Bytes of the process and, where TensorFlow's "
               "allocator has the device's memory, of the device, after a fifth "
               "of the steps and at the end. TensorFlow counts blocks, which may "
               "be larger than the tensors in them, so that its figure goes up "
               "and down; the plug-in's own allocator had all steps run on a "
               "device of 1 MiB, in which a tensor left behind by every fourth "
               "step would not have found room.")
    report.table("allocator", "host, then", "host, at last", "device, then",
                 "device, at last", "seconds")
    for words, extra in (("TensorFlow's", {}),
                         ("the plug-in's, 1 MiB", {"CPU_SIM_BFC": "0",
                                                   "CPU_SIM_MEMORY": "1M"})):
        found = report.value(harness.run(model_runs.memory, STEPS, 10,
                                         env={**STRICT, **extra}), words)
        if found:
            host, device = found["host"], found["device"]
            report.row(words, f"{host[0]:,}", f"{host[-1]:,}",
                       *(["-", "-"] if extra else
                         [f"{device[0]:,}", f"{device[-1]:,}"]),
                       f"{found['seconds']:.0f}")
            # A page here and there is touched for the first time late.
            report.check(host[-1] - host[len(host) // 2] <= 65536,
                         f"{words}: host memory grows: {host}")


PARTS = {"models": compare_models, "deep": compare_deep_models,
         "digits": learn_digits, "split": split_models, "memory": run_long}
PAGE = """# Whole models on the device

Made by `tools/models --write docs/measured/models.md`: stock TensorFlow {tensorflow},
examples/cpu_sim, soft placement off (an op that the device lacks is an error),
memory that the host cannot touch.

"""


def main():
    parser = argparse.ArgumentParser(description="Runs whole models.")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    report = Report()
    for part in options.only:
        PARTS[part](report)
    for complaint in report.complaints:
        print("FAILED:", complaint, file=sys.stderr)
    if options.write and not report.complaints:
        import importlib.metadata
        options.write.write_text(
            PAGE.format(tensorflow=importlib.metadata.version("tensorflow-cpu"))
            + "\n".join(report.lines).strip() + "\n")
    return 1 if report.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
