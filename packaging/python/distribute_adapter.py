# SPDX-License-Identifier: Apache-2.0
"""The private names of TensorFlow and Keras that tfplug.distribute uses, each looked up
when it is first needed."""

import functools
import importlib
import inspect
import sys

import tensorflow as tf

_DISTRIBUTE = "tensorflow.python.distribute."
_MULTI_WORKER = _DISTRIBUTE + "collective_all_reduce_strategy"
_SERVERS = _DISTRIBUTE + "parameter_server_strategy_v2"
_CONTEXT = "tensorflow.python.eager.context"
# Releases in which the names below were tested (tests/tensorflow/test_distribute.py).
TESTED = {"TensorFlow": "2.12 to 2.22", "Keras": "3.15 and 3.16"}

# A name, the parameters that a function has after self, and what uses it.
NAMES = {
    "MirroredStrategy._collective_key_base": (
        _DISTRIBUTE + "mirrored_strategy", None, "MirroredStrategy"),
    "CollectiveAllReduceExtended._initialize_local_devices": (
        _MULTI_WORKER, ("cluster_resolver", "worker_device"),
        "MultiWorkerMirroredStrategy"),
    "CollectiveAllReduceExtended.__init__": (
        _MULTI_WORKER, ("container_strategy", "cluster_resolver",
                        "communication_options"), "MultiWorkerMirroredStrategy"),
    "CollectiveAllReduceExtended._initialize_multi_worker": (
        _MULTI_WORKER, ("cluster_resolver",), "a second MultiWorkerMirroredStrategy"),
    "CollectiveAllReduceStrategy._collective_key_base": (
        _MULTI_WORKER, None, "MultiWorkerMirroredStrategy"),
    "ParameterServerStrategyV2Extended._set_num_gpus": (
        _SERVERS, (), "ParameterServerStrategy"),
    "ParameterServerStrategyV2Extended.worker_devices": (
        _SERVERS, None, "ParameterServerStrategy"),
    "ParameterServerStrategyV2Extended._create_variable_round_robin": (
        _SERVERS, ("next_creator",), "ParameterServerStrategy"),
    "Context.set_config_key_value": (
        _CONTEXT, ("key", "value"), "the comparison of workers"),
    "Context.get_config_key_value": (_CONTEXT, ("key",), "the comparison of workers"),
    "Model._maybe_symbolic_build": (
        "keras", ("iterator", "data_batch"), "fit under MultiWorkerMirroredStrategy"),
}


def get(name):
    """Returns the attribute `name`, a key of NAMES. Raises NotImplementedError if this
    release lacks it or has given its function other parameters."""
    module, parameters, purpose = NAMES[name]
    product = "Keras" if module.startswith("keras") else "TensorFlow"
    try:
        found = functools.reduce(getattr, name.split("."),
                                 importlib.import_module(module))
    except (ImportError, AttributeError):
        found, problem = None, "has no"
    else:
        problem = "has other parameters of"
        given = list(inspect.signature(found).parameters)[1:] if parameters else []
        if given[:len(parameters or ())] == list(parameters or ()):
            return found
    version = importlib.import_module(product.lower()).__version__
    raise NotImplementedError(
        f"{product} {version} {problem} {module}.{name}, which "
        f"tfplug.distribute uses for {purpose}. It was tested with {product} "
        f"{TESTED[product]}: install such a release, or a newer tfplug")


def owner(name):
    """Returns the class in which get(name) is defined; checks the name."""
    get(name)
    return getattr(importlib.import_module(NAMES[name][0]), name.split(".")[0])


def multi_worker_extended():
    """Returns the class behind MultiWorkerMirroredStrategy."""
    get("CollectiveAllReduceExtended.__init__")
    get("CollectiveAllReduceStrategy._collective_key_base")
    return owner("CollectiveAllReduceExtended._initialize_local_devices")


def keep_server(extended):
    """Makes later strategies of the class use the server that the first one started,
    which also watches the other workers. Returns whether this is the first call."""
    if "_std_server_started" in vars(extended):
        return False
    join = get("CollectiveAllReduceExtended._initialize_multi_worker")
    if "_std_server_started" not in join.__code__.co_consts:
        raise NotImplementedError(
            f"TensorFlow {tf.__version__} starts the server of a worker in another way "
            "than 2.12 to 2.22, so a process can have one MultiWorkerMirroredStrategy "
            "only; use it again, or install a newer tfplug")
    extended._std_server_started = True
    extended._enable_check_health = False
    return True


def key_value_store():
    """Returns an object with the functions set_config_key_value(key, value) and
    get_config_key_value(key), which waits until a worker has set the key."""
    owner("Context.set_config_key_value")
    owner("Context.get_config_key_value")
    return importlib.import_module(_CONTEXT).context()


def server_extended():
    """Returns the class behind ParameterServerStrategy."""
    get("ParameterServerStrategyV2Extended._set_num_gpus")
    get("ParameterServerStrategyV2Extended.worker_devices")
    return owner("ParameterServerStrategyV2Extended._create_variable_round_robin")


def build_from_local_batch(strategy_class):
    """Makes Keras 3 build a model from the batch of one local replica, if its strategy
    is of the class. Keras averages the batches of all replicas, and the strategy cannot
    do that with a structure."""
    keras = sys.modules.get("keras")
    if (keras is None or int(keras.__version__.split(".")[0]) < 3 or
            keras.backend.backend() != "tensorflow"):
        return
    build = get("Model._maybe_symbolic_build")
    if hasattr(build, "tfplug"):
        return

    @functools.wraps(build)
    def build_locally(self, iterator=None, data_batch=None):
        strategy = self.distribute_strategy
        if iterator is not None and isinstance(strategy, strategy_class):
            for _, _, batches in iterator:
                data_batch = tf.nest.map_structure(
                    lambda value: strategy.experimental_local_results(value)[0],
                    next(batches))
                break
            iterator = None
        return build(self, iterator=iterator, data_batch=data_batch)

    build_locally.tfplug = True
    keras.Model._maybe_symbolic_build = build_locally
