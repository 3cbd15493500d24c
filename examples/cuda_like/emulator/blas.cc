// SPDX-License-Identifier: Apache-2.0
// An emulated cuBLAS in the emulated driver: products by plain loops on the
// stream's thread. CUDA_LIKE_FAULT makes its functions fail as well; the kind
// "unknown" is a product that cuBLAS does not support.
#include <tfplug/base/narrow_types.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/exports.h"
#include "emulator/objects.h"

namespace cuda_like {

struct cublasContext {
  CUctx_st& context;
  CUstream stream = nullptr;
  void* workspace = nullptr;  // null: its own
  // cuBLAS's handles are for one thread at a time.
  std::atomic<bool> is_busy{false};
};

namespace {

std::atomic<int64_t> products{0};

// Runs a call on a handle, in the context in which it was created.
template <class Call>
cublasStatus_t RunOnHandle(const char* name, cublasHandle_t handle, Call call) {
  try {
    const absl::Status fault = rt::CheckFault(name);
    if (absl::IsResourceExhausted(fault)) return CUBLAS_STATUS_ALLOC_FAILED;
    if (!fault.ok()) return CUBLAS_STATUS_EXECUTION_FAILED;
  } catch (...) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (&handle->context != emulator::current || handle->is_busy.exchange(true)) {
    return CUBLAS_STATUS_INTERNAL_ERROR;
  }
  const cublasStatus_t status = call(*handle);
  handle->is_busy = false;
  return status;
}

// A matrix in device memory, by columns.
struct Matrix {
  const void* address;
  cublasOperation_t operation;
  int64_t rows, columns;  // as multiplied
  int64_t leading;
  long long stride;

  bool is_transposed() const { return operation == CUBLAS_OP_T; }
  bool is_valid() const {
    return (operation == CUBLAS_OP_N || is_transposed()) &&
           leading >= std::max<int64_t>(1, is_transposed() ? columns : rows);
  }
  // Returns the bytes from the first to behind the last element.
  size_t Bytes(int64_t count, size_t size) const {
    const int64_t inner = is_transposed() ? columns : rows;
    const int64_t outer = is_transposed() ? rows : columns;
    const int64_t last = (count - 1) * stride + (outer - 1) * leading + inner;
    return static_cast<size_t>(last) * size;
  }
  int64_t Offset(int64_t i, int64_t j) const {
    return is_transposed() ? j + i * leading : i + j * leading;
  }
};

template <class T, class Sum>
void Multiply(const Matrix& a, const Matrix& b, const Matrix& c,
              int64_t count) {
  std::vector<Sum> sums(static_cast<size_t>(c.rows));
  for (int64_t matrix = 0; matrix < count; ++matrix) {
    const T* const from_a =
        static_cast<const T*>(a.address) + matrix * a.stride;
    const T* const from_b =
        static_cast<const T*>(b.address) + matrix * b.stride;
    T* const to =
        static_cast<T*>(const_cast<void*>(c.address)) + matrix * c.stride;
    for (int64_t j = 0; j < c.columns; ++j) {
      std::fill(sums.begin(), sums.end(), Sum(0));
      for (int64_t k = 0; k < a.columns; ++k) {
        const Sum factor = static_cast<Sum>(from_b[b.Offset(k, j)]);
        for (int64_t i = 0; i < c.rows; ++i) {
          sums[static_cast<size_t>(i)] +=
              static_cast<Sum>(from_a[a.Offset(i, k)]) * factor;
        }
      }
      for (int64_t i = 0; i < c.rows; ++i) {
        to[c.Offset(i, j)] = T(sums[static_cast<size_t>(i)]);
      }
    }
  }
}

// A float that is rounded to TF32 when it is read: 10 bits of its fraction.
class Tf32 {
 public:
  explicit Tf32(float value) : value_(value) {}
  explicit operator float() const {
    uint32_t bits;
    std::memcpy(&bits, &value_, sizeof(bits));
    bits = (bits + 0x1000) & ~uint32_t{0x1fff};
    float rounded;
    std::memcpy(&rounded, &bits, sizeof(bits));
    return rounded;
  }

 private:
  float value_;
};

struct Type {
  cudaDataType code;
  size_t size;
  cublasComputeType_t compute;
  void (*multiply)(const Matrix& a, const Matrix& b, const Matrix& c,
                   int64_t count);
};
constexpr Type kTypes[] = {
    {CUDA_R_32F, 4, CUBLAS_COMPUTE_32F, &Multiply<float, float>},
    {CUDA_R_32F, 4, CUBLAS_COMPUTE_32F_FAST_TF32, &Multiply<Tf32, float>},
    {CUDA_R_64F, 8, CUBLAS_COMPUTE_64F, &Multiply<double, double>},
    {CUDA_R_16F, 2, CUBLAS_COMPUTE_32F, &Multiply<tfplug::Half, float>},
    {CUDA_R_16BF, 2, CUBLAS_COMPUTE_32F, &Multiply<tfplug::BFloat16, float>},
};

cublasStatus_t Enqueue(cublasContext& handle, const Type& type, Matrix a,
                       Matrix b, Matrix c, int64_t count) {
  for (Matrix* const matrix : {&a, &b, &c}) {
    const absl::StatusOr<void*> address = handle.context.device->ToPrivate(
        matrix->address, matrix->Bytes(count, type.size));
    if (!address.ok()) return CUBLAS_STATUS_EXECUTION_FAILED;
    matrix->address = *address;
  }
  // cuBLAS would allocate a workspace in the graph, which is not emulated.
  if (handle.stream->capture != nullptr && handle.workspace == nullptr) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  ++products;
  const absl::Status status =
      emulator::Enqueue(*handle.stream, [=, multiply = type.multiply] {
        multiply(a, b, c, count);
        return CUDA_SUCCESS;
      });
  return status.ok() ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace

// For tests: the number of products that were enqueued.
extern "C" CUDA_LIKE_EXPORT int64_t cudaLikeBlasProducts() { return products; }

extern "C" const char* cublasGetStatusName(cublasStatus_t status) {
#define CUDA_LIKE_NAME(name) \
  case name:                 \
    return #name;
  switch (status) {
    CUDA_LIKE_NAME(CUBLAS_STATUS_SUCCESS)
    CUDA_LIKE_NAME(CUBLAS_STATUS_NOT_INITIALIZED)
    CUDA_LIKE_NAME(CUBLAS_STATUS_ALLOC_FAILED)
    CUDA_LIKE_NAME(CUBLAS_STATUS_INVALID_VALUE)
    CUDA_LIKE_NAME(CUBLAS_STATUS_ARCH_MISMATCH)
    CUDA_LIKE_NAME(CUBLAS_STATUS_EXECUTION_FAILED)
    CUDA_LIKE_NAME(CUBLAS_STATUS_INTERNAL_ERROR)
    CUDA_LIKE_NAME(CUBLAS_STATUS_NOT_SUPPORTED)
  }
#undef CUDA_LIKE_NAME
  return "unknown";
}

extern "C" const char* cublasGetStatusString(cublasStatus_t /*status*/) {
  return "emulated";
}

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (emulator::current == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  auto made =
      std::unique_ptr<cublasContext>(new cublasContext{*emulator::current});
  return RunOnHandle(__func__, made.get(), [&](cublasContext&) {
    *handle = made.release();
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  const cublasStatus_t status = RunOnHandle(
      __func__, handle, [](cublasContext&) { return CUBLAS_STATUS_SUCCESS; });
  if (status == CUBLAS_STATUS_SUCCESS) delete handle;
  return status;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, CUstream stream) {
  return RunOnHandle(__func__, handle, [&](cublasContext& on) {
    on.stream = stream;
    on.workspace = nullptr;
    return stream != nullptr && &stream->context == &on.context
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_INVALID_VALUE;
  });
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* memory,
                                     size_t bytes) {
  return RunOnHandle(__func__, handle, [&](cublasContext& on) {
    on.workspace = memory;
    return on.context.device->ToPrivate(memory, bytes).ok()
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_INVALID_VALUE;
  });
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return RunOnHandle(__func__, handle, [&](cublasContext&) {
    return mode == CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_INVALID_VALUE;
  });
}

cublasStatus_t cublasGemmStridedBatchedEx_64(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
    int64_t m, int64_t n, int64_t k, const void* alpha, const void* a,
    cudaDataType a_type, int64_t lda, long long stride_a, const void* b,
    cudaDataType b_type, int64_t ldb, long long stride_b, const void* beta,
    void* c, cudaDataType c_type, int64_t ldc, long long stride_c,
    int64_t count, cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  return RunOnHandle(__func__, handle, [&](cublasContext& on) {
    const bool is_double = compute == CUBLAS_COMPUTE_64F;
    const auto scale = [&](const void* value) {
      return is_double ? *static_cast<const double*>(value)
                       : static_cast<double>(*static_cast<const float*>(value));
    };
    const Matrix left{a, transa, m, k, lda, stride_a};
    const Matrix right{b, transb, k, n, ldb, stride_b};
    const Matrix to{c, CUBLAS_OP_N, m, n, ldc, stride_c};
    if (on.stream == nullptr || m <= 0 || n <= 0 || k <= 0 || count <= 0 ||
        !left.is_valid() || !right.is_valid() || !to.is_valid() ||
        scale(alpha) != 1 || scale(beta) != 0 || b_type != a_type ||
        c_type != a_type || algorithm != CUBLAS_GEMM_DEFAULT) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    for (const Type& type : kTypes) {
      if (type.code == a_type && type.compute == compute) {
        return Enqueue(on, type, left, right, to, count);
      }
    }
    return CUBLAS_STATUS_NOT_SUPPORTED;
  });
}

}  // namespace cuda_like
