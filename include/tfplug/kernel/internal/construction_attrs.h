// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_CONSTRUCTION_ATTRS_H_
#define TFPLUG_KERNEL_INTERNAL_CONSTRUCTION_ATTRS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/buffer.h"
#include "tfplug/base/capability.h"
#include "tfplug/base/internal/node_def.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/status.h"

namespace tfplug::internal {

// The attributes of the node that a kernel is made for, as core gives them.
class AttrSource {
 public:
  explicit AttrSource(capi::TF_OpKernelConstruction* construction)
      : construction_(construction) {}

  capi::TF_OpKernelConstruction* construction() const { return construction_; }

  bool Has(const char* attr) const {
    OwnedStatus status;
    return tensorflow.TF_OpKernelConstruction_HasAttr(construction_, attr,
                                                      status.get());
  }

  absl::StatusOr<Buffer> NodeDef() const {
    const auto function = &CApi::TF_OpKernelConstruction_GetNodeDef;
    if (auto s = Require(function); !s.ok()) return s;
    OwnedStatus status;
    Buffer node((tensorflow.*function)(construction_, status.get()));
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
    (tensorflow.*function)(construction_, attr, arguments..., status.get());
    return status.ToStatus();
  }

  // TF_OpKernelConstruction_GetAttrSize.
  struct AttrSizes {
    int32_t list = 0;   // How many elements; -1: not a list.
    int32_t total = 0;  // Bytes of strings, or dimensions of shapes.
  };
  absl::StatusOr<AttrSizes> Sizes(const char* attr) const {
    AttrSizes sizes;
    absl::Status status = Call(&CApi::TF_OpKernelConstruction_GetAttrSize, attr,
                               &sizes.list, &sizes.total);
    if (!status.ok()) return status;
    return sizes;
  }
  // The same for what must be a list.
  absl::StatusOr<AttrSizes> ListSizes(const char* attr) const {
    auto sizes = Sizes(attr);
    if (sizes.ok() && sizes->list < 0) return WrongKind();
    return sizes;
  }

  // The attribute's serialised AttrValue, which lives in `*node`.
  absl::StatusOr<absl::string_view> Value(const char* attr,
                                          Buffer* node) const {
    auto made = NodeDef();
    if (!made.ok()) return made.status();
    *node = *std::move(made);
    const auto value = FindAttr(node->bytes(), attr);
    if (!value.has_value()) return absl::NotFoundError("it is absent");
    return *value;
  }

  static absl::Status WrongKind() {
    return absl::InvalidArgumentError("it is of another kind");
  }

  // `failure` of reading `attr` as `kind`, in words that name both.
  absl::Status Explain(const char* attr, const char* kind,
                       const absl::Status& failure) const {
    std::string message =
        std::string("attribute '") + attr + "', as " + kind + ": ";
    if (!Has(attr)) {
      return absl::NotFoundError(message + "the node has no such attribute");
    }
    return absl::Status(failure.code(),
                        message + std::string(failure.message()));
  }

 private:
  capi::TF_OpKernelConstruction* const construction_;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_KERNEL_INTERNAL_CONSTRUCTION_ATTRS_H_
