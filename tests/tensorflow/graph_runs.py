# SPDX-License-Identifier: Apache-2.0
"""Runs functions with cpu_sim's fusion and without, in one process, and says
which ops were executed. For the children of test_fusion.py."""

import os


def set_fusion(fuse):
    """For all graphs that are optimized from now on."""
    os.environ["CPU_SIM_FUSE"] = "1" if fuse else "0"


def executed(call):
    """What call() returns, and the ops of the graphs that core ran for it."""
    from tensorflow.python.eager import context
    context.context().enable_run_metadata()
    try:
        result = call()
        metadata = context.context().export_run_metadata()
    finally:
        context.context().disable_run_metadata()
    return result, [node.op for graphs in metadata.function_graphs
                    for graph in graphs.partition_graphs for node in graph.node]


def run(function, arguments, fuse):
    """What a new tf.function of `function` returns, as a flat list of arrays,
    and the ops that ran for it."""
    import tensorflow as tf
    set_fusion(fuse)
    traced = tf.function(function, autograph=False, jit_compile=False)
    return executed(lambda: [result.numpy() for result in
                             tf.nest.flatten(traced(*arguments))])
