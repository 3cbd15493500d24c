// SPDX-License-Identifier: Apache-2.0
#include <tfplug/ir/scalar_code.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/op_kernels/device_then_read_kernel.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "backend/device_views.h"
#include "cpu_sim.h"

namespace cpu_sim {
namespace {

using tfplug::DataType;
using tfplug::Operand;

// Calls use(dense elements of the view's type as a pointer).
template <class Use>
void VisitElements(const Operand& view, Use use) {
  tfplug::ir::VisitStored(view.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    use(static_cast<const T*>(view.data));
  });
}

template <class T>
bool IsFound(T x) {
  return static_cast<tfplug::ir::Computed<T>>(x) != 0;
}

// Writes the coordinates of the first y.dim(0) elements that are not 0, each as
// a row of y.
template <class T>
void WriteCoordinates(const T* x, const Operand& view, int64_t* y,
                      int64_t count) {
  const int last = view.rank - 1;
  const int64_t columns = view.dim(last);
  int64_t at[tfplug::kMaxViewRank] = {};
  int64_t* const end = y + count * view.rank;
  const bool is_rare = count < view.num_elements() / 4;
  while (y < end) {
    // Each column is written where the next one that is found belongs: cheaper
    // than a branch that cannot be predicted.
    for (int64_t i = 0; i < columns && y < end; ++i) {
      if (is_rare && !IsFound(x[i])) continue;
      for (int d = 0; d < last; ++d) y[d] = at[d];
      y[last] = i;
      y += IsFound(x[i]) ? view.rank : 0;
    }
    x += columns;
    int d = last;
    while (--d >= 0 && ++at[d] == view.dim(d)) at[d] = 0;
  }
}

// Where: one pass counts, another one writes.
class Where final : public tfplug::DeviceThenReadKernel {
 public:
  absl::StatusOr<Operand> Begin(tfplug::OpRun& run) const override {
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor tensor, run.GetInput(0));
    if (tensor.rank() == 0) {
      return absl::InvalidArgumentError(
          "WhereOp: the input must have at least one dimension");
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, ViewOf(tensor));
    const int64_t size = x.num_elements();
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand count,
        run.launcher().Allocate(DataType::kInt64, {size == 0 ? 0 : 1}));
    if (size == 0) return count;
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, run.context().GetStream<Stream>());
    TFPLUG_ASSIGN_OR_RETURN(const DeviceViews views,
                            ForDevice(*stream, {x, count}));
    TFPLUG_RETURN_IF_ERROR(stream->LaunchTask([views, size] {
      VisitElements(views[0], [&](auto* elements) {
        int64_t found = 0;
        for (int64_t i = 0; i < size; ++i) found += IsFound(elements[i]);
        *static_cast<int64_t*>(views[1].data) = found;
      });
    }));
    return count;
  }

  absl::Status End(tfplug::OpRun& run, const Operand& /*count*/,
                   absl::Span<const int64_t> numbers) const override {
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor tensor, run.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, ViewOf(tensor));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, {numbers[0], x.rank}));
    if (y.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, run.context().GetStream<Stream>());
    TFPLUG_ASSIGN_OR_RETURN(const DeviceViews views,
                            ForDevice(*stream, {x, y}));
    return stream->LaunchTask([views, count = numbers[0]] {
      VisitElements(views[0], [&](auto* elements) {
        WriteCoordinates(elements, views[0],
                         static_cast<int64_t*>(views[1].data), count);
      });
    });
  }
};
TFPLUG_REGISTER_KERNEL(
    Where, tfplug::KernelDef("Where")
               .TypeConstraint<float, double, tfplug::Half, tfplug::BFloat16,
                               int8_t, int16_t, int32_t, int64_t, uint8_t,
                               uint16_t, uint32_t, uint64_t, bool>("T"));

}  // namespace
}  // namespace cpu_sim
