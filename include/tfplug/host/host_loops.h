// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_HOST_HOST_LOOPS_H_
#define TFPLUG_HOST_HOST_LOOPS_H_

#include <cstdint>

#pragma GCC visibility push(hidden)

namespace tfplug {

// Rows of elements in memory; element [r][i] is at data + r * row_stride + i *
// stride. Dense if stride is 1 and row_stride is the number of elements in a
// row.
struct HostRows {
  void* data;
  int64_t row_stride;
  int64_t stride;
};

// A step of HostLoops::chain: the value of an element becomes opcode(value, b),
// or opcode(b, value) if `swapped`. b is the element of an array, or of
// `single` if the array is null; kNeg and kAbs have no b.
struct HostStep {
  int opcode;
  bool swapped;
  float single;
  const float* b;
};

// The loops over elements from which host.h makes the primitives of a device
// that computes on the host. Arguments are plain data, and enumerators (Opcode,
// DataType, ReduceKind) are passed as their numbers, so that a library can
// compile the loops for several instruction sets and choose one at run time:
// see GenericHostLoops (internal/code.h).
//
// Arrays hold elements of a type that is computed in (ComputeType) unless
// stated otherwise. An output may be the same array as an input, but does not
// overlap one otherwise.
struct HostLoops {
  enum Single : uint8_t { kNone, kA, kB };

  // y[i] = opcode(a[i], b[i], c[i]) for i < n. `type` is that of y as in
  // Instruction::type, `from` that of a.
  void (*compute)(int opcode, int type, int from, int64_t n, void* y,
                  const void* a, const void* b, const void* c);
  // y[r][i] = opcode(a[r][i], b[r][i]), or opcode(b, a) if `swapped`, for the
  // arithmetic of floats and doubles: kAdd, kSub, kMul, kDiv, kMax, kMin. y and
  // a are dense; b has a stride of 0 or 1.
  void (*compute_rows)(int opcode, int type, bool swapped, int64_t rows,
                       int64_t n, void* y, const void* a, const HostRows& b);
  // y[i] = opcode(a[i], b[i]) ? u[i] : v[i], of `type`, float or double, which
  // is also the type of a and b; `opcode` compares. Without v, the condition is
  // a number, 1 or 0, which is multiplied by u[i] unless u is null, too. One of
  // a and b may be a single value; floats only.
  void (*compare)(int opcode, int type, Single single, int64_t n, void* y,
                  const void* a, const void* b, const void* u, const void* v);
  // y[i] = x[i] after all steps, for floats: kAdd, kSub, kMul, kDiv, kMax,
  // kMin, kNeg and kAbs. Each step rounds, as a loop of its own. May be null.
  void (*chain)(const HostStep* steps, int num_steps, int64_t n, float* y,
                const float* x);
  // Converts rows of elements of `type` to the dense array y.
  void (*load)(int type, int64_t rows, int64_t n, const HostRows& x, void* y);
  // Converts the dense array x of `from` to rows of elements of `type`.
  void (*store)(int from, int type, int64_t rows, int64_t n, const void* x,
                const HostRows& y);
  // Copies rows of elements of `size` bytes: 1, 2, 4 or 8.
  void (*copy)(int size, int64_t rows, int64_t n, const HostRows& x,
               const HostRows& y);
  // Reads element index[r * n + i] of an axis that begins at x[r][i], as
  // Opcode::kElement does.
  void (*select)(int type, int64_t rows, int64_t n, const HostRows& x,
                 const int64_t* index, int64_t axis_size, int64_t axis_stride,
                 void* y);
  // Combine n values in each row: totals[i] with x[r * row_stride + i] for all
  // r, or totals[r] with x[r * row_stride + i] for all i. Totals of floats are
  // doubles.
  void (*combine_rows)(int kind, int type, int64_t rows, int64_t n,
                       const void* x, int64_t row_stride, void* totals);
  void (*combine_each)(int kind, int type, int64_t rows, int64_t n,
                       const void* x, int64_t row_stride, void* totals);
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_HOST_HOST_LOOPS_H_
