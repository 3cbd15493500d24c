# SPDX-License-Identifier: Apache-2.0
"""Users expect of a device what they know from GPUs: devices can be hidden, a default
MirroredStrategy uses them, tensors leave them through DLPack, models are converted to
TensorFlow Lite, and children of a fork use them. Registered as type GPU, the device
runs code for GPUs unchanged. See docs/guide/differs_from_gpu.md."""

import harness
import pytest

AS_GPU = {"TFPLUG_DEVICE_TYPE": "SIM=GPU"}


def hide(visible):
    import tensorflow as tf
    devices = tf.config.list_physical_devices("SIM")
    tf.config.set_visible_devices([devices[i] for i in visible], "SIM")
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        listed = [d.name for d in session.list_devices() if "SIM" in d.name]
    return [len(tf.config.list_logical_devices("SIM")), len(listed),
            (tf.constant(1.0) + 1.0).device[-5:],
            [d[-5:] for d in tf.distribute.MirroredStrategy().extended.worker_devices]]


@pytest.mark.parametrize("visible, expected", [
    ([], [0, 0, "CPU:0", ["CPU:0"]]),
    ([1], [1, 1, "SIM:0", ["SIM:0"]]),
    ([0, 1], [2, 2, "SIM:0", ["SIM:0", "SIM:1"]])])
def test_hidden_devices(visible, expected):
    result = harness.run(hide, visible)
    assert result.ok and result.value == expected, result


def use_a_missing_device():
    """Returns the device of a result on SIM:7, and the error without soft placement."""
    import tensorflow as tf
    with tf.device("SIM:7"):
        placed = tf.constant([1.0]) + 1.0
        assert placed.numpy() == [2.0]
        tf.config.set_soft_device_placement(False)
        try:
            tf.sqrt(placed)
        except tf.errors.InvalidArgumentError as error:
            return placed.device[-5:], str(error)


def test_a_missing_device():
    result = harness.run(use_a_missing_device)
    assert result.ok, result
    device, error = result.value
    assert device == "SIM:0"
    assert "Could not satisfy device specification" in error and "SIM:7" in error


def export(device):
    import numpy as np
    import tensorflow as tf
    from tensorflow.experimental import dlpack
    with tf.device(device):
        tensors = [tf.range(6.0)[::2], tf.constant([1, 2]),
                   tf.cast(tf.constant([1.5]), tf.bfloat16), tf.zeros([0, 3])]
    assert all(t.device.endswith(device) for t in tensors)
    pairs = [(dlpack.from_dlpack(dlpack.to_dlpack(t)), t) for t in tensors]
    assert all("CPU" in copy.device for copy, _ in pairs)
    if hasattr(tensors[0], "__dlpack__"):
        pairs.append((tf.constant(np.from_dlpack(tensors[0])), tensors[0]))
    return [copy.dtype == t.dtype and copy.shape == t.shape and
            bool(tf.reduce_all(copy == t)) for copy, t in pairs]


@pytest.mark.parametrize("device, env", [("SIM:1", {}), ("GPU:1", AS_GPU)])
def test_dlpack_exports_a_copy_in_host_memory(device, env):
    result = harness.run(export, device, env=env)
    assert result.ok and all(result.value) and len(result.value) >= 4, result


def convert(folder):
    """Returns the differences of converted models from the Keras model's results."""
    import keras
    import numpy as np
    import tensorflow as tf
    x = np.linspace(-1, 1, 8).reshape(2, 4).astype("float32")
    model = keras.Sequential([
        keras.layers.Input((4,)), keras.layers.Dense(3, "relu"),
        keras.layers.BatchNormalization(), keras.layers.Dense(2)])
    assert "SIM" in model.weights[0].value.device
    expected = model.predict(x, verbose=0)
    model.export(folder, verbose=False)
    converters = [tf.lite.TFLiteConverter.from_keras_model(model),
                  tf.lite.TFLiteConverter.from_saved_model(folder)]
    differences = []
    for converter in converters:
        interpreter = tf.lite.Interpreter(model_content=converter.convert())
        given = interpreter.get_input_details()[0]["index"]
        interpreter.resize_tensor_input(given, x.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(given, x)
        interpreter.invoke()
        got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        differences.append(float(np.abs(got - expected).max()))
    return differences


def test_models_are_converted_to_tensorflow_lite(tmp_path):
    result = harness.run(convert, str(tmp_path / "model"))
    assert result.ok, result
    assert len(result.value) == 2 and max(result.value) < 1e-5, result


def use_in_child(device):
    """Returns the number of devices, a sum in a child that is forked before their first
    use, and one in the parent after that."""
    import os
    import signal
    import tensorflow as tf
    counted = len(tf.config.list_physical_devices(device))  # as importing Keras does
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(100)
        text = "no result"
        try:
            assert len(tf.config.list_logical_devices(device)) == counted
            with tf.device(device + ":0"):
                sum_ = tf.constant([1.0, 2.0]) + 1.0
            assert sum_.device.endswith(device + ":0")
            text = str(sum_.numpy())
        finally:
            os.write(writable, text.encode())
            os._exit(0)
    os.close(writable)
    os.waitpid(child, 0)
    with open(readable, encoding="utf-8") as pipe:
        text = pipe.read()
    with tf.device(device + ":0"):  # and the parent's devices still work
        return [counted, text, float(tf.constant(1.0) + 1.0)]


def test_a_child_forked_before_the_first_use_has_devices():
    result = harness.run(use_in_child, "SIM")
    assert result.ok and result.value == [2, "[2. 3.]", 2.0], result


def run_code_for_gpus():
    """The RFC's first scenario: code that names GPUs."""
    import keras
    import numpy as np
    import tensorflow as tf
    assert len(tf.config.list_physical_devices("GPU")) == 2
    assert tf.test.gpu_device_name() == "/device:GPU:0"
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
    tf.config.set_soft_device_placement(False)
    with tf.device("/gpu:0"):
        product = tf.matmul(tf.ones([2, 3]), tf.ones([3, 2]))
        assert product.device.endswith("GPU:0") and product.numpy()[0, 0] == 3.0
        counter = tf.Variable([1.0, 2.0])
        counter.assign_add([1.0, 1.0])
        counter[0].assign(7.0)
        assert counter.numpy().tolist() == [7.0, 3.0]
        filters = tf.ones([2, 2, 1, 1])
        y = tf.nn.conv2d(tf.ones([1, 3, 3, 1]), filters, 1, "SAME")
        assert y.device.endswith("GPU:0")
        assert y[0, :, :, 0].numpy().tolist() == [[4, 4, 2], [4, 4, 2], [2, 2, 1]]
    tf.config.set_soft_device_placement(True)
    x = np.linspace(-1, 1, 64 * 12).reshape(64, 4, 3).astype("float32")

    def train(device, more_layers):
        keras.utils.set_random_seed(1)
        model = keras.Sequential([
            keras.layers.Input((4, 3)), keras.layers.LSTM(4),
            keras.layers.Dense(8, "relu"), *more_layers(), keras.layers.Dense(1)])
        model.compile("adam", "mse", **harness.without_xla_on_cpu(device))
        losses = model.fit(x, x[:, 0, :1], batch_size=16, epochs=3, verbose=0,
                           shuffle=False).history["loss"]
        return losses, model.weights[0].value

    def local():
        """Returns layers that do not compute the same in each of several replicas."""
        return keras.layers.Dropout(0.1), keras.layers.BatchNormalization()

    losses, weight = train("GPU", local)
    assert weight.device.endswith("GPU:0")
    assert losses[-1] < losses[0]
    strategy = tf.distribute.MirroredStrategy()
    assert strategy.num_replicas_in_sync == 2
    with strategy.scope():
        mirrored, _ = train("GPU", list)
    with tf.device("CPU:0"):
        on_cpu = [train("CPU", layers)[0] for layers in (local, list)]
    return [losses, mirrored], on_cpu


def test_registered_as_gpu_the_device_runs_code_for_gpus():
    import numpy as np
    result = harness.run(run_code_for_gpus, env=AS_GPU)
    assert result.ok, result
    np.testing.assert_allclose(*result.value, rtol=1e-4)


def iterate_datasets_of_functions():
    import tensorflow as tf
    count = tf.function(lambda: tf.data.Dataset.range(3))
    draw = tf.function(lambda: tf.data.Dataset.random(seed=42).take(2))
    moved = tf.data.Dataset.range(3).apply(
        tf.data.experimental.prefetch_to_device("/gpu:0"))
    assert "GPU" in next(iter(moved)).device
    return [list(map(int, dataset)) for dataset in (count(), count().map(abs), moved)] + [
        len(list(draw()))]


def test_datasets_of_functions():
    result = harness.run(iterate_datasets_of_functions, env=AS_GPU)
    assert result.value == [[0, 1, 2]] * 3 + [2], result


def types():
    import tensorflow as tf
    return sorted({d.device_type for d in tf.config.list_physical_devices()})


@pytest.mark.parametrize("setting", ["GPU", "SIM=", "SIM=MY_CPU", "SIM=gpu"])
def test_an_invalid_type_is_ignored_with_a_log_line(setting):
    result = harness.run(types, env={"TFPLUG_DEVICE_TYPE": setting})
    assert result.ok and result.value == ["CPU", "SIM"], result
    assert f"TFPLUG_DEVICE_TYPE={setting} is ignored" in result.log


def test_the_setting_of_another_type_changes_nothing():
    result = harness.run(types, env={"TFPLUG_DEVICE_TYPE": "OTHER=GPU"})
    assert result.ok and result.value == ["CPU", "SIM"], result
    assert "TFPLUG_DEVICE_TYPE" not in result.log
