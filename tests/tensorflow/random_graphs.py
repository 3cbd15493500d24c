# SPDX-License-Identifier: Apache-2.0
"""Random graphs of the ops that graph passes rewrite, to compare the results before
and after: products, biases, activations, pads, normalizations, transposes and casts.
Some of the values have several uses or are returned.

    function, arguments = random_graphs.make(tf, seed)
    results = tf.function(function)(*arguments)

To run 200 graphs with and without fusion from the shell (about three minutes):

    TFPLUG_CPU_SIM=build/gcc/examples/cpu_sim/libtfplug_cpu_sim.so \\
        python tests/tensorflow/random_graphs.py 200
"""

import pathlib
import sys

import numpy as np

ACTIVATIONS = ["relu", "relu6", "elu", "leaky_relu", "tanh", "sigmoid"]


class Maker:
    """Draws the steps of a graph; `run` then executes them in TensorFlow."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        # The shapes of the values so far; images have rank 4.
        self.shapes = [(3, 6), (2, 7, 7, 4)]
        self.steps = []
        self.weights = []
        for _ in range(self.random.integers(6, 16)):
            self._add()
        count = len(self.shapes)
        # The last two values, and two random ones.
        chosen = set(range(count - 2, count))
        chosen |= set(self.random.integers(2, count, 2).tolist())
        self.results = sorted(chosen)

    def _weight(self, *shape):
        value = self.random.normal(0, 0.5, shape).astype(np.float32)
        # Each weight is either a constant in the graph or an argument.
        self.weights.append((value, bool(self.random.integers(2))))
        return len(self.weights) - 1

    def _draw(self, rank=None):
        """Draws one of the values; recent ones are more likely, so that chains grow."""
        fit = [i for i, s in enumerate(self.shapes)
               if rank is None or len(s) == rank]
        late = fit[-3:]
        pool = late if self.random.integers(3) else fit
        return int(self.random.choice(pool))

    def _emit(self, shape, *step):
        self.steps.append(step)
        self.shapes.append(tuple(int(d) for d in shape))
        return len(self.shapes) - 1

    def _add(self):
        kinds = [self._matmul, self._conv, self._conv, self._depthwise,
                 self._activation, self._activation, self._transposes,
                 self._casts, self._sum, self._after]
        kinds[self.random.integers(len(kinds))]()

    def _maybe_activation(self, value):
        if self.random.integers(2):
            self._emit(self.shapes[value], "activation", value,
                       str(self.random.choice(ACTIVATIONS)))

    def _bias(self, value):
        """Adds a bias in one of several ways, or none."""
        depth = self.shapes[value][-1]
        how = self.random.integers(5)
        if how < 3:
            value = self._emit(
                self.shapes[value], ["bias_add", "sum", "row"][how], value,
                self._weight(depth), bool(self.random.integers(2)))
        elif how == 3:
            # Not a bias: one number for each row.
            value = self._emit(self.shapes[value], "sum", value,
                               self._weight(self.shapes[value][-2], 1), False)
        self._maybe_activation(value)

    def _matmul(self):
        value = self._draw(2)
        rows, depth = self.shapes[value]
        turn = bool(self.random.integers(2))
        n = int(self.random.integers(1, 6))
        shape = (n, depth) if turn else (depth, n)
        self._bias(self._emit((rows, n), "matmul", value, self._weight(*shape),
                              turn))

    def _conv(self, depthwise=False):
        value = self._draw(4)
        n, h, w, c = self.shapes[value]
        if self.random.integers(2):
            amounts = self.random.integers(0, 3, 4).tolist()
            h, w = h + amounts[0] + amounts[1], w + amounts[2] + amounts[3]
            value = self._emit((n, h, w, c), "pad", value, amounts)
        size = int(self.random.integers(1, min(4, h + 1, w + 1)))
        stride = int(self.random.integers(1, 3))
        padding = ["VALID", "SAME"][self.random.integers(2)]
        out = int(self.random.integers(1, 3 if depthwise else 5))
        if padding == "SAME":
            hw = [-(-d // stride) for d in (h, w)]
        else:
            hw = [(d - size) // stride + 1 for d in (h, w)]
        depth = c * out if depthwise else out
        name = "depthwise" if depthwise else "conv"
        value = self._emit((n, *hw, depth), name, value,
                           self._weight(size, size, c, out), stride, padding)
        if self.random.integers(3) == 0:
            value = self._norm(value)
            self._maybe_activation(value)
        else:
            self._bias(value)

    def _depthwise(self):
        self._conv(depthwise=True)

    def _norm(self, value):
        depth = self.shapes[value][-1]
        return self._emit(self.shapes[value], "norm", value,
                          [self._weight(depth) for _ in range(4)])

    def _activation(self):
        value = self._draw()
        self._emit(self.shapes[value], "activation", value,
                   str(self.random.choice(ACTIVATIONS)))

    def _transposes(self):
        value = self._draw()
        shape = self.shapes[value]
        order = self.random.permutation(len(shape)).tolist()
        turned = self._emit([shape[i] for i in order], "transpose", value,
                            order)
        back = np.argsort(order).tolist()
        if self.random.integers(4) == 0:
            back = self.random.permutation(len(shape)).tolist()
        now = self.shapes[turned]
        self._emit([now[i] for i in back], "transpose", turned, back)

    def _casts(self):
        value = self._draw()
        self._emit(self.shapes[value], "casts", value)

    def _sum(self):
        value = self._draw()
        self._emit(self.shapes[value], "add", value, self._like(value))

    def _like(self, value):
        same = [i for i, s in enumerate(self.shapes)
                if s == self.shapes[value]]
        return int(self.random.choice(same))

    def _after(self):
        """Adds a control edge from one value to another."""
        value = self._draw()
        self._emit(self.shapes[value], "after", value, self._draw())


def _steps(tf):
    def norm(x, parts):
        # A variance must not be negative; the others may have any value.
        scale, offset, mean, variance = parts
        return tf.raw_ops.FusedBatchNormV3(
            x=x, scale=scale, offset=offset, mean=mean,
            variance=tf.nn.relu(variance) + 0.5, is_training=False).y

    def after(x, other):
        with tf.control_dependencies([other]):
            return x * 2.0

    return {
        "matmul": lambda x, w, turn: tf.matmul(x, w, transpose_b=turn),
        "conv": lambda x, w, s, p: tf.nn.conv2d(x, w, s, p),
        "depthwise": lambda x, w, s, p: tf.nn.depthwise_conv2d(
            x, w, [1, s, s, 1], p),
        "bias_add": lambda x, b, _: tf.nn.bias_add(x, b),
        "sum": lambda x, b, turn: b + x if turn else x + b,
        "row": lambda x, b, turn: x + tf.reshape(b, [1] * (
            len(x.shape) - 1) + [-1]),
        "norm": norm,
        "activation": lambda x, name: getattr(tf.nn, name)(x),
        "pad": lambda x, a: tf.pad(x, [[0, 0], a[:2], a[2:], [0, 0]]),
        "transpose": lambda x, order: tf.transpose(x, order),
        "casts": lambda x: tf.cast(tf.cast(x, tf.float64), tf.float32),
        "add": lambda x, y: x + y,
        "after": after,
    }


# The operands of a step that are weights; the others are values.
_WEIGHTS = {"matmul": 2, "conv": 2, "depthwise": 2, "bias_add": 2, "sum": 2,
            "row": 2, "norm": 2}
_VALUES = {"add": 2, "after": 2}


def make(tf, seed):
    """Returns a function and the arguments to call it with."""
    maker = Maker(seed)
    random = np.random.default_rng(seed)
    inputs = [random.normal(size=s).astype(np.float32)
              for s in maker.shapes[:2]]
    passed = [w for w, is_constant in maker.weights if not is_constant]
    steps = _steps(tf)

    def function(inputs, passed):
        passed = iter(passed)
        weights = [tf.constant(w) if is_constant else next(passed)
                   for w, is_constant in maker.weights]
        values = list(inputs)
        for name, value, *rest in maker.steps:
            if name in _WEIGHTS:
                w = rest[0]
                rest[0] = ([weights[i] for i in w] if isinstance(w, list)
                           else weights[w])
            elif name in _VALUES:
                rest[0] = values[rest[0]]
            values.append(steps[name](values[value], *rest))
        return [values[i] for i in maker.results]

    return function, (inputs, passed)


def compare(seeds, device="/device:SIM:0"):
    """Runs the graph of each seed with and without fusion. Returns the largest
    relative difference for each seed, and the total number of fused ops."""
    import tensorflow as tf
    import graph_runs
    tf.config.set_soft_device_placement(False)
    differences, fused = [], 0
    for seed in seeds:
        function, arguments = make(tf, seed)
        with tf.device(device):
            before, old = graph_runs.run(function, arguments, fuse=False)
            after, new = graph_runs.run(function, arguments, fuse=True)
        worst = 0.0
        for b, a in zip(before, after):
            assert a.shape == b.shape
            scale = max(1.0, float(np.abs(b).max(initial=0)))
            worst = max(worst, float(np.abs(a - b).max(initial=0)) / scale)
        differences.append(worst)
        fused += sum(op.startswith("_Fused") for op in new)
        assert not any(op.startswith("_Fused") for op in old)
    return differences, fused


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    import harness
    count = int(sys.argv[1])
    result = harness.run(compare, list(range(count)))
    assert result.ok, result
    worst = max(result.value[0])
    print(f"{count} graphs, {result.value[1]} fused ops, "
          f"largest difference {worst:.2e}")
    sys.exit(worst > 1e-5)
