// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/array.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu_sim.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// Returns the indices of all elements that are not 0. Their number, and so the
// shape of the output, is known only on the device; the host waits for it.
template <typename T>
class Where final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::Where;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::input));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    const tfplug::Shape shape = x.shape();
    const auto found = std::make_shared<std::vector<int64_t>>();
    TFPLUG_RETURN_IF_ERROR(stream->Launch(
        [found](const T* x, int64_t size) {
          for (int64_t i = 0; i < size; ++i) {
            if (x[i] != T(0)) found->push_back(i);
          }
        },
        x.flat<T>(), x.num_elements()));
    TFPLUG_RETURN_IF_ERROR(stream->BlockHostUntilDone());

    const auto count = static_cast<int64_t>(found->size());
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor y,
        context.AllocateOutput(Op::index, {count, shape.rank()}));
    return stream->Launch(
        [found, dims = std::vector<int64_t>(shape.dims().begin(),
                                            shape.dims().end())](int64_t* y) {
          for (int64_t place : *found) {
            for (size_t d = dims.size(); d-- > 0; place /= dims[d]) {
              y[d] = place % dims[d];
            }
            y += dims.size();
          }
        },
        y.flat<int64_t>());
  }
};
TFPLUG_REGISTER_KERNEL(Where<bool>, ops::Where().T<bool>());
TFPLUG_REGISTER_KERNEL(Where<float>, ops::Where().T<float>());
TFPLUG_REGISTER_KERNEL(Where<int64_t>, ops::Where().T<int64_t>());

}  // namespace
}  // namespace cpu_sim
