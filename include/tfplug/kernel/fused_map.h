// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_FUSED_MAP_H_
#define TFPLUG_KERNEL_FUSED_MAP_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/kernel/op_def.h"

#pragma GCC visibility push(hidden)

// What the pass FuseElementwise (passes/fuse_elementwise.h) and the kernel of
// the op that it creates (op_kernels/fused_map.h) have in common.
namespace tfplug {

// A cluster of element-wise ops. Its values are numbered: first the inputs,
// then one for each step.
struct FusedMap {
  // One of TensorFlow's ops, or a constant, as which the op is "Const".
  struct Step {
    std::string op;
    // The attribute T of the op, DstT of a Cast, or the type of a constant.
    DataType type = DataType::kFloat;
    std::vector<int> args;  // values
    // The bits of a constant as in Instruction::bits, or of the op's float
    // attribute as a double.
    uint64_t bits = 0;

    friend bool operator==(const Step& a, const Step& b) {
      return a.op == b.op && a.type == b.type && a.args == b.args &&
             a.bits == b.bits;
    }
  };

  std::vector<DataType> inputs;
  std::vector<Step> steps;
  std::vector<int> results;  // the value of each output

  // Return a step as a text, "AddV2:float 0 1" or "Const:float =0", and the
  // step of such a text. INVALID_ARGUMENT for another text.
  static std::string ToText(const Step& step);
  static absl::StatusOr<Step> ParseStep(absl::string_view text);
};

// The op's name carries the version of its attributes, so that plug-ins made
// with different versions of tfplug share a process.
inline constexpr char kFusedMapOp[] = "TfplugFusedMapV1";

// The definition of the op. Its inputs are broadcast as the steps' ops do.
inline OpDef FusedMapOp() {
  return OpDef(kFusedMapOp)
      .Attr("Tin: list(type) >= 1")
      .Attr("Tout: list(type) >= 1")
      .Attr("steps: list(string) >= 1")
      .Attr("results: list(int) >= 1")
      .Input("inputs: Tin")
      .Output("outputs: Tout")
      .AllowExisting();
}

// The names of a FusedMap's attributes: its inputs' types, its steps' texts and
// its results.
struct FusedMapAttrs {
  const char *types, *steps, *results;
};
inline constexpr FusedMapAttrs kFusedMapAttrs = {"Tin", "steps", "results"};

// A reduction, the op `reduce` with the other attributes, of the only result of
// a FusedMap, and a second FusedMap, whose first input is the reduction;
// Tafter has the types of the others. Either may have no steps.
inline constexpr char kFusedReduceOp[] = "TfplugFusedReduceV2";
inline constexpr FusedMapAttrs kAfterReduceAttrs = {"Tafter", "after_steps",
                                                    "after_results"};

inline OpDef FusedReduceOp() {
  return OpDef(kFusedReduceOp)
      .Attr("Tin: list(type) >= 1")
      .Attr("steps: list(string) >= 0")
      .Attr("results: list(int) >= 1")
      .Attr("reduce: string")
      .Attr("T: type")
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .Attr("keep_dims: bool = false")
      .Attr("Tafter: list(type) >= 0")
      .Attr("Tout: list(type) >= 1")
      .Attr("after_steps: list(string) >= 0")
      .Attr("after_results: list(int) >= 1")
      .Input("inputs: Tin")
      .Input("axes: Tidx")
      .Input("after: Tafter")
      .Output("outputs: Tout")
      .AllowExisting();
}

// A matrix product, MatMul or, if is_batch, BatchMatMulV2, and the steps of a
// FusedMap whose first input it is; Tin has the types of the others.
inline constexpr char kFusedMatMulOp[] = "TfplugFusedMatMulV1";

inline OpDef FusedMatMulOp() {
  return OpDef(kFusedMatMulOp)
      .Attr("T: type")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 1")
      .Attr("steps: list(string) >= 1")
      .Attr("results: list(int) >= 1")
      .Attr("is_batch: bool")
      .Attr("transpose_a: bool")
      .Attr("transpose_b: bool")
      .Input("a: T")
      .Input("b: T")
      .Input("inputs: Tin")
      .Output("outputs: Tout")
      .AllowExisting();
}

namespace kernel {

// An op that the library's backend computes element by element.
struct FusableOp {
  const char* op;
  // The types that its kernels support, as bits of TF_DataType, and the
  // attribute with the type; null if all tensors are bool.
  uint64_t types;
  const char* type_attr;
  const char* attr;  // a float, or null
  // Whether it must be known that all inputs have the same shape.
  bool needs_equal_shapes;
  bool gives_bool;  // whatever the type of its inputs
};

// Filled while the library is loaded, before any pass or kernel runs.
inline std::vector<FusableOp>& FusableOps() {
  static auto* const ops = new std::vector<FusableOp>;
  return *ops;
}

}  // namespace kernel

inline std::string FusedMap::ToText(const Step& step) {
  std::string text = step.op + ":" + DataTypeName(step.type);
  for (int arg : step.args) text += " " + std::to_string(arg);
  if (step.bits != 0 || step.args.empty()) {
    text += " =" + std::to_string(step.bits);
  }
  return text;
}

inline absl::StatusOr<FusedMap::Step> FusedMap::ParseStep(
    absl::string_view text) {
  const auto wrong = [&] {
    return absl::InvalidArgumentError("\"" + std::string(text) +
                                      "\" is no step of a fused op");
  };
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  const std::pair<absl::string_view, absl::string_view> head =
      absl::StrSplit(words[0], absl::MaxSplits(':', 1));
  Step step;
  step.op = std::string(head.first);
  step.type = DataType(0);
  for (int i = 1; i < internal::kDataTypeCount; ++i) {
    if (internal::kDataTypes[i].name == head.second) {
      step.type = static_cast<DataType>(i);
    }
  }
  if (step.op.empty() || step.type == DataType(0)) return wrong();
  for (size_t i = 1; i < words.size(); ++i) {
    const bool has_bits = words[i].substr(0, 1) == "=";
    if (!has_bits) step.args.push_back(-1);
    if (!(has_bits ? absl::SimpleAtoi(words[i].substr(1), &step.bits)
                   : absl::SimpleAtoi(words[i], &step.args.back()))) {
      return wrong();
    }
  }
  return step;
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_FUSED_MAP_H_
