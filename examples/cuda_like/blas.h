// SPDX-License-Identifier: Apache-2.0
#ifndef CUDA_LIKE_BLAS_H_
#define CUDA_LIKE_BLAS_H_

#include <tfplug/base/driver_table.h>
#include <tfplug/base/tensor_float_32.h>
#include <tfplug/ir/view.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "driver/functions.h"
#include "driver/types.h"

// Products of matrices by cuBLAS, NVIDIA's library, where it is installed.
namespace cuda_like {

class Stream;

// The library's functions. Immutable after Load. Threads: any.
class BlasLibrary final : public tfplug::DriverTable<cublasStatus_t> {
 public:
  // Loads the library. NOT_FOUND if there is none, or a release before 12.
  absl::Status Load();

  // Returns whether products are given to cuBLAS: it was found, or
  // CUDA_LIKE_BLAS names a library that was not, so that they fail with the
  // reason.
  bool is_used() const { return is_used_; }
  const absl::Status& loaded() const { return loaded_; }

  // Returns whether factors that are floats are rounded to TF32: CUDA_LIKE_TF32
  // or, if it is not set, what the user has told TensorFlow.
  bool uses_tf32() const {
    return tf32_.has_value() ? *tf32_ : tfplug::IsTensorFloat32Allowed();
  }

#define CUDA_LIKE_MEMBER(name, parameters) \
  tfplug::DriverFunction<cublasStatus_t parameters> name{*this, #name};
  CUDA_LIKE_BLAS_FUNCTIONS(CUDA_LIKE_MEMBER)
#undef CUDA_LIKE_MEMBER
#define CUDA_LIKE_MEMBER(name, result, parameters) \
  tfplug::DriverFunction<result parameters> name{*this, #name};
  CUDA_LIKE_BLAS_TEXTS(CUDA_LIKE_MEMBER)
#undef CUDA_LIKE_MEMBER

 private:
  // Returns UNIMPLEMENTED if cuBLAS does not compute this product on this
  // device, and RESOURCE_EXHAUSTED if memory has run out.
  absl::Status ToStatus(cublasStatus_t status, const char* name) const override;

  bool is_used_ = false;
  std::optional<bool> tf32_;
  absl::Status loaded_ = absl::NotFoundError("cuBLAS is not used");
};

// A matrix as cuBLAS describes it, by its columns: a row-major matrix is its
// own transpose.
struct BlasMatrix {
  cublasOperation_t operation = CUBLAS_OP_N;  // T: not transposed for us
  int64_t leading = 0;                        // from one column to the next
  int64_t stride = 0;                         // from one matrix to the next
  void* data = nullptr;
};

// c = a b for row-major matrices, which cuBLAS computes as c' = b' a'.
struct BlasProduct {
  BlasMatrix a, b, c;
  int64_t m = 0, n = 0, k = 0, count = 0;
  cudaDataType type = CUDA_R_32F;
};

// Returns the product of views [batch..., m, k] and [batch..., k, n], or
// nothing if cuBLAS cannot compute it in one call: it has other types, no
// elements, rows or columns that are not contiguous, or batches at irregular
// distances.
std::optional<BlasProduct> MakeBlasProduct(const tfplug::Operand& a,
                                           const tfplug::Operand& b,
                                           const tfplug::Operand& c);

// The handle of cuBLAS for one stream: its workspace is in use until the
// stream's work is done. Threads: any; they take turns.
class Blas {
 public:
  // Returns whether a product was enqueued.
  bool is_used();

  // Creates the handle of a stream that captures graphs: cuBLAS would otherwise
  // allocate a workspace in each graph. Graphs of one stream may share it. The
  // workspace must live as long as the handle.
  absl::Status CreateForCapture(const Stream& stream, void* workspace,
                                size_t bytes);

  // Enqueues the product, with factors that are floats rounded to TF32 if
  // `tf32`. UNIMPLEMENTED if this cuBLAS cannot compute it.
  absl::Status Multiply(const Stream& stream, const BlasProduct& product,
                        bool tf32);

  // Releases the handle, before the stream is destroyed.
  void Destroy(const Stream& stream);

 private:
  absl::Status Create(const Stream& stream, const BlasLibrary& library);

  std::mutex mutex_;
  cublasHandle_t handle_ = nullptr;  // null before the first product
};

}  // namespace cuda_like

#endif  // CUDA_LIKE_BLAS_H_
