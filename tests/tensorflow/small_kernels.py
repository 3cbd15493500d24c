# SPDX-License-Identifier: Apache-2.0
"""Runs the ops of the plug-in small_kernels (plugins/) in TensorFlow.

Each function needs a process of its own that has loaded the plug-in.
tools/tf-matrix also runs `variables` in old releases, possibly without pytest.
"""

DEVICE = "/device:SMALL:0"


def _call(op, **arguments):
    """Calls an op that has no Python function, inside a tf.function."""
    import tensorflow as tf
    from tensorflow.python.framework import op_def_library
    with tf.device(DEVICE):
        return op_def_library.apply_op(op, **arguments)


def _result(function, *arguments):
    """Returns the result as lists and strings, or the error: "Class: message"."""
    import tensorflow as tf

    def plain(tensor):
        value = tensor.numpy().tolist()
        return [v.decode() if isinstance(v, bytes) else v for v in value]

    try:
        return tf.nest.map_structure(plain, function(*arguments))
    except Exception as error:  # pylint: disable=broad-except
        return f"{type(error).__name__}: {error}"


def asynchronous(how):
    """Returns the results of two concurrent runs; async_kernel.cc describes `how`."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)

    @tf.function
    def run(x):
        with tf.device(DEVICE):
            return (tf.identity(_call("SmallAsync", x=x, how=how)),
                    tf.identity(_call("SmallAsync", x=x, how=how)))

    with tf.device(DEVICE):
        return _result(run, tf.constant([1.0, 2.0]))


def outer(x, y, factor):
    """Returns the outer product and the shape that TensorFlow inferred."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    shapes = []

    @tf.function
    def run(x, y):
        product = _call("SmallOuter", x=x, y=y, factor=factor)
        shapes.append(product.shape.as_list())
        return product

    with tf.device(DEVICE):
        result = _result(run, tf.constant(x), tf.constant(y))
    return {"result": result, "shape": shapes[0] if shapes else None}


def attributes(wrong):
    """Returns a description of attributes; attributes.cc describes `wrong`."""
    import tensorflow as tf

    @tf.function
    def half(x):
        return x / 2

    half = half.get_concrete_function(tf.TensorSpec([], tf.float32))

    @tf.function
    def run():
        return _call("SmallAttributes", flag=False, number=12, numbers=[1, -2],
                     text="some text", type=tf.bfloat16, shape=None,
                     shapes=[[1, None], []],
                     tensor=tf.make_tensor_proto([2.5, 1.0]), function=half,
                     functions=[half, half], wrong=wrong)

    return _result(run)


def join(*parts):
    """Returns the concatenated strings of `parts`."""
    import tensorflow as tf

    @tf.function
    def run(*parts):
        return _call("SmallJoin", parts=list(parts))

    return _result(run, *[tf.constant(part) for part in parts])


def exchange(how):
    """Returns the tensors that kernels exchange in two steps: one on the device, one in
    host memory. Runs in a session, because a tf.function runs stateful ops one after
    the other.
    """
    import tensorflow as tf
    with tf.Graph().as_default(), tf.device(DEVICE):
        tensors = {"one": tf.constant([1.0, 2.0]), "other": tf.constant([3.0])}
        with tf.device("/device:CPU:0"):
            tensors["text"] = tf.constant(["a", "b"])
        received = [_call("SmallReceive", T=t.dtype, edge=edge)
                    for edge, t in tensors.items()]
        others = []
        if how == "abort":
            others = [_call("SmallAbort", message="aborted by a kernel")]
        elif how == "send":
            others = [_call("SmallSend", x=t, edge=edge)
                      for edge, t in tensors.items()]
        with tf.compat.v1.Session(config=tf.compat.v1.ConfigProto(
                allow_soft_placement=False)) as session:
            try:
                return [[x.astype(str).tolist()
                         for x in session.run([received, others])[0]]
                        for _ in range(2)]
            except tf.errors.OpError as error:
                return f"{type(error).__name__}: {error}"


def exchange_in_eager_mode():
    """Returns two tensors that are sent and received in eager mode."""
    import tensorflow as tf
    from tensorflow.python.eager import context, execute
    context.ensure_initialized()
    kind = ("T", tf.float32.as_datatype_enum)

    def run(x, y):
        for edge, t in (("one", x), ("other", y)):
            execute.execute(b"SmallSend", 0, [t], kind + ("edge", edge),
                            context.context())
        return [execute.execute(b"SmallReceive", 1, [], kind + ("edge", edge),
                                context.context())[0]
                for edge in ("other", "one")]

    with tf.device(DEVICE):
        return _result(run, tf.constant([1.0, 2.0]), tf.constant([3.0]))


def run_info():
    """Returns the properties of three iterations of a loop, for two steps."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)

    @tf.function
    def run(x, y):
        found = tf.TensorArray(tf.string, 3, element_shape=[None],
                               infer_shape=False)
        for i in tf.range(3):
            lines = _call("SmallRunInfo", on_device=x, on_host=y)
            with tf.device("/device:CPU:0"):
                found = found.write(i, lines)
        return found.stack()

    with tf.device(DEVICE):
        x, y = tf.constant([1.0]), tf.constant([2.0])
    steps = [run(x, y).numpy() for _ in range(2)]
    return [[dict(line.decode().split(": ", 1) for line in lines)
             for lines in step] for step in steps]


def variables():
    """Returns the results of assignments to a variable on the device."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    with tf.device(DEVICE):
        v = tf.Variable([1.0, 2.0, 3.0])
        half = tf.constant([0.5, 0.5, 0.5])
        old = v.read_value()
        result = {"assign": _result(lambda: v.assign([4.0, 5.0, 6.0]))}
        kept = v.read_value()  # shares the variable's buffer until it changes
        result["assign_sub"] = _result(lambda: v.assign_sub(half))
        result["assign_add"] = _result(lambda: v.assign_add([1.0, 1.0, 1.0]))
        result["in a function"] = _result(tf.function(
            lambda: v.assign_add(half).read_value(), jit_compile=False))
        result["wrong shape"] = _result(lambda: tf.raw_ops.AssignAddVariableOp(
            resource=v.handle, value=tf.constant([1.0])))
        result["read before"] = [old.numpy().tolist(), kept.numpy().tolist()]
        result["final value"] = v.numpy().tolist()
    return result


def variables_problem(results):
    """Returns the first mistake in the results of `variables`, or "".

    Updates in place must work or, where TensorFlow lacks the functions that they
    need, fail with a descriptive error.
    """
    if results["assign"] != [4.0, 5.0, 6.0]:
        return f"assign: {results['assign']}"
    if results["read before"] != [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]:
        return f"an earlier read has changed: {results['read before']}"
    works = {"assign_sub": [3.5, 4.5, 5.5], "assign_add": [4.5, 5.5, 6.5],
             "in a function": [5.0, 6.0, 7.0], "final value": [5.0, 6.0, 7.0]}
    rejected = updates_are_rejected(results)
    for name, want in works.items():
        have = results[name]
        if rejected and name != "final value":
            if not (have.startswith("UnimplementedError") and
                    "lacks TF_GetInputTensorFromVariable" in have and
                    "instead of v.assign_" in have):
                return f"{name}: {have}"
        elif have != ([4.0, 5.0, 6.0] if rejected else want):
            return f"{name}: {have}"
    if not rejected and not str(results["wrong shape"]).startswith("Invalid"):
        return f"an addition of another shape: {results['wrong shape']}"
    return ""


def updates_are_rejected(results):
    return str(results["assign_sub"]).startswith("UnimplementedError")
