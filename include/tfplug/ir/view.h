// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_IR_VIEW_H_
#define TFPLUG_IR_VIEW_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/base/optimization.h"
#include "absl/types/span.h"
#include "tfplug/base/data_type.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The largest number of dimensions of a view. Dimensions are merged before a
// primitive runs, so it seldom sees more than three.
inline constexpr int kMaxViewRank = 16;

// An input or output of a primitive: elements of device memory at regular
// distances. Element (i0, i1, ...) is at offset i0 * strides[0] + i1 *
// strides[1] + ... from `data`, in elements. A stride of 0 repeats elements, a
// negative one reverses them, and elements may overlap: the patches of a
// convolution are a view.
//
// Plain data: a backend passes it to its device as it is.
struct Operand {
  enum class Kind : uint8_t {
    kMemory,
    // Every element is `scalar`, a value that is known when the work is
    // enqueued.
    kScalar,
    // The value of an element is its offset plus `scalar`: with stride 1 in one
    // dimension and 0 in the others, the index in that dimension. No memory.
    kIndex,
  };

  Kind kind = Kind::kMemory;
  // Set by AddDim if a view has no space for a dimension. Launcher refuses such
  // an operand.
  bool lacks_dims = false;
  DataType type = DataType::kFloat;  // of an element in memory
  int rank = 0;
  void* data = nullptr;  // the element at index (0, 0, ...)
  // kScalar: the bits of the value, as in Instruction::bits. kIndex: the value
  // at offset 0.
  uint64_t scalar = 0;
  // The axis that Opcode::kElement selects from: element `i` of the axis is at
  // i * axis_stride from the element that the dimensions select.
  int64_t axis_size = 0;
  int64_t axis_stride = 0;
  std::array<int64_t, kMaxViewRank> dims = {};     // [0, rank)
  std::array<int64_t, kMaxViewRank> strides = {};  // [0, rank)

  // Returns the dense row-major view of an array.
  static Operand Dense(void* data, DataType type,
                       absl::Span<const int64_t> dims) {
    Operand view;
    view.type = type;
    view.data = data;
    for (const int64_t size : dims) view.AddDim(size, 0);
    int64_t stride = 1;
    for (int d = view.rank; d-- > 0;) {
      view.stride(d) = stride;
      stride *= view.dim(d);
    }
    return view;
  }
  // Returns a view without memory and, so far, without dimensions.
  static Operand Scalar(DataType type, uint64_t bits) {
    Operand view;
    view.kind = Kind::kScalar;
    view.type = type;
    view.scalar = bits;
    return view;
  }
  static Operand Index(int64_t start = 0, DataType type = DataType::kInt64) {
    Operand view = Scalar(type, static_cast<uint64_t>(start));
    view.kind = Kind::kIndex;
    return view;
  }

  int64_t& dim(int d) { return dims[static_cast<size_t>(d)]; }
  int64_t dim(int d) const { return dims[static_cast<size_t>(d)]; }
  int64_t& stride(int d) { return strides[static_cast<size_t>(d)]; }
  int64_t stride(int d) const { return strides[static_cast<size_t>(d)]; }
  bool has_memory() const { return kind == Kind::kMemory; }

  // Appends a dimension. If there are kMaxViewRank already, sets lacks_dims.
  Operand& AddDim(int64_t size, int64_t stride_of_dim) {
    if (ABSL_PREDICT_FALSE(rank >= kMaxViewRank)) {
      lacks_dims = true;
      return *this;
    }
    dim(rank) = size;
    stride(rank) = stride_of_dim;
    ++rank;
    return *this;
  }
  // Moves element (0, 0, ...) by `offset` elements.
  Operand& Advance(int64_t offset) {
    if (kind == Kind::kIndex) {
      scalar += static_cast<uint64_t>(offset);
    } else if (kind == Kind::kMemory) {
      data = static_cast<char*>(data) +
             offset * static_cast<int64_t>(DataTypeSize(type));
    }
    return *this;
  }

  int64_t num_elements() const {
    int64_t count = 1;
    for (int d = 0; d < rank; ++d) count *= dim(d);
    return count;
  }
};

using Operands = absl::Span<const Operand>;

// The operands of a Map of dense arrays with the same dimensions: where neither
// dimensions nor strides matter, they take little time to describe.
struct FlatOperands {
  static constexpr size_t kMost = 32;

  int64_t size;  // elements of each array
  // Bit k is set if operand k is a single element, which is repeated.
  uint64_t repeated;
  // The addresses of the inputs and, after them, the outputs; at most kMost.
  absl::Span<void* const> addresses;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_IR_VIEW_H_
