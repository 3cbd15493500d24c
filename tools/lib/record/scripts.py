# SPDX-License-Identifier: Apache-2.0
"""What tools/record runs in stock TensorFlow with the probe: a function for each
recording, and its settings. "fetch" is a point at which everything before it is done."""

import os
import signal
import sys
import tempfile
import time

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import load_library

A = "/device:ALPHA:0"


def start():
    """The plug-in is loaded and its device created by the first op."""
    tf.config.list_physical_devices()
    with tf.device(A):
        tf.constant([1.0])


def copies():
    """Copies in both directions, of nothing, a scalar and 1000 numbers."""
    with tf.device(A):
        for count in (0, 1, 1000):
            tf.identity(tf.constant(np.ones(count, np.float32))).numpy()


def matmul():
    """One op, eagerly."""
    with tf.device(A):
        x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        y = tf.constant([[1.0, 0.0], [0.0, 1.0]])
        z = tf.matmul(x, y)
    assert (z.numpy() == [[1, 2], [3, 4]]).all()


def variable():
    """A variable that is created, read, assigned and read."""
    with tf.device(A):
        v = tf.Variable([1.0, 2.0])
        v.numpy()
        v.assign([3.0, 4.0])
        assert (v.numpy() == [3, 4]).all()


def two_devices():
    """A tensor moves from one device to the other."""
    with tf.device(A):
        x = tf.constant([1.0, 2.0])
    with tf.device("/device:ALPHA:1"):
        y = tf.identity(x)
    assert (y.numpy() == [1, 2]).all()


def two_plugins():
    """A tensor moves from one plug-in's device to the other's."""
    with tf.device(A):
        x = tf.constant([1.0, 2.0])
    with tf.device("/device:BETA:0"):
        y = tf.identity(x)
    assert (y.numpy() == [1, 2]).all()


def function():
    """A function with a graph pass."""
    @tf.function
    def step(x, y):
        z = tf.matmul(x, y)
        return tf.nn.relu(z + x)
    with tf.device(A):
        x = tf.constant([[1.0, -2.0], [3.0, 4.0]])
        step(x, x).numpy()
        step(x, x).numpy()


def out_of_memory():
    """More memory than there is; afterwards the device still works."""
    with tf.device(A):
        tf.constant([1.0])
        try:
            tf.constant(np.ones(1 << 23, np.float32))
        except (tf.errors.ResourceExhaustedError, tf.errors.InternalError) as error:
            print(type(error).__name__)
        tf.constant([2.0]).numpy()


def growth():
    """Memory that grows on demand."""
    for device in tf.config.list_physical_devices("ALPHA"):
        tf.config.experimental.set_memory_growth(device, True)
    with tf.device(A):
        kept = [tf.constant(np.ones(n, np.float32))
                for n in (1, 100, 1000, 300000, 600000, 1000000)]
        del kept[3]
        kept.append(tf.constant(np.ones(200000, np.float32)))


def kernel_fails():
    """A kernel's own status."""
    with tf.device(A):
        x = tf.constant([[1.0]])
        try:
            tf.matmul(x, x)
        except tf.errors.InternalError as error:
            assert "must fail" in str(error)
        tf.nn.relu(x).numpy()


def copy_fails():
    """memcpy_dtoh returns an error once."""
    with tf.device(A):
        x = tf.constant([1.0])
        try:
            x.numpy()
        except tf.errors.InternalError as error:
            assert "told to fail" in str(error)
        x.numpy()


def profile():
    """The profiler around one op."""
    with tf.device(A):
        x = tf.constant([[1.0]])
        with tempfile.TemporaryDirectory() as folder:
            tf.profiler.experimental.start(folder)
            tf.matmul(x, x).numpy()
            tf.profiler.experimental.stop()


def virtual_devices():
    """A session in which the first of two devices is divided: 4 MiB with priority 1, and
    8 MiB with priority 2. A tensor moves from its first part to the next device, and back."""
    config = tf.compat.v1.ConfigProto()
    options = (config.pluggable_device_options
               if hasattr(config, "pluggable_device_options") else config.gpu_options)
    options.experimental.virtual_devices.add(memory_limit_mb=[4, 8], priority=[1, 2])
    options.experimental.virtual_devices.add()
    with tf.Graph().as_default():
        session = tf.compat.v1.Session(config=config)
        x = tf.compat.v1.placeholder(tf.float32, [2])
        with tf.device(A):
            y = tf.raw_ops.Relu(features=x)
        with tf.device("/device:ALPHA:1"):
            z = tf.raw_ops.Relu(features=y)
        with tf.device(A):
            both = tf.raw_ops.AddV2(x=y, y=z, name="add")
        assert (session.run(both, {x: [1.0, -2.0]}) == [2, 0]).all()


def own_device(device):
    """A device with the name of one of TensorFlow's own."""
    tf.config.list_physical_devices()
    with tf.device(device):
        tf.constant([1.0])


def gpu():
    """The plug-in's devices have the type GPU."""
    own_device("/device:GPU:0")


def cpu():
    """The plug-in's devices have the type CPU."""
    own_device("/device:CPU:0")


def folding():
    """A function with a sum of constants, which TensorFlow folds unless the plug-in's
    settings turn that off."""
    @tf.function
    def step(x):
        return x + tf.nn.relu(tf.constant([1.0]) + tf.constant([2.0]))
    with tf.device(A):
        step(tf.constant([1.0])).numpy()


def two_settings():
    """A function on the devices of two plug-ins, whose settings may differ."""
    @tf.function
    def step(x):
        with tf.device(A):
            y = x + tf.nn.relu(tf.constant([1.0]) + tf.constant([2.0]))
        with tf.device("/device:BETA:0"):
            return y + tf.nn.relu(tf.constant([1.0]) + tf.constant([2.0]))
    step(tf.constant([1.0])).numpy()


# The lines of a recording whose other lines depend on the speed of threads.
PASSES = "optimize|exit status"
# A session waits for each of its devices, and looks for optimizers, in any order; it
# creates the kernels of each device together.
COPIES = "^(?!.*(block_host_until_done|synchronize_all_activity|optimize|(create|delete)_func))"

# The function, the plug-ins (with "@", by the path of a link), $TFPLUG_PROBE (or that of
# one type), and a pattern of the lines to keep.
SCRIPTS = {
    "start": (start, "ALPHA", ""),
    "memory_1g": (start, "ALPHA", "memory=1073741824"),
    "memory_8g": (start, "ALPHA", "memory=8589934592"),
    "copies": (copies, "ALPHA", ""),
    "own_allocator": (copies, "ALPHA", "bfc=0"),
    "matmul": (matmul, "ALPHA", ""),
    "variable": (variable, "ALPHA", ""),
    "two_devices": (two_devices, "ALPHA", "devices=2"),
    "virtual_devices": (virtual_devices, "ALPHA", "devices=2", COPIES),
    "two_plugins": (two_plugins, "ALPHA BETA", ""),
    "function": (function, "ALPHA", ""),
    "pass_fails": (function, "ALPHA", "fail=optimize_func:all"),
    "folding": (folding, "ALPHA", ""),
    "no_folding": (folding, "ALPHA", "_ALPHA:=off=constant_folding"),
    "equal_settings": (two_settings, "ALPHA BETA", "_ALPHA:=off=constant_folding "
                       "_BETA:=off=constant_folding", PASSES),
    "different_settings": (two_settings, "ALPHA BETA", "_ALPHA:=off=constant_folding",
                           PASSES),
    "gpu": (gpu, "ALPHA", "_ALPHA:=type=GPU"),
    "cpu": (cpu, "ALPHA", "_ALPHA:=type=CPU"),
    "two_profilers": (profile, "ALPHA BETA", ""),
    "two_paths": (start, "ALPHA ALPHA@", ""),
    "loaded_twice": (start, "ALPHA ALPHA", ""),
    "same_type": (start, "ALPHA BETA", "_BETA:=type=ALPHA"),
    "out_of_memory": (out_of_memory, "ALPHA", ""),
    "growth": (growth, "ALPHA", ""),
    "kernel_fails": (kernel_fails, "ALPHA", "fail=compute_func:1"),
    "copy_fails": (copy_fails, "ALPHA", "fail=memcpy_dtoh:1"),
    "stream_fails": (matmul, "ALPHA", "fail=create_stream:2"),
    "device_fails": (matmul, "ALPHA", "fail=create_device:1"),
    "usage_fails": (matmul, "ALPHA", "fail=device_memory_usage:1"),
    "event_fails": (matmul, "ALPHA", "fail=record_event:1"),
    "profile": (profile, "ALPHA", ""),
}


def run(name, plugins, log):
    """Runs a script in a process of its own, which has no TensorFlow device yet, and
    returns its exit status."""
    with tempfile.TemporaryDirectory() as links:
        child = os.fork()
        if child:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        run_in_child(name, plugins, log, links)


def run_in_child(name, plugins, log, links):
    """Runs a script and ends the process. `links` is an empty folder."""
    function, types, settings = SCRIPTS[name][:3]
    status = 1
    signal.alarm(60)
    try:
        os.environ["TFPLUG_PROBE_LOG"] = log
        for setting in settings.split():
            variable, _, value = setting.rpartition(":=")
            os.environ["TFPLUG_PROBE" + variable] = value
        for each in types.split():
            library = plugins[each.rstrip("@")]
            if each.endswith("@"):
                library = os.path.join(links, os.path.basename(library))
                os.symlink(plugins[each.rstrip("@")], library)
            load_library.load_pluggable_device_library(library)
        function()
        time.sleep(0.3)  # the last event is polled
        status = 0
    except Exception as error:  # pylint: disable=broad-except
        print(f"{name}: {type(error).__name__}: {error}", flush=True)
    finally:
        os._exit(status)  # nothing is destroyed: releases differ in what they destroy


def main():
    plugins = dict(each.split("=") for each in sys.argv[2].split(","))
    for name in sys.argv[3:] or SCRIPTS:
        for repetition in range(3):
            log = f"{sys.argv[1]}/{name}.{repetition}"
            status = run(name, plugins, log)
            with open(log, "a", encoding="utf-8") as file:
                file.write(f"main - exit status {status}\n")


if __name__ == "__main__":
    main()
