// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_BACKEND_DEVICE_VIEWS_H_
#define CPU_SIM_BACKEND_DEVICE_VIEWS_H_

#include <tfplug/base/status_macros.h>
#include <tfplug/ir/view.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "absl/container/inlined_vector.h"
#include "cpu_sim.h"

namespace cpu_sim {

using DeviceViews = absl::InlinedVector<tfplug::Operand, 4>;

// Returns the private address of an operand's memory.
inline absl::StatusOr<void*> PrivateAddress(Stream& stream,
                                            const tfplug::Operand& view) {
  if (!view.has_memory()) return view.data;
  int64_t first = 0, last = 0;
  const auto extend = [&](int64_t size, int64_t stride) {
    const int64_t reach = (size - 1) * stride;
    (reach < 0 ? first : last) += reach;
  };
  for (int d = 0; d < view.rank; ++d) {
    // A repeated element exists even if there are no repetitions.
    if (view.stride(d) == 0) continue;
    if (view.dim(d) == 0) return view.data;
    extend(view.dim(d), view.stride(d));
  }
  if (view.axis_size > 0) extend(view.axis_size, view.axis_stride);
  const auto size = static_cast<int64_t>(DataTypeSize(view.type));
  char* const begin = static_cast<char*>(view.data) + first * size;
  TFPLUG_ASSIGN_OR_RETURN(
      void* const address,
      stream.ToPrivate(begin,
                       static_cast<uint64_t>((last - first + 1) * size)));
  return static_cast<char*>(address) - first * size;
}

// Replaces the address of an operand by the private address of its memory.
inline absl::Status MakePrivate(Stream& stream, tfplug::Operand& view) {
  TFPLUG_ASSIGN_OR_RETURN(view.data, PrivateAddress(stream, view));
  return absl::OkStatus();
}

inline absl::StatusOr<DeviceViews> ForDevice(Stream& stream,
                                             tfplug::Operands operands) {
  DeviceViews views(operands.begin(), operands.end());
  for (tfplug::Operand& view : views) {
    TFPLUG_RETURN_IF_ERROR(MakePrivate(stream, view));
  }
  return views;
}

// Operands with private addresses on their way to the device: without the
// dimensions that they do not use, which are most of an Operand.
class PackedViews {
 public:
  static absl::StatusOr<PackedViews> Make(
      Stream& stream, std::initializer_list<tfplug::Operands> lists) {
    PackedViews packed;
    for (const tfplug::Operands& operands : lists) {
      for (const tfplug::Operand& view : operands) {
        TFPLUG_ASSIGN_OR_RETURN(void* const address,
                                PrivateAddress(stream, view));
        packed.Add(view, address);
      }
    }
    return packed;
  }

  DeviceViews Unpack() const {
    DeviceViews views(count_);
    const int64_t* from = words_.data();
    for (tfplug::Operand& view : views) {
      std::memcpy(static_cast<void*>(&view), from, kHead);
      from += kHead / sizeof(int64_t);
      std::copy_n(from, view.rank, view.dims.begin());
      from += view.rank;
      std::copy_n(from, view.rank, view.strides.begin());
      from += view.rank;
    }
    return views;
  }

 private:
  // The members of an Operand before its dimensions.
  static constexpr size_t kHead = offsetof(tfplug::Operand, dims);
  static_assert(kHead % sizeof(int64_t) == 0);

  void Add(const tfplug::Operand& view, void* address) {
    int64_t head[kHead / sizeof(int64_t)];
    std::memcpy(head, &view, kHead);
    std::memcpy(reinterpret_cast<char*>(head) + offsetof(tfplug::Operand, data),
                &address, sizeof(address));
    words_.insert(words_.end(), std::begin(head), std::end(head));
    words_.insert(words_.end(), view.dims.begin(),
                  view.dims.begin() + view.rank);
    words_.insert(words_.end(), view.strides.begin(),
                  view.strides.begin() + view.rank);
    ++count_;
  }

  absl::InlinedVector<int64_t, 36> words_;  // three operands of four dimensions
  size_t count_ = 0;
};

}  // namespace cpu_sim

#endif  // CPU_SIM_BACKEND_DEVICE_VIEWS_H_
