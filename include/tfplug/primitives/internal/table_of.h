// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_INTERNAL_TABLE_OF_H_
#define TFPLUG_PRIMITIVES_INTERNAL_TABLE_OF_H_

#include <type_traits>

#include "absl/types/span.h"
#include "tfplug/ir/loops.h"
#include "tfplug/ir/views.h"
#include "tfplug/primitives/launcher.h"

#pragma GCC visibility push(hidden)

namespace tfplug::primitives_internal {

// Whether B is a CompiledBackend that does not override Map and Reduce.
template <class B, class = void>
struct IsCompiled {
  static constexpr bool kMap = false, kReduce = false;
};
template <class B>
struct IsCompiled<B, std::void_t<typename B::Compiled>> {
  using C = typename B::Compiled;
  static constexpr bool kMap =
      std::is_same_v<decltype(&B::Map), decltype(&C::Map)>;
  static constexpr bool kReduce =
      std::is_same_v<decltype(&B::Reduce), decltype(&C::Reduce)>;
};

// The primitives of B as functions, without a virtual call.
template <class B>
struct TableOf {
  using Stream = typename B::Stream;
  static B& Self(void* backend) { return *static_cast<B*>(backend); }
  static Stream& On(void* stream) { return *static_cast<Stream*>(stream); }

  static absl::Status MapFlat(void* self, void* stream,
                              const Expression& expression,
                              const FlatOperands& operands) {
    if constexpr (IsCompiled<B>::kMap) {
      return B::MapFlat(Self(self), On(stream), expression, operands);
    } else {
      if (!primitives::HaveNumber(operands, expression))
        return primitives::WrongOperands();
      if (operands.size == 0) return absl::OkStatus();
      const ir::FlatViews views(expression, operands);
      return Self(self).B::Map(On(stream), expression, views.inputs(),
                               views.outputs());
    }
  }

  static constexpr primitives::PrimitiveTable kTable = {
      [](void* self, void* stream, const Expression& expression,
         absl::Span<Operand> in, absl::Span<Operand> out) {
        if constexpr (IsCompiled<B>::kMap) {
          return Self(self).MapLoops(On(stream), expression, in, out);
        } else {
          if (!SimplifyLoops(in, out)) return absl::OkStatus();
          return Self(self).B::Map(On(stream), expression, in, out);
        }
      },
      &MapFlat,
      [](void* self, void* stream, const Reduction& reduction,
         absl::Span<Operand> in, absl::Span<Operand> out) {
        if constexpr (IsCompiled<B>::kReduce) {
          return Self(self).ReduceLoops(On(stream), reduction, in, out);
        } else {
          if (!SimplifyLoops(in, out)) return absl::OkStatus();
          return Self(self).B::Reduce(On(stream), reduction, in, out);
        }
      },
      [](void* self, void* stream, Launcher& launcher, const Operand& a,
         const Operand& b, const Operand& c) {
        return Self(self).B::MatMul(On(stream), launcher, a, b, c);
      },
      [](void* self, void* stream, Launcher& launcher, ScatterKind kind,
         const Operand& indices, const Operand& updates, const Operand& out) {
        return Self(self).B::Scatter(On(stream), launcher, kind, indices,
                                     updates, out);
      },
      [](void* self, void* stream, Launcher& launcher, ReduceKind kind,
         const Operand& in, const Operand& out) {
        return Self(self).B::Scan(On(stream), launcher, kind, in, out);
      },
      [](void* self, void* stream, Launcher& launcher, const Operand& in,
         const Operand& values, const Operand& indices) {
        return Self(self).B::Sort(On(stream), launcher, in, values, indices);
      },
      [](void* self, void* stream, Launcher& launcher,
         const auto&... operands) {
        return Self(self).B::Conv(On(stream), launcher, operands...);
      },
      [](void* self, void* stream, Launcher& launcher,
         const auto&... operands) {
        return Self(self).B::ConvInputGradient(On(stream), launcher,
                                               operands...);
      },
      [](void* self, void* stream, Launcher& launcher,
         const auto&... operands) {
        return Self(self).B::ConvFilterGradient(On(stream), launcher,
                                                operands...);
      },
      [](void* self, void* stream, Launcher& launcher,
         const auto&... operands) {
        return Self(self).B::FusedMatMul(On(stream), launcher, operands...);
      },
      [](void* self, void* stream, Launcher& launcher, const Operand& a,
         const Operand& b, const Expression& expression, Operands in,
         Operands out) {
        return Self(self).B::MatMulMap(On(stream), launcher, a, b, expression,
                                       in, out);
      },
      [](void* self, void* stream, Launcher& launcher,
         const auto&... operands) {
        return Self(self).B::FusedConv(On(stream), launcher, operands...);
      },
      [](void* self, void* stream, Launcher& launcher,
         const auto&... operands) {
        return Self(self).B::Pool(On(stream), launcher, operands...);
      },
      [](void* self, void* stream, Launcher& launcher,
         const auto&... operands) {
        return Self(self).B::PoolGradient(On(stream), launcher, operands...);
      },
      [](void* self, void* stream, Launcher& launcher,
         const auto&... operands) {
        return Self(self).B::BatchNormTraining(On(stream), launcher,
                                               operands...);
      },
      [](void* self, void* stream, Launcher& launcher,
         const auto&... operands) {
        return Self(self).B::BatchNormInference(On(stream), launcher,
                                                operands...);
      },
      [](void* self, void* stream, Launcher& launcher,
         const auto&... operands) {
        return Self(self).B::BatchNormGradient(On(stream), launcher,
                                               operands...);
      },
      [](void* self, void* stream, Launcher& launcher, SoftmaxKind kind,
         const auto&... operands) {
        return Self(self).B::Softmax(On(stream), launcher, kind, operands...);
      },
      [](void* self, void* stream, Launcher& launcher,
         const auto&... operands) {
        return Self(self).B::CrossEntropy(On(stream), launcher, operands...);
      }};
};

}  // namespace tfplug::primitives_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_INTERNAL_TABLE_OF_H_
