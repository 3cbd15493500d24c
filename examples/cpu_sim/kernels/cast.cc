// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "kernels/movement.h"

namespace cpu_sim {
namespace {

// ---- Cast: converts values -------------------------------------------------

using CastFunction = void (*)(char* y, const char* x, int64_t size);

template <typename Out, typename In>
void Cast(char* y, const char* x, int64_t size) {
  std::transform(reinterpret_cast<const In*>(x),
                 reinterpret_cast<const In*>(x) + size,
                 reinterpret_cast<Out*>(y),
                 [](In value) { return static_cast<Out>(value); });
}

// The functions that convert between any two of Types.
template <typename... Types>
struct CastTable {
  template <typename Out>
  static CastFunction To(tfplug::DataType from) {
    CastFunction found = nullptr;
    ((from == tfplug::DataTypeOf<Types>() ? void(found = &Cast<Out, Types>)
                                          : void()),
     ...);
    return found;
  }

  static CastFunction Find(tfplug::DataType from, tfplug::DataType to) {
    CastFunction found = nullptr;
    ((to == tfplug::DataTypeOf<Types>() ? void(found = To<Types>(from))
                                        : void()),
     ...);
    return found;
  }

  static tfplug::KernelDef Def() {
    return tfplug::KernelDef("Cast")
        .TypeConstraint<Types...>("SrcT")
        .template TypeConstraint<Types...>("DstT");
  }
};
using Casts = CastTable<bool, uint8_t, int32_t, int64_t, tfplug::Half,
                        tfplug::BFloat16, float, double>;

class CastKernel final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.AllocateOutput(0, x.shape()));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(Casts::Find(x.dtype(), y.dtype()), Bytes(y), Bytes(x),
                          x.num_elements());
  }
};
TFPLUG_REGISTER_KERNEL(CastKernel, Casts::Def());

// ---- Bitcast: keeps the bytes ----------------------------------------------

class Bitcast final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.AllocateOutput(0, x.shape()));
    if (y.byte_size() != x.byte_size()) {
      return absl::UnimplementedError(
          "Bitcast between types of different sizes is not implemented on this "
          "device");
    }
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->CopyDeviceToDevice(y.memory(), x.memory(), x.byte_size());
  }
};
TFPLUG_REGISTER_KERNEL(Bitcast, tfplug::KernelDef("Bitcast"));

}  // namespace
}  // namespace cpu_sim
