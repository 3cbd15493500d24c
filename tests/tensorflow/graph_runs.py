# SPDX-License-Identifier: Apache-2.0
"""Runs functions with and without cpu_sim's fusion in one process, and returns the
ops that were executed. Used in the child processes of test_fusion.py and others."""

import os


def set_fusion(fuse):
    """Turns fusion on or off for all graphs that are optimized afterwards."""
    os.environ["CPU_SIM_FUSE"] = "1" if fuse else "0"
    os.environ["TFPLUG_FUSION"] = "0"  # test_fuse_elementwise.py tests that pass


def recorded(call):
    """Returns the result of call(), and the nodes of each function that TensorFlow
    ran for it."""
    from tensorflow.python.eager import context
    context.context().enable_run_metadata()
    try:
        result = call()
        metadata = context.context().export_run_metadata()
    finally:
        context.context().disable_run_metadata()
    return result, [[node for graph in function.partition_graphs for node in graph.node]
                    for function in metadata.function_graphs]


def executed(call):
    """Like recorded(), with the ops of all functions."""
    result, functions = recorded(call)
    return result, [node.op for nodes in functions for node in nodes]


def run(function, arguments, fuse):
    """Runs `function` as a new tf.function. Returns its results as a flat list of
    arrays, and the ops that ran for it."""
    import tensorflow as tf
    set_fusion(fuse)
    traced = tf.function(function, autograph=False, jit_compile=False)
    return executed(lambda: [result.numpy() for result in
                             tf.nest.flatten(traced(*arguments))])
