# SPDX-License-Identifier: Apache-2.0
"""Updates of variables by optimizers' ops (tf.compat.v1.train and raw ops), and of
slices in sessions, have the same results on the device as on the CPU, in every
release: eagerly, in functions and in sessions."""

import harness
import pytest

STRICT = {"CPU_SIM_STRICT": "1"}
MODES = ("eager", "function", "session")
ROWS = [2, 0]

OPTIMIZERS = {
    "GradientDescent": ("GradientDescentOptimizer", {}),
    "Momentum": ("MomentumOptimizer", {"momentum": 0.9}),
    "Nesterov": ("MomentumOptimizer", {"momentum": 0.9, "use_nesterov": True}),
    "Adam": ("AdamOptimizer", {}),
    "Adagrad": ("AdagradOptimizer", {}),
    "RMSProp": ("RMSPropOptimizer", {"momentum": 0.5}),
    "RMSProp, centered": ("RMSPropOptimizer", {"centered": True}),
    "Ftrl": ("FtrlOptimizer", {"l1_regularization_strength": 0.01}),
    "Ftrl, shrinkage": ("FtrlOptimizer", {
        "l2_shrinkage_regularization_strength": 0.1}),
    "Proximal": ("ProximalGradientDescentOptimizer", {
        "l2_regularization_strength": 0.1}),
    "ProximalAdagrad": ("ProximalAdagradOptimizer", {
        "l1_regularization_strength": 0.01}),
    "Adadelta": ("AdadeltaOptimizer", {}),
    "AdagradDA": ("AdagradDAOptimizer", {"l1_regularization_strength": 0.01}),
}


def _run(tf, mode, device, build):
    """Calls build(), which returns two functions, a step and its results, and runs the
    step three times."""
    with tf.device(device):
        if mode != "session":
            step, results = build()

            def run():
                step()
            run = tf.function(run) if mode == "function" else run
            for _ in range(3):
                run()
            return [x.numpy().tolist() for x in results()]
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session, tf.device(device):
        step, results = build()
        step = step()
        session.run(v1.global_variables_initializer())
        results = [tf.identity(x) for x in results()]
        for _ in range(3):
            session.run(step)
        return [x.tolist() for x in session.run(results)]


def train(name, mode, device):
    """Trains a dense variable and rows of another one."""
    import tensorflow as tf
    v1 = tf.compat.v1
    cls, settings = OPTIMIZERS[name]

    def build():
        dense = tf.Variable([[1.0, -2.0], [3.0, 0.5]], name="dense")
        table = tf.Variable(tf.reshape(tf.range(1.0, 9.0), [4, 2]), name="table")
        if name == "AdagradDA":
            step_count = tf.Variable(3, dtype=tf.int64, name="step")
            optimizer = v1.train.AdagradDAOptimizer(0.1, step_count, **settings)
        else:
            optimizer = getattr(v1.train, cls)(0.1, **settings)

        def step():
            rows = tf.IndexedSlices(tf.constant([[1.0, -1.0], [0.5, 2.0]]),
                                    tf.constant(ROWS), tf.constant([4, 2]))
            gradient = tf.constant([[0.5, 1.0], [-1.0, 0.25]]) * dense
            return optimizer.apply_gradients([(gradient, dense), (rows, table)])

        def results():
            variables = [dense, table] + optimizer.variables()
            for v in variables:
                assert device[-5:-2] in v.device, (v.name, v.device)
            return variables
        return step, results
    return _run(tf, mode, device, build)


def op_names():
    """Returns the optimizers' ops of this release."""
    import tensorflow as tf
    from tensorflow.python.framework import op_def_registry
    return sorted(
        name for name in dir(tf.raw_ops)
        if name.startswith(("ResourceApply", "ResourceSparseApply")) and
        op_def_registry.get(name) is not None)


def raw(name, mode, device, dtype):
    """Runs one op with inputs in its own range."""
    from tensorflow.python.framework import op_def_registry
    import numpy as np
    import tensorflow as tf
    arguments = op_def_registry.get(name).input_arg
    flags = [attr.name for attr in op_def_registry.get(name).attr
             if attr.name in ("use_nesterov", "update_slots",
                              "multiply_linear_by_lr")]
    is_sparse = "indices" in [a.name for a in arguments]

    def build():
        call, variables = {flag: True for flag in flags}, []
        for i, arg in enumerate(arguments):
            if arg.type == tf.resource.as_datatype_enum:
                start = np.linspace(0.5 + i, 2 + i, 6).reshape(3, 2)
                # The mean of squares exceeds the square of the mean.
                start = start * (20 if arg.name == "ms" else 1)
                variables.append(tf.Variable(start, dtype=dtype))
                call[arg.name] = variables[-1].handle
            elif arg.name == "indices":
                call[arg.name] = tf.constant(ROWS, tf.int64)
            elif arg.name in ("grad", "delta"):
                grad = np.linspace(-1, 1, 6).reshape(3, 2)
                call[arg.name] = tf.constant(grad[:2] if is_sparse else grad, dtype)
            elif arg.name == "global_step":
                call[arg.name] = tf.constant(2, tf.int64)
            else:
                call[arg.name] = tf.constant(
                    -0.5 if arg.name == "lr_power" else 0.1 + 0.01 * i, dtype)
        return (lambda: getattr(tf.raw_ops, name)(**call),
                lambda: [tf.cast(v, tf.float32) for v in variables])
    return _run(tf, mode, device, build)


def slices(mode, device):
    """Updates slices with each op of tf.raw_ops."""
    import tensorflow as tf
    ops = tf.raw_ops
    kinds = ("Add", "Sub", "Mul", "Div", "Min", "Max", "Update")

    def build():
        vs = {}
        for kind in kinds:
            vs[kind] = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
            vs["Nd" + kind] = tf.Variable([1.0, 2.0, 3.0, 4.0])
        vs["Mul1"], vs["Slice"] = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 2.0, 3.0])

        def step():
            done, read = [], []
            for kind in kinds:
                done.append(getattr(ops, f"ResourceScatter{kind}")(
                    resource=vs[kind].handle, indices=tf.constant([2, 0, 2]),
                    updates=tf.constant([[2.0, 3.0], [4.0, 0.5], [2.0, 3.0]])))
                if kind not in ("Mul", "Div"):
                    done.append(getattr(ops, f"ResourceScatterNd{kind}")(
                        ref=vs["Nd" + kind].handle, indices=tf.constant([[3], [1]]),
                        updates=tf.constant([2.5, 7.0])))
            done.append(ops.ResourceScatterMul(
                resource=vs["Mul1"].handle, indices=tf.constant([1]), updates=3.0))
            done.append(ops.ResourceStridedSliceAssign(
                ref=vs["Slice"].handle, begin=[0], end=[3], strides=[2],
                value=tf.constant([8.0, 9.0])))
            read.append(ops.ResourceGatherNd(
                resource=vs["Slice"].handle, indices=tf.constant([[1]]),
                dtype=tf.float32))
            return [x for x in done if x is not None] + read
        return step, lambda: list(vs.values())
    return _run(tf, mode, device, build)


def wrong_attributes():
    """Returns the names of the errors of ops whose attributes do not fit."""
    import tensorflow as tf
    from tensorflow.python.eager import context, execute
    f, i32, i64 = (x.as_datatype_enum for x in (tf.float32, tf.int32, tf.int64))
    x, i, n = tf.ones([2]), tf.constant([0]), tf.constant([0], tf.int64)
    train, slices = "TfplugNewTrainingValuesV1", "TfplugNewSlicesV1"
    errors = []
    for name, op, count, inputs, types in (
            (train, "Nonsense", 1, [x, x, x], [f, f]),
            (train, "ResourceScatterMul", 1, [x, i, x], [i32, f]),
            (train, "ResourceApplyGradientDescent", 2, [x, x, x], [f]),
            (train, "ResourceApplyGradientDescent", 1, [x, x], [f]),
            (train, "ResourceApplyGradientDescent", 1, [x, x, n], [f, i64]),
            (train, "ResourceSparseApplyAdagrad", 2, [x, x, x, x, x], [f, f, f]),
            (train, "ResourceApplyGradientDescent", 1, [x, x, x], [f, f]),
            (slices, "ResourceApplyGradientDescent", 1, [x, x, x], [f, f]),
            (slices, "ResourceScatterMul", 1, [x, x, x], [f, f]),
            (slices, "ResourceScatterMul", 1, [x, i], [i32]),
            (slices, "ResourceScatterMul", 1, [tf.ones([]), i, x], [i32, f])):
        try:
            with tf.device("/device:SIM:0"):
                execute.execute(
                    name.encode(), count, inputs=inputs, ctx=context.context(),
                    attrs=("op", op.encode(), "N", count, "T", f, "Targs", types,
                           "option", False))
            errors.append("none")
        except tf.errors.OpError as error:
            errors.append(type(error).__name__)
    return errors


def _compare(function, cases, rtol=2e-6):
    """Runs each case, whose argument None is the device, on both devices."""
    import numpy as np
    results = harness.run_each(
        function, [[f"/device:{device}:0" if x is None else x for x in case]
                   for case in cases for device in ("SIM", "CPU")], env=STRICT)
    failures = []
    for case, ours, cpus in zip(cases, results[::2], results[1::2]):
        if not (ours.ok and cpus.ok):
            failures.append(f"{case}: on the device: {ours}\non the CPU: {cpus}")
        elif not all(np.allclose(a, b, rtol=rtol, atol=1e-6)
                     for a, b in zip(ours.value, cpus.value)):
            failures.append(f"{case}: {ours.value} != {cpus.value}")
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("mode", MODES)
def test_optimizers_of_tensorflow_1_train_as_on_the_cpu(mode):
    _compare(train, [[name, mode, None] for name in OPTIMIZERS])


@pytest.mark.parametrize("mode", MODES)
def test_every_op_of_an_optimizer_computes_the_same_as_on_the_cpu(mode):
    ops = harness.run(op_names).value
    assert len(ops) >= 30
    _compare(raw, [[name, mode, None, "float32"] for name in ops])
    _compare(raw, [[name, mode, None, "float16"] for name in (
        "ResourceApplyAdam", "ResourceSparseApplyMomentum")], rtol=2e-3)


@pytest.mark.parametrize("mode", MODES)
def test_slices_are_updated_as_on_the_cpu(mode):
    _compare(slices, [[mode, None]])


def test_wrong_attributes_are_errors():
    result = harness.run(wrong_attributes, env=STRICT)
    assert result.ok, result
    assert result.value == ["InvalidArgumentError"] * 11
