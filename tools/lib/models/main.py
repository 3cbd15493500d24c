# SPDX-License-Identifier: Apache-2.0
"""Runs whole Keras models: see tools/models. tests/tensorflow/harness.py runs
each model in its own process. TFPLUG_CPU_SIM selects a plug-in other than the one
in the build directory."""

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/tensorflow"), str(ROOT / "examples/demo")]
import harness  # noqa: E402
import optimizer_runs  # noqa: E402
import model_runs  # noqa: E402
import random_model_runs  # noqa: E402

STRICT = {"CPU_SIM_STRICT": "1"}  # only the device may access its memory
SIM0, SIM1, CPU = "/device:SIM:0", "/device:SIM:1", "/device:CPU:0"
DEVICE = model_runs.DEVICE[len("/device:"):]
# True: with frozen normalizations, see model_runs.compare.
MODELS = [("mlp", False), ("cnn", False), ("mobilenet_v2", True),
          ("resnet50", True), ("lstm", False), ("lstm_unrolled", False),
          ("gru", False), ("gru_unrolled", False), ("bidirectional", False),
          ("seq2seq", False), ("transformer", False), ("decoder", False),
          ("efficientnet_v2_b0", True), ("convnext_tiny", False),
          ("densenet121", True), ("unet", True)]
# With batch normalization in training, compared with float64.
DEEP = {"mobilenet_v2": {"size": 160, "batch": 8},
        "resnet50": {"size": 128, "batch": 8}}
MIXED = {"unet": {"size": 32, "batch": 8}, "densenet121": {"size": 64, "batch": 4}}
SEEDS = 3
LARGEST_RATIO = 2.0  # of the device's error to the CPU's
TITLES = {
    "mlp": "perceptron", "cnn": "digits' CNN", "mobilenet_v2": "MobileNetV2",
    "resnet50": "ResNet50", "lstm": "LSTM classifier",
    "lstm_unrolled": "LSTM classifier, unrolled", "gru": "GRU classifier",
    "gru_unrolled": "GRU classifier, unrolled",
    "transformer": "transformer classifier, two blocks",
    "bidirectional": "bidirectional LSTM, masked",
    "seq2seq": "seq2seq GRU with attention",
    "decoder": "attention with a causal mask, two blocks",
    "efficientnet_v2_b0": "EfficientNetV2B0", "convnext_tiny": "ConvNeXtTiny",
    "densenet121": "DenseNet121",
    "unet": "U-Net, Conv2DTranspose and bilinear",
}
INFERENCE, GRADIENTS, ACCURACY, EPOCHS = 1e-4, 1e-3, 0.97, 12
OPTIMIZERS = 1e-3  # largest relative difference
STEPS = 10000


class Report:
    """Lines of Markdown, and a list of failures."""

    def __init__(self):
        self.lines, self.complaints = [], []

    def add(self, *lines):
        self.lines += lines
        print(*lines, sep="\n", flush=True)

    def table(self, *heads):
        self.add("", "| " + " | ".join(heads) + " |", "| --- " * len(heads) + "|")

    def row(self, *cells):
        self.add("| " + " | ".join(str(cell) for cell in cells) + " |")

    def check(self, good, title):
        if not good:
            self.complaints.append(title)

    def value(self, result, title):
        """Returns the value of a run; None if it failed."""
        if not result.ok:
            self.complaints.append(f"{title}: {str(result)[:600]}")
            return None
        return result.value


def compare_models(report):
    report.add("## Inference and one training step", "",
               "*Inference* and *loss*: the largest difference of any output, "
               "and of the loss, relative to the largest value on the CPU. "
               "*Gradients*: the norm of the difference relative to the norm of "
               "the tensor, for the tensor for which this ratio is largest. *Of "
               "rounding*: the number of gradient tensors that consist of "
               "rounding errors only. *Frozen*: batch normalization as in "
               "inference; for training, see below. For times, see bench.md.")
    report.table("model", "input", "parameters", "inference", "loss",
                 "gradients", "gradient tensors", "nodes on the device, the CPU")
    for name, frozen in MODELS:
        title = TITLES[name] + (", frozen" if frozen else "")
        found = report.value(harness.run(model_runs.compare, name, {}, frozen,
                                         env=STRICT), title)
        if found is None:
            report.row(title, *["-"] * 6, "failed")
            continue
        ops = found["ops"]
        report.row(title, " x ".join(map(str, found["shape"])),
                   f"{found['parameters']:,}", f"{found['inference']:.1e}",
                   f"{found['loss']:.1e}", f"{found['gradients']:.1e}",
                   f"{found['tensors']}, {found['tiny']} of rounding",
                   f"{ops.get(DEVICE, 0)}, {ops.get('CPU:0', 0)}")
        report.check(found["inference"] <= INFERENCE,
                     f"{title}: inference")
        report.check(found["gradients"] <= GRADIENTS,
                     f"{title}: gradient of {found['worst']}")
        report.check(ops.get(DEVICE, 0) > 0, f"{title}: nothing on the device")


def compare_optimizers(report):
    report.add("", "## Optimizers", "",
               f"A classifier of sentences (embedding, two dense layers), trained for "
               f"{optimizer_runs.STEPS} steps on the device and on the CPU with "
               "`compile(optimizer, loss)` and `train_on_batch`. *Loss*: the largest "
               "difference, relative to the loss. *Weights*: the norm of the "
               "difference at the end, relative to the norm of what training changed.")
    report.table("optimizer", "loss", "weights", "the loss fell by")
    names = list(optimizer_runs.OPTIMIZERS)
    for name, result in zip(names, harness.run_each(
            optimizer_runs.compare, [[n, model_runs.DEVICE] for n in names],
            env=STRICT)):
        found = report.value(result, name)
        if found is None:
            report.row(name, "failed", "", "")
            continue
        report.row(name, f"{found['loss']:.1e}", f"{found['weights']:.1e}",
                   f"{found['fell']:.1%}")
        report.check(found["loss"] <= OPTIMIZERS, f"{name}: loss")
        report.check(found["weights"] <= OPTIMIZERS, f"{name}: weights")


def compare_deep_models(report):
    report.add("", "## Gradients with batch normalization in training", "",
               "The norm of the difference of all gradients of a training step, "
               "relative to the norm of all gradients. *SiLU*: the network with "
               "SiLU instead of ReLU; device and CPU agree. With ReLU and random "
               "weights, gradients are not a smooth function of the input: a "
               "rounding error can move an activation across the corner of its "
               "ReLU, and the normalizations propagate the change to all other "
               "activations of the batch. The CPU itself differs as much from "
               "the same step in float64, and from a step whose input is scaled "
               "by 1 + 3e-7, so no two devices can agree better. Therefore the "
               "device's error relative to float64 must be at most "
               f"{LARGEST_RATIO:g} times the CPU's (root mean square over the "
               "seeds, which determine weights and inputs; for the CPU, with and "
               "without the scaling). The same holds for mixed precision, in which "
               "each layer rounds to 11 or 8 bits.")
    report.table("model", "input", "seed", "device from float64",
                 "CPU from float64", "CPU, scaled, from float64",
                 "device from CPU")
    for name, options in DEEP.items():
        compare_gradients(report, TITLES[name] + ", SiLU", name, options, 1, True)
        compare_gradients(report, TITLES[name], name, options, SEEDS)
    for name, options in MIXED.items():
        for policy in ("mixed_float16", "mixed_bfloat16"):
            compare_gradients(report, f"{TITLES[name]}, {policy}", name, options,
                              SEEDS, policy=policy)


def compare_gradients(report, title, name, options, seeds, smooth=False,
                      policy="float32"):
    rows = report.value(harness.run(
        model_runs.gradient_errors, name, options, seeds, smooth, policy,
        env={**STRICT, "CPU_SIM_MEMORY": "16G"}), title)
    if rows is None:
        return
    size = options["size"]
    shape = f"{options['batch']} x {size} x {size} x 3"
    for seed, row in enumerate(rows):
        report.row(title, shape, seed, *(f"{e:.1e}" for e in row))
        report.check(not smooth or row[3] <= GRADIENTS,
                     f"{title}: gradients, {row[3]:.1e} from the CPU's")
    device = sum(row[0]**2 for row in rows) / len(rows)
    cpu = sum(row[1]**2 + row[2]**2 for row in rows) / (2 * len(rows))
    ratio = (device / cpu)**0.5
    report.row(title, shape, "all", f"{ratio:.2f} times the CPU's", "", "", "")
    report.check(ratio <= LARGEST_RATIO, f"{title}: {ratio:.2f} times the CPU's error "
                 "relative to float64")


def learn_digits(report):
    import numpy as np
    found = {}
    for device in (model_runs.DEVICE, CPU):
        found[device] = report.value(harness.run(
            model_runs.learn_digits, device, EPOCHS, env=STRICT),
            f"digits on {device}")
    if None in found.values():
        return
    losses = [np.array(found[d]["losses"]) for d in (model_runs.DEVICE, CPU)]
    accuracy = [found[d]["accuracy"] for d in (model_runs.DEVICE, CPU)]
    difference = np.abs(losses[0] / losses[1] - 1)
    report.add("", "## The digits' CNN, trained", "",
               f"Adam, {EPOCHS} epochs of {len(losses[0]) // EPOCHS} steps, "
               f"with the same initial weights and batches. Accuracy on "
               f"unseen digits: {accuracy[0]:.2%} on the device, "
               f"{accuracy[1]:.2%} on the CPU. The largest relative difference "
               f"of the first 20 losses is {difference[:20].max():.1e}; later, "
               "rounding errors grow, as with any other order of summation.")
    report.check(accuracy[0] >= ACCURACY, f"digits: {accuracy[0]:.2%}")
    draw_digits(losses, accuracy, found[model_runs.DEVICE]["predictions"])


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
    report.add("", "## Two devices", "",
               "A perceptron with its layers on two devices, ten steps of "
               "training: the largest difference of a loss or a weight from "
               "the same training on the CPU.")
    report.table("first layer", "second layer", "difference")
    for first, second in ((SIM0, CPU), (CPU, SIM0), (SIM0, SIM1)):
        found = report.value(harness.run(model_runs.split_model, first, second,
                                         env=STRICT), f"{first}, {second}")
        if found:
            report.row(first[8:], second[8:], f"{found['difference']:.1e}")
            report.check(found["difference"] <= 1e-5, f"{first}, {second}")


def run_long(report):
    report.add("", f"## Memory after {STEPS:,} steps of the perceptron", "",
               "Keras' Adam. Bytes in use by the process and, under "
               "TensorFlow's allocator, on the device, after a fifth of the "
               "steps and at the end. TensorFlow counts blocks, which may be "
               "larger than their tensors, so its figure varies. With the "
               "plug-in's own allocator, all steps ran on a device of 1 MiB, "
               "which would be full if every fourth step leaked a tensor.")
    report.table("allocator", "host, early", "host, end", "device, early",
                 "device, end", "seconds")
    for title, extra in (("TensorFlow's", {}),
                         ("the plug-in's, 1 MiB", {"CPU_SIM_BFC": "0",
                                                   "CPU_SIM_MEMORY": "1M"})):
        found = report.value(harness.run(model_runs.memory, STEPS, 10,
                                         env={**STRICT, **extra}), title)
        if found:
            host, device = found["host"], found["device"]
            report.row(title, f"{host[0]:,}", f"{host[-1]:,}",
                       *(["-", "-"] if extra else
                         [f"{device[0]:,}", f"{device[-1]:,}"]),
                       f"{found['seconds']:.0f}")
            # Some pages are touched for the first time late.
            report.check(host[-1] - host[len(host) // 2] <= 65536,
                         f"{title}: host memory grows: {host}")


def compare_random_models(report, seeds):
    report.add("", f"## Random models, seeds {seeds[0]} to {seeds[-1]}", "",
               "`fit`, `predict` and `evaluate` of models that are drawn from a seed. "
               "*Difference*: the largest of any loss and prediction to the CPU's, in "
               "units of what is allowed.")
    report.table("seed", "difference", "model")
    results = [harness.run_each(random_model_runs.run, [[seed, device] for seed in seeds])
               for device in (model_runs.DEVICE, CPU)]
    for seed, ours, cpus in zip(seeds, *results):
        if not cpus.ok:  # Keras or TensorFlow refuses the model
            report.row(seed, "-", str(cpus).splitlines()[0][:100])
            continue
        found = report.value(ours, f"random model {seed}")
        if found is None:
            report.row(seed, "failed", cpus.value["model"])
            continue
        units = random_model_runs.difference(found, cpus.value)
        report.row(seed, f"{units:.2f}", found["model"])
        report.check(units <= 1, f"random model {seed}: {units:.2g} units")


PARTS = {"models": compare_models, "optimizers": compare_optimizers,
         "deep": compare_deep_models,
         "digits": learn_digits, "split": split_models, "memory": run_long}
ONLY_CPU_SIM = ("split", "memory")  # which need its settings
PAGE = """# Whole models on {device}

Written by `{command}`: stock TensorFlow {tensorflow}, examples/{device}, soft placement
off (an op without a kernel is an error).

"""


def main():
    parser = argparse.ArgumentParser(description="Runs whole models.")
    parser.add_argument("--device", choices=["cpu_sim", "opencl", "vulkan", "cuda_like"],
                        default="cpu_sim", help="the first option, if any")
    parser.add_argument("--only", nargs="+", choices=PARTS)
    parser.add_argument("--random", type=int, metavar="N", default=0,
                        help="draw N models; without the parts, unless --only names some")
    parser.add_argument("--seed", type=int, default=0, help="of the first of them")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    report = Report()
    if options.random:
        compare_random_models(report, range(options.seed, options.seed + options.random))
    for part in options.only or ([] if options.random else PARTS):
        if options.only or options.device == "cpu_sim" or part not in ONLY_CPU_SIM:
            PARTS[part](report)
    for complaint in report.complaints:
        print("FAILED:", complaint, file=sys.stderr)
    if options.write and not report.complaints:
        import importlib.metadata
        options.write.write_text(
            PAGE.format(device=options.device,
                        command=" ".join(["tools/models", *sys.argv[1:]]),
                        tensorflow=importlib.metadata.version("tensorflow-cpu"))
            + "\n".join(report.lines).strip() + "\n")
    return 1 if report.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
