# SPDX-License-Identifier: Apache-2.0
"""Keras' fit enqueues steps while the device computes: it reads logs and waits only where
a callback needs them, raises the device's errors, and does not wait for tf.data."""

import harness
import numpy as np
import pytest
from test_plain_keras import compiled

NEEDS_KERAS_3 = pytest.mark.skipif(harness.keras_version().startswith("2."),
                                   reason="a step of Keras 2 returns no Optional")


# ---- Logs and waits ------------------------------------------------------------

def fit_with_callbacks(device, folder):
    """Returns where a step leaves its logs, what callbacks of each kind get, and how
    often fit() reads logs for callbacks: for none, for callbacks of Keras that use no logs
    of batches, and for other ones."""
    import keras
    import tensorflow as tf
    from keras.src.callbacks import callback_list
    from unittest import mock
    seen, reads = {}, []
    original = callback_list.CallbackList._on_train_batch_end

    def read(self, batch, logs=None):
        reads.append(batch)
        return original(self, batch, logs)

    callback_list.CallbackList._on_train_batch_end = read

    class Old(keras.callbacks.Callback):
        def on_batch_end(self, batch, logs=None):
            seen.setdefault("old", []).append(logs["loss"])

    class Test(keras.callbacks.Callback):
        def on_test_batch_end(self, batch, logs=None):
            seen.setdefault("test", []).append(logs["loss"])

    new = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda _, logs: seen.setdefault("new", []).append(logs["loss"]))
    with tf.device("/device:CPU:0" if device == "CPU" else None):
        model, x, y = compiled("mlp", device)

        def fit(*callbacks, verbose=0, **options):
            reads.clear()
            history = model.fit(x, y, 16, verbose=verbose, shuffle=False,
                                callbacks=callbacks, **options).history
            return history["loss"], len(reads)

        def save(often):
            return keras.callbacks.ModelCheckpoint(f"{folder}/{device}.weights.h5",
                                                   save_weights_only=True, save_freq=often)

        def board(often):
            callback = keras.callbacks.TensorBoard(folder, write_graph=False,
                                                   update_freq=often)
            callback._summary_module = mock.MagicMock()
            callback._summary_module.scalar = lambda name, value, step: seen.setdefault(
                f"{name} {often}", []).append(float(value))
            return callback

        results = {"plain": fit(epochs=2), "old": fit(Old()), "new": fit(new),
                   "bar": fit(verbose=1), "lines": fit(verbose=2),
                   "epochs": fit(save("epoch"), verbose=1), "batches": fit(save(2)),
                   "board": fit(board("epoch"), save("epoch"), verbose=1),
                   "scalars": fit(board(1))}
        results["test"] = model.evaluate(x, y, 16, verbose=0, callbacks=[Test()])
        iterator = iter(tf.data.Dataset.from_tensor_slices((x, y)).batch(32))
        logs = model.train_function(iterator)["loss"]
        where = tf.DeviceSpec.from_string(logs.backing_device).device_type
        model.train_function(iterator)
        try:
            model.train_function(iterator)
        except (StopIteration, tf.errors.OutOfRangeError):
            results["ends"] = True
        model.compile("adam", model.loss, steps_per_execution=3,
                      **harness.without_xla_on_cpu(device))
        results["several steps"] = fit()
    return where, results, seen


@NEEDS_KERAS_3
def test_logs_stay_on_the_device_until_a_callback_reads_them(tmp_path):
    device, cpu = harness.run_each(fit_with_callbacks, [["SIM", str(tmp_path)],
                                                        ["CPU", str(tmp_path)]])
    assert device.ok and cpu.ok, (device, cpu)
    assert [device.value[0], cpu.value[0]] == ["SIM", "CPU"]
    results = device.value[1]
    assert results.pop("ends") and cpu.value[1].pop("ends")
    np.testing.assert_allclose(results.pop("test"), cpu.value[1].pop("test"), rtol=1e-5)
    counts = {name: count for name, (_, count) in results.items()}
    assert counts == {"plain": 0, "bar": 0, "lines": 0, "epochs": 0, "old": 4, "new": 4,
                      "batches": 4, "board": 0, "scalars": 4, "several steps": 0}
    for name, (losses, _) in results.items():
        np.testing.assert_allclose(losses, cpu.value[1][name][0], rtol=1e-5)
    for name, losses in device.value[2].items():
        np.testing.assert_allclose(losses, cpu.value[2][name], rtol=1e-5)
    scalars = {"batch_loss": 4, "epoch_loss": 1, "epoch_learning_rate": 1}
    assert {k: len(v) for k, v in device.value[2].items()} == {
        "old": 4, "new": 4, "test": 4, **{
            f"{name} {often}": n for often in ("epoch", 1) for name, n in scalars.items()}}


def fit_of_a_failing_device(verbose, has_callback):
    import keras
    import tensorflow as tf
    with tf.device("SIM:0"):
        model, x, y = compiled("mlp", "SIM")
        callback = keras.callbacks.LambdaCallback(on_train_batch_end=lambda _, logs: None)
        return model.fit(x, y, 16, epochs=3, verbose=verbose,
                         callbacks=[callback] * has_callback).history["loss"]


@NEEDS_KERAS_3
@pytest.mark.parametrize("verbose, has_callback", [(0, False), (1, False), (0, True)])
@pytest.mark.parametrize("after", [100, 200])  # in the first epoch, and in a later one
def test_fit_raises_an_error_of_the_device(verbose, has_callback, after):
    """Keras ignores it where it reads logs, and the next ones could be anything."""
    result = harness.run(fit_of_a_failing_device, verbose, has_callback, env={
        "CPU_SIM_FAULT": f"hook=device,kind=error,after={after}"})
    injected = "injected: device failed"
    assert injected in result.log + result.error, result  # it was reached
    assert ("SyncAll failed" in result.error or injected in result.error  # since 2.22
            or "Unexpected Event status" in result.log), result


def steps_between_waits():
    """Returns how many tensors of the device fit() reads in the 31 steps after the first
    32, in the 64th, and in the 64 after that."""
    import tensorflow as tf
    tensor = type(tf.constant(0))
    numpy, count = tensor._numpy, []

    def read(self):
        if "CPU" not in self.device:  # Since 3.16, Keras asks there for the next batch.
            count.append(1)
        return numpy(self)

    tensor._numpy = read
    model, x, y = compiled("mlp", "SIM")
    counts = []
    for batches in (32, 31, 1, 64):
        count.clear()
        data = tf.data.Dataset.from_tensor_slices((x[:1], y[:1])).repeat(batches).batch(1)
        model.fit(data, verbose=0)
        counts.append(len(count))
    return counts[1:]


def progress(device):
    """Returns the metrics that progress bars show if they show each step, and how many
    tensors are read for those that show none."""
    import contextlib
    import functools
    import io
    import re

    import tensorflow as tf
    from keras.src.utils.progbar import Progbar
    tensor = type(tf.constant(0))
    create, numpy, count = Progbar.__init__, tensor._numpy, []

    def read(self):
        count.append(1)
        return numpy(self)

    def run(function, interval, **options):
        Progbar.__init__ = functools.partialmethod(create, interval=interval)
        count.clear()
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            function(x, batch_size=32, **options)  # few steps: every 32nd waits
        return re.findall(r" - (\w+): ([-.e\d]+)", shown.getvalue()), len(count)

    tensor._numpy = read
    with tf.device("/device:CPU:0" if device == "CPU" else None):
        model, x, y = compiled("mlp", device)
        model.compile("sgd", model.loss, metrics=["accuracy"],
                      **harness.without_xla_on_cpu(device))
        shown = [run(function, 0, y=y, verbose=1, **options)[0]
                 for function, options in ((model.fit, {"shuffle": False}),
                                           (model.evaluate, {}))]
        run(model.predict, 0, verbose=0)
        reads = [run(model.predict, 1e12, verbose=v)[1] for v in (0, 1)]
        for function in model.fit, model.evaluate:
            reads += [run(function, 1e12, y=y, verbose=v)[1] for v in (0, 1)]
    return [[(name, float(value)) for name, value in run] for run in shown], reads


@NEEDS_KERAS_3
def test_progress_bars_read_what_they_show():
    device, cpu = harness.run_each(progress, [["SIM"], ["CPU"]])
    assert device.ok and cpu.ok, (device, cpu)
    for found, expected in zip(device.value[0], cpu.value[0]):
        assert len(expected) == 2 * 3  # metrics, and batches and the end
        assert [name for name, _ in found] == [name for name, _ in expected]
        np.testing.assert_allclose([v for _, v in found], [v for _, v in expected], atol=2e-4)
    quiet, bars = device.value[1][::2], device.value[1][1::2]
    assert bars == quiet


@NEEDS_KERAS_3
def test_fit_waits_for_every_32nd_step():
    result = harness.run(steps_between_waits)
    assert result.ok, result
    none, one, two = result.value
    assert [one - none, two - none] == [1, 2], result.value


# ---- Iterators -----------------------------------------------------------------

def searches(device):
    """Returns the losses of data in several shapes and containers, and how often
    TensorFlow looks for the trace of a step in each."""
    import keras
    import tensorflow as tf
    from tensorflow.python.eager.polymorphic_function import polymorphic_function
    original, found, searched = polymorphic_function.Function.__call__, [], []

    def call(self, *args, **kwargs):
        if self.__name__ == "multi_step_on_iterator":
            searched.append(self)
        return original(self, *args, **kwargs)

    polymorphic_function.Function.__call__ = call
    random = np.random.default_rng(0)

    def data(rows, length):
        return (random.normal(size=(rows, length, 3)).astype("float32"),
                random.normal(size=(rows, 1)).astype("float32"))

    with tf.device(f"/device:{device}:0"):
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((None, 3)), keras.layers.Dense(4, "tanh"),
                                  keras.layers.GlobalAveragePooling1D(),
                                  keras.layers.Dense(1)])
        model.compile("sgd", "mse", jit_compile=False)

        def train(*args, **options):
            searched.clear()
            history = model.fit(*args, verbose=0, shuffle=False, **options).history
            found.append([*history["loss"], *history.get("val_loss", []), len(searched)])

        train(*data(64, 5), batch_size=16, epochs=2)
        train(*data(40, 7), batch_size=16, validation_data=data(48, 2), validation_batch_size=16)
        train(tf.data.Dataset.from_tensor_slices(data(64, 5)).batch(8).repeat(),
              epochs=3, steps_per_epoch=4)
        tf.config.run_functions_eagerly(True)
        train(*data(64, 5), batch_size=16)
    return found


@NEEDS_KERAS_3
@pytest.mark.skipif(harness.keras_version().startswith("3.16"),
                    reason="a step of Keras 3.16 has no iterator")
def test_a_trace_is_searched_once_for_each_iterator():
    expected = harness.run(searches, "CPU").value
    found = harness.run(searches, "SIM").value
    np.testing.assert_allclose([loss for losses in found for loss in losses[:-1]],
                               [loss for losses in expected for loss in losses[:-1]],
                               rtol=1e-5)
    assert [losses[-1] for losses in found] == [2, 2, 1, 4]


def thread_that_frees(in_child):
    """Returns the name of the thread on which an iterator of tf.data ends."""
    import os
    import threading
    import weakref

    import tensorflow as tf
    if in_child:
        reader, writer = os.pipe()
        if child := os.fork():
            os.waitpid(child, 0)
            return os.read(reader, 99).decode()
    iterator = iter(tf.data.Dataset.range(3))
    names, ended = [], threading.Event()
    watched = weakref.ref(iterator._iterator_resource, lambda _: (
        names.append(threading.current_thread().name), ended.set()))
    assert next(iterator).numpy() == 0 and watched() is not None
    del iterator
    assert ended.wait(60)
    if in_child:
        os.write(writer, names[0].encode())
        os._exit(0)
    return names[0]


@pytest.mark.parametrize("in_child, thread", [(False, "tfplug-iterators"),
                                              (True, "MainThread")])
def test_iterators_end_on_a_thread_of_their_own(in_child, thread):
    """TensorFlow may let who frees one wait for half a minute."""
    result = harness.run(thread_that_frees, in_child)
    assert result.ok and result.value == thread, result
