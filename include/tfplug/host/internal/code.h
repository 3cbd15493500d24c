// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_HOST_INTERNAL_CODE_H_
#define TFPLUG_HOST_INTERNAL_CODE_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tfplug/host/combine.h"
#include "tfplug/host/host_loops.h"
#include "tfplug/host/internal/chain.h"
#include "tfplug/ir/scalar_code.h"

#pragma GCC visibility push(hidden)
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"  // see scalar_code.h
#endif

// HostLoops as plain loops, which compilers vectorize. To compile them for
// another instruction set, include this file with `tfplug` defined as another
// name: the linker merges equal functions of equal names.
namespace tfplug::host_internal {

// y[i] = condition[i] ? u[i] : v[i], without branches.
template <class Bits>
void SelectBits(int64_t n, void* y, const void* condition, const void* u,
                const void* v) {
  Bits* const to = static_cast<Bits*>(y);
  const uint8_t* const flags = static_cast<const uint8_t*>(condition);
  const Bits* const a = static_cast<const Bits*>(u);
  const Bits* const b = static_cast<const Bits*>(v);
  TFPLUG_INTERNAL_NO_OVERLAP
  for (int64_t i = 0; i < n; ++i) {
    const Bits mask = static_cast<Bits>(0 - static_cast<Bits>(flags[i]));
    to[i] = static_cast<Bits>((a[i] & mask) | (b[i] & ~mask));
  }
}

// y[r][i] = f(a[r][i], b[r][i]), where the stride of b is 0 or 1.
template <class T, class F>
[[gnu::always_inline]] inline void EachInRows(int64_t rows, int64_t n, T* y,
                                              const T* a, const HostRows& b,
                                              F f) {
  const T* row = static_cast<const T*>(b.data);
  for (int64_t r = 0; r < rows; ++r, y += n, a += n, row += b.row_stride) {
    if (b.stride == 0) {
      ir::Each(n, y, a, [f, value = *row](T u) { return f(u, value); });
    } else {
      ir::Each(n, y, a, row, f);
    }
  }
}

template <class T>
void ComputeRows(Opcode opcode, bool swapped, int64_t rows, int64_t n, T* y,
                 const T* a, const HostRows& b) {
  const auto each = [&](auto f) { EachInRows(rows, n, y, a, b, f); };
  ir::VisitScalar<Opcode::kAdd, Opcode::kMul>(opcode, each);
  ir::VisitScalar<Opcode::kSub, Opcode::kDiv, Opcode::kMax, Opcode::kMin>(
      opcode, [&](auto f) {
        if (!swapped) return each(f);
        each([f](T u, T v) { return f(v, u); });
      });
}

inline void HostComputeRows(int opcode, int type, bool swapped, int64_t rows,
                            int64_t n, void* y, const void* a,
                            const HostRows& b) {
  if (static_cast<DataType>(type) == DataType::kFloat) {
    return ComputeRows(static_cast<Opcode>(opcode), swapped, rows, n,
                       static_cast<float*>(y), static_cast<const float*>(a), b);
  }
  ComputeRows(static_cast<Opcode>(opcode), swapped, rows, n,
              static_cast<double*>(y), static_cast<const double*>(a), b);
}

// HostLoops::compare with a function for the condition of an element.
template <class T, class Condition>
void Choose(int64_t n, T* y, const T* u, const T* v, Condition holds) {
  if (v != nullptr) {
    TFPLUG_INTERNAL_NO_OVERLAP
    for (int64_t i = 0; i < n; ++i) {
      const T p = u[i], q = v[i];
      y[i] = holds(i) ? p : q;
    }
  } else if (u != nullptr) {
    TFPLUG_INTERNAL_NO_OVERLAP
    for (int64_t i = 0; i < n; ++i) y[i] = u[i] * (holds(i) ? T(1) : T(0));
  } else {
    TFPLUG_INTERNAL_NO_OVERLAP
    for (int64_t i = 0; i < n; ++i) y[i] = holds(i) ? T(1) : T(0);
  }
}

template <class T, class Compare>
void CompareWith(HostLoops::Single single, int64_t n, T* y, const T* a,
                 const T* b, const T* u, const T* v, Compare holds) {
  if constexpr (std::is_same_v<T, float>) {
    if (single == HostLoops::kA) {
      return Choose(n, y, u, v, [holds, value = *a, b](int64_t i) {
        return holds(value, b[i]);
      });
    }
    if (single == HostLoops::kB) {
      return Choose(n, y, u, v, [holds, a, value = *b](int64_t i) {
        return holds(a[i], value);
      });
    }
  }
  Choose(n, y, u, v, [holds, a, b](int64_t i) { return holds(a[i], b[i]); });
}

inline void HostCompare(int opcode, int type, HostLoops::Single single,
                        int64_t n, void* y_data, const void* a_data,
                        const void* b_data, const void* u_data,
                        const void* v_data) {
  const auto visit = [&](auto* y) {
    using T = std::remove_pointer_t<decltype(y)>;
    const auto compare = [&](auto holds) {
      CompareWith(single, n, y, static_cast<const T*>(a_data),
                  static_cast<const T*>(b_data), static_cast<const T*>(u_data),
                  static_cast<const T*>(v_data), holds);
    };
    ir::VisitScalar<Opcode::kEq, Opcode::kNe, Opcode::kLt, Opcode::kLe>(
        static_cast<Opcode>(opcode), compare);
  };
  if (static_cast<DataType>(type) == DataType::kFloat) {
    return visit(static_cast<float*>(y_data));
  }
  visit(static_cast<double*>(y_data));
}

inline void HostCompute(int opcode_number, int type_number, int from, int64_t n,
                        void* y, const void* a, const void* b, const void* c) {
  const auto opcode = static_cast<Opcode>(opcode_number);
  const auto type = static_cast<DataType>(type_number);
  if (opcode == Opcode::kSelect) {
    switch (DataTypeSize(type)) {
      case 1:
        return SelectBits<uint8_t>(n, y, a, b, c);
      case 4:
        return SelectBits<uint32_t>(n, y, a, b, c);
      default:
        return SelectBits<uint64_t>(n, y, a, b, c);
    }
  }
  if (opcode == Opcode::kBitcast) {
    std::memmove(y, a, static_cast<size_t>(n) * DataTypeSize(type));
    return;
  }
  if (opcode == Opcode::kCast && type == DataType::kFloat &&
      static_cast<DataType>(from) == DataType::kBool) {
    // Compilers do not vectorize the conversion itself.
    const uint8_t* const flags = static_cast<const uint8_t*>(a);
    uint32_t* const to = static_cast<uint32_t*>(y);
    constexpr uint32_t kOne = 0x3f800000;  // the bits of 1.0f
    TFPLUG_INTERNAL_NO_OVERLAP
    for (int64_t i = 0; i < n; ++i) to[i] = (0u - flags[i]) & kOne;
    return;
  }
  ir::VisitComputed(static_cast<DataType>(from), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const x = static_cast<const T*>(a);
    if (opcode != Opcode::kCast) {
      return ir::Compute(opcode, n, y, x, static_cast<const T*>(b));
    }
    ir::VisitStored(type, [&](auto to) {
      using To = typename decltype(to)::type;
      using C = ir::Computed<To>;
      ir::Each(n, static_cast<C*>(y), x,
               [](T v) { return static_cast<C>(ir::Convert<To>(v)); });
    });
  });
}

// y[r][i] = convert(x[r + i * x_stride]). A square of elements is transposed in
// an array, so that neither side keeps many cache lines in use: strides are
// often powers of two, which few lines of a cache can have.
template <class From, class To, class Convert>
void TransposeRows(int64_t rows, int64_t n, const From* x, int64_t x_stride,
                   To* y, int64_t y_row, Convert convert) {
  constexpr int64_t kSide = 16;
  To square[kSide][kSide];
  for (int64_t r = 0; r < rows; r += kSide) {
    const int64_t height = rows - r < kSide ? rows - r : kSide;
    for (int64_t i = 0; i < n; i += kSide) {
      const int64_t width = n - i < kSide ? n - i : kSide;
      for (int64_t k = 0; k < width; ++k) {
        const From* const column = x + r + (i + k) * x_stride;
        if (height == kSide) {
          for (int64_t j = 0; j < kSide; ++j) square[j][k] = convert(column[j]);
        } else {
          for (int64_t j = 0; j < height; ++j) {
            square[j][k] = convert(column[j]);
          }
        }
      }
      for (int64_t j = 0; j < height; ++j) {
        To* const to = y + (r + j) * y_row + i;
        if (width == kSide) {
          for (int64_t k = 0; k < kSide; ++k) to[k] = square[j][k];
        } else {
          for (int64_t k = 0; k < width; ++k) to[k] = square[j][k];
        }
      }
    }
  }
}

// y[r][i] = convert(x[r][i]).
template <class From, class To, class Convert>
void ConvertRows(int64_t rows, int64_t n, const From* x, int64_t x_row,
                 int64_t x_stride, To* y, int64_t y_row, int64_t y_stride,
                 Convert convert) {
  if (x_stride == 1 && y_stride == 1) {
    if (x_row == n && y_row == n) {
      n *= rows;
      rows = 1;
    }
    for (int64_t r = 0; r < rows; ++r) {
      ir::Each(n, y + r * y_row, x + r * x_row, convert);
    }
    return;
  }
  if (x_stride == 0 && y_stride == 1) {
    for (int64_t r = 0; r < rows; ++r) {
      const To value = convert(x[r * x_row]);
      To* const to = y + r * y_row;
      for (int64_t i = 0; i < n; ++i) to[i] = value;
    }
    return;
  }
  if (x_row == 1 && x_stride != 1 && y_stride == 1) {
    return TransposeRows(rows, n, x, x_stride, y, y_row, convert);
  }
  for (int64_t r = 0; r < rows; ++r) {
    TFPLUG_INTERNAL_NO_OVERLAP
    for (int64_t i = 0; i < n; ++i) {
      y[r * y_row + i * y_stride] = convert(x[r * x_row + i * x_stride]);
    }
  }
}

inline void HostLoad(int type, int64_t rows, int64_t n, const HostRows& x,
                     void* y) {
  ir::VisitStored(static_cast<DataType>(type), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ir::Computed<T>;
    ConvertRows(rows, n, static_cast<const T*>(x.data), x.row_stride, x.stride,
                static_cast<C*>(y), n, 1,
                [](T v) { return static_cast<C>(v); });
  });
}

// Stores dense values of the type in which T is computed.
template <class T>
void StoreRows(int64_t rows, int64_t n, const ir::Computed<T>* x,
               const HostRows& y) {
  using C = ir::Computed<T>;
  const auto convert = [](C v) { return ir::Convert<T>(v); };
  if (y.stride == 1 && y.row_stride == n) {
    n *= rows;
    rows = 1;
  }
  T* row = static_cast<T*>(y.data);
  for (int64_t r = 0; r < rows; ++r, x += n, row += y.row_stride) {
    if (y.stride == 1) {
      ir::Each(n, row, x, convert);
    } else {
      TFPLUG_INTERNAL_NO_OVERLAP
      for (int64_t i = 0; i < n; ++i) row[i * y.stride] = convert(x[i]);
    }
  }
}

inline void HostStore(int from, int type, int64_t rows, int64_t n,
                      const void* x, const HostRows& y) {
  ir::VisitStored(static_cast<DataType>(type), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ir::Computed<T>;
    if (static_cast<DataType>(from) == DataTypeOf<C>()) {
      return StoreRows<T>(rows, n, static_cast<const C*>(x), y);
    }
    // Converts first: loops from each type to each other one, with strides, would
    // be half of the code.
    const char* values = static_cast<const char*>(x);
    const size_t size = DataTypeSize(static_cast<DataType>(from));
    const auto convert = [&](int64_t count, C* to) {
      HostCompute(static_cast<int>(Opcode::kCast), type, from, count, to,
                  values, nullptr, nullptr);
      values += static_cast<size_t>(count) * size;
    };
    constexpr int64_t kPiece = 256;
    C piece[kPiece];
    T* row = static_cast<T*>(y.data);
    for (int64_t r = 0; r < rows; ++r, row += y.row_stride) {
      if constexpr (std::is_same_v<T, C>) {
        if (y.stride == 1) {
          convert(n, row);
          continue;
        }
      }
      for (int64_t i = 0; i < n; i += kPiece) {
        const int64_t some = n - i < kPiece ? n - i : kPiece;
        convert(some, piece);
        StoreRows<T>(1, some, piece, {row + i * y.stride, some, y.stride});
      }
    }
  });
}

inline void HostCopy(int size, int64_t rows, int64_t n, const HostRows& x,
                     const HostRows& y) {
  const auto copy = [&](auto zero) {
    using T = decltype(zero);
    if (x.stride == 1 && y.stride == 1) {
      const auto bytes = static_cast<size_t>(n) * sizeof(T);
      for (int64_t r = 0; r < rows; ++r) {
        std::memmove(static_cast<T*>(y.data) + r * y.row_stride,
                     static_cast<const T*>(x.data) + r * x.row_stride, bytes);
      }
      return;
    }
    ConvertRows(rows, n, static_cast<const T*>(x.data), x.row_stride, x.stride,
                static_cast<T*>(y.data), y.row_stride, y.stride,
                [](T v) { return v; });
  };
  switch (size) {
    case 1:
      return copy(uint8_t{0});
    case 2:
      return copy(uint16_t{0});
    case 4:
      return copy(uint32_t{0});
    default:
      return copy(uint64_t{0});
  }
}

inline void HostSelect(int type, int64_t rows, int64_t n, const HostRows& x,
                       const int64_t* index, int64_t axis_size,
                       int64_t axis_stride, void* y) {
  ir::VisitStored(static_cast<DataType>(type), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ir::Computed<T>;
    for (int64_t r = 0; r < rows; ++r, index += n) {
      const T* const from = static_cast<const T*>(x.data) + r * x.row_stride;
      C* const to = static_cast<C*>(y) + r * n;
      int64_t differ = 0;
      for (int64_t i = 0; i < n; ++i) differ |= index[i] ^ index[0];
      if (differ == 0 && x.stride == 1) {  // a row of a table
        const bool exists = index[0] >= 0 && index[0] < axis_size;
        const T* const row = exists ? from + index[0] * axis_stride : nullptr;
        for (int64_t i = 0; i < n; ++i) {
          to[i] = exists ? static_cast<C>(row[i]) : C(0);
        }
        continue;
      }
      for (int64_t i = 0; i < n; ++i) {
        const bool exists = index[i] >= 0 && index[i] < axis_size;
        to[i] =
            exists ? static_cast<C>(from[i * x.stride + index[i] * axis_stride])
                   : C(0);
      }
    }
  });
}

inline constexpr HostLoops kGenericHostLoops = {
    &HostCompute,
    &HostComputeRows,
    &HostCompare,
    kHostChain,
    &HostLoad,
    &HostStore,
    &HostCopy,
    &HostSelect,
    &host::HostCombineRows,
    &host::HostCombineEach,
};

}  // namespace tfplug::host_internal

#ifdef __clang__
#pragma clang diagnostic pop
#endif
#pragma GCC visibility pop

#endif  // TFPLUG_HOST_INTERNAL_CODE_H_
