# SPDX-License-Identifier: Apache-2.0
"""Lets the workers of a cluster begin and end together."""

import contextlib
import ctypes
import functools
import hashlib
import json
import os
import pathlib

import tensorflow as tf

from . import distribute_adapter as adapter

_REMEDIES = {
    "TensorFlow": "Install the same release on all",
    "devices": "Give each worker the same number of devices "
               "(TFPLUG_VISIBLE_DEVICES selects them)",
    "plug-ins": "Install the same file on all, or pass same_plugins=False"}


@functools.lru_cache(maxsize=None)
def plugins():
    """Returns the plug-ins that this process has loaded, as "name (SHA-256 beginning)".
    """
    found = []
    lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
    for path in sorted({line.split(maxsplit=5)[5] for line in lines if ".so" in line}):
        try:
            library = ctypes.CDLL(path, os.RTLD_NOLOAD | os.RTLD_LAZY)
        except OSError:
            continue  # a file that was replaced since
        # TensorFlow calls this function in plug-ins, and has none of this name.
        if hasattr(library, "SE_InitPlugin"):
            digest = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
            found.append(f"{os.path.basename(path)} (SHA-256 {digest[:12]})")
    return ", ".join(found) or "no plug-in"


def compare(cluster_resolver, devices, same_plugins):
    """Waits for the first value of each worker; returns if all are equal.

    Args:
      cluster_resolver: of the strategy, which has joined the cluster.
      devices: the names of this worker's devices.
      same_plugins: whether the plug-ins' files must be equal.

    Raises:
      ValueError in every worker: if they differ; names the workers and the remedy.
    """
    kinds = [tf.DeviceSpec.from_string(device).device_type for device in devices]
    mine = {"TensorFlow": tf.__version__, "devices": f"{len(kinds)} of type {kinds[0]}"}
    if same_plugins:
        mine["plug-ins"] = plugins()
    difference = _difference(_exchange(cluster_resolver, "begin", mine))
    if difference:
        with contextlib.suppress(tf.errors.OpError):
            leave(cluster_resolver)
        raise ValueError(difference)


def leave(cluster_resolver):
    """Waits until all workers have called this function. Raises TensorFlow's error if one
    has failed."""
    _exchange(cluster_resolver, "end", True)
    # One of the workers has the store, and must not end before all have read it.
    with contextlib.suppress(tf.errors.OpError):
        _exchange(cluster_resolver, "left", True)


def _exchange(cluster_resolver, name, value):
    """Sets this task's value, and waits for those of all tasks. Returns them by task."""
    store, key = adapter.key_value_store(), "tfplug/{}/{}/{}"
    tasks = [(job, task) for job, hosts in sorted(
        cluster_resolver.cluster_spec().as_dict().items())
        if job in ("chief", "worker") for task in range(len(hosts))]
    own = cluster_resolver.task_type, cluster_resolver.task_id
    if own not in tasks:
        return {own: value}  # an evaluator
    store.set_config_key_value(key.format(name, *own), json.dumps(value))
    return {task: json.loads(store.get_config_key_value(key.format(name, *task)))
            for task in tasks}


def _difference(theirs):
    """Returns the first difference of a task from the first one, as a sentence, or ""."""
    first, reference = next(iter(theirs.items()))
    for task, values in theirs.items():
        for what in sorted(values.keys() | reference.keys()):
            if values.get(what) != reference.get(what):
                return (f"the workers' {what} differ: {_name(first)} has "
                        f"{reference.get(what, 'not compared them')}, {_name(task)} has "
                        f"{values.get(what, 'not compared them')}. {_REMEDIES[what]}")
    return ""


def _name(task):
    return f"{task[0]} {task[1]}"
