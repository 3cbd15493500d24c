# SPDX-License-Identifier: Apache-2.0
"""Runs the ops of plugins/ in TensorFlow. Each function is for a process of its
own that has loaded that plug-in; tools/tf-matrix runs `variables` in old
releases, too, where there may be no pytest."""

DEVICE = "/device:TOY:0"


def _call(op, **arguments):
    """An op that TensorFlow has no Python function for, inside a function."""
    import tensorflow as tf
    from tensorflow.python.framework import op_def_library
    with tf.device(DEVICE):
        return op_def_library.apply_op(op, **arguments)


def _said(function, *arguments):
    """What it returns, as lists and texts; or its error: "Class: message"."""
    import tensorflow as tf

    def plain(tensor):
        value = tensor.numpy().tolist()
        return [v.decode() if isinstance(v, bytes) else v for v in value]

    try:
        return tf.nest.map_structure(plain, function(*arguments))
    except Exception as error:  # pylint: disable=broad-except
        return f"{type(error).__name__}: {error}"


def asynchronous(how):
    """Two runs at once, in a function. `how` they end: see async_kernel.cc."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)

    @tf.function
    def run(x):
        with tf.device(DEVICE):
            return (tf.identity(_call("ToyAsync", x=x, how=how)),
                    tf.identity(_call("ToyAsync", x=x, how=how)))

    with tf.device(DEVICE):
        return _said(run, tf.constant([1.0, 2.0]))


def outer(x, y, factor):
    """The result, and the shape that was known before."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    shapes = []

    @tf.function
    def run(x, y):
        product = _call("ToyOuter", x=x, y=y, factor=factor)
        shapes.append(product.shape.as_list())
        return product

    with tf.device(DEVICE):
        result = _said(run, tf.constant(x), tf.constant(y))
    return {"result": result, "shape": shapes[0] if shapes else None}


def attributes(wrong):
    """`wrong`: which mistake the kernel makes, if any: see attributes.cc."""
    import tensorflow as tf

    @tf.function
    def half(x):
        return x / 2

    half = half.get_concrete_function(tf.TensorSpec([], tf.float32))

    @tf.function
    def run():
        return _call("ToyAttributes", flag=False, number=12, numbers=[1, -2],
                     text="of mine", type=tf.bfloat16, shape=None,
                     shapes=[[1, None], []],
                     tensor=tf.make_tensor_proto([2.5, 1.0]), function=half,
                     functions=[half, half], wrong=wrong)

    return _said(run)


def join(*parts):
    """The strings of `parts`, joined."""
    import tensorflow as tf

    @tf.function
    def run(*parts):
        return _call("ToyJoin", parts=list(parts))

    return _said(run, *[tf.constant(part) for part in parts])


def exchange(how):
    """What kernels of one step hand to each other, twice: tensors on the device
    and in host memory. In a session, for a function runs such ops one after the
    other."""
    import tensorflow as tf
    with tf.Graph().as_default(), tf.device(DEVICE):
        tensors = {"one": tf.constant([1.0, 2.0]), "other": tf.constant([3.0])}
        with tf.device("/device:CPU:0"):
            tensors["text"] = tf.constant(["a", "b"])
        received = [_call("ToyReceive", T=t.dtype, edge=edge)
                    for edge, t in tensors.items()]
        others = []
        if how == "abort":
            others = [_call("ToyAbort", message="no more of this")]
        elif how == "send":
            others = [_call("ToySend", x=t, edge=edge)
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
    """What becomes of two tensors that are sent, and asked for, outside of a
    function."""
    import tensorflow as tf
    from tensorflow.python.eager import context, execute
    context.ensure_initialized()
    kind = ("T", tf.float32.as_datatype_enum)

    def run(x, y):
        for edge, t in (("one", x), ("other", y)):
            execute.execute(b"ToySend", 0, [t], kind + ("edge", edge),
                            context.context())
        return [execute.execute(b"ToyReceive", 1, [], kind + ("edge", edge),
                                context.context())[0]
                for edge in ("other", "one")]

    with tf.device(DEVICE):
        return _said(run, tf.constant([1.0, 2.0]), tf.constant([3.0]))


def run_info():
    """The lines of three iterations of a loop, and those of another step."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)

    @tf.function
    def run(x, y):
        found = tf.TensorArray(tf.string, 3, element_shape=[None],
                               infer_shape=False)
        for i in tf.range(3):
            words = _call("ToyRunInfo", on_device=x, on_host=y)
            with tf.device("/device:CPU:0"):
                found = found.write(i, words)
        return found.stack()

    with tf.device(DEVICE):
        x, y = tf.constant([1.0]), tf.constant([2.0])
    steps = [run(x, y).numpy() for _ in range(2)]
    return [[dict(word.decode().split(": ", 1) for word in words)
             for words in step] for step in steps]


def variables():
    """What assignments make of variables on the device, whose memory the host
    cannot touch."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    with tf.device(DEVICE):
        v = tf.Variable([1.0, 2.0, 3.0])
        half = tf.constant([0.5, 0.5, 0.5])
        old = v.read_value()
        result = {"assign": _said(lambda: v.assign([4.0, 5.0, 6.0]))}
        kept = v.read_value()  # shares the variable's buffer until it changes
        result["assign_sub"] = _said(lambda: v.assign_sub(half))
        result["assign_add"] = _said(lambda: v.assign_add([1.0, 1.0, 1.0]))
        result["in a function"] = _said(tf.function(
            lambda: v.assign_add(half).read_value(), jit_compile=False))
        result["wrong shape"] = _said(lambda: tf.raw_ops.AssignAddVariableOp(
            resource=v.handle, value=tf.constant([1.0])))
        result["read before"] = [old.numpy().tolist(), kept.numpy().tolist()]
        result["at last"] = v.numpy().tolist()
    return result


def variables_problem(said):
    """What is wrong with what `variables` has returned, or "". Updates in place
    either work or, where TensorFlow lacks what they need, say so in words."""
    if said["assign"] != [4.0, 5.0, 6.0]:
        return f"assign: {said['assign']}"
    if said["read before"] != [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]:
        return f"an earlier read has changed: {said['read before']}"
    works = {"assign_sub": [3.5, 4.5, 5.5], "assign_add": [4.5, 5.5, 6.5],
             "in a function": [5.0, 6.0, 7.0], "at last": [5.0, 6.0, 7.0]}
    refused = updates_are_refused(said)
    for name, want in works.items():
        have = said[name]
        if refused and name != "at last":
            if not (have.startswith("UnimplementedError") and
                    "lacks TF_GetInputTensorFromVariable" in have and
                    "instead of v.assign_" in have):
                return f"{name}: {have}"
        elif have != ([4.0, 5.0, 6.0] if refused else want):
            return f"{name}: {have}"
    if not refused and not str(said["wrong shape"]).startswith("Invalid"):
        return f"an addition of another shape: {said['wrong shape']}"
    return ""


def updates_are_refused(said):
    return str(said["assign_sub"]).startswith("UnimplementedError")
