// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_OP_RUN_H_
#define TFPLUG_OP_KERNELS_OP_RUN_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/ir/view.h"
#include "tfplug/kernel/kernel.h"
#include "tfplug/kernel/kernel_context.h"
#include "tfplug/op_kernels/internal/launch_observer.h"
#include "tfplug/op_kernels/internal/registered_backend.h"
#include "tfplug/primitives/launcher.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Dimensions, or other small lists of integers.
using Ints = absl::InlinedVector<int64_t, 8>;

// Returns the dense view of a tensor. Fails if it has too many dimensions. The
// address of an empty tensor, which need not be device memory, is null.
inline absl::StatusOr<Operand> ViewOf(const Tensor& tensor) {
  const int rank = tensor.rank();
  if (ABSL_PREDICT_FALSE(rank > kMaxViewRank)) {
    return absl::UnimplementedError(absl::StrCat(
        "a tensor has rank ", rank, "; kernels made by tfplug support up to ",
        kMaxViewRank, " dimensions, so reshape it"));
  }
  Operand view;
  view.type = tensor.dtype();
  view.rank = rank;
  int64_t stride = 1;
  for (int d = rank; d-- > 0;) {
    view.dim(d) = tensor.dim(d);
    view.stride(d) = stride;
    stride *= view.dim(d);
  }
  view.data = stride == 0 ? nullptr : tensor.data();
  return view;
}

// One run of a kernel that is made from primitives: its tensors as views, and
// the launcher of the registered backend.
class OpRun : public Scratch {
 public:
  explicit OpRun(KernelContext& context)
      : context_(context), launcher_(nullptr, nullptr, nullptr, nullptr) {}

  // Must be called before launcher().
  absl::Status Start(bool on_host) {
    const op_kernels_internal::RegisteredBackend& backend =
        on_host ? op_kernels_internal::host_backend
                : op_kernels_internal::registered_backend;
    on_host_ = on_host;
    auto* const observer = runtime::ObserverOf(context_.get());
    if (ABSL_PREDICT_FALSE(observer != nullptr && !on_host)) {
      TFPLUG_ASSIGN_OR_RETURN(
          launcher_, static_cast<op_kernels_internal::LaunchObserver*>(observer)
                         ->MakeLauncher(context_, this));
      return absl::OkStatus();
    }
    TFPLUG_ASSIGN_OR_RETURN(void* const stream, backend.get_stream(context_));
    launcher_ = Launcher(backend.table, backend.get_backend(), stream, this);
    return absl::OkStatus();
  }

  KernelContext& context() { return context_; }
  Launcher& launcher() { return launcher_; }

  absl::StatusOr<Tensor> GetInput(int i) { return context_.GetInput(i); }
  // Return the elements of input `i`, an int16, int32 or int64 tensor in host
  // memory: of any rank, a vector, or a scalar. The message for another rank is
  // `words`, which are TensorFlow's, and the shape.
  absl::StatusOr<Ints> GetInts(int i);
  absl::StatusOr<Ints> GetVector(int i, const char* words = nullptr);
  absl::StatusOr<int64_t> GetScalar(int i, const char* words = nullptr);

  // Allocates output `i`.
  absl::StatusOr<Operand> AllocateOutput(int i, const Shape& shape) {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor tensor,
                            context_.AllocateOutput(i, shape));
    return ViewOf(tensor);
  }
  // Does the same, in the memory of one of these inputs if nothing else uses
  // it. The Tensors of these inputs must have been destroyed.
  absl::StatusOr<Operand> ForwardOrAllocateOutput(
      int i, absl::Span<const int> candidates, const Shape& shape) {
    TFPLUG_ASSIGN_OR_RETURN(
        const Tensor tensor,
        context_.ForwardOrAllocateOutput(i, candidates, shape));
    return ViewOf(tensor);
  }

  // Scratch: allocates memory until the end of the run.
  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    // The address of an empty tensor is no device memory.
    if (bytes == 0) return static_cast<void*>(nullptr);
    TFPLUG_ASSIGN_OR_RETURN(
        Tensor tensor,
        on_host_ ? context_.AllocateHostTemp(DataType::kUint8, {bytes})
                 : context_.AllocateTemp(DataType::kUint8, {bytes}));
    temporaries_.push_back(std::move(tensor));
    return temporaries_.back().data();
  }
  // Frees this memory in the order of the stream. A run that outlives its
  // context must do so before.
  void FreeTemporaries() { temporaries_.clear(); }

 private:
  absl::Status CheckRank(int i, int rank, const char* words);

  KernelContext& context_;
  Launcher launcher_;
  bool on_host_ = false;
  absl::InlinedVector<Tensor, 2> temporaries_;
};

// A kernel made from primitives, and from work of its own that it enqueues with
// Launcher::Enqueue. Unlike other kernels of the library's author, it can be in
// a region; it is repeated there unless it takes the stream from the context.
class BackendKernel : public Kernel {
 public:
  static constexpr bool kFitsRegions = true;

  // Computes the op's outputs, none of which is set.
  virtual absl::Status Run(OpRun& run) = 0;

  absl::Status Compute(KernelContext& context) final {
    OpRun run(context);
    TFPLUG_RETURN_IF_ERROR(run.Start(on_host_));
    return Run(run);
  }

  // Computes on the host from now on: all tensors are in host memory.
  void MoveToHost() { on_host_ = true; }

 private:
  bool on_host_ = false;
};

// Returns the attribute T, which in most ops is the type of the tensors.
inline absl::StatusOr<DataType> GetType(
    const KernelConstruction& construction) {
  return construction.GetAttr<DataType>("T");
}

// Variant of a kernel whose tensors are all in host memory, for the int32
// tensors that TensorFlow keeps there.
template <class KernelT>
class OnHost : public KernelT {
 public:
  OnHost() { this->MoveToHost(); }
};

inline absl::StatusOr<Ints> OpRun::GetInts(int i) {
  TFPLUG_ASSIGN_OR_RETURN(const Tensor tensor, context_.GetInput(i));
  const auto list = [](auto elements) {
    return Ints(elements.begin(), elements.end());
  };
  return tensor.dtype() == DataType::kInt64   ? list(tensor.flat<int64_t>())
         : tensor.dtype() == DataType::kInt16 ? list(tensor.flat<int16_t>())
                                              : list(tensor.flat<int32_t>());
}

inline absl::StatusOr<Ints> OpRun::GetVector(int i, const char* words) {
  TFPLUG_RETURN_IF_ERROR(CheckRank(i, 1, words));
  return GetInts(i);
}

inline absl::StatusOr<int64_t> OpRun::GetScalar(int i, const char* words) {
  TFPLUG_RETURN_IF_ERROR(CheckRank(i, 0, words));
  TFPLUG_ASSIGN_OR_RETURN(const Ints values, GetInts(i));
  return values[0];
}

inline absl::Status OpRun::CheckRank(int i, int rank, const char* words) {
  TFPLUG_ASSIGN_OR_RETURN(const Tensor tensor, context_.GetInput(i));
  if (tensor.rank() == rank) return absl::OkStatus();
  if (words != nullptr) {
    return absl::InvalidArgumentError(words + tensor.shape().ToString());
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "input ", i, " must be a ", (rank == 0 ? "scalar" : "vector"),
      ", got shape ", tensor.shape().ToString()));
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_OP_RUN_H_
