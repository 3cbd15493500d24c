# SPDX-License-Identifier: Apache-2.0
"""Constructs kernels of the device without running them.

TensorFlow's registry contains the types of a kernel, but not the values of other
attributes that the kernel accepts, such as data_format. A kernel rejects other values
when it is constructed, and TensorFlow constructs the kernels of all nodes of a graph
before it runs any. Each node is therefore put behind a Switch that is never
taken.
"""

import functools

from tensorflow.core.framework import graph_pb2, node_def_pb2
from tensorflow.core.protobuf import config_pb2
import tensorflow as tf

from coverage import kernels

tf1 = tf.compat.v1


class Constructor:
    """Sessions on the first device of a type."""

    def __init__(self, device_type):
        with tf1.Session(config=_config()) as session:
            names = [device.name for device in session.list_devices()
                     if device.device_type == device_type]
        self.device = min(names, default="")  # "" if there is no such device
        self._rejections = {}  # by op and attributes

    def rejection(self, node):
        """Returns the error with which the device's kernel rejects the node; "" if
        it accepts the node or if this cannot be determined."""
        if not self.device or not _can_be_isolated(node):
            return ""
        copy = node_def_pb2.NodeDef(op=node.op)
        for name, value in node.attr.items():
            if not name.startswith("_"):
                copy.attr[name].CopyFrom(value)
        key = copy.SerializeToString(deterministic=True)
        if key not in self._rejections:
            self._rejections[key] = self._construct(copy)
        return self._rejections[key]

    def _construct(self, node):
        try:
            graph, predicate = _behind_a_switch(node, self.device)
        except (ValueError, TypeError):
            return ""
        with tf1.Session(graph=graph, config=_config()) as session:
            try:
                session.run("node", {predicate: False})
            except tf.errors.OpError as error:
                return _reason(error)
        return ""

    @functools.cached_property
    def runs_nested_xla(self):
        """Returns whether a function that XLA must compile runs on the device when another
        function calls it, because the plug-in has a graph pass such as tfplug's
        default pass DisableXla."""
        if not self.device:
            return False
        inner = tf.function(lambda x: tf.nn.relu(x), jit_compile=True)
        with tf.Graph().as_default() as graph:
            with graph.device(self.device):
                x = tf1.placeholder(tf.float32, [2])
                y = tf.identity(inner(tf.identity(x)))
        with tf1.Session(graph=graph) as session:
            try:
                session.run(y, {x: [1, 2]})
                return True
            except tf.errors.OpError:
                return False


def _config():
    config = config_pb2.ConfigProto(allow_soft_placement=False)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    options = config.graph_options.optimizer_options
    options.opt_level = config_pb2.OptimizerOptions.L0
    return config


def _can_be_isolated(node):
    """Returns whether the node can be constructed in a graph of its own: its op has
    no reference arguments and no functions as attributes."""
    definition = kernels.op_definition(node.op)
    return definition is not None and not any(
        argument.is_ref for argument in [*definition.input_arg,
                                         *definition.output_arg]
    ) and not any("func" in attr.type for attr in definition.attr)


def _behind_a_switch(node, device):
    """Returns a graph with the node behind a Switch, and the Switch's predicate."""
    with tf.Graph().as_default() as graph, graph.device("/device:CPU:0"):
        predicate = tf1.placeholder(tf.bool, [], name="predicate")
        dead = [tf.raw_ops.Switch(
            data=tf1.placeholder_with_default(_value(dtype), None),
            pred=predicate).output_true for dtype in _input_types(node)]
        if not dead:
            dead = [tf.raw_ops.Switch(data=predicate, pred=predicate).output_true]
    definition = graph_pb2.GraphDef()
    definition.CopyFrom(graph.as_graph_def())
    copy = definition.node.add()
    copy.CopyFrom(node)
    copy.name, copy.device = "node", device
    names = [f"{tensor.op.name}:{tensor.value_index}" for tensor in dead]
    if not _input_types(node):
        # A control edge has to come from a node that is itself never run.
        gate = definition.node.add(name="gate", op="Identity", input=names,
                                   device="/device:CPU:0")
        gate.attr["T"].type = tf.bool.as_datatype_enum
        names = ["^gate"]
    copy.input[:] = names
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(definition, name="")
    return graph, "predicate:0"


def _value(dtype):
    if dtype == tf.resource:
        return tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[])
    if dtype == tf.variant:
        return tf.raw_ops.EmptyTensorList(
            element_shape=-1, max_num_elements=0, element_dtype=tf.float32)
    return tf.zeros([], dtype)


def _input_types(node):
    """Returns the type of each input, in order."""
    types = []
    for argument in kernels.op_definition(node.op).input_arg:
        if argument.type_list_attr:
            types += node.attr[argument.type_list_attr].list.type
            continue
        count = node.attr[argument.number_attr].i if argument.number_attr else 1
        types += [argument.type or node.attr[argument.type_attr].type] * count
    return [tf.dtypes.as_dtype(each) for each in types]


def _reason(error):
    """Returns the kernel's own line of TensorFlow's message."""
    lines = [line.strip() for line in error.message.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(
        ("Detected at node", "Node:", "[[", "Original stack trace"))]
    return next((line for line in lines if "'node'" in line or "node" in line),
                lines[0] if lines else type(error).__name__).replace(
                    ", node 'node'", "")
