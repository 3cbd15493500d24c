// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_WHERE_H_
#define TFPLUG_OP_KERNELS_WHERE_H_

#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "tfplug/op_kernels/device_then_read_kernel.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace op_kernels_internal {

// Where: the coordinates of all elements that are not 0.
class WhereKernel final : public DeviceThenReadKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    constexpr DataType kInt64 = DataType::kInt64;
    const auto add_test = [&](ExpressionBuilder& builder) {
      const Value x = Cast(builder.Input(PartType(type)), DataType::kBool);
      if (!IsComplex(type)) return x;
      return x | Cast(builder.Input(PartType(type)), DataType::kBool);
    };
    ExpressionBuilder is_found, row;
    is_found.Output(Cast(add_test(is_found), kInt64), kInt64);
    TFPLUG_ASSIGN_OR_RETURN(is_found_, std::move(is_found).Build());
    const Value found = add_test(row);
    row.Output(Select(found, row.Input(kInt64) - 1, -1), kInt64);
    TFPLUG_ASSIGN_OR_RETURN(row_, std::move(row).Build());
    return absl::OkStatus();
  }

  // Returns, for each element, how many have been found up to it.
  absl::StatusOr<Operand> Begin(OpRun& run) const override {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor tensor, run.GetInput(0));
    if (tensor.rank() == 0) {
      return absl::InvalidArgumentError(
          "WhereOp: the input must have at least one dimension");
    }
    TFPLUG_ASSIGN_OR_RETURN(Parts x, FlatInput(run));
    Operand found, counts;
    for (Operand* array : {&found, &counts}) {
      TFPLUG_ASSIGN_OR_RETURN(
          *array, run.launcher().Allocate(DataType::kInt64, ir::DimsOf(x[0])));
    }
    if (found.num_elements() == 0) return counts;
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(is_found_, absl::MakeSpan(x),
                                              absl::MakeSpan(&found, 1)));
    TFPLUG_RETURN_IF_ERROR(
        run.launcher().Scan(ReduceKind::kSum, found, counts));
    return counts;
  }

  absl::Status End(OpRun& run, const Operand& counts,
                   absl::Span<const int64_t> numbers) const override {
    const int64_t count = numbers[0];
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, {count, x.rank}));
    if (y.num_elements() == 0) return absl::OkStatus();
    const int64_t n = x.num_elements();
    TFPLUG_ASSIGN_OR_RETURN(const Operand rows,
                            run.launcher().Allocate(DataType::kInt64, {n}));
    TFPLUG_ASSIGN_OR_RETURN(Parts inputs, FlatInput(run));
    inputs.push_back(counts);
    Operand to = rows;
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(row_, absl::MakeSpan(inputs),
                                              absl::MakeSpan(&to, 1)));
    // All coordinates: [elements..., coordinate].
    Shape shape = ShapeOf(x);
    shape.add_dim(x.rank);
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand all,
        run.launcher().Allocate(DataType::kInt64, shape.dims()));
    for (int d = 0; d < x.rank; ++d) {
      const Operand coordinate = ir::Range(all, x.rank, d, d + 1);
      TFPLUG_ASSIGN_OR_RETURN(
          const Expression* const copy,
          primitives::ConversionOf(DataType::kInt64, DataType::kInt64));
      TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
          *copy, {ir::IndexOf(coordinate, d)}, {coordinate}));
    }
    return run.launcher().Scatter(
        ScatterKind::kSet, rows,
        Operand::Dense(all.data, all.type, {n, x.rank}), y);
  }

 private:
  using Parts = absl::InlinedVector<Operand, 4>;

  // Returns the input as vectors: two, if it is complex.
  static absl::StatusOr<Parts> FlatInput(OpRun& run) {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    const Operand flat = ir::Flat(x);
    if (!IsComplex(x.type)) return Parts{flat};
    return Parts{PartOf(flat, 0), PartOf(flat, 1)};
  }

  Expression is_found_, row_;
};

}  // namespace op_kernels_internal

inline void WhereOps(const Registrar& registrar) {
  registrar.Add<op_kernels_internal::WhereKernel>(KernelDef("Where"), "T",
                                                  kAllTypes | kComplexTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_WHERE_H_
