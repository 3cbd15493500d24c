# SPDX-License-Identifier: Apache-2.0
"""How far a result may be from TensorFlow's, and which differences are intended."""

import re

import numpy as np

# Units in the last place (ulps) of the result. Half and bfloat16 are compared with
# float results that are rounded once, or with the CPU's own.
ULPS = {"float64": 4, "float32": 4, "float16": 2, "bfloat16": 2}
# float32 and float64 results of ops whose CPU kernels or specifications are less exact.
OP_ULPS = {"Pow": 8, "Tanh": 8, "Lgamma": 64, "Digamma": 64, "Erfc": 40, "BesselK0e": 8,
           "BesselK1e": 8, "Spence": 32,
           # Near the zero of the function; and angles of up to thousands.
           "Expint": 256, "FresnelCos": 4096, "FresnelSin": 4096,
           "ResourceApplyAdadelta": 16, "ResourceSparseApplyAdadelta": 16,
           # The root of a difference of squares.
           "ResourceApplyCenteredRMSProp": 64, "ResourceSparseApplyCenteredRMSProp": 64,
           # Sums and products of thousands of numbers, in another order.
           "Softmax": 16, "LogSoftmax": 16, "Prod": 64, "SegmentProd": 64, "SegmentProdV2": 64,
           "UnsortedSegmentProd": 64, "Cumprod": 64, "Qr": 16,
           # The sine of a float angle of up to 2 pi, times a radius of up to 6.
           "StatelessRandomNormal": 32, "StatelessRandomNormalV2": 32,
           "StatelessTruncatedNormal": 32, "StatelessTruncatedNormalV2": 32}
# Denormal terms of a result that TensorFlow's CPU may flush to 0.
FLUSHED_TERMS = 4
# Ulps of the sum of the absolute values of the terms, in the type of computation.
TERMS_ULPS = 8


def _set(names):
    return frozenset(names.split())


# Sums of products: the error is proportional to the op's result for absolute values.
LINEAR = _set(
    "AddN AccumulateNV2 Sum Mean Cumsum MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3 "
    "Einsum BiasAdd BiasAddGrad Conv2D Conv2DBackpropInput Conv2DBackpropFilter Conv3D "
    "Conv3DBackpropInputV2 Conv3DBackpropFilterV2 DepthwiseConv2dNative "
    "Conv DepthwiseConv2dNativeBackpropInput DepthwiseConv2dNativeBackpropFilter AvgPool "
    "AvgPool3D AvgPoolGrad AvgPool3DGrad ResizeBilinear ResizeBilinearGrad "
    "ScatterNd TensorScatterAdd SegmentSum SegmentMean UnsortedSegmentSum "
    "SegmentSumV2 ResourceScatterAdd ResourceScatterNdAdd SparseSegmentSum "
    "SparseSegmentMean SparseSegmentSqrtN SparseSegmentSumWithNumSegments "
    "SparseSegmentMeanWithNumSegments SparseSegmentSqrtNWithNumSegments "
    "ResizeNearestNeighborGrad MaxPoolGrad MaxPoolGradV2 MaxPool3DGrad MirrorPadGrad "
    "SparseSegmentSumGrad SparseSegmentMeanGrad SparseSegmentSqrtNGrad "
    "SparseSegmentSumGradV2 SparseSegmentMeanGradV2 SparseSegmentSqrtNGradV2 "
    "CropAndResizeGradImage FakeQuantWithMinMaxVarsGradient "
    "FakeQuantWithMinMaxVarsPerChannelGradient SparseFillEmptyRowsGrad "
    "RaggedFillEmptyRowsGrad SparseTensorDenseMatMul _FusedConv2D _FusedMatMul "
    "TensorScatterSub ResourceScatterSub ResourceScatterNdSub ScatterNdNonAliasingAdd "
    "SparseReduceSum "
    "SparseReduceSumSparse EuclideanNorm L2Loss Bincount DenseBincount Dilation2DBackpropInput "
    "Dilation2DBackpropFilter")
# The arguments in which the result is linear, if not in all.
LINEAR_IN = {"CropAndResizeGradImage": ["grads"],
             "Dilation2DBackpropInput": ["out_backprop"],
             "Dilation2DBackpropFilter": ["out_backprop"],
             "DenseBincount": ["weights"], "Bincount": ["weights"],
             "FakeQuantWithMinMaxVarsGradient": ["gradients"],
             "FakeQuantWithMinMaxVarsPerChannelGradient": ["gradients"]}
# Each element is a sum of products of all others.
FOURIER = _set("FFT FFT2D FFT3D FFTND IFFT IFFT2D IFFT3D IFFTND RFFT RFFT2D RFFT3D RFFTND "
               "IRFFT IRFFT2D IRFFT3D IRFFTND")
# Differences, which lose the digits of a small result: the unit is that of 1 at least.
ONE = _set("CTCLoss Spence Expint Elu Selu EluGrad SeluGrad Softplus Lgamma Digamma LogSoftmax Sin Cos Tan "
           "_FusedConv2D _FusedMatMul _FusedDepthwiseConv2dNative "
           "StatelessRandomNormal StatelessRandomNormalV2 StatelessTruncatedNormal "
           "StatelessTruncatedNormalV2 SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits")
# Of complex numbers: several operations, each of which rounds both parts.
COMPLEX_ULPS = 16
# A power of e with an exponent of up to 100; a quotient near a pole; a factor of up
# to 100.
COMPLEX_OP_ULPS = {"Pow": 4096, "Sigmoid": 4096, "Xlog1py": 1024, "Xlogy": 1024}
# TensorFlow's CPU takes the logarithm of a rounded absolute value.
COMPLEX_ONE = _set("Log Log1p Xlogy Xlog1py")
# Optimizers subtract a step from a variable.
ONE_TOO = r"Resource(Sparse)?Apply\w+"
# The unit is that of the largest element of the result.
TENSOR = _set(
    "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 FusedBatchNormGrad LRN LRNGrad "
    "FusedBatchNormGradV2 FusedBatchNormGradV3 ResizeBicubic ResizeBicubicGrad "
    "ResizeArea ScaleAndTranslate ScaleAndTranslateGrad "
    "Cholesky MatrixTriangularSolve MatrixInverse MatrixSolve MatrixDeterminant "
    "CumulativeLogsumexp CropAndResizeGradBoxes AdjustContrastv2 AdjustHue "
    "AdjustSaturation HSVToRGB Svd SelfAdjointEigV2 Qr")
TENSOR_ULPS = 16
# Of ops that subtract large numbers on the way.
TENSOR_OP_ULPS = {"FusedBatchNormGrad": 256, "FusedBatchNormGradV2": 256,
                  "FusedBatchNormGradV3": 256, "MatrixDeterminant": 64,
                  "MatrixInverse": 64, "MatrixSolve": 64,
                  # Rounds once for each element before.
                  "CumulativeLogsumexp": 64}
# The outputs that are compared, from the first. The others hand numbers from a kernel to
# that of the gradient, in a form that is private to the two.
PUBLIC_OUTPUTS = {"FusedBatchNorm": 3, "FusedBatchNormV2": 3, "FusedBatchNormV3": 3,
                  "FusedBatchNormGrad": 3, "FusedBatchNormGradV2": 3,
                  "FusedBatchNormGradV3": 3,
                  # Its elements are not set.
                  "_ParallelConcatStart": 0,
                  # The vectors, which the sweep does not request.
                  "SelfAdjointEigV2": 1, "Svd": 1}
# Ops that write into their input, as TensorFlow's kernels do.
CHANGE_X = _set("InplaceUpdate InplaceAdd InplaceSub _ParallelConcatUpdate")
# Wider types do not give a more exact result of the same function.
NO_WIDER = r"NextAfter|Bitcast|Stateless.*|(?!RandomGammaGrad).*Random.*"
# Numbers that are random by themselves: only the moments are compared.
MOMENTS = _set("RandomUniform RandomStandardNormal TruncatedNormal RandomUniformInt "
               "ParameterizedTruncatedNormal RandomGamma RandomPoisson RandomPoissonV2 "
               "Multinomial RandomShuffle")

_ON_HOST = "A device cannot raise an error on the host for values in its memory"
# Rows: a pattern of ops, a pattern of the message of the device that reports an error or
# else of the CPU, the reason. docs/guide/
# backend.md describes them for authors.
EXPLAINED = [
    (r".*", r"[Ii]nteger division by zero", _ON_HOST + "; the result is 0"),
    (r".*", r"Integers to negative integer powers", _ON_HOST),
    (r".*(Resource|Assign|Variable).*|Rng.*|AddN|ZerosLike", r"this TensorFlow .* lacks TF_",
     "A release of TensorFlow lacks a C function; the error names it and the remedy"),
    (r"TensorList.*", r"lists of bool only on its own devices",
     "TensorFlow supports lists of bool only on its own devices; the error names the "
     "remedy"),
    (r"TruncateDiv|TruncateMod|Mod", r"only integer div and mod should have errors",
     _ON_HOST + "; the result is 0"),
    (r"Stateless.*", r"Philox is the only random algorithm",
     "TensorFlow's CPU ignores the algorithm of an empty result"),
    (r"Stateless.*V[23]", r"counter shape",
     "TensorFlow's CPU does not check the size of the counter"),
    (r"Stateless.*Int(V2)?", r"m(in|ax)val must be 0-D",
     "TensorFlow's CPU does not check the range of an empty result"),
    (r"BroadcastTo|HistogramFixedWidth|.*Segment.*", r"OOM when allocating",
     "The device has less memory than the host"),
    (r"_TensorToHashBucketFast", r"Type not supported",
     "TensorFlow's CPU hashes signed integers only"),
    (r"(Dense)?Bincount", r"must be non-negative", _ON_HOST + "; it is not counted"),
    (r"Conv2DBackprop.*", r"grouped convolutions are not supported on CPU|"
     r"filter_size does not have enough elements",
     "TensorFlow's CPU has no gradients of grouped convolutions"),
    (r"Conv3D.*", r"Number of channels in filter|must have the same number of channels",
     "TensorFlow's CPU has no grouped convolutions in 3D"),
    (r"Dilation2D", r"filter must not have zero elements",
     "TensorFlow's CPU returns the lowest number for a filter without elements"),
    (r"Conv3D", r"filter must not have zero elements",
     "TensorFlow's CPU accepts filters without outputs in 2D only"),
    (r"_Fused(MatMul|Conv2D|DepthwiseConv2dNative)", r"must be a vector of \d+ elements|"
     r"must have the same depth", "TensorFlow's CPU does not check the size of the bias"),
    (r"ScatterNdNonAliasingAdd|ResourceScatter.*", r"updates must have shape|"
     r"dimensions of (indices and update|output.shape)\b.* must match",
     "TensorFlow's CPU compares the number of updates at most"),
    (r"XlaDynamicSlice", r"must be a vector",
     "TensorFlow's CPU does not check the rank of the indices"),
    (r"Resize(Bilinear|NearestNeighbor)Grad", r"with pixels and channels",
     "TensorFlow's CPU accepts an image without elements"),
    (r"MaxPool.*V2", r"must specify 4 positive dimensions",
     "TensorFlow's CPU does not check the signs of sizes and strides that are inputs"),
    (r"MaxPool.*V2", r"in the batch and depth dimensions must be 1",
     "The device has no pooling across the depth"),
    (r"AvgPool.*Grad", r"Expected grad shape",
     "TensorFlow's CPU does not check the shape of the gradient"),
    (r"Cast", r"Truncate=true is not implemented", "No Python function truncates"),
    (r"_FusedDepthwiseConv2dNative", r"must be 4-dimensional",
     "TensorFlow's CPU does not check the shapes"),
    (r"SparseTo.*|SparseTensorDense.*", r"out of bounds|out of order|is repeated",
     _ON_HOST + "; it reads 0, writes nothing"),
    (r"ResourceScatterDiv", r"updates must not contain 0", _ON_HOST),
    (r"ResourceSparseApply.*", r"the gradient must have shape",
     "TensorFlow's CPU compares sizes only"),
    (r"ResourceApply(Add|Power)Sign|QuantizeAndDequantizeV\d",
     r"is not a scalar: \[1\]|must be a scalar\. It has shape \[1\]",
     "TensorFlow's CPU accepts a vector of one element as a scalar"),
    (r".*(Gather|Scatter|Segment|Stitch|Partition|SparseApply).*",
     r"is not in \[0|out of range|does not index into|is out of bound|segment ids|"
     r"must be < kintmax|not increasing|not sorted|Partitions|Invalid number of segments",
     _ON_HOST + "; it reads 0, writes nothing"),
    (r"CropAndResize.*", r"box_index has values outside", _ON_HOST + "; the box is outside"),
    (r"Dilation2D.*|.*Conv.*", r"Computed output size would be negative|filter depth.*: 0 vs",
     "TensorFlow's CPU accepts an image or a filter without elements"),
    (r"QuantizeAndDequantizeV\d", r"must be a scalar when axis is not specified",
     "TensorFlow's CPU accepts a vector of one element as a scalar before 2.22"),
    (r"NonMaxSuppression.*", r"must have 4 columns",
     "TensorFlow's CPU does not check the columns of no boxes before 2.22"),
    (r"ReverseV2", r"is out of valid range \[0, -1",
     "TensorFlow's CPU ignores the axes of a scalar before 2.22"),
    (r"RaggedTensorToTensor", r"must be the number of elements of the last row",
     "TensorFlow's CPU does not compare the number of values with the rows"),
    (r"Where", r"Unhandled input dimensions", "TensorFlow's CPU supports up to rank 8"),
    (r"ReverseSequence", r"Unhandled input dimensions", "TensorFlow's CPU supports up to rank 5"),
    (r"ReverseSequence", r"seq_lens\(", _ON_HOST + "; it reads 0"),
    (r"SparseSoftmaxCrossEntropyWithLogits", r"label value",
     _ON_HOST + "; the loss is NaN"),
]
# Rows: a pattern of ops, a pattern of types, what is wrong on the CPU.
_WRONG_ON_THE_CPU = [
    (r"Round", r"u?int\d+", "TensorFlow's CPU rounds integers to 0"),
    (r"_FusedDepthwiseConv2dNative", r".*", "TensorFlow's CPU returns an empty output"),
    (r"SegmentMean", r"u?int(8|16)", "TensorFlow's CPU counts in the type of the elements"),
    (r"ClipByValue", r"uint32|uint64",
     "TensorFlow's CPU compares unsigned numbers as signed ones"),
    (r"Erf", r"float64", "TensorFlow's CPU returns NaN for an infinite double"),
]
# Rows: a pattern of ops, what is wrong on the CPU if an input is empty.
_WRONG_IF_EMPTY = [
    (r"I?R?FFT(2D|3D)?", "TensorFlow's CPU does not initialize the result of an empty input"),
    (r"_FusedMatMul", "TensorFlow's CPU leaves out the bias of an empty product"),
]
# Rows: a pattern of ops, what is wrong in their shape functions.
_WRONG_SHAPE_FUNCTIONS = [
    (r"I?R?FFTND", "TensorFlow's shape function ignores the lengths, which the CPU's kernel "
     "obeys"),
]
# Rows: a pattern of ops, a pattern of types, a function of the device's and of the CPU's
# numbers that tells where the CPU's are wrong, and what is wrong.
_ODD_VALUES = [
    (r"FloorDiv", "float64", lambda got, want: (got == -1) & (want == 0),
     "TensorFlow's CPU flushes a denormal quotient to 0 before it rounds down"),
    (r"(Reciprocal|Inv|Rsqrt)Grad", "float64",
     lambda got, want: np.isinf(got) & np.isnan(want),
     "TensorFlow's CPU multiplies an infinite gradient by a number that it flushed to 0"),
    (r"SqrtGrad", "float64",
     lambda got, want: np.isinf(got) & np.isnan(want) | (np.abs(got) == .5) & (want == 0),
     "TensorFlow's CPU flushes half of the smallest gradients to 0"),
    (r"(Reciprocal|Inv)Grad", "float64",
     lambda got, want: (np.abs(got) < 1e-200) & (want == 0),
     "TensorFlow's CPU flushes a denormal factor to 0"),
    (r"(Tanh|Sigmoid)Grad", r"b?float\d+",
     lambda got, want: np.isinf(got) & np.isnan(want),
     "TensorFlow's CPU multiplies an infinite factor by a number that it flushed to 0"),
    (r"Dawsn", r"float\d+", lambda got, want: (got == -want) & (np.abs(want) < 1e-8),
     "TensorFlow's CPU returns the absolute value for large negative numbers"),
    (r"CTCLoss", "float64", lambda got, want: np.abs(got - want) < 1e-6,
     "TensorFlow's CPU computes parts of the gradient in float"),
    (r"Lgamma", r"b?float(16|32)", lambda got, want: np.isinf(got) & (np.rint(want) == 104),
     "TensorFlow's CPU returns -log of the smallest denormal for each denormal"),
    (r"Expint|Spence", r"float\d+",
     lambda got, want: (np.abs(got) > 1e3) & np.isnan(want),
     "TensorFlow's CPU subtracts infinities"),
    (r"SeluGrad", r"b?float\d+", lambda got, want: ~np.isnan(got) & np.isnan(want),
     "SeluGrad of NaN is NaN from TensorFlow 2.22 on"),
    (r"Digamma", r"float\d+", lambda got, want: np.isnan(got) & np.isinf(want),
     "Digamma of 0 is infinite from TensorFlow 2.22 on"),
    (r"Igammac", r"float\d+", lambda got, want: (np.abs(got) < 1e-13) & ~(want > 0),
     "TensorFlow's CPU flushes a denormal order to 0"),
    (r"Pow", r"complex\d+",
     lambda got, want: ((got == 0) | (got == 1)) & np.isnan(want),
     "TensorFlow's CPU computes powers of 0, and to 0, from an infinite logarithm"),
    (r"Pow", r"complex64", lambda got, want: np.isinf(got) & (np.abs(want) > 3e38),
     "The factors of the largest numbers have rounded exponents"),
    (r"Exp", r"complex128",
     lambda got, want: np.abs(got - want) <= 8 * np.finfo(float).eps * np.abs(want),
     "Exp of complex numbers is less exact in TensorFlow 2.22"),
]


def odd_values(op, got, want, different):
    """Returns why all elements that differ are wrong on the CPU; "" if some are not."""
    for ops, dtype, is_odd, reason in _ODD_VALUES:
        if re.fullmatch(ops, op) and re.fullmatch(dtype, got.dtype.name):
            if not np.any(different & ~is_odd(got, want)):
                return reason
    return ""


def wrong_on_the_cpu(op, dtype, has_empty_input=False):
    """Returns why a result of the CPU is not compared; "" if it is."""
    for ops, reason in _WRONG_IF_EMPTY if has_empty_input else ():
        if re.fullmatch(ops, op):
            return reason
    for ops, types, reason in _WRONG_ON_THE_CPU:
        if re.fullmatch(ops, op) and re.fullmatch(types, dtype):
            return reason
    return ""


def wrong_shape_function(op):
    """Returns why a shape is not compared with that of the shape function; "" if it is."""
    return next((reason for ops, reason in _WRONG_SHAPE_FUNCTIONS if re.fullmatch(ops, op)), "")


def explanation(op, message):
    """Returns why only one of the two reports this error; "" if that is a mismatch."""
    for ops, pattern, reason in EXPLAINED:
        if re.fullmatch(ops, op) and re.search(pattern, message):
            return reason
    return ""
