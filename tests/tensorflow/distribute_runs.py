# SPDX-License-Identifier: Apache-2.0
"""Trainings for test_distribute.py and tools/distribute, which run in one or several
processes. TFPLUG_TEST_TYPE names the type of the devices; default: SIM."""

import importlib.util
import json
import os
import socket
import sys

import harness

STEPS, BATCH = 6, 16
KIND = os.environ.get("TFPLUG_TEST_TYPE", "SIM")


def load_package():
    """Returns tfplug.distribute from the sources; the package need not be installed."""
    sys.path.append(str(harness.ROOT / "examples/distribute"))
    import package
    return package.distribute()


def ports(count):
    """Returns ports that were free a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("localhost", 0))
    found = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return found


def cluster(devices, **jobs):
    """Returns an environment for each task: cluster([[0], [1]], worker=2)."""
    free = iter(ports(sum(jobs.values())))
    spec = {job: [f"localhost:{next(free)}" for _ in range(count)]
            for job, count in jobs.items()}
    tasks = [(job, i) for job, count in jobs.items() for i in range(count)]
    return [{"TF_CONFIG": json.dumps({"cluster": spec,
                                      "task": {"type": job, "index": i}}),
             "CPU_SIM_DEVICES": str(max(map(max, devices)) + 1),
             "TFPLUG_VISIBLE_DEVICES": ",".join(map(str, own))}
            for (job, i), own in zip(tasks, devices)]


def data(repeat):
    """Returns a dataset of global batches that workers divide by elements."""
    import numpy as np
    import tensorflow as tf
    random = np.random.RandomState(0)
    x = random.randn(STEPS * BATCH, 8, 8, 1).astype("float32")
    y = (x[:, 0, :3, 0] ** 2).astype("float32")
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.DATA)
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).repeat(repeat).batch(BATCH)
    return dataset.with_options(options)


def build(keras):
    """Returns a small convolutional network, whose weights are always the same."""
    keras.utils.set_random_seed(1)
    return keras.Sequential([
        keras.layers.Conv2D(4, 3, activation="tanh", input_shape=(8, 8, 1)),
        keras.layers.Flatten(), keras.layers.Dense(16, "tanh"),
        keras.layers.Dense(3)])


def weights_of(model):
    return [float(each) for weight in model.get_weights()
            for each in weight.ravel()[::7]]


def fit(strategy, keras):
    """Trains with Keras' fit. Returns losses, metrics, weights and predictions."""
    with strategy.scope():
        model = build(keras)
        model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    history = model.fit(data(1), epochs=2, verbose=0, shuffle=False).history
    found = model.evaluate(data(1), verbose=0, return_dict=True)
    predicted = model.predict(data(1).map(lambda x, y: x), verbose=0)
    devices = {device_of(v) for v in local_values(strategy, model.trainable_variables)}
    return {"loss": history["loss"], "mae": history["mae"],
            "evaluate": [found["loss"], found["mae"]],
            "predictions": sorted(map(float, predicted.sum(1))),
            "weights": weights_of(model), "devices": sorted(devices)}


def local_values(strategy, variables):
    for variable in variables:
        value = getattr(variable, "value", None)  # of Keras 3; elsewhere a method
        yield from strategy.experimental_local_results(
            variable if value is None or callable(value) else value)


def device_of(variable):
    return variable.device.split("device:")[-1]


def loop(strategy):
    """Trains with a loop of its own, without Keras."""
    import numpy as np
    import tensorflow as tf
    random = np.random.RandomState(1)
    with strategy.scope():
        first, second = [
            tf.Variable(random.randn(*shape).astype("float32") / shape[0] ** 0.5,
                        aggregation=tf.VariableAggregation.SUM)
            for shape in ((64, 16), (16, 3))]

    def replica_step(batch):
        x, y = batch
        with tf.GradientTape() as tape:
            hidden = tf.tanh(tf.reshape(x, [-1, 64]) @ first)
            loss = tf.reduce_sum((hidden @ second - y) ** 2) / BATCH
        variables = [first, second]
        for variable, gradient in zip(variables, tape.gradient(loss, variables)):
            variable.assign_sub(0.02 * gradient)  # of the sum over all replicas
        return loss

    @tf.function
    def step(batch):
        return strategy.reduce("SUM", strategy.run(replica_step, args=(batch,)), None)

    losses = [float(step(batch)) for batch in
              strategy.experimental_distribute_dataset(data(2))]
    return {"loss": losses,
            "weights": [float(value) for variable in (first, second)
                        for value in variable.numpy().ravel()[::7]],
            "devices": sorted({device_of(v)
                               for v in local_values(strategy, [first, second])})}


def legacy_keras():
    """Returns Keras 2 if it is installed beside Keras 3, or None."""
    if importlib.util.find_spec("tf_keras") is None:
        return None
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    import tf_keras
    return tf_keras


def all_trainings(make_strategy, ways=None):
    """Returns the results of each way to train, or of `ways`, each with a strategy of
    its own. "keras" is Keras 2 up to TensorFlow 2.15."""
    trainings = {"loop": loop}
    if importlib.util.find_spec("keras") is not None:
        import keras
        trainings["keras"] = lambda strategy: fit(strategy, keras)
    legacy = legacy_keras()
    if legacy is not None:
        trainings["tf_keras"] = lambda strategy: fit(strategy, legacy)
    return {way: train(make_strategy()) for way, train in trainings.items()
            if ways is None or way in ways}


def on_one_device(ways=None):
    import tensorflow as tf
    return all_trainings(
        lambda: tf.distribute.OneDeviceStrategy(f"/device:{KIND}:0"), ways)


def mirrored(ways=None):
    return all_trainings(load_package().MirroredStrategy, ways)


def in_worker(ways=None):
    strategies = []

    def make_strategy():
        strategies.append(load_package().MultiWorkerMirroredStrategy())
        return strategies[-1]

    results = all_trainings(make_strategy, ways)
    strategies[-1].leave()
    return results


def with_other_plugins():
    """Trains, though the workers' plug-ins differ."""
    return loop(load_package().MultiWorkerMirroredStrategy(same_plugins=False))["loss"]


def in_slurm(port):
    """Trains as a task of Slurm's, which SLURM_... in the environment describe."""
    import tensorflow as tf
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
        port_base=port, gpus_per_node=64, gpus_per_task=1, auto_set_gpu=False)
    return loop(load_package().MultiWorkerMirroredStrategy(resolver))["loss"]


def watched(beats):
    """Reports progress `beats` times, then none, or ends the watch if `beats` is 0."""
    import time
    watchdog = load_package().Watchdog(1, first=60)
    for _ in range(beats):
        time.sleep(0.2)
        watchdog.beat()
    if not beats:
        watchdog.beat()
        watchdog.stop()
    time.sleep(3 if not beats else 60)


def twice():
    """Trains with two strategies in turn, and lists their devices."""
    distribute = load_package()
    first, second = distribute.MirroredStrategy(), distribute.MirroredStrategy(KIND)
    results = [loop(first), loop(second), loop(first)]
    return [result["loss"][-1] for result in results]


def with_data_parallel():
    """Trains with keras.distribution on all devices. Returns the devices of the model
    and whether its weights are those that one device trains."""
    import keras
    import tensorflow as tf
    distribution = load_package().data_parallel()
    named = [str(each) for each in distribution.device_mesh.devices.ravel()]
    distribution.set_as_default()
    assert keras.distribution.distribution() is distribution
    assert tf.distribute.get_strategy() is distribution.strategy
    keras.distribution.set_distribution(None)
    with distribution.scope():
        result = fit(distribution.strategy, keras)
    return named, result


def refusals():
    """Returns the errors for calls that cannot work."""
    import tensorflow as tf
    distribute = load_package()
    texts = []
    for call in (lambda: distribute.MirroredStrategy("NPU"),
                 lambda: distribute.MirroredStrategy(3),
                 lambda: distribute.MirroredStrategy("SIM", ["SIM:0"]),
                 lambda: distribute.MultiWorkerMirroredStrategy(device_type="sim")):
        try:
            call()
        except (ValueError, TypeError) as error:
            texts.append(str(error))
    tf.config.set_visible_devices([], KIND)
    try:
        distribute.MirroredStrategy()
    except ValueError as error:
        texts.append(str(error))
    return texts


def stock_strategies():
    """Creates TensorFlow's strategies, which ignore the devices; returns theirs."""
    import tensorflow as tf
    strategies = [tf.distribute.MultiWorkerMirroredStrategy(),
                  tf.distribute.MultiWorkerMirroredStrategy(),
                  tf.distribute.experimental.CentralStorageStrategy(),
                  tf.distribute.experimental.CentralStorageStrategy(["CPU:0"])]
    return [each.extended.worker_devices for each in strategies]


def own_strategies():
    """Creates strategies that use the devices."""
    import tensorflow as tf
    distribute = load_package()
    strategies = [distribute.MultiWorkerMirroredStrategy(),
                  tf.distribute.experimental.CentralStorageStrategy(["SIM:1"])]
    return [each.extended.worker_devices for each in strategies]


def with_servers(folder, variables_on):
    """Is one task of a cluster with parameter servers. The coordinator trains; returns
    the loss and where the variables are and the steps ran."""
    import pathlib
    import time
    import tensorflow as tf
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    done = pathlib.Path(folder) / "done"
    if resolver.task_type in ("worker", "ps"):
        server = tf.distribute.Server(  # noqa: F841
            resolver.cluster_spec(), job_name=resolver.task_type,
            task_index=resolver.task_id, protocol="grpc")
        while not done.exists():
            time.sleep(0.1)
        os._exit(0)
    try:
        strategy = load_package().ParameterServerStrategy(
            resolver, variables_on=variables_on)
        with strategy.scope():
            weight = tf.Variable(tf.ones([4]), aggregation=tf.VariableAggregation.SUM)
        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

        @tf.function
        def step():
            def replica_step():
                square = weight * weight
                weight.assign_sub(0.1 * 2.0 * weight)
                return tf.reduce_sum(square)
            return strategy.reduce("SUM", strategy.run(replica_step), axis=None)

        losses = []
        for _ in range(3):
            value = coordinator.schedule(step)
            coordinator.join()
            losses.append(float(value.fetch()))
        return {"losses": losses, "weight": weight.numpy().tolist(),
                "variable": weight.device,
                "compute": list(strategy.extended.worker_devices),
                "replicas": strategy.num_replicas_in_sync}
    finally:
        done.touch()
