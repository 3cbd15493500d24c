// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_RUNTIME_HANDLES_H_
#define TFPLUG_RUNTIME_HANDLES_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tfplug/abi/functions.h"
#include "tfplug/base/internal/node_def.h"
#include "tfplug/base/status.h"
#include "tfplug/runtime/constructed_node.h"
#include "tfplug/runtime/run_observer.h"

#pragma GCC visibility push(hidden)

namespace tfplug::runtime {

// TensorFlow's functions, which those of dispatch.h replace in the table.
inline capi::Functions original;

// The construction of a kernel in a region.
class NodeConstruction final : public ConstructedNode {
 public:
  // Both views must outlive this object.
  NodeConstruction(absl::string_view name, absl::string_view node_def)
      : name_(name), node_def_(node_def) {}

  capi::TF_OpKernelConstruction* handle() {
    return ToHandle<capi::TF_OpKernelConstruction>(this);
  }

  absl::string_view name() const override { return name_; }
  std::string NodeDef() const override { return std::string(node_def_); }
  std::optional<std::string> FindAttr(absl::string_view attr) const override {
    const auto value = internal::FindAttr(node_def_, attr);
    if (!value.has_value()) return std::nullopt;
    return std::string(*value);
  }
  const capi::Functions& tensorflow() const override { return original; }

  static void Failure(NodeConstruction& self, capi::TF_Status* status) {
    self.failure.Update(ToStatus(status));
  }
  // The first failure that the kernel reports.
  absl::Status failure;

 private:
  const absl::string_view name_, node_def_;
};

}  // namespace tfplug::runtime

#pragma GCC visibility pop

#endif  // TFPLUG_RUNTIME_HANDLES_H_
