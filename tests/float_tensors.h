// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_FLOAT_TENSORS_H_
#define TFPLUG_TESTS_FLOAT_TENSORS_H_

#include <tfplug/testing/tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace tfplug {

// Returns a tensor in host memory.
inline testing::TF_Tensor Floats(std::vector<int64_t> dims,
                                 const std::vector<float>& values) {
  return testing::MakeTensor<float>(std::move(dims), values);
}
// Returns the elements of a tensor in host memory.
inline std::vector<float> Elements(const testing::TF_Tensor& tensor) {
  return testing::ReadTensor<float>(nullptr, tensor).value().elements;
}

}  // namespace tfplug

#endif  // TFPLUG_TESTS_FLOAT_TENSORS_H_
