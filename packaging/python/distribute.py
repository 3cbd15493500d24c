# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's distribution strategies on the devices of plug-ins.

The classes are TensorFlow's own, which look for GPUs only; these look for a device
type. See the page "Several devices and processes" of tfplug's documentation.
"""

import collections
import contextlib
import functools
import itertools
import os
import sys
import threading

import tensorflow as tf

from . import distribute_adapter as adapter
from . import distribute_peers as peers

# Each strategy needs keys of its own: TensorFlow starts at 1 for each, and two
# strategies in one process then take each other's tensors. A strategy takes a new key
# for each variable.
_KEYS_PER_STRATEGY = 1_000_000
_multi_worker_keys = itertools.count(1)  # the same in all workers
_local_keys = itertools.count(1000)


def device_types():
    """Returns the types of this process's devices that are no CPUs."""
    return sorted({device.device_type for device in tf.config.get_visible_devices()
                   if device.device_type not in ("CPU", "COMPOSITE")})


def _one_type(device_type):
    """Returns the type that is asked for, or the only one; checks that it has devices.
    Does not initialize TensorFlow's devices."""
    types = device_types()
    if device_type is None:
        if len(types) == 1:
            return types[0]
        raise ValueError(
            f"TensorFlow has devices of the types {', '.join(types)}: pass device_type"
            if types else "TensorFlow has no devices but CPUs: load a plug-in, or pass "
            'device_type="CPU". TFPLUG_VISIBLE_DEVICES may hide all devices')
    if not isinstance(device_type, str):
        raise TypeError(f"device_type must be a string, not {device_type!r}")
    if device_type not in types + ["CPU"]:
        raise ValueError(f"TensorFlow has no {device_type} devices, but "
                         f"{', '.join(types + ['CPU'])}")
    return device_type


def _devices_of(device_type, prefix=""):
    """Returns the names of the type's devices in this process. Does not initialize
    TensorFlow's devices."""
    parts = [tf.config.get_logical_device_configuration(device) or [device]
             for device in tf.config.get_visible_devices(device_type)]
    return [f"{prefix}/device:{device_type}:{i}" for i in range(sum(map(len, parts)))]


class MirroredStrategy(tf.distribute.MirroredStrategy):
    """tf.distribute.MirroredStrategy on all devices of a type in this process.

    A process may create several.

    Args:
      device_type: such as "SIM"; default: that of the only plug-in.
      devices: names of devices instead, such as ["SIM:0", "SIM:1"].
      cross_device_ops: as in the base class.
    """

    def __init__(self, device_type=None, devices=None, cross_device_ops=None):
        if devices is None:
            devices = _devices_of(_one_type(device_type))
        elif device_type is not None:
            raise ValueError("pass device_type or devices, not both")
        adapter.get("MirroredStrategy._collective_key_base")
        self._collective_key_base = next(_local_keys) * _KEYS_PER_STRATEGY
        super().__init__(devices, cross_device_ops)


@functools.lru_cache(maxsize=None)
def _multi_worker_extended():
    class Extended(adapter.multi_worker_extended()):
        def _initialize_local_devices(self, cluster_resolver, worker_device):
            device_type = self._container_strategy().device_type
            return tuple(_devices_of(device_type, worker_device)), device_type

    return Extended


class MultiWorkerMirroredStrategy(tf.distribute.MultiWorkerMirroredStrategy):
    """tf.distribute.MultiWorkerMirroredStrategy on all devices of a type in each worker.

    All workers must have the same number of devices, release of TensorFlow and plug-ins,
    or all raise ValueError, and create their strategies in the same order. The first must
    be created before TensorFlow computes anything; it waits for all workers.

    Args:
      cluster_resolver, communication_options: as in the base class.
      device_type: such as "SIM"; default: that of the only plug-in.
      same_plugins: False permits workers to have different builds of a plug-in.
    """

    def __init__(self, cluster_resolver=None, communication_options=None,
                 device_type=None, same_plugins=True):
        self.device_type = _one_type(device_type)
        self._collective_key_base = next(_multi_worker_keys) * _KEYS_PER_STRATEGY
        # The base class's constructor would create TensorFlow's class instead.
        super(tf.distribute.MultiWorkerMirroredStrategy, self).__init__(
            _multi_worker_extended()(
                self, cluster_resolver=cluster_resolver,
                communication_options=communication_options or
                tf.distribute.experimental.CommunicationOptions()))
        if self.cluster_resolver.cluster_spec().as_dict():
            # The process has joined the cluster. A second strategy would reset the
            # server, and lose requests of workers that are ahead.
            if adapter.keep_server(type(self.extended)):
                peers.compare(self.cluster_resolver, self.extended.worker_devices,
                              same_plugins)

    def leave(self):
        """Waits until all workers have called it: call it once, before the program ends.
        Without it, a worker that ends can fail others, which fetch its last sums."""
        if self.cluster_resolver.cluster_spec().as_dict():
            peers.leave(self.cluster_resolver)

    def scope(self):
        """Returns the base class's scope; models must be created in it."""
        adapter.build_from_local_batch(MultiWorkerMirroredStrategy)
        return super().scope()

    def reduce(self, reduce_op, value, axis):
        """Reduces as the base class does, which rejects scalars for axis 0: Keras 3
        asks for the means of metrics in this way."""
        if axis == 0 and all(tf.TensorShape(getattr(each, "shape", ())).rank == 0
                             for each in self.experimental_local_results(value)):
            axis = None
        return super().reduce(reduce_op, value, axis)


@functools.lru_cache(maxsize=None)
def _server_extended():
    class Extended(adapter.server_extended()):
        def _set_num_gpus(self):
            self._num_gpus_per_worker = self._container_strategy().devices_per_worker

        @property
        def worker_devices(self):
            strategy = self._container_strategy()
            return tuple(f"/device:{strategy.device_type}:{i}"
                         for i in range(strategy.devices_per_worker))

        def _create_variable_round_robin(self, next_creator, **kwargs):
            def create_on_device(**arguments):
                with tf.device(f"/device:{self._container_strategy().variables_on}:0"):
                    return next_creator(**arguments)
            return super()._create_variable_round_robin(create_on_device, **kwargs)

    return Extended


class ParameterServerStrategy(tf.distribute.experimental.ParameterServerStrategy):
    """tf.distribute.ParameterServerStrategy whose workers compute on their devices.

    Args:
      cluster_resolver, variable_partitioner: as in the base class.
      device_type: of the workers; default: the only type that they have beside CPUs.
      variables_on: the type of the servers' devices that hold the variables: "CPU", or
        the plug-in's. Each server uses its first device.
    """

    def __init__(self, cluster_resolver, variable_partitioner=None, device_type=None,
                 variables_on="CPU"):
        super().__init__(cluster_resolver, variable_partitioner)
        workers = _devices_by_task("worker")
        types = {kind for counts in workers.values() for kind in counts} - {"CPU"}
        if device_type is None:
            if len(types) > 1:
                raise ValueError("the workers have devices of the types "
                                 f"{', '.join(sorted(types))}: pass device_type")
            device_type = types.pop() if types else "CPU"
        counts = {task: found[device_type] for task, found in workers.items()}
        if len(set(counts.values())) != 1 or 0 in counts.values():
            raise ValueError(
                f"each worker must have the same number of {device_type} devices, one or "
                "more; they have " + ", ".join(
                    f"{count} (worker {task})" for task, count in sorted(counts.items())))
        for task, found in _devices_by_task("ps").items():
            if not found[variables_on]:
                raise ValueError(f"server {task} has no {variables_on} device for "
                                 "variables; load the plug-in there, or pass "
                                 'variables_on="CPU"')
        self.device_type, self.variables_on = device_type, variables_on
        self.devices_per_worker = next(iter(counts.values()))
        # The base class's constructor creates TensorFlow's class and looks for GPUs.
        self.extended.__class__ = _server_extended()
        self.extended._set_num_gpus()


def _devices_by_task(job):
    """Returns a Counter of device types for each task of a job."""
    counts = collections.defaultdict(collections.Counter)
    for device in tf.config.list_logical_devices():
        spec = tf.DeviceSpec.from_string(device.name)
        if spec.job == job:
            counts[spec.task][spec.device_type] += 1
    return counts


class Watchdog:
    """Ends this process if it makes no progress: a worker cannot leave a step that waits
    for a frozen worker, and not every release notices.

    Args:
      seconds: from one call of beat() to the next.
      first: until the first call; default: `seconds`.
      exit_status: of the process.
    """

    def __init__(self, seconds, first=None, exit_status=75):
        if not seconds > 0 or (first is not None and not first > 0):
            raise ValueError("a Watchdog's times must be positive, not "
                             f"{seconds if not seconds > 0 else first} seconds")
        self._seconds, self._status = seconds, exit_status
        self._changed, self._beats, self._running = threading.Condition(), 0, True
        threading.Thread(target=self._watch, args=(first or seconds,),
                         daemon=True).start()

    def beat(self):
        """Reports progress."""
        with self._changed:
            self._beats += 1
            self._changed.notify()

    def stop(self):
        """Ends the watch."""
        with self._changed:
            self._running = False
            self._changed.notify()

    def _watch(self, seconds):
        with self._changed:
            while self._running:
                seen = self._beats
                if not self._changed.wait_for(
                        lambda: self._beats != seen or not self._running, seconds):
                    print(f"No progress in {seconds:g} s, so this process ends. A worker "
                          "that is frozen or unreachable stops all others; restart them "
                          "from the last checkpoint.", file=sys.stderr, flush=True)
                    os._exit(self._status)
                seconds = self._seconds


def data_parallel(device_type=None, devices=None):
    """Returns a keras.distribution.DataParallel whose models train on all its devices.
    Keras 3 on TensorFlow uses one of them.

    Create models in its scope(), or call its set_as_default() first.

    Args:
      device_type: such as "SIM"; default: that of the only plug-in.
      devices: names of devices instead, such as ["SIM:0", "SIM:1"].
    """
    return _keras_data_parallel()(MirroredStrategy(device_type, devices))


@functools.lru_cache(maxsize=None)
def _keras_data_parallel():
    import keras
    if not hasattr(keras, "distribution") or keras.backend.backend() != "tensorflow":
        raise NotImplementedError("data_parallel needs Keras 3 with its backend "
                                  "TensorFlow; use MirroredStrategy")

    class DataParallel(keras.distribution.DataParallel):
        def __init__(self, strategy):
            specs = map(tf.DeviceSpec.from_string, strategy.extended.worker_devices)
            super().__init__(devices=[
                f"{spec.device_type.lower()}:{spec.device_index}" for spec in specs])
            self.strategy = strategy

        @contextlib.contextmanager
        def scope(self):
            """Makes the distribution and its strategy current."""
            with super().scope(), self.strategy.scope():
                yield

        def set_as_default(self):
            """Makes the distribution current for the rest of the program."""
            keras.distribution.set_distribution(self)
            tf.distribute.experimental_set_strategy(self.strategy)

    return DataParallel
