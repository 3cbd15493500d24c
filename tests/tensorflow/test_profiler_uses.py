# SPDX-License-Identifier: Apache-2.0
"""The ways in which people record profiles, and what may happen meanwhile."""

from importlib.metadata import distributions

import harness
from fault import Faults
from test_profiler import events_of, read_profile

SIM = "/device:GPU:0 (SIM:0)"
_state = {}


def profile_of(case):
    """Records a profile and returns what is in it, by device: see the tests."""
    import os
    import pathlib
    if not _state:
        _state["faults"] = Faults()
        import tensorflow as tf
        _state["tf"] = tf
    folder = pathlib.Path(os.environ["TFPLUG_SCRATCH"]) / case
    error = USES[case](_state["tf"], str(folder))
    planes = {plane.name: events_of(plane) for plane in read_profile(folder).planes}
    kernels = {name: [event for line in lines.values() for event in line
                      if "kernel_details" in event]
               for name, lines in planes.items() if name.startswith("/device:GPU")}
    return {"error": error, "kernels": {
        name: sorted({event["tf_op"] for event in events})
        for name, events in kernels.items()},
        "unnamed": sum(not event["name"] or event["tf_op"].startswith(":")
                       for events in kernels.values() for event in events),
        "runs": {name: len(events) for name, events in kernels.items()},
        "dropped": [event["dropped"] for line in planes["/host:CPU"].values()
                    for event in line if "dropped" in event]}


def tensorboard(tf, folder):
    """Keras's callback, for the second and third of four batches."""
    import models

    class Callback(tf.keras.callbacks.TensorBoard):
        """Writes no summaries, which need the package tensorboard."""

        def on_train_batch_end(self, batch, logs=None):
            super().on_train_batch_end(batch)

        def _log_epoch_metrics(self, epoch, logs):
            pass
    callback = Callback(folder, profile_batch=(2, 3), write_graph=False)
    with tf.device("SIM:0"):
        model, inputs, labels = models.mlp()
        model.fit(inputs, labels, batch_size=2, epochs=1, verbose=0,
                  callbacks=[callback])


def trained(name):
    def use(tf, folder):
        """Three steps of a model."""
        import models
        with tf.device("SIM:0"):
            model, inputs, labels = getattr(models, name)()
            model.train_on_batch(inputs, labels)
            with tf.profiler.experimental.Profile(folder):
                for _ in range(3):
                    model.train_on_batch(inputs, labels)
    return use


def remote(tf, folder):
    """The profiler's server, asked by a client while the device works."""
    import socket
    import threading
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    tf.profiler.experimental.server.start(port)
    failures = []

    def ask():
        try:
            tf.profiler.experimental.client.trace(
                f"grpc://127.0.0.1:{port}", folder, 300)
        except Exception as failure:
            failures.append(str(failure))
    thread = threading.Thread(target=ask)
    thread.start()
    with tf.device("SIM:0"):
        x = tf.ones([64, 64])
        while thread.is_alive():
            tf.matmul(x, x).numpy()
    return failures


def half_a_step(tf, folder):
    """A step of which the second kernel fails."""
    with tf.device("SIM:0"):
        @tf.function(jit_compile=False)
        def step(x, n):
            y = tf.raw_ops.Neg(x=x, name="before")
            z = tf.raw_ops.Reshape(tensor=y, shape=n, name="fails")
            return tf.raw_ops.Exp(x=z, name="after")
        x = tf.ones([6])
        step(x, tf.constant([2, 3]))
        tf.profiler.experimental.start(folder)
        try:
            step(x, tf.constant([4, 4])).numpy()
        except tf.errors.InvalidArgumentError as failure:
            return [str(failure)]
        finally:
            tf.profiler.experimental.stop()
    return []


def failed_device(tf, folder):
    """A device whose driver fails, in work and in timers."""
    failures = []
    with tf.device("SIM:0"):
        x = tf.ones([64])
        tf.raw_ops.Neg(x=x).numpy()
        with tf.profiler.experimental.Profile(folder):
            for hook in ("create_timer", "launch", "start_timer", "stop_timer"):
                _state["faults"].arm(hook)
                try:
                    tf.raw_ops.Neg(x=x).numpy()
                except tf.errors.InternalError as failure:
                    failures.append(hook + ": " + str(failure))
                if not _state["faults"].reached:
                    failures.append(hook + " was not called")
                _state["faults"].disarm()
            tf.raw_ops.Exp(x=x).numpy()
    return failures


def two_plugins(tf, folder):
    """Both plug-ins have tfplug's profiler."""
    from tensorflow.python.framework import load_library
    load_library.load_pluggable_device_library(
        str(harness.small_plugin_path("late_device")))
    with tf.profiler.experimental.Profile(folder):
        for device in ("SIM:0", "LATE:0"):
            with tf.device(device):
                x = tf.constant([1.0, 2.0])
                tf.raw_ops.AddV2(x=x, y=x).numpy()


USES = {"tensorboard": tensorboard, "remote": remote, "half_a_step": half_a_step,
        "failed_device": failed_device, "two_plugins": two_plugins,
        **{name: trained(name) for name in ("cnn", "lstm", "transformer")}}


def test_profiles_in_every_way():
    # The transformer of models.py needs Keras 3.
    is_old = any(each.metadata["Name"] == "keras" and each.version.startswith("2.")
                 for each in distributions())
    omitted = ("transformer",) if is_old else ()
    cases = [name for name in USES if name not in ("two_plugins", *omitted)]
    results = dict(zip(cases, harness.run_each(
        profile_of, [[case] for case in cases])))
    # Loads another plug-in before TensorFlow creates its devices.
    results["two_plugins"] = harness.run(profile_of, "two_plugins")
    for case, result in results.items():
        assert result.ok, (case, result)
        assert not result.value["unnamed"], case
        # A launch may be under way when the client ends its profile.
        assert case == "remote" or not result.value["dropped"], case
    value = {case: result.value for case, result in results.items()}

    trained_models = [case for case in ("cnn", "lstm", "transformer")
                      if case not in omitted]
    for case in ("tensorboard", *trained_models):
        ops = {name.rpartition(":")[2] for name in value[case]["kernels"][SIM]}
        assert "MatMul" in ops or "_FusedMatMul" in ops, (case, ops)
        assert not value[case]["error"]
    for case in trained_models:
        assert value[case]["runs"][SIM] % 3 == 0, "each step has the same kernels"
        assert value[case]["runs"][SIM] > 60
    assert value["remote"]["error"] == []
    assert "MatMul:MatMul" in value["remote"]["kernels"][SIM]

    error, = value["half_a_step"]["error"]
    assert "fails" in error
    assert "before:Neg" in value["half_a_step"]["kernels"][SIM]
    assert "after:Exp" not in value["half_a_step"]["kernels"][SIM]

    error, = value["failed_device"]["error"]
    assert error.startswith("launch: ")
    assert {"Neg:Neg", "Exp:Exp"} == set(value["failed_device"]["kernels"][SIM])

    assert value["two_plugins"]["kernels"] == {
        SIM: ["AddV2:AddV2"], "/device:GPU:0 (LATE:0)": ["AddV2:AddV2"]}
