# SPDX-License-Identifier: Apache-2.0
"""Where TensorFlow's graph optimizer does not run, no pass can lower an update, and
the kernel's error names the remedy. See docs/measured/tensorflow_behavior.md."""

import contextlib

import harness
import pytest

# The graph pass itself is under test, so Python's ops are left as they are.
STRICT = {"CPU_SIM_STRICT": "1", "TFPLUG_PYTHON_UPDATES": "0"}
REMEDY = "v.assign(v + "


@contextlib.contextmanager
def options(tf, **changed):
    before = tf.config.optimizer.get_experimental_options()
    tf.config.optimizer.set_experimental_options(changed)
    try:
        yield
    finally:
        defaults = {"min_graph_nodes": 0, "disable_meta_optimizer": False,
                    "use_plugin_optimizers": True}
        tf.config.optimizer.set_experimental_options(
            {name: before.get(name, defaults[name]) for name in changed})


def eager(tf, v, x):
    v.assign_add(x)


def few_nodes(tf, v, x):
    """A graph of fewer than four nodes, which TensorFlow does not optimize."""
    @tf.function
    def f(x):
        v.assign_add(x)
    f(x)


def few_nodes_by_option(tf, v, x):
    """The same function, with that limit turned off."""
    with options(tf, min_graph_nodes=-1):
        few_nodes(tf, v, x)


def enough_nodes(tf, v, x):
    @tf.function
    def f(x):
        v.assign_add(2 * x - x)
        return v.read_value()
    f(x)


def optimizer_disabled(tf, v, x):
    with options(tf, disable_meta_optimizer=True):
        enough_nodes(tf, v, x)


def plugins_disabled(tf, v, x):
    with options(tf, use_plugin_optimizers=False):
        enough_nodes(tf, v, x)


def reduced_retracing(tf, v, x):
    @tf.function(reduce_retracing=True)
    def f(x):
        v.assign_add(2 * x[:2] - x[:2])
        return v.read_value()
    f(x)
    v.assign([1.0, 2.0])
    f(tf.constant([5.0, 6.0, 7.0]))
    assert f.experimental_get_tracing_count() == 2


def compiled(tf, v, x):
    @tf.function(jit_compile=True)
    def f(x):
        v.assign_add(2 * x - x)
        return v.read_value()
    f(x)


def functional_if(tf, v, x):
    """An If without the attribute that makes TensorFlow lower it: its branches are
    never optimized."""
    spec = tf.TensorSpec([2])

    @tf.function
    def add(x):
        v.assign_add(2 * x - x)
        return v.read_value()

    @tf.function
    def keep(x):
        return v + 0 * x
    branches = [branch.get_concrete_function(spec) for branch in (add, keep)]

    @tf.function
    def f(x):
        return tf.raw_ops.If(
            cond=tf.reduce_sum(x) > 0, input=[x, v.handle], Tout=[tf.float32],
            then_branch=branches[0], else_branch=branches[1])
    f(x)


def functional_while(tf, v, x):
    """Like functional_if, for the body of a While."""
    specs = [tf.TensorSpec([], tf.int32), tf.TensorSpec([2]),
             tf.TensorSpec([], tf.resource)]

    @tf.function
    def again(i, x, handle):
        return i < 1

    @tf.function
    def body(i, x, handle):
        tf.raw_ops.AssignAddVariableOp(resource=handle, value=2 * x - x)
        return i + 1, x, handle
    again, body = (f.get_concrete_function(*specs) for f in (again, body))

    @tf.function
    def f(n, x):
        return tf.raw_ops.While(input=[n, x, v.handle], cond=again,
                                body=body)[1]
    f(tf.constant(0), x)


def single_threaded_cond(tf, v, x):
    """For this executor, Python does not request that a tf.cond is lowered."""
    from tensorflow.python.eager import context
    with context.function_executor_type("SINGLE_THREADED_EXECUTOR"):
        @tf.function
        def f(x):
            def add():
                v.assign_add(2 * x - x)
                return v.read_value()
            return tf.cond(tf.reduce_sum(x) > 0, add, lambda: x)
        f(x)


def run(name):
    """Returns the variable's value after the update; errors propagate."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    with tf.device("/device:SIM:0"):
        v = tf.Variable([1.0, 2.0])
        x = tf.constant([5.0, 6.0])
        globals()[name](tf, v, x)
        return v.numpy().tolist()


LOWERED = ["enough_nodes", "few_nodes_by_option", "reduced_retracing", "compiled"]
NOT_LOWERED = ["eager", "few_nodes", "optimizer_disabled", "plugins_disabled",
               "functional_if", "functional_while", "single_threaded_cond"]


@pytest.fixture(scope="module", name="results")
def _results():
    # A case without options also runs last, to check that options are reset.
    names = LOWERED + NOT_LOWERED
    results = harness.run_each(run, [[n] for n in names + LOWERED[:1]],
                               env=STRICT)
    assert results.pop().value == [6.0, 8.0]
    return dict(zip(names, results))


@pytest.mark.parametrize("name", LOWERED)
def test_lowered(results, name):
    assert results[name].ok, results[name]
    assert results[name].value == [6.0, 8.0]


@pytest.mark.skipif(harness.lets_kernels_update_variables(),
                    reason="the plug-in has kernels for these updates")
@pytest.mark.parametrize("name", NOT_LOWERED)
def test_not_lowered_is_an_error_with_the_remedy(results, name):
    assert results[name].died == 0, results[name]
    assert "UnimplementedError" in results[name].error, results[name]
    assert REMEDY in results[name].error, results[name]
