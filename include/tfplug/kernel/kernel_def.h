// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_KERNEL_DEF_H_
#define TFPLUG_KERNEL_KERNEL_DEF_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/type_setting.h"
#include "tfplug/base/internal/wire.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The nodes that a kernel implements: an op, and the values of its type
// attributes that the kernel supports.
//
//   KernelDef("MatMul").TypeConstraint<float, double>("T")
class KernelDef {
 public:
  explicit KernelDef(std::string op) : op_(std::move(op)) {}

  // Registers the kernel for `device_type`, such as "CPU", instead of the
  // device type of this library's platform.
  KernelDef Device(std::string device_type) && {
    device_type_ = internal::RegisteredType(device_type.c_str());
    return std::move(*this);
  }

  // Restricts the op's type attribute `attr`, or every element of it if it is a
  // list, to Types.
  template <class... Types>
  KernelDef TypeConstraint(std::string attr) && {
    static_assert(sizeof...(Types) > 0, "tfplug: name at least one type");
    type_constraints_.push_back({std::move(attr), {DataTypeOf<Types>()...}});
    return std::move(*this);
  }
  KernelDef TypeConstraint(std::string attr, std::vector<DataType> types) && {
    type_constraints_.push_back({std::move(attr), std::move(types)});
    return std::move(*this);
  }

  // Places the argument `arg` of the op, an input or output, in host memory.
  KernelDef HostMemory(std::string arg) && {
    host_memory_.push_back(std::move(arg));
    return std::move(*this);
  }

  // Places all arguments of the op in host memory. Their names come from the
  // TensorFlow that loads the library; if it does not export its ops, the
  // kernel is left out and logged.
  KernelDef AllInHostMemory() && {
    all_in_host_memory_ = true;
    return std::move(*this);
  }

  // Sets the priority, 0 by default. Of several kernels that match a node,
  // TensorFlow uses the one with the highest priority.
  KernelDef Priority(int32_t priority) && {
    priority_ = priority;
    return std::move(*this);
  }

  // Restricts the kernel to nodes whose attribute "_kernel" is `label`. Since
  // 2.11; older releases skip the kernel and log it.
  KernelDef Label(std::string label) && {
    label_ = std::move(label);
    return std::move(*this);
  }

  // Registers the kernel only if `condition` returns true when TensorFlow loads
  // the library: for kernels that need a C function that not every release
  // exports (see tfplug::Has).
  KernelDef OnlyIf(bool (*condition)()) && {
    condition_ = condition;
    return std::move(*this);
  }

  struct Constraint {
    std::string attr;
    std::vector<DataType> types;
  };
  const std::string& op() const { return op_; }
  const std::string& device_type() const { return device_type_; }
  const std::vector<Constraint>& type_constraints() const {
    return type_constraints_;
  }
  const std::vector<std::string>& host_memory() const { return host_memory_; }
  bool all_in_host_memory() const { return all_in_host_memory_; }
  int32_t priority() const { return priority_; }
  const std::string& label() const { return label_; }
  bool IsEnabled() const { return condition_ == nullptr || condition_(); }

  // Removes the types of constraints for which remove(attribute, type) returns
  // true.
  template <class Remove>
  void RemoveTypes(Remove remove) {
    for (Constraint& constraint : type_constraints_) {
      std::vector<DataType> kept;
      for (DataType type : constraint.types) {
        if (!remove(constraint.attr, type)) kept.push_back(type);
      }
      constraint.types = std::move(kept);
    }
  }

  // Returns a serialized tensorflow.KernelDef for `device_type`.
  std::string Serialize(const std::string& device_type) const {
    std::string out;
    internal::AppendField(out, 1, op_);
    internal::AppendField(out, 2, device_type);
    for (const Constraint& constraint : type_constraints_) {
      std::string types, list, value, message;
      for (DataType type : constraint.types) {
        internal::AppendVarint(types, static_cast<uint64_t>(type));
      }
      internal::AppendField(list, 6, types);
      internal::AppendField(value, 1, list);
      internal::AppendField(message, 1, constraint.attr);
      internal::AppendField(message, 2, value);
      internal::AppendField(out, 3, message);
    }
    for (const std::string& arg : host_memory_) {
      internal::AppendField(out, 4, arg);
    }
    if (!label_.empty()) internal::AppendField(out, 5, label_);
    if (priority_ != 0) {
      internal::AppendField(
          out, 6, static_cast<uint64_t>(static_cast<int64_t>(priority_)));
    }
    return out;
  }

 private:
  std::string op_;
  std::string device_type_;
  std::vector<Constraint> type_constraints_;
  std::vector<std::string> host_memory_;
  bool all_in_host_memory_ = false;
  int32_t priority_ = 0;
  std::string label_;
  bool (*condition_)() = nullptr;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_KERNEL_DEF_H_
