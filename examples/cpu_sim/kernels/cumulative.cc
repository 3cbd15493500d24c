// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/math.h>

#include <cstdint>

#include "cpu_sim.h"
#include "kernels/host_tensor.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// ---- On the device ---------------------------------------------------------

template <typename T>
struct Sum {
  static T Nothing() { return T(0); }
  static T Combine(T a, T b) { return a + b; }
};
template <typename T>
struct Product {
  static T Nothing() { return T(1); }
  static T Combine(T a, T b) { return a * b; }
};

struct Scan {
  bool exclusive;  // y[i] excludes x[i] itself
  bool reverse;    // runs from the end to the beginning
  int64_t outer, size, inner;
};

// Accumulates along the middle dimension of tensors of shape [outer, size,
// inner].
template <typename Way, typename T>
void Accumulate(T* y, const T* x, Scan scan) {
  const int64_t step = scan.reverse ? -scan.inner : scan.inner;
  for (int64_t o = 0; o < scan.outer; ++o) {
    const int64_t begin =
        (o * scan.size + (scan.reverse ? scan.size - 1 : 0)) * scan.inner;
    for (int64_t i = 0; i < scan.inner; ++i) {
      T total = Way::Nothing();
      int64_t at = begin + i;
      for (int64_t k = 0; k < scan.size; ++k, at += step) {
        const T before = total;
        total = Way::Combine(total, x[at]);
        y[at] = scan.exclusive ? before : total;
      }
    }
  }
}

// ---- On the host -----------------------------------------------------------

template <typename Way, typename T>
class Cumulative final : public tfplug::Kernel {
 public:
  using Op = ops::Cumsum;  // Cumprod has the same arguments

  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(exclusive_, construction.GetAttr(Op::exclusive));
    TFPLUG_ASSIGN_OR_RETURN(reverse_, construction.GetAttr(Op::reverse));
    return absl::OkStatus();
  }

  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(Op::x));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor axis_tensor,
                            context.GetInput(Op::axis));
    TFPLUG_ASSIGN_OR_RETURN(const int axis, ReadAxis(axis_tensor, x.rank()));
    Scan scan = {exclusive_, reverse_, 1, x.dim(axis), 1};
    for (int d = 0; d < axis; ++d) scan.outer *= x.dim(d);
    for (int d = axis + 1; d < x.rank(); ++d) scan.inner *= x.dim(d);
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.AllocateOutput(0, x.shape()));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(&Accumulate<Way, T>, y.flat<T>(), x.flat<T>(), scan);
  }

 private:
  bool exclusive_ = false;
  bool reverse_ = false;
};

template <class Op, typename Way, typename T>
bool RegisterFor() {
  return tfplug::RegisterKernel<Cumulative<Way, T>>(
      Op().template T<T>().HostMemory(Op::axis));
}
[[maybe_unused]] const bool kernels =
    RegisterFor<ops::Cumsum, Sum<float>, float>() &&
    RegisterFor<ops::Cumsum, Sum<int64_t>, int64_t>() &&
    RegisterFor<ops::Cumprod, Product<float>, float>() &&
    RegisterFor<ops::Cumprod, Product<int64_t>, int64_t>();

}  // namespace
}  // namespace cpu_sim
