# SPDX-License-Identifier: Apache-2.0
"""examples/cuda_like in stock TensorFlow, on its emulated driver."""

import ctypes
import os
import pathlib

import harness
import numpy as np
from language_sweep import nvrtc
import pytest
from test_backend import check_trains_as_on_the_cpu, MODELS
from test_like_gpus import use_in_child

BUILD = pathlib.Path(os.environ.get("TFPLUG_BUILD") or harness.ROOT / "build/gcc")
FOLDER = BUILD.resolve() / "examples/cuda_like"
ENVIRONMENT = {
    "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(FOLDER / "libtfplug_cuda_like.so"),
    "CUDA_LIKE_DRIVER": str(FOLDER / "libcuda_like.so"),
    "TFPLUG_CACHE_DIR": ""}  # Each process compiles its kernels.
# The emulated driver contains a cuBLAS, which the plug-in uses if it is asked to.
BLAS = {"CUDA_LIKE_BLAS": ENVIRONMENT["CUDA_LIKE_DRIVER"]}


def run(function, *arguments, **environment):
    return harness.run(function, *arguments, plugin=False,
                       env={**ENVIRONMENT, **environment})


@pytest.mark.parametrize("environment", [{}, BLAS], ids=["kernels", "cublas"])
@pytest.mark.parametrize("name", MODELS)
def test_keras_trains_as_on_the_cpu(name, environment):
    check_trains_as_on_the_cpu(name, **ENVIRONMENT, **environment)


def test_a_child_forked_before_the_first_use_has_devices():
    result = run(use_in_child, "CUDA_LIKE")
    assert result.ok and result.value[1:] == ["[2. 3.]", 2.0], result


def other_plugins(paths):
    """Returns the sums of copies between the devices of several plug-ins."""
    import tensorflow as tf
    from tensorflow.python.framework import load_library
    for path in paths:
        load_library.load_pluggable_device_library(path)
    tf.config.set_soft_device_placement(False)
    devices = [d.name.split(":", 1)[1]
               for d in tf.config.list_logical_devices() if d.device_type != "CPU"]
    sums = []
    for first in devices:
        with tf.device(first):
            x = tf.constant(np.arange(1000, dtype=np.float32)) + 1.0
        for second in devices:
            with tf.device(second):
                y = tf.identity(x) * 2.0
            sums.append([first, second, float(tf.reduce_sum(y.cpu()).numpy())])
    return sums


def test_copies_between_devices_of_different_plug_ins():
    result = run(other_plugins, [str(harness.plugin_path()),
                                 str(harness.small_plugin_path("reference_device"))])
    assert result.ok, result
    assert len({first for first, _, _ in result.value}) == 5  # 2 + 2 + 1
    assert {total for _, _, total in result.value} == {1001000.0}


def empty_gradient():
    """Returns the result of an op with empty memory of its own."""
    import tensorflow as tf
    with tf.device("/device:CUDA_LIKE:0"):
        return tf.raw_ops.SparseSegmentSqrtNGrad(
            grad=tf.zeros([0, 4]), indices=tf.constant([0, 0]), segment_ids=[0, 0],
            output_dim0=1).numpy().tolist()


def uninitialized():
    """Returns an element of memory that another tensor had before."""
    import tensorflow as tf
    with tf.device("/device:CUDA_LIKE:0"):
        for _ in range(8):
            tf.fill([1000], 7.).numpy()
        x = tf.raw_ops.Empty(shape=[1000], dtype=tf.float32).numpy()
    return x.view(np.uint32)[0].item()


def test_without_bfc_each_tensor_has_canaries():
    result = run(uninitialized, CUDA_LIKE_BFC="0", CUDA_LIKE_CANARIES="1")
    assert result.ok and result.value == 0xa5a5a5a5, result


def test_no_address_of_empty_memory_reaches_the_driver():
    result = run(empty_gradient)
    assert result.ok, result
    assert result.value == [[0, 0, 0, 0]]


def failed_kernel():
    """Returns the error of an op whose kernel the compiler rejects, and the result of
    an op afterwards."""
    import os
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    good = os.environ.pop("GOOD_COMPILER")
    with tf.device("/device:CUDA_LIKE:0"):
        x = tf.constant([1.0, 2.0])
        try:
            tf.math.exp(x)
            message = "no error"
        except tf.errors.OpError as error:
            message = error.message
        os.environ["CUDA_LIKE_CXX"] = good
        return [message, tf.math.exp(x).numpy().tolist()]


def factor():
    """Returns the largest error of a matrix that is multiplied from its factor."""
    import tensorflow as tf
    x = np.random.default_rng(0).normal(size=(3, 20, 20)).astype(np.float32)
    matrix = x @ x.transpose(0, 2, 1) + np.eye(20, dtype=np.float32)
    with tf.device("/device:CUDA_LIKE:0"):
        lower = tf.linalg.cholesky(matrix).numpy()
    return float(np.abs(lower @ lower.transpose(0, 2, 1) - matrix).max())


def test_a_result_of_the_host_is_copied_when_it_is_there():
    # A GPU reads memory that is not page-locked as soon as a copy is called; the
    # emulated driver fails a copy whose source changes afterwards.
    result = run(factor)
    assert result.ok and result.value < 1e-4, result


def test_a_kernel_that_does_not_compile():
    result = run(failed_kernel, CUDA_LIKE_CXX="false", GOOD_COMPILER="c++")
    assert result.ok, result
    message, values = result.value
    assert "{{function_node __wrapped__Exp" in message, message
    assert "The source is in " in message and "NVRTC failed" in message, message
    np.testing.assert_allclose(values, np.exp([1.0, 2.0]), rtol=1e-6)


def sample():
    """Runs ops of several families and types; returns the number of those that differ
    from the CPU."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    random = np.random.default_rng(0)
    x, y = random.normal(size=(2, 20, 30))
    wrong = []
    for dtype, compute in (
            (tf.float32, lambda a, b: tf.tanh(a) * b),
            (tf.float16, lambda a, b: a / (tf.abs(b) + 1)),
            (tf.bfloat16, tf.maximum),
            (tf.float64, lambda a, b: tf.reduce_sum(a * b, 0)),
            (tf.float32, lambda a, b: tf.matmul(a, b, transpose_b=True)),
            (tf.float32, lambda a, b: tf.argmax(a + b, 1)),
            (tf.int64, lambda a, b: a // (tf.abs(b) + 1)),
            (tf.float32, lambda a, b: tf.cumsum(a, 1)),
            (tf.float32, lambda a, b: tf.random.stateless_normal([7], [1, 2]))):
        results = []
        for device in ("CUDA_LIKE", "CPU"):
            with tf.device(f"/device:{device}:0"):
                result = compute(tf.cast(x * 9, dtype), tf.cast(y * 9, dtype))
                results.append(np.asarray(result.numpy(), np.float64))
        if not np.allclose(*results, rtol=2e-2 if dtype.size == 2 else 1e-5, atol=1e-4):
            wrong.append([dtype.name, str(results)])
    return wrong


def compile_with_both(source):
    """Compiles a source with the emulated driver's compiler and the real one. Returns
    the result of nvrtcCompileProgram and the log."""
    library = ctypes.CDLL(str(FOLDER / "libcuda_like.so"))
    program, log = ctypes.c_void_p(), ctypes.create_string_buffer(100_000)
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"a.cu", 0, None,
                               None)
    result = library.nvrtcCompileProgram(program, 0, None)
    library.nvrtcGetProgramLog(program, log)
    return [result, log.value.decode()]


@pytest.fixture(name="library")
def _library():
    library = nvrtc.find_library()
    if library is None:
        pytest.skip("no NVRTC: install nvidia-cuda-nvrtc in this environment")
    return str(library)


def test_kernels_compile_with_nvrtc(library):
    """Compiles them for sm_75, sm_90 and the newest architecture as well, and runs them
    on the emulated driver."""
    result = run(sample, CUDA_LIKE_CHECK=library)
    assert result.ok, result
    assert result.value == []


def test_a_source_that_nvrtc_rejects(library):
    source = "#ifdef __CUDACC__\n%s\n#endif\n"
    good, bad = harness.run_each(
        compile_with_both, [[source % "__device__ int x;"], [source % "int x = y;"]],
        plugin=False, env={"CUDA_LIKE_CHECK": library})
    assert good.ok and good.value == [0, ""], good
    assert bad.ok and bad.value[0] == 6, bad  # NVRTC_ERROR_COMPILATION
    for architecture in ("sm_75", "sm_90"):
        assert f"NVRTC failed for {architecture}" in bad.value[1], bad
    assert 'identifier "y" is undefined' in bad.value[1], bad


def products(driver):
    """Returns the number of products that the emulated cuBLAS has computed."""
    return ctypes.CDLL(driver).cudaLikeBlasProducts()


def multiply(driver):
    """Computes products on the device and the CPU. Returns those that differ, and for
    each group of products how many there are and how many cuBLAS computed."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    random = np.random.default_rng(0)
    wrong, counts = [], {}

    def check(group, dtype, shapes, compute):
        values = [random.integers(-9, 9, shape) / 8 for shape in shapes]
        results = []
        before = products(driver)
        for device in ("CUDA_LIKE", "CPU"):
            with tf.device(f"/device:{device}:0"):
                result = compute(*(tf.cast(value, dtype) for value in values))
                results.append(np.asarray(result.numpy(), np.float64))
        count = counts.setdefault(group, [0, 0])
        count[0] += 1
        count[1] += products(driver) - before
        # Sums of these values are exact, also in any other order.
        if not np.allclose(*results, rtol=1e-2 if dtype.size == 2 else 0, atol=0):
            wrong.append([group, dtype.name, shapes])

    for dtype in (tf.float32, tf.float64, tf.float16, tf.bfloat16):
        for m, k, n in ((7, 5, 3), (64, 33, 70), (1, 9, 4), (9, 1, 4), (4, 9, 1)):
            for a in (False, True):
                for b in (False, True):
                    shapes = [(k, m) if a else (m, k), (n, k) if b else (k, n)]

                    def product(x, y, a=a, b=b):
                        return tf.matmul(x, y, transpose_a=a, transpose_b=b)
                    check("cublas", dtype, shapes, product)
                    check("cublas", dtype, [(2, 3, *shape) for shape in shapes],
                          product)
        check("cublas", dtype, [(6, 4, 5), (5, 7)], tf.matmul)  # one b for all
        check("empty", dtype, [(0, 4), (4, 5)], tf.matmul)
        check("empty", dtype, [(3, 0), (0, 5)], tf.matmul)
        # One a for each row of matrices: no regular distances.
        check("irregular", dtype, [(2, 1, 4, 5), (2, 3, 5, 6)], tf.matmul)
    check("integers", tf.int32, [(4, 5), (5, 6)], tf.matmul)
    check("fused", tf.float32, [(16, 16), (16, 16), (16,)], tf.function(
        lambda x, w, b: tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))))
    check("large", tf.float32, [(512, 512), (512, 512), (512,)], tf.function(
        lambda x, w, b: tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))))
    return wrong, counts


def test_products_by_cublas():
    result = run(multiply, BLAS["CUDA_LIKE_BLAS"], **BLAS)
    assert result.ok, result
    wrong, counts = result.value
    assert not wrong
    assert counts.pop("cublas") == [164, 164]
    assert counts.pop("large") == [1, 1]
    assert {used for _, used in counts.values()} == {0}, counts


@pytest.mark.parametrize("environment", [{}, {"CUDA_LIKE_BLAS": "off"}])
def test_products_without_cublas(environment):
    """libcublas is not used with another driver than NVIDIA's."""
    result = run(multiply, BLAS["CUDA_LIKE_BLAS"], **environment)
    assert result.ok, result
    wrong, counts = result.value
    assert not wrong
    assert {used for _, used in counts.values()} == {0}, counts
    assert "blas" not in result.log.lower(), result.log


def failed_product():
    """Returns the error of a product, if it has one, and the result of the next."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    with tf.device("/device:CUDA_LIKE:0"):
        x = tf.constant([[1.0, 2.0]])
        results = []
        for _ in range(2):
            try:
                results.append(tf.matmul(x, x, transpose_b=True).numpy().tolist())
            except tf.errors.OpError as error:
                results.append([type(error).__name__, error.message])
    return results


@pytest.mark.parametrize("function", ["cublasCreate_v2", "cublasSetStream_v2",
                                      "cublasSetMathMode",
                                      "cublasGemmStridedBatchedEx_64"])
def test_a_function_of_cublas_fails(function):
    error, oom, unsupported = (
        run(failed_product, CUDA_LIKE_FAULT=f"hook={function},kind={kind}", **BLAS)
        for kind in ("error", "oom", "unknown"))
    for result, kind, status in (
            (error, "InternalError", "CUBLAS_STATUS_EXECUTION_FAILED (13)"),
            (oom, "ResourceExhaustedError", "CUBLAS_STATUS_ALLOC_FAILED (3)")):
        assert result.ok, result
        (name, message), after = result.value
        assert name == kind and after == [[5.0]], result
        assert f"{function}: {status}" in message, message
        assert "CUDA_LIKE_BLAS=off" in message, message
    assert unsupported.ok and unsupported.value == [[[5.0]], [[5.0]]], unsupported


def test_cublas_that_is_named_but_missing():
    result = run(failed_product, CUDA_LIKE_BLAS="/nonexistent/libcublas.so")
    assert result.ok, result
    for name, message in result.value:
        assert name == "NotFoundError", result
        assert "/nonexistent/libcublas.so" in message, message
        assert "CUDA_LIKE_BLAS=off" in message, message


def rounded_products():
    """Returns, with TF32 as it is, on and off: the largest error of a product of each
    type, as is and as a region whose launches are a graph."""
    import tensorflow as tf
    errors = []
    size = 4
    function = tf.function(
        lambda x: tf.matmul(tf.matmul(tf.matmul(tf.matmul(x, x), x), x), x),
        jit_compile=False)
    for on in None, True, False, True:
        if on is not None:
            tf.config.experimental.enable_tensor_float_32_execution(on)
        for dtype in (tf.float32, tf.float64):
            value = np.full([size, size], 1 + 2**-12) / size
            with tf.device("/device:CUDA_LIKE:0"):
                x = tf.constant(value, dtype)
                results = [tf.matmul(x, x)] + [function(x) for _ in range(4)]
            for i, result in enumerate(results[:1] + results[-1:]):
                exact = value * (1 + 2**-12)**(4 if i else 1)
                errors.append(float(np.abs(result.numpy() / exact - 1).max()))
    return np.reshape(errors, (4, 4)).tolist()


@pytest.mark.parametrize("regions", ["0", "1"])
def test_floats_are_rounded_to_tf32_if_the_user_allows_it(regions):
    results = run(rounded_products, **BLAS, TFPLUG_REGIONS=regions)
    never, always = (run(rounded_products, **BLAS, CUDA_LIKE_TF32=value)
                     for value in ("0", "1"))
    for result in (results, never, always):
        assert result.ok, result
    off, on, off_again, on_again = results.value
    assert off == off_again and on == on_again  # the harness turns it off
    # Floats are rounded to 10 bits, double precision is not.
    assert 2e-4 < on[0] < 1e-3 and 2e-4 < on[1] < 3e-3
    assert max(off[:2]) < 1e-6 and max(off[2:] + on[2:]) < 1e-12
    assert never.value == [off] * 4
    assert always.value == [on] * 4


def multiply_in_threads(driver):
    """Returns the number of products of 4 threads on one stream, and wrong results."""
    import threading
    import tensorflow as tf
    wrong = []

    def work(seed):
        value = np.random.default_rng(seed).integers(-4, 4, (40, 40)).astype(np.float32)
        with tf.device("/device:CUDA_LIKE:0"):
            x = tf.constant(value)
            for _ in range(50):
                if not np.array_equal(tf.matmul(x, x).numpy(), value @ value):
                    wrong.append(seed)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return products(driver), wrong


def test_threads_take_turns_with_a_handle():
    result = run(multiply_in_threads, BLAS["CUDA_LIKE_BLAS"], **BLAS)
    assert result.ok, result
    assert result.value == [200, []]


def devices():
    import tensorflow as tf
    return [d.device_type for d in tf.config.list_physical_devices()]


def test_no_driver():
    result = run(devices, CUDA_LIKE_DRIVER="/nonexistent/libcuda.so.1")
    assert result.ok, result
    assert result.value == ["CPU"]
    assert result.log.count("cannot load the driver") == 1, result.log
