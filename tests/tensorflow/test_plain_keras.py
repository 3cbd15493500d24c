# SPDX-License-Identifier: Apache-2.0
"""Keras scripts that do not mention XLA, with compile(optimizer, loss) and nothing
else, have the same results on the device as on the CPU. Keras then wraps steps in
functions with jit_compile=True, which XLA cannot compile for the device."""

import importlib

import harness
import numpy as np
import pytest


def _mlp(keras):
    return keras.Sequential([
        keras.Input((20,)),
        keras.layers.Dense(32, "relu"),
        keras.layers.Dense(5),
    ])


def _cnn(keras):
    return keras.Sequential([
        keras.Input((12, 12, 3)),
        keras.layers.Conv2D(8, 3, activation="relu"),
        keras.layers.BatchNormalization(),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dense(5),
    ])


def _grouped(keras):
    """Keras itself compiles grouped convolutions, as in ConvNeXt."""
    return keras.Sequential([
        keras.Input((8, 8, 4)),
        keras.layers.Conv2D(4, 3, padding="same", groups=4),
        keras.layers.LayerNormalization(),
        keras.layers.Conv2D(8, 1, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(5),
    ])


def _lstm(keras):
    """A loop: TensorFlow traces it in another way for XLA, so that no pass could edit
    its body."""
    return keras.Sequential([
        keras.Input((6, 3)),
        keras.layers.Bidirectional(keras.layers.LSTM(8)),
        keras.layers.Dense(5),
    ])


MODELS = {"mlp": _mlp, "cnn": _cnn, "grouped": _grouped, "lstm": _lstm}


def _make(name):
    import keras
    model = MODELS[name](keras)
    random = np.random.default_rng(0)
    values = [random.normal(0, 0.2, w.shape).astype(w.dtype)
              for w in model.get_weights()]
    model.set_weights([np.abs(v) if "variance" in getattr(w, "path", w.name) else v
                       for w, v in zip(model.weights, values)])
    x = random.normal(size=(64, *model.input_shape[1:])).astype(np.float32)
    return model, x, random.integers(0, 5, 64)


def compiled(name, device):
    import keras
    model, x, y = _make(name)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  **harness.without_xla_on_cpu(device))
    return model, x, y


def steps(name, device):
    """Returns the losses of fit and evaluate, and the result of predict."""
    import tensorflow as tf
    with tf.device("/device:CPU:0" if device == "CPU" else None):
        model, x, y = compiled(name, device)
        losses = model.fit(x, y, batch_size=16, epochs=2, shuffle=False,
                           verbose=0).history["loss"]
        losses.append(model.evaluate(x, y, batch_size=16, verbose=0))
        where = tf.convert_to_tensor(model.trainable_variables[0]).device
        assert where.endswith(f"{device}:0"), where
        return losses, model.predict(x, batch_size=16, verbose=0).tolist()


def predict_uncompiled(name, device):
    import tensorflow as tf
    with tf.device("/device:CPU:0" if device == "CPU" else None):
        model, x, _ = _make(name)
        return [], model.predict(x, batch_size=16, verbose=0).tolist()


def batches(name, device):
    """Results of steps that Python calls batch by batch."""
    import tensorflow as tf
    with tf.device("/device:CPU:0" if device == "CPU" else None):
        model, x, y = compiled(name, device)
        losses = [float(model.train_on_batch(x, y)) for _ in range(2)]
        losses.append(float(model.test_on_batch(x, y)))
        return losses, np.array(model.predict_on_batch(x)).tolist()


def strict_steps(name, device):
    """The same without soft placement: an op without a kernel is an error."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    return steps(name, device)


CASES = {"steps": steps, "strict_steps": strict_steps, "predict_uncompiled": predict_uncompiled,
         "batches": batches}


def run(case, name, device):
    return CASES[case](name, device)


@pytest.fixture(scope="module", name="results")
def _results():
    cases = [[case, name, device] for case in CASES for name in MODELS
             for device in ("SIM", "CPU") if (case, device) != ("strict_steps", "CPU")]
    results = dict(zip(map(tuple, cases), harness.run_each(run, cases)))
    for name in MODELS:  # The CPU has a kernel for each op.
        results["strict_steps", name, "CPU"] = results["steps", name, "CPU"]
    return results


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("case", CASES)
def test_results_match_the_cpu(results, case, name):
    device, cpu = (results[case, name, d] for d in ("SIM", "CPU"))
    assert cpu.ok, cpu
    assert device.ok, device
    for found, expected in zip(device.value, cpu.value):
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


# ---- Mixed precision -----------------------------------------------------------

def mixed(policy, device):
    """Returns losses, and the types of fused convolutions in the executed graphs."""
    import graph_runs
    import keras
    import tensorflow as tf
    keras.mixed_precision.set_global_policy(policy)
    (losses, predicted), functions = graph_runs.recorded(lambda: steps("cnn", device))
    fused = {tf.as_dtype(node.attr["T"].type).name
             for nodes in functions for node in nodes if node.op == "_FusedConv2D"}
    return [*losses, float(np.mean(np.abs(predicted)))], sorted(fused)


@pytest.mark.parametrize("policy, fused", [
    # TensorFlow's op does not allow bfloat16.
    ("mixed_bfloat16", []), ("mixed_float16", ["float16"])])
def test_mixed_precision(policy, fused):
    device = harness.run(mixed, policy, "SIM")
    float32 = harness.run(mixed, "float32", "CPU")
    assert float32.ok, float32
    assert device.ok, device
    np.testing.assert_allclose(device.value[0], float32.value[0], rtol=2e-2)
    assert device.value[1] == fused


# ---- Preprocessing on the device -----------------------------------------------

def preprocess(device):
    """Returns the features that a model computes from integers and strings."""
    import keras
    import tensorflow as tf
    integers = [7, -3, 12345678901234567, 0]
    with tf.device("/device:CPU:0" if device == "CPU" else None):
        features = keras.utils.FeatureSpace({
            "id": keras.utils.FeatureSpace.integer_hashed(64),
            "name": keras.utils.FeatureSpace.string_hashed(64),
            "size": keras.utils.FeatureSpace.float_normalized()})
        columns = {"id": tf.constant(integers, tf.int64), "size": tf.range(4.0),
                   "name": tf.constant(["a", "bc", "", "def"])}
        features.adapt(tf.data.Dataset.from_tensor_slices(columns))
        model = keras.Model(features.get_inputs(), features.get_encoded_features())
        hashing = keras.layers.Hashing(1000)
        hashed = [tf.function(hashing)(tf.constant(integers, dtype)).numpy().tolist()
                  for dtype, integers in ((tf.int64, integers), (tf.int32, [5, -12345]))]
        return model.predict(columns, verbose=0).tolist(), hashed


def test_preprocessing():
    device, cpu = harness.run_each(preprocess, [["SIM"], ["CPU"]])
    assert device.ok and cpu.ok, f"on the device: {device}\non the CPU: {cpu}"
    np.testing.assert_allclose(device.value[0], cpu.value[0], rtol=1e-6)
    assert device.value[1] == cpu.value[1]


# ---- Integers and caches, as in language models -------------------------------

def infer(device):
    """Returns the results of a layer before and after it is quantized, and a cache that
    a loop fills."""
    import keras
    import tensorflow as tf
    random = np.random.default_rng(2)
    with tf.device(f"/device:{device}:0"):
        layer = keras.layers.Dense(4)
        layer.build((None, 6))
        layer.set_weights([random.normal(size=w.shape) for w in layer.get_weights()])
        x, values = (tf.constant(random.normal(size=shape), tf.float32)
                     for shape in ((3, 6), (2, 3, 4)))

        @tf.function
        def fill(cache, values):
            for i in tf.range(3):
                row = tf.tanh(values[:, i:i + 1])
                cache = keras.ops.slice_update(cache, [0, i + 1, 0], row)
            return cache
        results = [layer(x)]
        layer.quantize("int8")
        assert layer.kernel.dtype == "int8"
        results += [layer(x), tf.function(layer)(x), fill(tf.zeros([2, 5, 4]), values)]
    assert all(device in result.device for result in results)
    return [result.numpy().tolist() for result in results]


@pytest.mark.skipif(harness.keras_version().startswith("2"),
                    reason="Keras 2 does not quantize layers")
def test_quantized_layers_and_caches():
    device, cpu = (harness.run(infer, name, env={"TFPLUG_LOG_FALLBACK": "1"})
                   for name in ("SIM", "CPU"))
    assert device.ok and cpu.ok, f"on the device: {device}\non the CPU: {cpu}"
    for found, expected in zip(device.value, cpu.value):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    plain, *quantized, cache = device.value
    for result in quantized:
        np.testing.assert_allclose(result, plain, atol=0.05)
        assert result != plain
    assert np.count_nonzero(cache, (0, 2)).tolist() == [0, 8, 8, 8, 0]
    assert "runs on the CPU" not in device.log


# ---- Optionals -----------------------------------------------------------------

def optionals():
    """Returns the devices of optionals that functions return, and their values."""
    import tensorflow as tf
    from_value = tf.experimental.Optional.from_value

    @tf.function(experimental_attributes={"_noinline": True})
    def callee(x):
        return from_value(x * 3)

    @tf.function
    def caller(x):
        inner = callee(x)
        return from_value({"outer": inner.get_value() + 1}), inner

    @tf.function
    def nothing():
        return tf.experimental.Optional.empty(tf.TensorSpec([2]))

    outer, inner = caller(tf.constant([1.0, 2.0]))
    none = nothing()
    devices = [x._variant_tensor.backing_device[-5:] for x in (outer, none)]
    return (devices, outer.get_value()["outer"].numpy().tolist(),
            inner.get_value().numpy().tolist(), bool(inner.has_value()),
            bool(none.has_value()))


def test_functions_return_optionals_in_host_memory():
    result = harness.run(optionals)
    assert result.ok, result
    assert result.value == [["CPU:0", "CPU:0"], [4.0, 7.0], [3.0, 6.0], True, False]


# ---- Releases of Keras ---------------------------------------------------------

def import_modules(*names):
    import tensorflow  # noqa: F401
    for name in names:
        importlib.import_module(name)


def test_keras_without_what_is_adapted_is_imported(tmp_path):
    """Releases before 3.7 lack some of it, and later ones may."""
    modules = [f"keras.src.{name}" for name in (
        "callbacks.callback_list", "utils.python_utils", "layers.rnn.lstm")]
    for name in modules:
        path = tmp_path.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("class CallbackList:\n  pass\n")
        for folder in path.relative_to(tmp_path).parents[:-1]:
            (tmp_path / folder / "__init__.py").touch()
    result = harness.run(import_modules, *modules, env={"PYTHONPATH": str(tmp_path)})
    assert result.ok, result
    *without, broken = (f"tfplug: cannot adapt {name}, which" for name in modules)
    assert not any(text in result.log for text in without), result.log
    assert broken in result.log, result.log


# ---- Eager calls of functions with jit_compile=True ---------------------------

def run_compiled(device):
    """Results of functions that Python calls for the device. Their devices are in
    the results."""
    import tensorflow as tf
    scope = {"SIM": "/device:SIM:0", "CPU": "/CPU:0", "default": None}[device]
    x = tf.constant([1.0, 2.0])

    def make():
        return tf.function(lambda x: tf.nn.relu(x * 3 - 4) + tf.reduce_sum(x),
                           jit_compile=True)

    def on_cpu_first():
        function = make()
        with tf.device("/CPU:0"):
            function(x)
        return function(x), function(x + 1)

    def concrete():
        return make().get_concrete_function(tf.TensorSpec([2]))(x)

    def with_variable():
        holder = []

        @tf.function(jit_compile=True)
        def function(x):
            if not holder:
                holder.append(tf.Variable([1.0, 1.0]))
            holder[0].assign_add(x * 2 - 1)
            return holder[0] + x
        return function(x), function(x)

    class Module(tf.Module):
        @tf.function(jit_compile=True)
        def call(self, x):
            return tf.sqrt(x * x + 1)

    def in_keras():
        import keras
        layer = keras.layers.Conv2D(4, 3, groups=2, kernel_initializer="ones")
        return layer(tf.ones([1, 5, 5, 4]))

    with tf.device(scope):
        results = [make()(x), *on_cpu_first(), concrete(), *with_variable(),
                   Module().call(x), in_keras()]
    return [[r.numpy().tolist(), r.device[-5:]] for r in results]


def test_compiled_functions_that_python_calls():
    on_device, by_default, cpu = harness.run_each(
        run_compiled, [["SIM"], ["default"], ["CPU"]])
    assert cpu.ok, cpu
    for result in (on_device, by_default):
        assert result.ok, result
        for (value, device), (expected, _) in zip(result.value, cpu.value):
            np.testing.assert_allclose(value, expected, rtol=1e-6)
            assert device == "SIM:0"
    # XLA still compiles for the CPU.
    assert {device for _, device in cpu.value} == {"CPU:0"}


def run_compiled_in_session(device):
    """A session's graph of three nodes, which TensorFlow passes to no optimizer."""
    import tensorflow as tf
    with tf.Graph().as_default(), tf.device(device):
        function = tf.function(lambda x: tf.nn.relu(x * 3 - 4), jit_compile=True)
        result = function(tf.constant([1.0, 2.0]))
        with tf.compat.v1.Session() as session:
            return [session.run(result).tolist(), function._jit_compile]


def test_compiled_functions_in_a_session_of_few_nodes():
    on_device, by_default, cpu = harness.run_each(
        run_compiled_in_session, [["/device:SIM:0"], [None], ["/CPU:0"]])
    for result, is_compiled in ((on_device, False), (by_default, False), (cpu, True)):
        assert result.ok, result
        assert result.value == [[0.0, 2.0], is_compiled]


def run_xla_on_the_cpu():
    import tensorflow as tf
    function = tf.function(lambda x: x * 2 + 1, jit_compile=True)
    with tf.device("/CPU:0"):
        x = tf.constant([1.0])
        function(x)
        return function.experimental_get_compiler_ir(x)(stage="hlo")


def test_xla_compiles_for_the_cpu():
    result = harness.run(run_xla_on_the_cpu)
    assert result.ok, result
    assert "HloModule" in result.value
