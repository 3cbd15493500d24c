# SPDX-License-Identifier: Apache-2.0
"""Runs optimizers' updates on the device of backend_cases.py and on the CPU, for
test_backend_training.py."""

from backend_cases import DEVICE, registered
from backend_layout_cases import distance

SHAPES = [[], [0], [1], [7], [3, 0, 2], [4, 5], [2, 3, 1, 2], [1030]]
# Arguments that the formulas need in (0, 1).
RATES = {"beta1_power", "beta2_power", "beta1", "beta2", "rho", "momentum", "beta",
         "lr", "alpha", "epsilon", "l1", "l2", "l2_shrinkage", "logbase", "sign_decay"}


def ops():
    """Returns the names of the updates that the device has."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)  # loads the plug-in
    names = {op for op, _, _ in registered()}
    return sorted(op for op in names if op.startswith(("ResourceApply",
                                                       "ResourceSparseApply")))


def compare(op, seed, runs):
    """Returns for each type the largest distance between the device and the CPU, in
    units in the last place of the variable's largest element before or after the update,
    with the arguments."""
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.framework import op_def_registry
    tf.config.set_soft_device_placement(False)
    random = np.random.default_rng(seed)
    definition = op_def_registry.get(op)
    flags = [a.name for a in definition.attr
             if a.type == "bool" and a.name != "use_locking"]
    types = [{number for name, types, _ in registered(device) if name == op
              for number in types["T"]} for device in ("REFERENCE", "CPU")]
    worst = {}
    for number in types[0] & types[1]:
        dtype = tf.as_dtype(number)
        worst[dtype.name] = [0, ""]
        for _ in range(runs):
            shape = SHAPES[random.integers(len(SHAPES))]
            arguments = {flag: bool(random.integers(2)) for flag in flags}
            indices = None
            if op.startswith("ResourceSparse"):
                # TensorFlow's CPU kernels reject empty slices.
                shape = [3] if not shape or 0 in shape else shape
                rows = random.permutation(shape[0])
                indices = rows[:random.integers(len(rows) + 1)]
            for a in definition.input_arg:
                arguments[a.name] = argument(random, a, dtype, shape, indices)
            results = [apply(device, op, definition, arguments)
                       for device in (DEVICE, "/device:CPU:0")]
            before = [arguments[a.name] for a in definition.input_arg
                      if a.type == tf.resource.as_datatype_enum]
            for device, cpu, old in zip(*results, before):
                apart = distance(np.stack([device, old]), np.stack([cpu, old]))
                if apart > worst[dtype.name][0]:
                    worst[dtype.name] = [apart, str([arguments, device, cpu])[:2000]]
    return worst


def argument(random, definition, dtype, shape, indices):
    import tensorflow as tf
    name, kind = definition.name, dtype.as_numpy_dtype
    if name == "indices":
        return indices.astype("int64" if random.integers(2) else "int32")
    if name == "global_step":
        return random.integers(1, 9)
    if name == "lr_power":
        return kind(random.choice([-0.5, -0.25]))
    if name in RATES:
        return kind(random.uniform(.1, .9))
    if name in ("grad", "delta"):
        shape = shape if indices is None else [len(indices), *shape[1:]]
        return random.normal(size=shape).astype(kind)
    # A variable. Averages of squares are at least squares of averages.
    offset = 2 if name in ("ms", "v", "vhat", "accum", "accum_update") else 0
    return tf.cast(random.uniform(.1, 1, shape) + offset, dtype).numpy()


def apply(device, op, definition, arguments):
    """Returns the values of the variables after the update."""
    import tensorflow as tf
    with tf.device(device):
        inputs, variables = {}, []
        for a in definition.input_arg:
            value = arguments[a.name]
            if a.type == tf.resource.as_datatype_enum:
                variables.append(tf.Variable(value))
                value = variables[-1].handle
            else:
                value = tf.constant(value)
            inputs[a.name] = value
        flags = {k: v for k, v in arguments.items() if k not in inputs}
        getattr(tf.raw_ops, op)(**inputs, **flags)
        return [v.numpy() for v in variables]


def failures():
    """Returns the errors of updates with wrong arguments."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    found = []
    with tf.device(DEVICE):
        v, m = tf.Variable([1.0, 2.0]), tf.Variable([3.0])
        one, pair, triple = map(tf.constant, (1.0, [1.0, 2.0], [1.0, 2.0, 3.0]))
        for op, arguments in (
                ("ResourceApplyGradientDescent",
                 {"var": v.handle, "alpha": one, "delta": triple}),
                ("ResourceApplyGradientDescent",
                 {"var": v.handle, "alpha": pair, "delta": pair}),
                ("ResourceApplyMomentum",
                 {"var": v.handle, "accum": m.handle, "lr": one, "grad": pair,
                  "momentum": one})):
            try:
                getattr(tf.raw_ops, op)(**arguments)
                found.append("no error")
            except tf.errors.OpError as error:
                found.append(f"{type(error).__name__}: {error.message}")
    return found
