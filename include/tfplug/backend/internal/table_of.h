// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_INTERNAL_TABLE_OF_H_
#define TFPLUG_BACKEND_INTERNAL_TABLE_OF_H_

#include "tfplug/backend/launcher.h"

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// The primitives of B as functions, without a virtual call.
template <class B>
struct TableOf {
  using Stream = typename B::Stream;
  static B& Self(void* backend) { return *static_cast<B*>(backend); }
  static Stream& On(void* stream) { return *static_cast<Stream*>(stream); }

  static constexpr PrimitiveTable kTable = {
      [](void* self, void* stream, const Expression& expression, Operands in,
         Operands out) {
        return Self(self).B::Map(On(stream), expression, in, out);
      },
      [](void* self, void* stream, const Reduction& reduction, Operands in,
         Operands out) {
        return Self(self).B::Reduce(On(stream), reduction, in, out);
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

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_INTERNAL_TABLE_OF_H_
