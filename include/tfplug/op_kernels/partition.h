// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_PARTITION_H_
#define TFPLUG_OP_KERNELS_PARTITION_H_

#include <cstdint>
#include <string>

#include "tfplug/op_kernels/device_then_read_kernel.h"
#include "tfplug/op_kernels/gather.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Ops that move rows to places that data on the device states.
namespace tfplug {
namespace op_kernels_internal {

// Returns an error unless the first dimensions of `data` are those of `places`.
inline absl::Status CheckPrefix(const Operand& data, const Operand& places) {
  bool fits = data.rank >= places.rank;
  for (int d = 0; fits && d < places.rank; ++d) {
    fits = data.dim(d) == places.dim(d);
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "data.shape must start with the shape of the indices or partitions, " +
      ShapeOf(places).ToString() +
      ", got data.shape = " + ShapeOf(data).ToString());
}

// DynamicStitch and ParallelDynamicStitch: the rows of several tensors at the
// indices of the result; of several rows with one index, the last one counts.
class StitchKernel final : public DeviceThenReadKernel {
 public:
  absl::Status Init(KernelConstruction& /*construction*/) override {
    constexpr DataType kInt32 = DataType::kInt32, kInt64 = DataType::kInt64;
    TFPLUG_ASSIGN_OR_RETURN(
        size_, primitives::MakeReduction(
                   ReduceKind::kMax, {kInt32}, kInt64,
                   [](Value i) {
                     const Value size = Cast(i, DataType::kInt64) + 1;
                     return Select(size < 1, kOutOfRange, size);
                   },
                   kInt64));
    TFPLUG_ASSIGN_OR_RETURN(largest_,
                            primitives::MakeReduction(
                                ReduceKind::kMax, {kInt64}, kInt64,
                                [](Value i) { return Max(i, 0); }, kInt64));
    return absl::OkStatus();
  }

  // Returns the largest index plus 1, or kOutOfRange.
  absl::StatusOr<Operand> Begin(OpRun& run) const override {
    const int count = run.context().num_inputs() / 2;
    TFPLUG_ASSIGN_OR_RETURN(const Shape row, RowShape(run, 0));
    bool is_empty = true;
    for (int i = 0; i < count; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand indices, GetView(run, i));
      TFPLUG_ASSIGN_OR_RETURN(const Operand data, GetView(run, i + count));
      TFPLUG_RETURN_IF_ERROR(CheckPrefix(data, indices));
      TFPLUG_ASSIGN_OR_RETURN(const Shape other, RowShape(run, i));
      if (other != row) {
        return absl::InvalidArgumentError(
            "Need data[0].shape[indices[0].ndims:] = data[" +
            std::to_string(i) + "].shape[indices[" + std::to_string(i) +
            "].ndims:], got " + row.ToString() + " and " + other.ToString());
      }
      is_empty = is_empty && indices.num_elements() == 0;
    }
    if (is_empty) return run.launcher().Allocate(DataType::kInt64, {0});
    TFPLUG_ASSIGN_OR_RETURN(const Operand sizes,
                            run.launcher().Allocate(DataType::kInt64, {count}));
    TFPLUG_RETURN_IF_ERROR(Fill(run, sizes, 0));
    for (int i = 0; i < count; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand indices, GetView(run, i));
      const int64_t n = indices.num_elements();
      if (n == 0) continue;
      TFPLUG_RETURN_IF_ERROR(run.launcher().Reduce(
          size_, {Operand::Dense(indices.data, indices.type, {1, n})},
          {ir::Range(sizes, 0, i, i + 1)}));
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand size,
                            run.launcher().Allocate(DataType::kInt64, {1}));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Reduce(
        largest_, {Operand::Dense(sizes.data, sizes.type, {1, count})},
        {size}));
    return size;
  }

  absl::Status End(OpRun& run, const Operand& /*vector*/,
                   absl::Span<const int64_t> size) const override {
    const int count = run.context().num_inputs() / 2;
    TFPLUG_ASSIGN_OR_RETURN(const Shape row, RowShape(run, 0));
    if (size[0] == kOutOfRange) {
      return absl::InvalidArgumentError(
          "indices are out of range: one of them is negative");
    }
    Shape shape = {size[0]};
    for (int64_t dim : row.dims()) shape.add_dim(dim);
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    if (y.num_elements() == 0) return absl::OkStatus();
    TFPLUG_RETURN_IF_ERROR(Fill(run, y, 0));
    for (int i = 0; i < count; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand indices, GetView(run, i));
      TFPLUG_ASSIGN_OR_RETURN(const Operand data, GetView(run, i + count));
      const int64_t n = indices.num_elements();
      if (n == 0) continue;
      TFPLUG_RETURN_IF_ERROR(run.launcher().Scatter(
          ScatterKind::kSet, ir::Flat(indices),
          ir::AsBits(AsParts(AsSlices(data, indices.rank))),
          ir::AsBits(AsParts(AsSlices(y, 1)))));
    }
    return absl::OkStatus();
  }

 private:
  // Returns the dimensions of a row of data[i].
  static absl::StatusOr<Shape> RowShape(OpRun& run, int i) {
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices, GetView(run, i));
    TFPLUG_ASSIGN_OR_RETURN(const Operand data,
                            GetView(run, i + run.context().num_inputs() / 2));
    TFPLUG_RETURN_IF_ERROR(CheckPrefix(data, indices));
    return Shape(ir::DimsOf(data).subspan(static_cast<size_t>(indices.rank)));
  }

  // Stands for a negative index; larger than any int32.
  static constexpr int64_t kOutOfRange = int64_t{1} << 40;

  Reduction size_, largest_;
};

// DynamicPartition: the rows of each partition, in their order.
class PartitionKernel final : public DeviceThenReadKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(count_,
                            construction.GetAttr<int32_t>("num_partitions"));
    constexpr DataType kInt32 = DataType::kInt32, kInt64 = DataType::kInt64;
    TFPLUG_ASSIGN_OR_RETURN(
        is_in_, MakeExpression(
                    {kInt32, kInt64}, {kInt64}, [](Value partition, Value i) {
                      return Cast(Cast(partition, kInt64) == i, kInt64);
                    }));
    TFPLUG_ASSIGN_OR_RETURN(
        place_, MakeExpression({kInt32, kInt64, kInt64}, {kInt64},
                               [](Value partition, Value i, Value before) {
                                 return Select(Cast(partition, kInt64) == i,
                                               before - 1, -1);
                               }));
    return absl::OkStatus();
  }
  int NumNumbers() const override { return static_cast<int>(count_); }

  // Returns [partition, row]: how many rows up to this one are in the
  // partition; then, again, the number of rows in each partition.
  absl::StatusOr<Operand> Begin(OpRun& run) const override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand data, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand partitions, GetView(run, 1));
    TFPLUG_RETURN_IF_ERROR(CheckPrefix(data, partitions));
    const int64_t n = partitions.num_elements();
    if (n == 0) return run.launcher().Allocate(DataType::kInt64, {0});
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand result,
        run.launcher().Allocate(DataType::kInt64, {count_ * n + count_}));
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand is_in,
        run.launcher().Allocate(DataType::kInt64, {count_, n}));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
        is_in_, {Rows(partitions), ir::IndexOf(is_in, 0)}, {is_in}));
    const Operand counts =
        Operand::Dense(result.data, result.type, {count_, n});
    TFPLUG_RETURN_IF_ERROR(
        run.launcher().Scan(ReduceKind::kSum, is_in, counts));
    Operand last = ir::Range(counts, 1, n - 1, n);
    --last.rank;
    TFPLUG_RETURN_IF_ERROR(
        Copy(run, last, ir::Range(result, 0, count_ * n, count_ * n + count_)));
    return result;
  }

  absl::Status End(OpRun& run, const Operand& vector,
                   absl::Span<const int64_t> sizes) const override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand data, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand partitions, GetView(run, 1));
    const int64_t n = partitions.num_elements();
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand places,
        run.launcher().Allocate(DataType::kInt64, {count_, n}));
    if (n > 0) {
      TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
          place_,
          {Rows(partitions), ir::IndexOf(places, 0),
           Operand::Dense(vector.data, vector.type, {count_, n})},
          {places}));
    }
    const Operand rows = ir::AsBits(AsParts(AsSlices(data, partitions.rank)));
    for (int64_t i = 0; i < count_; ++i) {
      Shape shape = {sizes[static_cast<size_t>(i)]};
      for (int d = partitions.rank; d < data.rank; ++d) {
        shape.add_dim(data.dim(d));
      }
      TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                              run.AllocateOutput(static_cast<int>(i), shape));
      if (y.num_elements() == 0) continue;
      Operand part = ir::Range(places, 0, i, i + 1);
      part = ir::Flat(part);
      TFPLUG_RETURN_IF_ERROR(run.launcher().Scatter(
          ScatterKind::kSet, part, rows, ir::AsBits(AsParts(AsSlices(y, 1)))));
    }
    return absl::OkStatus();
  }

 private:
  Operand Rows(const Operand& partitions) const {
    return ir::WithDim(ir::Flat(partitions), 0, count_);
  }

  int64_t count_ = 0;
  Expression is_in_, place_;
};

// ReverseSequence: the first elements of each sequence in reverse order.
class ReverseSequenceKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(batch_, construction.GetAttr<int32_t>("batch_dim"));
    TFPLUG_ASSIGN_OR_RETURN(sequence_,
                            construction.GetAttr<int32_t>("seq_dim"));
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    TFPLUG_ASSIGN_OR_RETURN(const auto length,
                            construction.GetAttr<DataType>("Tlen"));
    const DataType bits = ir::BitsOf(type);
    ExpressionBuilder builder;
    const Value i = builder.Input(DataType::kInt64);
    const Value n = Cast(builder.Input(length), DataType::kInt64);
    builder.Output(
        builder.Element(builder.AxisInput(bits), Select(i < n, n - 1 - i, i)),
        bits);
    TFPLUG_ASSIGN_OR_RETURN(reverse_, std::move(builder).Build());
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand lengths, GetView(run, 1));
    const auto batch = static_cast<int>(batch_),
               sequence = static_cast<int>(sequence_);
    if (lengths.rank != 1) {
      return absl::InvalidArgumentError("seq_lengths must be 1-dim, not " +
                                        std::to_string(lengths.rank));
    }
    if (batch == sequence) {
      return absl::InvalidArgumentError("batch_dim == seq_dim == " +
                                        std::to_string(sequence));
    }
    for (const auto& [name, dim] :
         {std::pair<const char*, int>{"seq_dim", sequence},
          {"batch_dim", batch}}) {
      if (dim < x.rank && dim >= 0) continue;
      return absl::InvalidArgumentError(
          std::string(name) + " must be < input rank ( " + std::to_string(dim) +
          " vs. " + std::to_string(x.rank) + "), and not negative");
    }
    if (lengths.dim(0) != x.dim(batch)) {
      return absl::InvalidArgumentError(
          absl::StrCat("Length of seq_lengths != input.dims(", batch, "), (",
                       lengths.dim(0), " vs. ", x.dim(batch), ")"));
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, ShapeOf(x)));
    return MoveParts(
        ir::WithDim(ir::WithAxis(x, sequence), sequence, x.dim(sequence)), y,
        [&](const Operand& from, const Operand& to) {
          return run.launcher().Map(
              reverse_,
              {ir::IndexOf(y, sequence), ir::AlongDim(lengths, x, batch), from},
              {to});
        });
  }

 private:
  int64_t batch_ = 0, sequence_ = 0;
  Expression reverse_;
};

}  // namespace op_kernels_internal

inline void PartitionOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  for (const char* op : {"DynamicStitch", "ParallelDynamicStitch"}) {
    registrar.Add<StitchKernel>(KernelDef(op), "T", kCopiedTypes);
  }
  registrar.Add<PartitionKernel>(KernelDef("DynamicPartition"), "T",
                                 kCopiedTypes);
  registrar.Add<ReverseSequenceKernel>(
      KernelDef("ReverseSequence").TypeConstraint<int32_t, int64_t>("Tlen"),
      "T", kCopiedTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_PARTITION_H_
