# SPDX-License-Identifier: Apache-2.0
"""Tries plug-ins in this process and prints JSON, one object per step:
see doctor.py.

  doctor_child.py LIBRARY...
"""

import collections
import ctypes
import gc
import json
import os
import re
import select
import signal
import sys

from doctor_causes import ENTRY_POINTS

# Ops that every step of the training has, in every release.
_TRAINING = ("MatMul", "Mul", "Relu", "ReluGrad", "Sub")
_SECONDS_OF_PASSES = 20  # for a call of TF_InitGraph


def say(**what):
    print(json.dumps(what), flush=True)


def train(tf, device):
    """Trains a small model with a plain compile(); returns what went wrong, or ""."""
    inputs = tf.random.stateless_normal([32, 4], seed=[1, 2])
    labels = tf.reduce_sum(inputs, 1)
    try:
        with tf.device(device):
            model = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"),
                                         tf.keras.layers.Dense(1)])
            model.compile("adam", "mse")
            model.fit(inputs, labels, verbose=0)
    except Exception as error:  # pylint: disable=broad-except
        return f"Keras cannot train: {reason(str(error))}"
    return ""


def ops_on_cpu(kernels, name):
    """Returns the ops of the training without a kernel for this device type."""
    return [op for op in _TRAINING if name not in {
        each.device_type for each in kernels.get_registered_kernels_for_op(op).kernel}]


def reason(message):
    """Returns the line of TensorFlow's message that says what is wrong: the last one
    that is neither a place nor a list of devices."""
    # Of ops that must be on one device, as those of a variable.
    on_cpu = re.findall(r"^(\w+): CPU ?$", message, re.MULTILINE)
    if on_cpu and "Colocation Debug Info" in message:
        return (f"only the CPU has a kernel for {' and '.join(on_cpu)}, and the device has "
                "the variable")
    # TensorFlow appends the op to the last line, whatever that is.
    lines = [re.sub(r"^\(\d+\) [A-Z_]+:\s*|\s*\[Op:\S*\]$", "", line.strip()).strip()
             for line in message.splitlines()]
    lines = [line for line in lines if len(line) > 25 and not line.startswith(
        ("[[", "Detected at", "<stack", "File ", "tf2xla", "Graph execution", "device=",
         "(OpKernel was", ".  Registered:"))
             and not line.endswith(("derived errors ignored.", "successful operations."))]
    return lines[-1] if lines else message.strip()[:200]


class _Passes(ctypes.Structure):
    """TP_OptimizerRegistrationParams, the same from 2.5 on."""
    _fields_ = [("struct_size", ctypes.c_size_t), ("ext", ctypes.c_void_p),
                ("version", ctypes.c_int32 * 3), ("device_type", ctypes.c_char_p),
                ("configs", ctypes.c_void_p), ("optimizer", ctypes.c_void_p)]


def type_of_passes(plugin, framework):
    """Returns the device type for which a library registers its graph passes, or "" if
    that is unknown. TensorFlow keeps it to itself, and calls TF_InitGraph once: another
    process calls it here."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        # The sizes of TP_OptimizerConfigs and TP_Optimizer, the same from 2.10 on.
        structs = [ctypes.create_string_buffer(size.to_bytes(8, sys.byteorder), size)
                   for size in (92, 40)]
        params = _Passes(ctypes.sizeof(_Passes), None, (0, 0, 1), None,
                         *map(ctypes.addressof, structs))
        framework.TF_NewStatus.restype = ctypes.c_void_p
        plugin.TF_InitGraph(ctypes.byref(params),
                            ctypes.c_void_p(framework.TF_NewStatus()))
        os.write(writer, params.device_type or b"")
        os._exit(0)
    os.close(writer)
    has_answer = select.select([reader], [], [], _SECONDS_OF_PASSES)[0]
    name = os.read(reader, 200).decode(errors="replace") if has_answer else ""
    os.close(reader)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return name


def report_signals():
    """Makes a signal write the C++ functions on the stack, where TensorFlow can."""
    try:
        # pylint: disable=import-outside-toplevel
        from tensorflow.python.platform import _pywrap_stacktrace_handler
    except ImportError:
        return
    _pywrap_stacktrace_handler.InstallStacktraceHandler()


def main(libraries):
    say(step="import of TensorFlow")
    exists = os.path.exists
    os.path.exists = lambda path: (
        os.path.basename(path) != "tensorflow-plugins" and exists(path))
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    from tensorflow.python.framework import kernels, load_library, op_def_registry
    os.path.exists = exists
    report_signals()

    def kernels_by_type():
        # TensorFlow registers kernels for any name.
        return collections.Counter(
            each.device_type for each in kernels.get_all_registered_kernels().kernel
            if op_def_registry.get(each.op))

    # After TensorFlow: plug-ins may need its libraries, which it has then loaded.
    say(step="loading")
    entry_points = set()
    for library in libraries:
        handle = ctypes.CDLL(library, mode=os.RTLD_LOCAL | os.RTLD_NOW)
        entry_points |= {name for name in ENTRY_POINTS if hasattr(handle, name)}
    say(entry_points=[name for name in ENTRY_POINTS if name in entry_points])
    if len(libraries) == 1 and {"SE_InitPlugin", "TF_InitGraph"} <= entry_points:
        framework = ctypes.CDLL(os.path.join(tf.sysconfig.get_lib(),
                                             "libtensorflow_framework.so.2"))
        say(passes=type_of_passes(handle, framework))

    before = kernels_by_type()
    others = tf.config.list_physical_devices()
    say(step="registration with TensorFlow")
    for library in libraries:
        load_library.load_pluggable_device_library(library)
    # Loaded later than usual, so TensorFlow does not look for devices by itself.
    say(kernels=kernels_by_type() - before,
        release=".".join(tf.__version__.split(".")[:2]))

    say(step="start of the devices")
    devices = {}
    for device in tf.config.list_physical_devices():
        if device not in others:
            devices[device.device_type] = devices.get(device.device_type, 0) + 1
    say(devices=devices, types=sorted(devices))

    say(step="training with Keras")
    problems, trained, on_cpu = {}, {}, {}
    for name in devices:
        on_cpu[name] = ops_on_cpu(kernels, name)
        problem = train(tf, f"/device:{name}:0")
        if problem:
            problems[name] = problem
        else:
            import keras  # pylint: disable=import-outside-toplevel
            trained[name] = f"Keras {keras.__version__}, plain compile()"
    say(problems=problems, trained=trained, on_cpu=on_cpu)


if __name__ == "__main__":
    # The search for garbage would take a third of the time.
    gc.disable()
    main(sys.argv[1:])
    gc.freeze()
