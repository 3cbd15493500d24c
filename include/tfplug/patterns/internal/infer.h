// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_INFER_H_
#define TFPLUG_PATTERNS_INTERNAL_INFER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/graph/attr_value.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/graph/node.h"
#include "tfplug/graph/op_signature.h"

#pragma GCC visibility push(hidden)

// Types of values, and the attributes that follow from the types and the
// number of a node's inputs.
namespace tfplug::patterns_internal {

// Returns the type of output `port` of a node with this signature; nothing if
// it is unknown. get_raw_attr(name) returns a serialized AttrValue.
template <class F>
std::optional<DataType> FindOutputType(const OpSignature& signature, int port,
                                       const F& get_raw_attr) {
  int64_t left = port;
  for (const OpSignature::Arg& output : signature.outputs) {
    if (!output.type_list_attr.empty()) {
      const auto types = graph::AttrCodec<std::vector<DataType>>::Decode(
          get_raw_attr(output.type_list_attr));
      if (!types.has_value()) return std::nullopt;
      const auto count = static_cast<int64_t>(types->size());
      if (left < count) return (*types)[static_cast<size_t>(left)];
      left -= count;
      continue;
    }
    int64_t count = 1;
    if (!output.number_attr.empty()) {
      const auto number =
          graph::AttrCodec<int64_t>::Decode(get_raw_attr(output.number_attr));
      if (!number.has_value()) return std::nullopt;
      count = *number;
    }
    if (left < count) {
      if (output.type_attr.empty()) return output.type;
      return graph::AttrCodec<DataType>::Decode(get_raw_attr(output.type_attr));
    }
    left -= count;
  }
  return std::nullopt;
}

// Returns the type of a value in the graph, from the attributes of its node, or
// else from TensorFlow's inference.
inline std::optional<DataType> FindType(const Output& value,
                                        const PassContext& context) {
  if (const auto signature = context.functions().GetSignature(value.node.op());
      signature.ok()) {
    const auto type = FindOutputType(
        **signature, value.port,
        [&](absl::string_view name) { return value.node.RawAttr(name); });
    if (type.has_value()) return type;
  }
  const auto outputs = context.properties().GetOutputs(value.node.name());
  const auto port = static_cast<size_t>(value.port);
  if (!outputs.ok() || port >= outputs->size()) return std::nullopt;
  const DataType type = (*outputs)[port].dtype;
  if (type == DataType(0)) return std::nullopt;
  return type;
}

// Finds the inputs of each argument of an op. At most one argument, a list, may
// be of unknown length.
class InputLayout {
 public:
  // get_raw_attr(name) returns the serialized AttrValue of a length or a list
  // of types; null data if it is unknown.
  template <class F>
  InputLayout(const OpSignature& signature, size_t num_inputs,
              const F& get_raw_attr) {
    size_t known = 0, unknown = signature.inputs.size();
    for (size_t i = 0; i < signature.inputs.size(); ++i) {
      const OpSignature::Arg& arg = signature.inputs[i];
      std::optional<size_t> count = CountOf(arg, get_raw_attr);
      if (!count.has_value() && unknown != signature.inputs.size()) return;
      if (!count.has_value()) unknown = i;
      known += count.value_or(0);
      counts_.push_back(count.value_or(0));
    }
    if (known > num_inputs) return;
    if (unknown < counts_.size()) {
      counts_[unknown] = num_inputs - known;
    } else if (known != num_inputs) {
      return;
    }
    is_known_ = true;
  }

  bool is_known() const { return is_known_; }
  // Returns the index of the argument's first input, and their number.
  std::pair<size_t, size_t> InputsOf(size_t arg) const {
    size_t first = 0;
    for (size_t i = 0; i < arg; ++i) first += counts_[i];
    return {first, counts_[arg]};
  }

 private:
  template <class F>
  static std::optional<size_t> CountOf(const OpSignature::Arg& arg,
                                       const F& get_raw_attr) {
    if (!arg.type_list_attr.empty()) {
      const auto types = graph::AttrCodec<std::vector<DataType>>::Decode(
          get_raw_attr(arg.type_list_attr));
      if (!types.has_value()) return std::nullopt;
      return types->size();
    }
    if (arg.number_attr.empty()) return 1;
    const auto number =
        graph::AttrCodec<int64_t>::Decode(get_raw_attr(arg.number_attr));
    if (!number.has_value() || *number < 0) return std::nullopt;
    return static_cast<size_t>(*number);
  }

  bool is_known_ = false;
  std::vector<size_t> counts_;
};

// Returns the serialized AttrValue of attribute `attr` of an op with inputs of
// these types (0: unknown); nothing if they do not determine it.
inline std::optional<std::string> InferAttr(const OpSignature& signature,
                                            const InputLayout& layout,
                                            const std::vector<DataType>& types,
                                            absl::string_view attr) {
  if (!layout.is_known()) return std::nullopt;
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    const OpSignature::Arg& arg = signature.inputs[i];
    const auto [first, count] = layout.InputsOf(i);
    if (arg.number_attr == attr) {
      return graph::AttrCodec<int64_t>::Encode(static_cast<int64_t>(count));
    }
    if (arg.type_attr == attr && count > 0 && types[first] != DataType(0)) {
      return graph::AttrCodec<DataType>::Encode(types[first]);
    }
    if (arg.type_list_attr == attr) {
      const auto begin = types.begin() + static_cast<std::ptrdiff_t>(first);
      const std::vector<DataType> list(
          begin, begin + static_cast<std::ptrdiff_t>(count));
      for (DataType type : list) {
        if (type == DataType(0)) return std::nullopt;
      }
      return graph::AttrCodec<std::vector<DataType>>::Encode(list);
    }
  }
  return std::nullopt;
}

}  // namespace tfplug::patterns_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_INFER_H_
