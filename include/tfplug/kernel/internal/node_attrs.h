// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_NODE_ATTRS_H_
#define TFPLUG_KERNEL_INTERNAL_NODE_ATTRS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/buffer.h"
#include "tfplug/base/capability.h"
#include "tfplug/base/internal/node_def.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/status.h"

#pragma GCC visibility push(hidden)

namespace tfplug::kernel_internal {

// The attributes of the node that a kernel is constructed for.
class NodeAttrs {
 public:
  explicit NodeAttrs(capi::TF_OpKernelConstruction* construction)
      : construction_(construction) {}

  capi::TF_OpKernelConstruction* construction() const { return construction_; }

  bool Has(const char* attr) const {
    OwnedStatus status;
    return internal::tensorflow.TF_OpKernelConstruction_HasAttr(
        construction_, attr, status.get());
  }

  absl::StatusOr<Buffer> GetNodeDef() const {
    const auto function = &CApi::TF_OpKernelConstruction_GetNodeDef;
    if (auto s = Require(function); !s.ok()) return s;
    OwnedStatus status;
    Buffer node((internal::tensorflow.*function)(construction_, status.get()));
    if (!status.ok()) return status.ToStatus();
    return node;
  }

  // Calls `function(construction, attr, arguments..., status)`.
  template <class... Parameters, class... Arguments>
  absl::Status Call(void (*CApi::*function)(capi::TF_OpKernelConstruction*,
                                            const char*, Parameters...),
                    const char* attr, Arguments... arguments) const {
    if (auto s = Require(function); !s.ok()) return s;
    OwnedStatus status;
    (internal::tensorflow.*function)(construction_, attr, arguments...,
                                     status.get());
    return status.ToStatus();
  }

  // The results of TF_OpKernelConstruction_GetAttrSize.
  struct Sizes {
    int32_t list = 0;   // Number of elements; -1 if it is not a list.
    int32_t total = 0;  // Bytes of strings, or dimensions of shapes.
  };
  absl::StatusOr<Sizes> GetSizes(const char* attr) const {
    Sizes sizes;
    absl::Status status = Call(&CApi::TF_OpKernelConstruction_GetAttrSize, attr,
                               &sizes.list, &sizes.total);
    if (!status.ok()) return status;
    return sizes;
  }
  // Returns the sizes of a list attribute; an error if it is not a list.
  absl::StatusOr<Sizes> GetListSizes(const char* attr) const {
    auto sizes = GetSizes(attr);
    if (sizes.ok() && sizes->list < 0) return WrongKindError();
    return sizes;
  }

  // Returns the attribute's serialized AttrValue, which points into `*node`.
  absl::StatusOr<absl::string_view> GetValue(const char* attr,
                                             Buffer* node) const {
    auto node_def = GetNodeDef();
    if (!node_def.ok()) return node_def.status();
    *node = *std::move(node_def);
    const auto value = internal::FindAttr(node->bytes(), attr);
    if (!value.has_value())
      return absl::NotFoundError("the node has no such attribute");
    return *value;
  }

  static absl::Status WrongKindError() {
    return absl::InvalidArgumentError("the attribute has another type");
  }

  // Returns `failure`, the error of reading `attr` as `kind`, with both names
  // added to its message.
  absl::Status Explain(const char* attr, const char* kind,
                       const absl::Status& failure) const {
    std::string message =
        std::string("cannot read attribute '") + attr + "' as " + kind + ": ";
    if (!Has(attr)) {
      const absl::StatusOr<Buffer> node = GetNodeDef();
      message += "the node has no such attribute";
      if (node.ok()) message += internal::DescribeAttrNames(node->bytes());
      return absl::NotFoundError(message);
    }
    return absl::Status(failure.code(),
                        message + std::string(failure.message()));
  }

 private:
  capi::TF_OpKernelConstruction* const construction_;
};

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_NODE_ATTRS_H_
