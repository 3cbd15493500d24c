// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_IR_VIEWS_H_
#define TFPLUG_IR_VIEWS_H_

#include <cstdint>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "tfplug/ir/expression.h"
#include "tfplug/ir/view.h"

#pragma GCC visibility push(hidden)

// Views of the elements of other views.
namespace tfplug::ir {

// Returns the dimensions of a view.
inline absl::Span<const int64_t> DimsOf(const Operand& view) {
  return absl::MakeConstSpan(view.dims.data(), static_cast<size_t>(view.rank));
}

// The views of arrays, of the lowest rank.
class FlatViews {
 public:
  // The expression must have as many operands.
  FlatViews(const Expression& expression, const FlatOperands& operands)
      : num_inputs_(expression.inputs().size()) {
    const auto& outputs = expression.outputs();
    for (size_t k = 0; k < operands.addresses.size(); ++k) {
      Operand view;
      view.type = k < num_inputs_ ? expression.inputs()[k]
                                  : outputs[k - num_inputs_].type;
      view.data = operands.addresses[k];
      if (operands.size != 1) {
        view.AddDim(operands.size, (operands.repeated >> k & 1) == 0 ? 1 : 0);
      }
      views_.push_back(view);
    }
  }

  Operands inputs() const {
    return absl::MakeConstSpan(views_).first(num_inputs_);
  }
  Operands outputs() const {
    return absl::MakeConstSpan(views_).subspan(num_inputs_);
  }

 private:
  size_t num_inputs_;
  absl::InlinedVector<Operand, 4> views_;
};

// Returns the number of elements of the dimensions [begin, end).
inline int64_t CountOf(const Operand& view, int begin, int end) {
  int64_t count = 1;
  for (int d = begin; d < end; ++d) count *= view.dim(d);
  return count;
}

// Returns `view` with dimension `d` moved to the end.
inline Operand WithDimLast(Operand view, int d) {
  const int64_t size = view.dim(d), stride = view.stride(d);
  for (; d + 1 < view.rank; ++d) {
    view.dim(d) = view.dim(d + 1);
    view.stride(d) = view.stride(d + 1);
  }
  view.dim(d) = size;
  view.stride(d) = stride;
  return view;
}
// Returns `view` with a new dimension before `d`, in which it is repeated.
inline Operand WithDim(Operand view, int d, int64_t size, int64_t stride = 0) {
  if (view.AddDim(size, stride).lacks_dims) return view;
  for (int k = view.rank - 1; k > d; --k) {
    view.dim(k) = view.dim(k - 1);
    view.stride(k) = view.stride(k - 1);
  }
  view.dim(d) = size;
  view.stride(d) = stride;
  return view;
}
// Returns elements [begin, end) of dimension `d`.
inline Operand Range(Operand view, int d, int64_t begin, int64_t end) {
  view.Advance(begin * view.stride(d));
  view.dim(d) = end - begin;
  return view;
}
// Returns element `i` of the first dimension.
inline Operand AtIndex(Operand view, int64_t i) {
  view.Advance(i * view.stride(0));
  view = WithDimLast(view, 0);
  --view.rank;
  return view;
}
// Returns `view` without dimension `d`, whose elements Opcode::kElement
// selects.
inline Operand WithAxis(Operand view, int d) {
  view = WithDimLast(view, d);
  --view.rank;
  view.axis_size = view.dim(view.rank);
  view.axis_stride = view.stride(view.rank);
  if (view.axis_size == 0) view.data = nullptr;  // Nothing is read.
  return view;
}
// Returns a view with the dimensions [begin, end) reversed.
inline Operand Reversed(Operand view, int begin, int end) {
  for (int d = begin; d < end; ++d) {
    view.Advance((view.dim(d) - 1) * view.stride(d));
    view.stride(d) = -view.stride(d);
  }
  return view;
}
// Exchanges the last two dimensions.
inline Operand Transposed(Operand view) {
  std::swap(view.dim(view.rank - 2), view.dim(view.rank - 1));
  std::swap(view.stride(view.rank - 2), view.stride(view.rank - 1));
  return view;
}
// Returns `view` without dimensions, to which others are added.
inline Operand WithoutDims(Operand view) {
  view.rank = 0;
  return view;
}

// Returns a dense array as a vector.
inline Operand Flat(const Operand& view) {
  return Operand::Dense(view.data, view.type, {view.num_elements()});
}

// Returns a view at each element of `like` of the element with its index in
// dimension `d`, or, if d is -1, of the first element.
inline Operand AlongDim(Operand view, const Operand& like, int d,
                        int64_t stride = 1) {
  view = WithoutDims(view);
  for (int k = 0; k < like.rank; ++k) {
    view.AddDim(like.dim(k), k == d ? stride : 0);
  }
  return view;
}

// Returns a view of `value` at each element of `like`.
inline Operand ScalarOf(DataType type, double value, const Operand& like) {
  const int64_t integer = IsFloat(type) ? 0 : static_cast<int64_t>(value);
  return AlongDim(Operand::Scalar(type, ConstantBits(type, value, integer)),
                  like, -1);
}

// Returns the index of dimension `d` at each element of `like`.
inline Operand IndexOf(const Operand& like, int d, int64_t start = 0) {
  return AlongDim(Operand::Index(start), like, d);
}

// Returns the unsigned integer of the size of a type, or uint64 for larger ones.
constexpr DataType BitsOf(DataType type) {
  const size_t size = DataTypeSize(type);
  return size == 1   ? DataType::kUint8
         : size == 2 ? DataType::kUint16
         : size == 4 ? DataType::kUint32
                     : DataType::kUint64;
}

// Returns the view as unsigned integers of the same size, for copies: it keeps
// the bits of every number, and needs no arithmetic of the type.
inline Operand AsBits(Operand view) {
  view.type = BitsOf(view.type);
  return view;
}

// Does the same, with two elements for each one of 16 bytes, in a last
// dimension.
inline Operand AsWords(Operand view) {
  if (DataTypeSize(view.type) == 16) {
    for (int d = 0; d < view.rank; ++d) view.stride(d) *= 2;
    view.AddDim(2, 1);
  }
  return AsBits(view);
}

}  // namespace tfplug::ir

#pragma GCC visibility pop

#endif  // TFPLUG_IR_VIEWS_H_
