// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_GRAPH_PROPERTIES_H_
#define TFPLUG_GRAPH_GRAPH_PROPERTIES_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tfplug/base/buffer.h"
#include "tfplug/base/capability.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/node_def.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/base/shape.h"
#include "tfplug/base/status.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The type and shape of an input or output of a node, as far as they are known
// before the graph runs.
struct TensorProperties {
  DataType dtype = DataType(0);  // 0: unknown.
  PartialShape shape;

  // Parses a serialized tensorflow.OpInfo.TensorProperties.
  static TensorProperties Parse(absl::string_view bytes) {
    TensorProperties properties;
    for (internal::WireReader field(bytes); field.Next();) {
      if (field.Is(1, internal::kVarintType)) {
        properties.dtype = static_cast<DataType>(field.varint());
      }
    }
    properties.shape =
        internal::ParseShape(internal::MessageField(bytes, 2).value_or(""));
    return properties;
  }

  friend bool operator==(const TensorProperties& a, const TensorProperties& b) {
    return a.dtype == b.dtype && a.shape == b.shape;
  }
};

// The types and shapes of a graph's inputs and outputs. TensorFlow infers them
// for the whole graph at the first call; they are read node by node and cached.
// Not thread-safe.
//
// The inference uses the graph as it was before the passes. A node that a pass
// adds has no properties (NOT_FOUND) until the pass sets them. A node that a
// pass changes keeps the original properties until the pass sets or forgets
// them.
class GraphProperties {
 public:
  using List = std::vector<TensorProperties>;

  // `item` must outlive this object.
  explicit GraphProperties(const capi::TF_GrapplerItem* item) : item_(item) {}

  // Return the properties of each output, or of each data input, of the node.
  // NOT_FOUND for a node that a pass added, or that has no outputs (inputs).
  // The result is valid until the node's properties are set or forgotten.
  absl::StatusOr<absl::Span<const TensorProperties>> GetOutputs(
      absl::string_view node) const {
    return Find(kOutputs, node);
  }
  absl::StatusOr<absl::Span<const TensorProperties>> GetInputs(
      absl::string_view node) const {
    return Find(kInputs, node);
  }

  // Returns the value of an output, as a serialized tensorflow.TensorProto, if
  // TensorFlow infers that it is the same in every run; otherwise NOT_FOUND.
  // The first call runs TensorFlow's inference again, with values.
  absl::StatusOr<std::string> GetConstantValue(absl::string_view node,
                                               int output) const {
    if (forgotten_.count(node) > 0 || set_[kOutputs].count(node) > 0) {
      return Unknown(node, "output");
    }
    auto inferred = Infer(with_values_, true);
    if (!inferred.ok()) return inferred.status();
    auto buffers = Read(*inferred, kOutputs, std::string(node));
    if (!buffers.ok()) return buffers.status();
    if (output >= 0 && static_cast<size_t>(output) < buffers->size()) {
      auto value = internal::MessageField(
          (*buffers)[static_cast<size_t>(output)].bytes(), 3);
      if (value.has_value()) return *std::move(value);
    }
    return absl::NotFoundError("TensorFlow infers no constant for output " +
                               std::to_string(output) + " of node '" +
                               std::string(node) + "'");
  }

  // Set the properties of the outputs and inputs of a node that a pass adds or
  // changes.
  void SetOutputs(absl::string_view node, List properties) {
    set_[kOutputs][std::string(node)] = std::move(properties);
  }
  void SetInputs(absl::string_view node, List properties) {
    set_[kInputs][std::string(node)] = std::move(properties);
  }
  // Makes the properties of the node unknown.
  void Forget(absl::string_view node) {
    for (auto& properties : set_) properties.erase(std::string(node));
    forgotten_.insert(std::string(node));
  }

 private:
  enum Side { kInputs, kOutputs };
  struct Deleter {
    void operator()(capi::TF_GraphProperties* properties) const {
      internal::tensorflow.TF_DeleteGraphProperties(properties);
    }
  };
  struct Inference {
    std::optional<absl::Status> status;  // Set when the inference has run.
    std::unique_ptr<capi::TF_GraphProperties, Deleter> properties;
  };
  using ByName = std::map<std::string, List, std::less<>>;

  absl::StatusOr<absl::Span<const TensorProperties>> Find(
      Side side, absl::string_view node) const {
    const char* const what = side == kInputs ? "input" : "output";
    if (auto it = set_[side].find(node); it != set_[side].end()) {
      return absl::MakeConstSpan(it->second);
    }
    if (forgotten_.count(node) > 0) return Unknown(node, what);
    ByName& read = read_[side];
    auto it = read.find(node);
    if (it == read.end()) {
      auto inferred = Infer(without_values_, false);
      if (!inferred.ok()) return inferred.status();
      std::string name(node);
      auto buffers = Read(*inferred, side, name);
      if (!buffers.ok()) return buffers.status();
      List list;
      for (const Buffer& buffer : *buffers) {
        list.push_back(TensorProperties::Parse(buffer.bytes()));
      }
      it = read.emplace(std::move(name), std::move(list)).first;
    }
    if (it->second.empty()) return Unknown(node, what);
    return absl::MakeConstSpan(it->second);
  }

  static absl::Status Unknown(absl::string_view node, const char* what) {
    return absl::NotFoundError(
        std::string("TensorFlow has no properties of the ") + what +
        "s of node '" + std::string(node) + "': the node has no " + what +
        "s, or a pass added or changed it without setting its properties");
  }

  absl::StatusOr<capi::TF_GraphProperties*> Infer(Inference& inference,
                                                  bool values) const {
    if (!inference.status.has_value()) {
      inference.status = [&]() -> absl::Status {
        if (auto s = Require(&CApi::TF_NewGraphProperties); !s.ok()) return s;
        if (auto s = Require(&CApi::TF_InferStatically); !s.ok()) return s;
        inference.properties.reset(
            internal::tensorflow.TF_NewGraphProperties(item_));
        if (inference.properties == nullptr) {
          return absl::ResourceExhaustedError(
              "out of memory: TF_NewGraphProperties returned null");
        }
        const OwnedStatus status;
        internal::tensorflow.TF_InferStatically(
            inference.properties.get(), /*assume_valid_feeds=*/false,
            /*aggressive_shape_inference=*/false,
            /*include_input_tensor_values=*/false,
            /*include_output_tensor_values=*/values, status.get());
        return status.ToStatus();
      }();
      if (!inference.status->ok()) inference.properties.reset();
    }
    if (!inference.status->ok()) return *inference.status;
    return inference.properties.get();
  }

  // Returns a serialized OpInfo.TensorProperties for each input or output.
  static absl::StatusOr<std::vector<Buffer>> Read(
      capi::TF_GraphProperties* properties, Side side,
      const std::string& node) {
    const auto size = side == kInputs ? &CApi::TF_GetInputPropertiesListSize
                                      : &CApi::TF_GetOutputPropertiesListSize;
    const auto list = side == kInputs ? &CApi::TF_GetInputPropertiesList
                                      : &CApi::TF_GetOutputPropertiesList;
    if (auto s = Require(size); !s.ok()) return s;
    if (auto s = Require(list); !s.ok()) return s;
    const OwnedStatus status;
    int count = 0;
    (internal::tensorflow.*size)(properties, node.c_str(), &count,
                                 status.get());
    if (!status.ok()) return status.ToStatus();
    std::vector<Buffer> buffers;
    std::vector<capi::TF_Buffer*> handles;  // TensorFlow fills each one.
    for (int i = 0; i < count; ++i) {
      auto buffer = Buffer::New();
      if (!buffer.ok()) return buffer.status();
      handles.push_back(buffer->get());
      buffers.push_back(*std::move(buffer));
    }
    (internal::tensorflow.*list)(properties, node.c_str(), handles.data(),
                                 count, status.get());
    if (!status.ok()) return status.ToStatus();
    return buffers;
  }

  const capi::TF_GrapplerItem* const item_;
  mutable Inference without_values_, with_values_;
  mutable ByName read_[2];
  ByName set_[2];
  std::set<std::string, std::less<>> forgotten_;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_GRAPH_PROPERTIES_H_
