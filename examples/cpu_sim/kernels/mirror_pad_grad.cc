// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/array.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cpu_sim.h"
#include "kernels/host_tensor.h"
#include "kernels/loop.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// For each dimension and each index in the padded tensor, the offset of its
// source in the unpadded tensor, in elements.
using Sources = std::vector<std::vector<int64_t>>;

// Calls use(index in y, index in x) for each element of the padded tensor y.
template <typename Use>
void ForEachSource(const Sources& sources, size_t d, int64_t& y, int64_t x,
                   Use use) {
  if (d == sources.size()) return use(y++, x);
  for (const int64_t from : sources[d]) {
    ForEachSource(sources, d + 1, y, x + from, use);
  }
}

void AddMirrored(const Sources& sources, float* dx, int64_t size,
                 const float* dy) {
  std::fill_n(dx, size, 0.0f);
  int64_t first = 0;
  ForEachSource(sources, 0, first, 0,
                [&](int64_t from, int64_t to) { dx[to] += dy[from]; });
}

// The gradient of MirrorPad: its input has the padded shape.
class MirrorPadGrad final : public tfplug::Kernel {
 public:
  using Op = ops::MirrorPadGrad;

  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string mode,
                            construction.GetAttr(Op::mode));
    with_edge_ = mode == "SYMMETRIC";
    return absl::OkStatus();
  }

  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor in, context.GetInput(Op::input));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor paddings,
                            context.GetInput(Op::paddings));
    const int rank = in.rank();
    TFPLUG_ASSIGN_OR_RETURN(const Dims pads,
                            ReadPaddings(paddings, in.shape()));
    const auto pad = [&](int d, int side) {
      return pads[static_cast<size_t>(2 * d + side)];
    };
    tfplug::Shape shape;  // unpadded
    for (int d = 0; d < rank; ++d) {
      const int64_t both = pad(d, 0) + pad(d, 1);
      const int64_t size = in.dim(d) - both;
      const int64_t most = size - (with_edge_ ? 0 : 1);
      for (int side = 0; side < 2; ++side) {
        // Padding mirrors each element at most once.
        if (pad(d, side) < 0 || pad(d, side) > std::max<int64_t>(most, 0)) {
          return absl::InvalidArgumentError(absl::StrCat(
              "paddings of dimension ", d, " must be between 0 and ", most,
              ", not ", pad(d, side)));
        }
      }
      shape.add_dim(size);
    }
    const Dims strides = DenseStrides(shape.dims());
    Sources sources(static_cast<size_t>(rank));
    for (int d = 0; d < rank; ++d) {
      const int64_t size = shape.dim(d);
      for (int64_t i = -pad(d, 0); i < size + pad(d, 1); ++i) {
        const int64_t edge = with_edge_ ? 1 : 0;
        const int64_t from = i < 0       ? -i - edge
                             : i >= size ? 2 * size - 2 - i + edge
                                         : i;
        sources[static_cast<size_t>(d)].push_back(from * strides[d]);
      }
    }
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor out,
                            context.AllocateOutput(Op::output, shape));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(&AddMirrored, std::move(sources), out.flat<float>(),
                          out.num_elements(), in.flat<float>());
  }

 private:
  bool with_edge_ = false;
};

TFPLUG_REGISTER_KERNEL(
    MirrorPadGrad,
    ops::MirrorPadGrad().T<float>().HostMemory(ops::MirrorPadGrad::paddings));

}  // namespace
}  // namespace cpu_sim
