// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_DEFAULT_KERNELS_H_
#define TFPLUG_KERNEL_DEFAULT_KERNELS_H_

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#pragma GCC visibility push(hidden)

// The ops for which TensorFlow registers kernels for the device type DEFAULT,
// which run on every device.
namespace tfplug::kernel {

// Returns whether a text " A B C " contains the word.
inline bool ContainsWord(absl::string_view text, absl::string_view word) {
  return absl::StrContains(text, absl::StrCat(" ", word, " "));
}

// Returns whether TensorFlow computes the op on the host for int32: the
// arithmetic of shapes. The int32 tensors of such ops are in host memory.
inline bool HasHostKernel(absl::string_view op) {
  return ContainsWord(
      " Abs Add AddN AddV2 Concat ConcatV2 Div Equal Fill FloorDiv FloorMod"
      " Greater GreaterEqual Less LessEqual Max Maximum Min Minimum Mod Mul Neg"
      " NotEqual OnesLike Range Sign Slice Square SquaredDifference Sub"
      " TruncateMod Unpack ZerosLike ",
      op);
}

// Returns whether TensorFlow runs the op on every device for all types: it
// reads shapes, forwards buffers, or controls what else runs.
inline bool RunsOnEveryDevice(absl::string_view op) {
  return ContainsWord(
      " Assert AssignVariableOp BroadcastArgs BroadcastGradientArgs Case"
      " ConcatOffset DestroyResourceOp EnsureShape ExpandDims If"
      " IsVariableInitialized PreventGradient Rank ReadVariableOp Reshape Shape"
      " ShapeN Size Squeeze StatelessCase StatelessIf StatelessWhile"
      " StopGradient VarIsInitializedOp VariableShape While ",
      op);
}

}  // namespace tfplug::kernel

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_DEFAULT_KERNELS_H_
