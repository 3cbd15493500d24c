// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_EXECUTOR_BUILTINS_H_
#define TFPLUG_TESTING_INTERNAL_EXECUTOR_BUILTINS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/testing/host_device.h"
#include "tfplug/testing/node.h"
#include "tfplug/testing/tensor.h"

#pragma GCC visibility push(hidden)

// The ops that TensorFlow has on every device, because they compute nothing on
// it: those that pass a tensor on, and those of shapes.
namespace tfplug::testing {

// A tensor on a device, or on the host if that is null.
struct Located {
  std::optional<TF_Tensor> tensor;
  HostDevice* device = nullptr;
};

// Returns the tensor on `to`, or in host memory if that is null.
inline absl::StatusOr<TF_Tensor> MoveTo(const Located& value, HostDevice* to) {
  if (value.device == to) return *value.tensor;
  if (to == nullptr) return value.device->CopyToHost(*value.tensor, false);
  if (value.device == nullptr) return to->CopyFromHost(*value.tensor);
  return value.device->CopyTo(*to, *value.tensor, false);
}

// Returns the number of inputs of an op; -1 if it is no such op.
inline int BuiltinInputs(absl::string_view op) {
  for (const absl::string_view name :
       {"Identity", "StopGradient", "PreventGradient", "Snapshot", "_Retval",
        "Shape", "Squeeze"}) {
    if (op == name) return 1;
  }
  if (op == "Reshape" || op == "ExpandDims") return 2;
  const bool is_source =
      op == "Const" || op == "Placeholder" || op == "_Arg" || op == "NoOp";
  return is_source ? 0 : -1;
}

// Returns the elements of an int32 or int64 tensor.
inline absl::StatusOr<std::vector<int64_t>> ReadIntegers(const Located& value) {
  TFPLUG_ASSIGN_OR_RETURN(const TF_Tensor host, MoveTo(value, nullptr));
  if (host.dtype == capi::TF_INT64) {
    return ReadTensor<int64_t>(nullptr, host)->elements;
  }
  if (host.dtype != capi::TF_INT32) {
    return absl::InvalidArgumentError("a shape or axis is not an integer");
  }
  const auto narrow = ReadTensor<int32_t>(nullptr, host)->elements;
  return std::vector<int64_t>(narrow.begin(), narrow.end());
}

inline absl::StatusOr<std::vector<int64_t>> Reshaped(
    const TF_Tensor& tensor, std::vector<int64_t> shape) {
  const auto unknown = std::find(shape.begin(), shape.end(), -1);
  if (unknown != shape.end()) {
    *unknown = 1;
    const int64_t rest = CountElements(shape);
    if (rest != 0) *unknown = tensor.size() / rest;
  }
  const bool is_negative =
      std::any_of(shape.begin(), shape.end(), [](int64_t d) { return d < 0; });
  if (is_negative || CountElements(shape) != tensor.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of ", tensor.size(),
                     " elements cannot have the requested shape"));
  }
  return shape;
}

inline absl::StatusOr<std::vector<int64_t>> Squeezed(
    const TF_Tensor& tensor, const std::vector<int64_t>& axes) {
  const auto rank = static_cast<int64_t>(tensor.dims.size());
  std::vector<bool> is_removed(tensor.dims.size());
  for (size_t i = 0; i < is_removed.size(); ++i) {
    is_removed[i] = axes.empty() && tensor.dims[i] == 1;
  }
  for (int64_t axis : axes) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || tensor.dims[static_cast<size_t>(axis)] != 1)
      return absl::InvalidArgumentError("Squeeze of an axis that is not 1");
    is_removed[static_cast<size_t>(axis)] = true;
  }
  std::vector<int64_t> shape;
  for (size_t i = 0; i < is_removed.size(); ++i) {
    if (!is_removed[i]) shape.push_back(tensor.dims[i]);
  }
  return shape;
}

template <class T>
T AttrOr(const Node& node, const std::string& name, T otherwise) {
  const auto found = node.attrs.find(name);
  if (found == node.attrs.end()) return otherwise;
  const T* const value = std::get_if<T>(&found->second);
  return value == nullptr ? otherwise : *value;
}

// Returns the output of an op with inputs. It has the buffer of the first input,
// except that of Shape, which is in host memory.
inline absl::StatusOr<Located> RunBuiltin(const Node& node,
                                          std::vector<Located> inputs) {
  Located output = inputs[0];
  std::vector<int64_t>& dims = output.tensor->dims;
  if (node.op == "Shape") {
    const auto type = AttrOr(node, "out_type", DataType::kInt32);
    const std::vector<int64_t> rank = {static_cast<int64_t>(dims.size())};
    if (type == DataType::kInt64) {
      return Located{MakeTensor<int64_t>(rank, dims), nullptr};
    }
    return Located{MakeTensor<int32_t>(
                       rank, std::vector<int32_t>(dims.begin(), dims.end())),
                   nullptr};
  }
  if (node.op == "Squeeze") {
    const auto axes = AttrOr(node, "squeeze_dims", std::vector<int64_t>());
    TFPLUG_ASSIGN_OR_RETURN(dims, Squeezed(*inputs[0].tensor, axes));
  } else if (node.op == "Reshape") {
    TFPLUG_ASSIGN_OR_RETURN(auto shape, ReadIntegers(inputs[1]));
    TFPLUG_ASSIGN_OR_RETURN(dims,
                            Reshaped(*inputs[0].tensor, std::move(shape)));
  } else if (node.op == "ExpandDims") {
    TFPLUG_ASSIGN_OR_RETURN(const auto axes, ReadIntegers(inputs[1]));
    const auto rank = static_cast<int64_t>(dims.size());
    const int64_t axis = axes.size() != 1 ? -1
                         : axes[0] < 0    ? axes[0] + rank + 1
                                          : axes[0];
    if (axis < 0 || axis > rank) {
      return absl::InvalidArgumentError("ExpandDims has no such axis");
    }
    dims.insert(dims.begin() + axis, 1);
  }
  return output;
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_EXECUTOR_BUILTINS_H_
