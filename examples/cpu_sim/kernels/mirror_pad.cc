// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/narrow_types.h>
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
#include "kernels/movement.h"

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

template <typename Element>
void CopyMirrored(const Sources& sources, char* y, const char* x) {
  int64_t first = 0;
  ForEachSource(sources, 0, first, 0, [&](int64_t to, int64_t from) {
    reinterpret_cast<Element*>(y)[to] =
        reinterpret_cast<const Element*>(x)[from];
  });
}

void AddMirrored(const Sources& sources, float* dx, int64_t size,
                 const float* dy) {
  std::fill_n(dx, size, 0.0f);
  int64_t first = 0;
  ForEachSource(sources, 0, first, 0,
                [&](int64_t from, int64_t to) { dx[to] += dy[from]; });
}

// MirrorPad, or its gradient, whose input has the padded shape.
template <typename Element, bool is_gradient>
class MirrorPad final : public tfplug::Kernel {
 public:
  using Op = ops::MirrorPad;

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
    tfplug::Shape padded;
    for (int d = 0; d < rank; ++d) {
      const int64_t both = pad(d, 0) + pad(d, 1);
      const int64_t size = in.dim(d) - (is_gradient ? both : 0);
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
      padded.add_dim(size + both);
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
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor out,
        context.AllocateOutput(Op::output, is_gradient ? shape : padded));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    if constexpr (is_gradient) {
      return stream->Launch(&AddMirrored, std::move(sources), out.flat<float>(),
                            out.num_elements(), in.flat<float>());
    } else {
      return stream->Launch(&CopyMirrored<Element>, std::move(sources),
                            Bytes(out), Bytes(in));
    }
  }

 private:
  bool with_edge_ = false;
};

using Pad1 = MirrorPad<uint8_t, false>;
using Pad2 = MirrorPad<uint16_t, false>;
using Pad4 = MirrorPad<uint32_t, false>;
using Pad8 = MirrorPad<uint64_t, false>;
using Gradient = MirrorPad<float, true>;
constexpr auto kPaddings = ops::MirrorPad::paddings;
TFPLUG_REGISTER_KERNEL(Pad1, ops::MirrorPad().T<bool>().HostMemory(kPaddings));
TFPLUG_REGISTER_KERNEL(
    Pad2,
    ops::MirrorPad().T<tfplug::Half, tfplug::BFloat16>().HostMemory(kPaddings));
TFPLUG_REGISTER_KERNEL(Pad4, ops::MirrorPad().T<float>().HostMemory(kPaddings));
TFPLUG_REGISTER_KERNEL(
    Pad8, ops::MirrorPad().T<double, int64_t>().HostMemory(kPaddings));
TFPLUG_REGISTER_KERNEL(Gradient, ops::MirrorPadGrad().T<float>().HostMemory(
                                     ops::MirrorPadGrad::paddings));

}  // namespace
}  // namespace cpu_sim
