// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_INTERNAL_TABLE_OF_H_
#define TFPLUG_PRIMITIVES_INTERNAL_TABLE_OF_H_

#include <functional>
#include <type_traits>

#include "absl/base/optimization.h"
#include "absl/types/span.h"
#include "tfplug/ir/loops.h"
#include "tfplug/ir/views.h"
#include "tfplug/primitives/launcher.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
template <class StreamT>
class Backend;
}  // namespace tfplug

namespace tfplug::primitives_internal {

// Returns whether one class defines both hooks.
template <class C, class D, class R, class... A, class... B>
constexpr bool HaveOneClass(R (C::*)(A...), R (D::*)(B...)) {
  return std::is_same_v<C, D>;
}

// Whether B can run Map or Reduce on operands of any rank (MapLoops, MapFlat
// and ReduceLoops of CompiledBackend). A class that overrides Map or Reduce
// below these functions has its own called instead.
template <class B, class = void>
inline constexpr bool kHasMapLoops = false;
template <class B>
inline constexpr bool kHasMapLoops<B, std::void_t<decltype(&B::MapLoops)>> =
    HaveOneClass(&B::Map, &B::MapLoops);
template <class B, class = void>
inline constexpr bool kHasReduceLoops = false;
template <class B>
inline constexpr bool
    kHasReduceLoops<B, std::void_t<decltype(&B::ReduceLoops)>> =
        HaveOneClass(&B::Reduce, &B::ReduceLoops);

// Gives inputs from which nothing is read the address of the output: their own
// may be null or the end of an array, where a device that looks up addresses
// finds nothing. A stride of 0 in an empty dimension is that of an input of
// Reduction::finish, which is read.
inline void GiveAddresses(absl::Span<Operand> inputs, const Operand& output) {
  for (Operand& input : inputs) {
    bool is_read = input.data != nullptr;
    for (int d = 0; d < input.rank; ++d) {
      is_read = is_read && (input.dim(d) != 0 || input.stride(d) == 0);
    }
    if (ABSL_PREDICT_FALSE(!is_read) && input.has_memory()) {
      input.data = output.data;
    }
  }
}

// The primitives of B as functions, without a virtual call.
template <class B>
struct TableOf {
  using Stream = typename B::Stream;
  static B& Self(void* backend) { return *static_cast<B*>(backend); }
  static Stream& On(void* stream) { return *static_cast<Stream*>(stream); }

  static absl::Status Map(void* self, void* stream, Launcher&,
                          const Expression& expression, absl::Span<Operand> in,
                          absl::Span<Operand> out) {
    if constexpr (kHasMapLoops<B>) {
      return Self(self).MapLoops(On(stream), expression, in, out);
    } else {
      if (!SimplifyLoops(in, out)) return absl::OkStatus();
      GiveAddresses(in, out[0]);
      return Self(self).B::Map(On(stream), expression, in, out);
    }
  }

  static absl::Status MapFlat(void* self, void* stream,
                              const Expression& expression,
                              const FlatOperands& operands) {
    if constexpr (kHasMapLoops<B>) {
      return B::MapFlat(Self(self), On(stream), expression, operands);
    } else {
      if (!primitives::CountsMatch(operands, expression)) {
        return primitives::WrongOperands();
      }
      if (operands.size == 0) return absl::OkStatus();
      const ir::FlatViews views(expression, operands);
      return Self(self).B::Map(On(stream), expression, views.inputs(),
                               views.outputs());
    }
  }

  static absl::Status Reduce(void* self, void* stream, Launcher& launcher,
                             const Reduction& reduction, absl::Span<Operand> in,
                             absl::Span<Operand> out) {
    if constexpr (kHasReduceLoops<B>) {
      return Self(self).ReduceLoops(On(stream), launcher, reduction, in, out);
    } else {
      if (!SimplifyLoops(in, out)) return absl::OkStatus();
      GiveAddresses(in, out[0]);
      return Self(self).B::Reduce(On(stream), reduction, in, out);
    }
  }

  static NewLaunchGraph Capture(
      void* self, void* stream,
      const std::function<absl::Status(void*)>& work) {
    return Self(self).B::Capture(On(stream),
                                 [&](Stream& on) { return work(&on); });
  }

  static constexpr primitives::PrimitiveTable Make() {
    primitives::PrimitiveTable table = {};
    table.map = &Map;
    table.map_flat = &MapFlat;
    table.reduce = &Reduce;
#define TFPLUG_INTERNAL_PRIMITIVE(name, function, ...)                       \
  table.name = [](void* self, void* stream, Launcher& launcher, auto... a) { \
    return Self(self).B::function(On(stream), launcher, a...);               \
  };
#include "tfplug/primitives/primitives.def"
    table.enqueue = [](void*, void* stream, Launcher&,
                       const primitives::OwnWork& work,
                       Operands operands) { return work(stream, operands); };
    if constexpr (!std::is_same_v<decltype(&B::Capture),
                                  decltype(&Backend<Stream>::Capture)>) {
      table.capture = &Capture;
    }
    return table;
  }

  static constexpr primitives::PrimitiveTable kTable = Make();
};

}  // namespace tfplug::primitives_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_INTERNAL_TABLE_OF_H_
