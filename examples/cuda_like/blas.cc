// SPDX-License-Identifier: Apache-2.0
#include "blas.h"

#include <tfplug/base/load_driver.h>
#include <tfplug/base/status_macros.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cuda_like.h"

namespace cuda_like {
namespace {

using tfplug::DataType;
using tfplug::Operand;

// Describes the last two dimensions; returns whether cuBLAS can read them.
bool Describe(const Operand& view, BlasMatrix* matrix) {
  const int64_t rows = view.dim(view.rank - 2),
                row = view.stride(view.rank - 2);
  const int64_t columns = view.dim(view.rank - 1);
  const int64_t column = view.stride(view.rank - 1);
  if ((columns == 1 || column == 1) && (rows == 1 || row >= columns)) {
    matrix->operation = CUBLAS_OP_N;
    matrix->leading = rows == 1 ? columns : row;
  } else if ((rows == 1 || row == 1) && (columns == 1 || column >= rows)) {
    matrix->operation = CUBLAS_OP_T;
    matrix->leading = columns == 1 ? rows : column;
  } else {
    return false;
  }
  matrix->data = view.data;
  return view.has_memory();
}

// Finds the distance of the matrices; returns whether there is one.
bool DescribeBatch(const Operand& view, BlasMatrix* matrix) {
  int64_t size = 1;  // of the dimensions behind this one
  for (int d = view.rank - 2; d-- > 0;) {
    if (view.dim(d) == 1) continue;
    if (size == 1) matrix->stride = view.stride(d);
    if (view.stride(d) != matrix->stride * size) return false;
    size *= view.dim(d);
  }
  return matrix->stride >= 0;
}

}  // namespace

absl::Status BlasLibrary::Load() {
  const auto tf32 = LibraryNames("CUDA_LIKE_TF32", {});
  if (!tf32.empty()) tf32_ = tf32[0] != "0";
  // An emulated driver's memory and streams are not those of cuBLAS.
  const bool is_default = LibraryNames("CUDA_LIKE_DRIVER", {}).empty();
  const auto chosen = LibraryNames("CUDA_LIKE_BLAS", {});
  const auto names = !chosen.empty() ? chosen
                     : is_default ? std::vector<std::string>{"libcublas.so.13",
                                                             "libcublas.so.12"}
                                  : std::vector<std::string>{};
  if (names.empty() || names[0] == "off") return loaded_;
  const absl::StatusOr<tfplug::Driver> library = tfplug::LoadDriver(
      names, {"install cuBLAS 12 or newer (the package nvidia-cublas of PyPI), "
              "or set CUDA_LIKE_BLAS=off"});
  loaded_ = library.ok() ? FindAll(*library) : library.status();
  is_used_ = loaded_.ok() || !chosen.empty();
  return loaded_;
}

absl::Status BlasLibrary::ToStatus(cublasStatus_t status,
                                   const char* name) const {
  const std::string message = absl::StrCat(
      name, ": ", cublasGetStatusName(status), " (", static_cast<int>(status),
      "): ", cublasGetStatusString(status),
      "; CUDA_LIKE_BLAS=off makes tfplug's kernels compute products");
  switch (status) {
    case CUBLAS_STATUS_ALLOC_FAILED:
      return absl::ResourceExhaustedError(message);
    case CUBLAS_STATUS_ARCH_MISMATCH:
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return absl::UnimplementedError(message);
    default:
      return absl::InternalError(message);
  }
}

std::optional<BlasProduct> MakeBlasProduct(const Operand& a, const Operand& b,
                                           const Operand& c) {
  BlasProduct product;
  switch (c.type) {
    case DataType::kFloat:
      product.type = CUDA_R_32F;
      break;
    case DataType::kDouble:
      product.type = CUDA_R_64F;
      break;
    case DataType::kHalf:
      product.type = CUDA_R_16F;
      break;
    case DataType::kBfloat16:
      product.type = CUDA_R_16BF;
      break;
    default:
      return std::nullopt;
  }
  product.m = c.dim(c.rank - 2);
  product.n = c.dim(c.rank - 1);
  product.k = a.dim(a.rank - 1);
  const int64_t elements = c.num_elements();
  if (a.type != c.type || b.type != c.type || elements == 0 || product.k == 0 ||
      !Describe(a, &product.a) || !DescribeBatch(a, &product.a) ||
      !Describe(b, &product.b) || !DescribeBatch(b, &product.b) ||
      !Describe(c, &product.c) || !DescribeBatch(c, &product.c) ||
      product.c.operation != CUBLAS_OP_N) {
    return std::nullopt;
  }
  product.count = elements / product.m / product.n;
  return product;
}

absl::Status Blas::Create(const Stream& stream, const BlasLibrary& library) {
  TFPLUG_RETURN_IF_ERROR(library.loaded());
  cublasHandle_t handle = nullptr;
  TFPLUG_RETURN_IF_ERROR(library.Call(library.cublasCreate_v2, &handle));
  absl::Status status =
      library.Call(library.cublasSetStream_v2, handle, stream.handle());
  // Sums of 16-bit numbers are floats to the end, as those of our kernels.
  // The type in which a product is computed decides on TF32.
  if (status.ok()) {
    status = library.Call(library.cublasSetMathMode, handle,
                          CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
  }
  if (status.ok()) {
    handle_ = handle;
  } else {
    library.cublasDestroy_v2(handle);
  }
  return status;
}

bool Blas::is_used() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return handle_ != nullptr;
}

absl::Status Blas::CreateForCapture(const Stream& stream, void* workspace,
                                    size_t bytes) {
  const BlasLibrary& library = stream.device().blas();
  const std::lock_guard<std::mutex> lock(mutex_);
  TFPLUG_RETURN_IF_ERROR(stream.device().MakeCurrent());
  TFPLUG_RETURN_IF_ERROR(Create(stream, library));
  return library.Call(library.cublasSetWorkspace_v2, handle_, workspace, bytes);
}

absl::Status Blas::Multiply(const Stream& stream, const BlasProduct& product,
                            bool tf32) {
  const BlasLibrary& library = stream.device().blas();
  const std::lock_guard<std::mutex> lock(mutex_);
  TFPLUG_RETURN_IF_ERROR(stream.device().MakeCurrent());
  if (handle_ == nullptr) {
    if (stream.is_capturing()) {
      return absl::FailedPreconditionError("cuBLAS was not used before");
    }
    TFPLUG_RETURN_IF_ERROR(Create(stream, library));
  }
  const bool is_double = product.type == CUDA_R_64F;
  const cublasComputeType_t compute = is_double ? CUBLAS_COMPUTE_64F
                                      : tf32 && product.type == CUDA_R_32F
                                          ? CUBLAS_COMPUTE_32F_FAST_TF32
                                          : CUBLAS_COMPUTE_32F;
  const float one = 1, zero = 0;
  const double double_one = 1, double_zero = 0;
  const auto& [a, b, c, m, n, k, count, type] = product;
  return library.Call(
      library.cublasGemmStridedBatchedEx_64, handle_, b.operation, a.operation,
      n, m, k, is_double ? static_cast<const void*>(&double_one) : &one, b.data,
      type, b.leading, b.stride, a.data, type, a.leading, a.stride,
      is_double ? static_cast<const void*>(&double_zero) : &zero, c.data, type,
      c.leading, c.stride, count, compute, CUBLAS_GEMM_DEFAULT);
}

void Blas::Destroy(const Stream& stream) {
  if (handle_ == nullptr || !stream.device().MakeCurrent().ok()) return;
  stream.device().blas().cublasDestroy_v2(handle_);
}

}  // namespace cuda_like
