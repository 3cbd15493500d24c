// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_FLOAT8_H_
#define TFPLUG_OP_KERNELS_FLOAT8_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "tfplug/base/narrow_types.h"
#include "tfplug/ir/scalar_code.h"
#include "tfplug/op_kernels/host_task_kernel.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Conversions from and to floats of 8 bits, which expressions do not have: on
// the host.
namespace tfplug {
namespace op_kernels_internal {

inline constexpr DataType kFloat8Types[] = {DataType::kFloat8E5m2,
                                            DataType::kFloat8E4m3fn};

class Float8CastKernel final : public HostTaskKernel {
 public:
  absl::StatusOr<std::vector<Shape>> ShapesOf(
      absl::Span<const Shape> inputs) const override {
    return std::vector<Shape>{inputs[0]};
  }
  absl::Status Compute(absl::Span<const HostArray> inputs,
                       absl::Span<const HostArray> outputs) const override {
    // A float holds each value of the smaller type exactly.
    std::vector<float> values(
        static_cast<size_t>(inputs[0].shape.num_elements()));
    Visit(inputs[0].type, [&](auto tag) {
      using From = typename decltype(tag)::type;
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = ir::Convert<float>(ValueOf(inputs[0].as<From>()[i]));
      }
    });
    Visit(outputs[0].type, [&](auto tag) {
      using To = typename decltype(tag)::type;
      for (size_t i = 0; i < values.size(); ++i) {
        if constexpr (kIsFloat8<To>) {
          outputs[0].as<To>()[i] = To(values[i]);
        } else {
          outputs[0].as<To>()[i] = ir::Convert<To>(values[i]);
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  template <class T>
  static constexpr bool kIsFloat8 =
      std::is_same_v<T, Float8E5m2> || std::is_same_v<T, Float8E4m3fn>;

  template <class Use>
  static void Visit(DataType type, Use use) {
    if (type == DataType::kFloat8E5m2) return use(ir::TypeTagOf<Float8E5m2>());
    if (type == DataType::kFloat8E4m3fn)
      return use(ir::TypeTagOf<Float8E4m3fn>());
    ir::VisitStored(type, use);
  }
  template <class T>
  static auto ValueOf(T x) {
    if constexpr (kIsFloat8<T>)
      return static_cast<float>(x);
    else
      return x;
  }
};

}  // namespace op_kernels_internal

inline void Float8Ops(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  const std::vector<DataType> small(std::begin(kFloat8Types),
                                    std::end(kFloat8Types));
  const std::vector<DataType> others = registrar.Supported(kAllTypes);
  if (others.empty()) return;
  const auto add = [&](std::vector<DataType> from, std::vector<DataType> to) {
    registrar.Add<Float8CastKernel>(KernelDef("Cast")
                                        .TypeConstraint("SrcT", std::move(from))
                                        .TypeConstraint("DstT", std::move(to)));
  };
  add(small, others);
  add(others, small);
  add(small, small);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_FLOAT8_H_
