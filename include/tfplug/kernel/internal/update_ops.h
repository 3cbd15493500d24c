// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_UPDATE_OPS_H_
#define TFPLUG_KERNEL_INTERNAL_UPDATE_OPS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "tfplug/base/data_type.h"

#pragma GCC visibility push(hidden)

namespace tfplug::kernel {

// One of TensorFlow's ops that update variables, its first inputs. The other
// inputs have the variables' type, except for two: indices, and a step of type
// int64.
struct UpdateOp {
  static constexpr size_t kNone = static_cast<size_t>(-1);

  std::string op;
  const char* values_op;  // computes the new values
  size_t num_variables, num_inputs;
  size_t indices = kNone, step = kNone;  // their positions among the inputs
  const char* option = nullptr;          // the attribute that becomes `option`

  std::vector<DataType> ArgumentTypes(DataType type,
                                      DataType index_type) const {
    std::vector<DataType> types(num_inputs - num_variables, type);
    if (indices != kNone) types[indices - num_variables] = index_type;
    if (step != kNone) types[step - num_variables] = DataType::kInt64;
    return types;
  }
};

// Returns the updates of the families that the library's backend lists. Filled
// while the library is loaded, before any pass or kernel runs.
inline std::vector<UpdateOp>& UpdateOps() {
  static auto* const ops = new std::vector<UpdateOp>;
  return *ops;
}

}  // namespace tfplug::kernel

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_UPDATE_OPS_H_
