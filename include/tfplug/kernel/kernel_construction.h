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
#include "tfplug/kernel/internal/attr_reader.h"
#include "tfplug/kernel/internal/attr_reader_proto.h"
#include "tfplug/kernel/internal/node_attrs.h"
#include "tfplug/kernel/internal/op_attr_types.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The node that a kernel is constructed for (TF_OpKernelConstruction). Valid
// during the kernel's constructor and Init only.
class KernelConstruction {
 public:
  explicit KernelConstruction(capi::TF_OpKernelConstruction* construction)
      : construction_(construction) {}
  KernelConstruction(const KernelConstruction&) = delete;
  KernelConstruction& operator=(const KernelConstruction&) = delete;

  // Returns the node's name. TensorFlow owns the string.
  absl::string_view name() const {
    const capi::TF_StringView name =
        internal::tensorflow.TF_OpKernelConstruction_GetName(construction_);
    return absl::string_view(name.data, name.len);
  }
  // Returns the op's name, from the NodeDef, which TensorFlow serializes for
  // each call. Since 2.11.
  absl::StatusOr<std::string> GetOp() const {
    const auto node = GetNodeDef();
    if (!node.ok()) return node.status();
    return std::string(internal::NodeDefOp(node->bytes()));
  }
  // Returns the node as a serialized tensorflow.NodeDef. Since 2.11.
  absl::StatusOr<Buffer> GetNodeDef() const {
    return kernel_internal::NodeAttrs(construction_).GetNodeDef();
  }

  bool HasAttr(const char* attr) const {
    return kernel_internal::NodeAttrs(construction_).Has(attr);
  }

  // Returns the attribute `attr` as T: bool, int32_t, int64_t, float, DataType,
  // std::string, Shape, PartialShape, Tensor, Function, or a std::vector of
  // one of these. NOT_FOUND if the node has no such attribute,
  // INVALID_ARGUMENT if it is of another kind or does not fit.
  template <class T>
  absl::StatusOr<T> GetAttr(const char* attr) const {
    const kernel_internal::NodeAttrs attrs(construction_);
    absl::StatusOr<T> value = kernel_internal::AttrReader<T>::Read(attrs, attr);
    if (!value.ok()) {
      return attrs.Explain(attr, kernel_internal::AttrReader<T>::kKind,
                           value.status());
    }
    return value;
  }

  // Does the same as GetAttr above for an attribute of a typed op, such as
  // ops::Conv2D::strides, which determines the C++ type: an int is read as
  // int64_t, a shape as PartialShape.
  template <class E, class = kernel_internal::IfOpEnum<E>>
  absl::StatusOr<kernel_internal::AttrType<E>> GetAttr(E attr) const {
    return GetAttr<kernel_internal::AttrType<E>>(kernel_internal::NameOf(attr));
  }
  template <class E, class = kernel_internal::IfOpEnum<E>>
  bool HasAttr(E attr) const {
    return HasAttr(kernel_internal::NameOf(attr));
  }

  capi::TF_OpKernelConstruction* get() const { return construction_; }

 private:
  capi::TF_OpKernelConstruction* const construction_;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_KERNEL_CONSTRUCTION_H_
