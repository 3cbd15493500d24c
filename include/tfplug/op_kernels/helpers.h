// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_HELPERS_H_
#define TFPLUG_OP_KERNELS_HELPERS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/op_kernels/op_run.h"
#include "tfplug/primitives/elements.h"

#pragma GCC visibility push(hidden)

// Checks and views that several families of ops share.
namespace tfplug::op_kernels_internal {

// Returns the index of a dimension; a negative one counts from the end. The
// message for an axis that is out of range begins with `words`.
inline absl::StatusOr<int> CheckAxis(int64_t axis, int rank,
                                     const char* words = nullptr) {
  if (axis >= -rank && axis < rank) {
    return static_cast<int>(axis < 0 ? axis + rank : axis);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      (words != nullptr ? words : "Expected dimension in the range "), "[",
      -rank, ", ", rank, "), but got ", axis));
}

// Returns the error for an axis that a tensor lacks in the words of TensorFlow's
// shape functions.
inline absl::Status RankError(int64_t axis, int rank) {
  const auto bits = static_cast<uint64_t>(axis);  // -axis may overflow
  return absl::InvalidArgumentError(absl::StrCat(
      "Shape must be at least rank ", axis < 0 ? uint64_t{0} - bits : bits + 1,
      " but is rank ", rank));
}

// Returns the only element of input `i`, an axis in host memory.
inline absl::StatusOr<int> GetAxis(OpRun& run, int i, int rank,
                                   const char* scalar_words = nullptr,
                                   const char* range_words = nullptr) {
  TFPLUG_ASSIGN_OR_RETURN(const int64_t axis, run.GetScalar(i, scalar_words));
  return CheckAxis(axis, rank, range_words);
}

// Returns a list of sizes as a shape.
inline absl::StatusOr<Shape> ToShape(absl::Span<const int64_t> sizes) {
  for (int64_t size : sizes) {
    if (size < 0) {
      return absl::InvalidArgumentError("Dimension " + std::to_string(size) +
                                        " must be >= 0");
    }
  }
  Shape shape(sizes);
  if (shape.num_elements() < 0) {
    return absl::InvalidArgumentError("a tensor " + shape.ToString() +
                                      " has too many elements");
  }
  return shape;
}
inline absl::StatusOr<Shape> GetShape(OpRun& run, int i,
                                      const char* words = nullptr) {
  if (words == nullptr)
    words = "shape must be a vector of {int32,int64}, got shape ";
  TFPLUG_ASSIGN_OR_RETURN(const Ints sizes, run.GetVector(i, words));
  return ToShape(sizes);
}

// Returns the product of two sizes.
inline absl::StatusOr<int64_t> MultiplySizes(int64_t a, int64_t b) {
  int64_t product;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return absl::InvalidArgumentError(
      "Negative output dimension size caused by overflow when multiplying " +
      std::to_string(a) + " and " + std::to_string(b));
}

inline Shape ShapeOf(const Operand& view) { return Shape(ir::DimsOf(view)); }

// Returns input `i` as a dense view.
inline absl::StatusOr<Operand> GetView(OpRun& run, int i) {
  TFPLUG_ASSIGN_OR_RETURN(const Tensor tensor, run.GetInput(i));
  return ViewOf(tensor);
}

// Returns the type of the parts of a complex type, or `type` itself.
constexpr DataType PartType(DataType type) {
  return type == DataType::kComplex64    ? DataType::kFloat
         : type == DataType::kComplex128 ? DataType::kDouble
                                         : type;
}
constexpr bool IsComplex(DataType type) { return PartType(type) != type; }

// Returns the view of the real parts (0) or the imaginary parts (1).
inline Operand PartOf(Operand view, int part) {
  view.type = PartType(view.type);
  for (int d = 0; d < view.rank; ++d) view.stride(d) *= 2;
  view.axis_stride *= 2;
  return view.Advance(part);
}

// Returns the views of the parts of elements that are too large to be copied as
// one: the view itself if they have up to 8 bytes.
inline absl::InlinedVector<Operand, 2> MovableParts(const Operand& view) {
  if (DataTypeSize(view.type) <= 8) return {ir::AsBits(view)};
  return {ir::AsBits(PartOf(view, 0)), ir::AsBits(PartOf(view, 1))};
}

// Calls `move` with each of the MovableParts of `from` and `to`.
template <class Move>
absl::Status MoveParts(const Operand& from, const Operand& to,
                       const Move& move) {
  const auto sources = MovableParts(from), results = MovableParts(to);
  for (size_t i = 0; i < results.size(); ++i) {
    TFPLUG_RETURN_IF_ERROR(move(sources[i], results[i]));
  }
  return absl::OkStatus();
}

// Returns a dense matrix of complex numbers as one of their parts, with twice
// as many columns; others unchanged.
inline Operand AsParts(const Operand& rows) {
  if (!IsComplex(rows.type)) return rows;
  return Operand::Dense(rows.data, PartType(rows.type),
                        {rows.dim(0), 2 * rows.dim(1)});
}
inline absl::Status Fill(OpRun& run, const Operand& to, double value) {
  return primitives::Fill(run.launcher(), to, value);
}
inline absl::Status Copy(OpRun& run, const Operand& from, const Operand& to) {
  return primitives::Copy(run.launcher(), from, to);
}

// Returns memory for the sums that `output` shall hold: a temporary array if
// its type is narrower than the one that is computed in, so that a sum is
// rounded once, by Convert.
inline absl::StatusOr<Operand> AllocateSums(OpRun& run, const Operand& output) {
  const DataType type = ComputeType(output.type);
  if (type == output.type) return output;
  return run.launcher().Allocate(type, ir::DimsOf(output));
}
// Copies elements to a view of another type, unless both are the same memory.
inline absl::Status Convert(OpRun& run, const Operand& from,
                            const Operand& to) {
  if (from.data == to.data) return absl::OkStatus();
  TFPLUG_ASSIGN_OR_RETURN(const Expression* const convert,
                          primitives::ConversionOf(from.type, to.type));
  return run.launcher().Map(*convert, {from}, {to});
}

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_HELPERS_H_
