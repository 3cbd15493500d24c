# SPDX-License-Identifier: Apache-2.0
"""How far a result may be from TensorFlow's, and which differences are intended."""

import re

# Units in the last place (ulps) of the result. Half and bfloat16 are compared with
# float results that are rounded once, or with the CPU's own.
ULPS = {"float64": 4, "float32": 4, "float16": 2, "bfloat16": 2}
# float32 and float64 results of ops whose CPU kernels or specifications are less exact.
OP_ULPS = {"Pow": 8, "Lgamma": 64, "Digamma": 64, "Erfc": 40, "BesselK0e": 8, "BesselK1e": 8,
           # The sine of a float angle of up to 2 pi, times a radius of up to 6.
           "StatelessRandomNormal": 32, "StatelessRandomNormalV2": 32,
           "StatelessTruncatedNormal": 32, "StatelessTruncatedNormalV2": 32}
# Ulps of the sum of the absolute values of the terms, in the type of computation.
TERMS_ULPS = 8


def _set(names):
    return frozenset(names.split())


# Sums of products: the error is proportional to the op's result for absolute values.
LINEAR = _set(
    "AddN AccumulateNV2 Sum Mean Cumsum MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3 "
    "Einsum BiasAdd BiasAddGrad Conv2D Conv2DBackpropInput Conv2DBackpropFilter Conv3D "
    "Conv3DBackpropInputV2 Conv3DBackpropFilterV2 DepthwiseConv2dNative "
    "DepthwiseConv2dNativeBackpropInput DepthwiseConv2dNativeBackpropFilter AvgPool "
    "AvgPool3D AvgPoolGrad AvgPool3DGrad ResizeBilinear ResizeBilinearGrad "
    "ScatterNd TensorScatterAdd SegmentSum SegmentMean UnsortedSegmentSum "
    "SegmentSumV2 ResourceScatterAdd ResourceScatterNdAdd SparseSegmentSum "
    "SparseSegmentMean SparseSegmentSqrtN SparseSegmentSumWithNumSegments "
    "SparseSegmentMeanWithNumSegments SparseSegmentSqrtNWithNumSegments "
    "ResizeNearestNeighborGrad MaxPoolGrad MaxPool3DGrad MirrorPadGrad "
    "SparseSegmentSumGrad SparseSegmentMeanGrad SparseSegmentSqrtNGrad "
    "SparseSegmentSumGradV2 SparseSegmentMeanGradV2 SparseSegmentSqrtNGradV2 "
    "SparseTensorDenseMatMul _FusedConv2D _FusedMatMul "
    "TensorScatterSub ResourceScatterSub ResourceScatterNdSub EuclideanNorm L2Loss")
# Differences, which lose the digits of a small result: the unit is that of 1 at least.
ONE = _set("Elu Selu EluGrad SeluGrad Softplus Lgamma Digamma LogSoftmax Sin Cos Tan "
           "StatelessRandomNormal StatelessRandomNormalV2 StatelessTruncatedNormal "
           "StatelessTruncatedNormalV2 SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits")
# The unit is that of the largest element of the result.
TENSOR = _set(
    "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 FusedBatchNormGrad LRN LRNGrad "
    "FusedBatchNormGradV2 FusedBatchNormGradV3 ResizeBicubic ResizeBicubicGrad "
    "FFT FFT2D FFT3D IFFT IFFT2D IFFT3D RFFT RFFT2D RFFT3D IRFFT IRFFT2D IRFFT3D "
    "Cholesky MatrixTriangularSolve MatrixInverse MatrixSolve MatrixDeterminant "
    "CumulativeLogsumexp CropAndResizeGradBoxes AdjustContrastv2 AdjustHue "
    "AdjustSaturation HSVToRGB")
TENSOR_ULPS = 16
# The outputs that are compared, from the first. The others hand numbers from a kernel to
# that of the gradient, in a form that is private to the two.
PUBLIC_OUTPUTS = {"FusedBatchNorm": 3, "FusedBatchNormV2": 3, "FusedBatchNormV3": 3,
                  "FusedBatchNormGrad": 3, "FusedBatchNormGradV2": 3,
                  "FusedBatchNormGradV3": 3,
                  # The vectors, which the sweep does not request.
                  "SelfAdjointEigV2": 1, "Svd": 1}
# Wider types do not give a more exact result of the same function.
NO_WIDER = r"NextAfter|Bitcast|Stateless.*|.*Random.*"
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
    (r".*(Resource|Assign|Variable).*|AddN|ZerosLike", r"this TensorFlow .* lacks TF_",
     "A release of TensorFlow lacks a C function; the error names it and the remedy"),
    (r"TensorList.*", r"lists of bool only on its own devices",
     "TensorFlow supports lists of bool only on its own devices; the error names the "
     "remedy"),
    (r"TruncateDiv|TruncateMod|Mod", r"only integer div and mod should have errors",
     _ON_HOST + "; the result is 0"),
    (r"Stateless.*", r"Philox is the only random algorithm",
     "TensorFlow's CPU ignores the algorithm of an empty result"),
    (r"Stateless.*V2", r"counter shape",
     "TensorFlow's CPU does not check the size of the counter"),
    (r"AvgPool.*Grad", r"Expected grad shape",
     "TensorFlow's CPU does not check the shape of the gradient"),
    (r"Cast", r"Truncate=true is not implemented", "No Python function truncates"),
    (r"_FusedDepthwiseConv2dNative", r"must be 4-dimensional",
     "TensorFlow's CPU does not check the shapes"),
    (r"SparseTo.*|SparseTensorDense.*", r"out of bounds|out of order|is repeated",
     _ON_HOST + "; it reads 0, writes nothing"),
    (r".*(Gather|Scatter|Segment|Stitch|Partition).*",
     r"is not in \[0|out of range|does not index into|is out of bound|segment ids|"
     r"not increasing|not sorted|Partitions|Invalid number of segments", _ON_HOST + "; it reads 0, writes nothing"),
    (r"CropAndResize.*", r"box_index has values outside", _ON_HOST + "; the box is outside"),
    (r"Dilation2D.*", r"Computed output size would be negative",
     "TensorFlow's CPU accepts a filter without elements"),
    (r"ReverseSequence", r"seq_lens\(", _ON_HOST + "; it reads 0"),
    (r"SparseSoftmaxCrossEntropyWithLogits", r"label value",
     _ON_HOST + "; the loss is NaN"),
]
# Rows: a pattern of ops, a pattern of types, what is wrong on the CPU.
_WRONG_ON_THE_CPU = [
    (r"Round", r"u?int\d+", "TensorFlow's CPU rounds integers to 0"),
    (r"_FusedDepthwiseConv2dNative", r".*", "TensorFlow's CPU returns an empty output"),
    (r"BesselK1e", r"float64", "TensorFlow's CPU returns NaN for the smallest doubles"),
    (r"ClipByValue", r"uint32|uint64",
     "TensorFlow's CPU compares unsigned numbers as signed ones"),
    (r"Erf", r"float64", "TensorFlow's CPU returns NaN for an infinite double"),
]


def wrong_on_the_cpu(op, dtype):
    """Returns why a result of the CPU is not compared; "" if it is."""
    for ops, types, reason in _WRONG_ON_THE_CPU:
        if re.fullmatch(ops, op) and re.fullmatch(types, dtype):
            return reason
    return ""


def explanation(op, message):
    """Returns why only one of the two reports this error; "" if that is a mismatch."""
    for ops, pattern, reason in EXPLAINED:
        if re.fullmatch(ops, op) and re.search(pattern, message):
            return reason
    return ""
