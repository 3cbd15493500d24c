// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_H_
#define TFPLUG_KERNEL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/data_type.h"
#include "tfplug/kernel_construction.h"
#include "tfplug/kernel_context.h"

namespace tfplug {

// The code for one op on one device. Made once for each node, with
// `KernelConstruction&` if there is such a constructor, else with nothing; runs
// each time the node does.
class Kernel {
 public:
  virtual ~Kernel() = default;

  // create_func: called once after construction; read attributes here. After a
  // failure the kernel is destroyed without having run, and core reports the
  // status to whoever built the graph.
  virtual absl::Status Init(KernelConstruction& /*construction*/) {
    return absl::OkStatus();
  }

  // compute_func: check the inputs, set every output, put the work on the
  // context's stream and return. Any thread, several at once for one kernel
  // object: keep what a run needs in locals.
  virtual absl::Status Compute(KernelContext& context) = 0;
};

// What a kernel is for: an op, and of its type attributes those values that the
// kernel can do.
//
//   KernelDef("MatMul").TypeConstraint<float, double>("T")
class KernelDef {
 public:
  explicit KernelDef(std::string op) : op_(std::move(op)) {}

  // For another device type than that of this library's platform, such as
  // "CPU".
  KernelDef Device(std::string device_type) && {
    device_type_ = std::move(device_type);
    return std::move(*this);
  }

  // The op's type attribute `attr` is one of Types.
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

  // The argument `arg` of the op, an input or output, is in host memory.
  KernelDef HostMemory(std::string arg) && {
    host_memory_.push_back(std::move(arg));
    return std::move(*this);
  }

  // Where several kernels fit, core takes the one of the highest priority.
  KernelDef Priority(int32_t priority) && {
    priority_ = priority;
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
  int32_t priority() const { return priority_; }

 private:
  std::string op_;
  std::string device_type_;
  std::vector<Constraint> type_constraints_;
  std::vector<std::string> host_memory_;
  int32_t priority_ = 0;
};

}  // namespace tfplug

#endif  // TFPLUG_KERNEL_H_
