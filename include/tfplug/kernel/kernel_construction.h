// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_KERNEL_CONSTRUCTION_H_
#define TFPLUG_KERNEL_KERNEL_CONSTRUCTION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/abi/tf_string_view.h"
#include "tfplug/base/buffer.h"
#include "tfplug/base/internal/node_def.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/status.h"
#include "tfplug/kernel/attributes.h"
#include "tfplug/kernel/internal/op_attr_types.h"

namespace tfplug {

// The node that a kernel is made for (TF_OpKernelConstruction). Lives during
// the kernel's construction only.
class KernelConstruction {
 public:
  explicit KernelConstruction(capi::TF_OpKernelConstruction* construction)
      : construction_(construction) {}
  KernelConstruction(const KernelConstruction&) = delete;
  KernelConstruction& operator=(const KernelConstruction&) = delete;

  // The node's name.
  absl::string_view name() const {
    const capi::TF_StringView name =
        internal::tensorflow.TF_OpKernelConstruction_GetName(construction_);
    return absl::string_view(name.data, name.len);
  }
  // The op's name, "" before 2.11. It takes a walk through the whole NodeDef.
  std::string op() const {
    const auto node = node_def();
    return node.ok() ? std::string(internal::NodeDefOp(node->bytes())) : "";
  }
  // The node as a serialised tensorflow.NodeDef. Since 2.11.
  absl::StatusOr<Buffer> node_def() const {
    return internal::AttrSource(construction_).NodeDef();
  }

  bool HasAttr(const char* attr) const {
    return internal::AttrSource(construction_).Has(attr);
  }

  // The attribute `attr` as T: bool, int32_t, int64_t, float, DataType,
  // std::string, Shape, PartialShape, Tensor, Function, or a std::vector of
  // these. NOT_FOUND if it is not there, INVALID_ARGUMENT if it is of another
  // kind or does not fit; what becomes of the kernel names op, node and
  // attribute.
  template <class T>
  absl::StatusOr<T> GetAttr(const char* attr) const {
    const internal::AttrSource source(construction_);
    absl::StatusOr<T> value = internal::AttrReader<T>::Read(source, attr);
    if (!value.ok()) {
      return source.Explain(attr, internal::AttrReader<T>::kKind,
                            value.status());
    }
    return value;
  }

  // An attribute of a typed op, such as ops::Conv2D::strides, as what it is: an
  // int as int64_t, a shape as PartialShape.
  template <class E, class = internal::IfOpEnum<E>>
  absl::StatusOr<internal::AttrType<E>> GetAttr(E attr) const {
    return GetAttr<internal::AttrType<E>>(internal::NameOf(attr));
  }
  template <class E, class = internal::IfOpEnum<E>>
  bool HasAttr(E attr) const {
    return HasAttr(internal::NameOf(attr));
  }

  capi::TF_OpKernelConstruction* get() const { return construction_; }

 private:
  capi::TF_OpKernelConstruction* const construction_;
};

}  // namespace tfplug

#endif  // TFPLUG_KERNEL_KERNEL_CONSTRUCTION_H_
