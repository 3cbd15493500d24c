// SPDX-License-Identifier: Apache-2.0
//
// Four kernels written against the C API alone, as a careful author would write
// them: every status is checked, every tensor and status is deleted on every
// path. kernels_framework.cc has the same kernels as C++ classes. Here, too,
// std::unique_ptr owns tensors and statuses, which costs nothing; errors are
// constructed in cold functions.
#include <functional>
#include <memory>
#include <new>
#include <string>

#include "by_hand.h"

namespace tfplug::capi {
extern "C" {
void TF_OpKernelConstruction_GetAttrFloat(TF_OpKernelConstruction* ctx,
                                          const char* attr_name, float* val,
                                          TF_Status* status);
void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction* ctx,
                                     TF_Status* status);
void TF_OpKernelContext_Failure(TF_OpKernelContext* ctx, TF_Status* status);
void TF_GetInput(TF_OpKernelContext* ctx, int i, TF_Tensor** tensor,
                 TF_Status* status);
TF_DataType TF_ExpectedOutputDataType(TF_OpKernelContext* ctx, int i);
TF_Tensor* TF_AllocateOutput(TF_OpKernelContext* ctx, int index,
                             TF_DataType dtype, const int64_t* dims,
                             int num_dims, size_t len, TF_Status* status);
SP_Stream TF_GetStream(TF_OpKernelContext* ctx, TF_Status* status);
void TF_RunAsyncOpKernelDoneCallback(TF_AsyncOpKernelDoneCallback* arg);
int TF_NumDims(const TF_Tensor* tensor);
int64_t TF_Dim(const TF_Tensor* tensor, int dim_index);
int64_t TF_TensorElementCount(const TF_Tensor* tensor);
size_t TF_TensorByteSize(const TF_Tensor* tensor);
void* TF_TensorData(const TF_Tensor* tensor);
void TF_DeleteTensor(TF_Tensor* tensor);
TF_KernelBuilder* TF_NewKernelBuilder(
    const char* op_name, const char* device_name,
    void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_func)(void*, TF_OpKernelContext*),
    void (*delete_func)(void*));
TF_KernelBuilder* TF_NewAsyncKernelBuilder(
    const char* op_name, const char* device_name,
    void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_async_func)(void*, TF_OpKernelContext*,
                               TF_AsyncOpKernelDoneCallback*),
    void (*delete_func)(void*));
void TF_KernelBuilder_TypeConstraint(TF_KernelBuilder* builder,
                                     const char* attr_name, TF_DataType type,
                                     TF_Status* status);
void TF_KernelBuilder_HostMemory(TF_KernelBuilder* builder,
                                 const char* arg_name);
void TF_RegisterKernelBuilder(const char* kernel_name,
                              TF_KernelBuilder* builder, TF_Status* status);
}  // extern "C"
}  // namespace tfplug::capi

namespace {

using namespace tfplug::capi;  // NOLINT(google-build-using-namespace)

constexpr int kMaxRank = 254;  // TensorFlow's limit

struct Deleter {
  void operator()(TF_Status* status) const { TF_DeleteStatus(status); }
  void operator()(TF_Tensor* tensor) const { TF_DeleteTensor(tensor); }
};
using Status = std::unique_ptr<TF_Status, Deleter>;
using Tensor = std::unique_ptr<TF_Tensor, Deleter>;

[[gnu::cold, gnu::noinline]] void Fail(TF_OpKernelContext* context,
                                       TF_Status* status) {
  TF_OpKernelContext_Failure(context, status);
}
[[gnu::cold, gnu::noinline]] void Fail(TF_OpKernelContext* context,
                                       TF_Status* status, TF_Code code,
                                       const char* message) {
  TF_SetStatus(status, code, message);
  TF_OpKernelContext_Failure(context, status);
}

inline bool IsOk(TF_Status* status) {
  return __builtin_expect(TF_GetCode(status) == TF_OK, true);
}

// Returns null after reporting a failure to the context; so do the functions
// below.
inline Tensor GetInput(TF_OpKernelContext* context, int i, TF_Status* status) {
  TF_Tensor* tensor = nullptr;
  TF_GetInput(context, i, &tensor, status);
  if (IsOk(status)) return Tensor(tensor);
  Fail(context, status);
  return nullptr;
}

// Allocates output 0 with the shape and type of `like`.
inline Tensor AllocateLike(TF_OpKernelContext* context, TF_Tensor* like,
                           TF_Status* status) {
  int64_t dims[kMaxRank];
  const int rank = TF_NumDims(like);
  for (int i = 0; i < rank; ++i) dims[i] = TF_Dim(like, i);
  TF_Tensor* tensor =
      TF_AllocateOutput(context, 0, TF_ExpectedOutputDataType(context, 0), dims,
                        rank, TF_TensorByteSize(like), status);
  if (IsOk(status)) return Tensor(tensor);
  Fail(context, status);
  return nullptr;
}

inline SP_Stream GetStream(TF_OpKernelContext* context, TF_Status* status) {
  SP_Stream stream = TF_GetStream(context, status);
  if (IsOk(status)) return stream;
  Fail(context, status);
  return nullptr;
}

inline float* Data(const Tensor& tensor) {
  return static_cast<float*>(TF_TensorData(tensor.get()));
}

inline void Finish(TF_OpKernelContext* context, TF_Status* status, int result) {
  if (__builtin_expect(result != DRV_OK, false)) {
    Fail(context, status, TF_INTERNAL, drv_error_string(result));
  }
}

// ---- y = alpha x ------------------------------------------------------------

struct Scale {
  float alpha = 0;
};

void* ScaleCreate(TF_OpKernelConstruction* construction) {
  auto self = std::make_unique<Scale>();
  const Status status(TF_NewStatus());
  TF_OpKernelConstruction_GetAttrFloat(construction, "alpha", &self->alpha,
                                       status.get());
  if (IsOk(status.get())) return self.release();
  TF_OpKernelConstruction_Failure(construction, status.get());
  return nullptr;
}
void ScaleDelete(void* kernel) { delete static_cast<Scale*>(kernel); }

void ScaleCompute(void* kernel, TF_OpKernelContext* context) {
  const auto* self = static_cast<const Scale*>(kernel);
  const Status status(TF_NewStatus());
  const Tensor x = GetInput(context, 0, status.get());
  if (x == nullptr) return;
  const Tensor y = AllocateLike(context, x.get(), status.get());
  if (y == nullptr) return;
  const SP_Stream stream = GetStream(context, status.get());
  if (stream == nullptr) return;
  Finish(context, status.get(),
         drv_scale_async(stream->handle, Data(y), Data(x), self->alpha,
                         TF_TensorElementCount(x.get())));
}

// ---- z = x + y --------------------------------------------------------------

void* NoState(TF_OpKernelConstruction*) { return nullptr; }
void DeleteNothing(void*) {}

bool HaveSameShape(const Tensor& x, const Tensor& y) {
  const int rank = TF_NumDims(x.get());
  if (rank != TF_NumDims(y.get())) return false;
  for (int i = 0; i < rank; ++i) {
    if (TF_Dim(x.get(), i) != TF_Dim(y.get(), i)) return false;
  }
  return true;
}

void AddCompute(void*, TF_OpKernelContext* context) {
  const Status status(TF_NewStatus());
  const Tensor x = GetInput(context, 0, status.get());
  if (x == nullptr) return;
  const Tensor y = GetInput(context, 1, status.get());
  if (y == nullptr) return;
  if (__builtin_expect(!HaveSameShape(x, y), false)) {
    return Fail(context, status.get(), TF_INVALID_ARGUMENT,
                "the shapes differ");
  }
  const Tensor z = AllocateLike(context, x.get(), status.get());
  if (z == nullptr) return;
  const SP_Stream stream = GetStream(context, status.get());
  if (stream == nullptr) return;
  Finish(context, status.get(),
         drv_add_async(stream->handle, Data(z), Data(x), Data(y),
                       TF_TensorElementCount(x.get())));
}

// ---- Fill: the shape is in host memory --------------------------------------

void FillCompute(void*, TF_OpKernelContext* context) {
  const Status status(TF_NewStatus());
  const Tensor shape = GetInput(context, 0, status.get());
  if (shape == nullptr) return;
  const Tensor value = GetInput(context, 1, status.get());
  if (value == nullptr) return;
  const int64_t rank = TF_TensorElementCount(shape.get());
  int64_t dims[kMaxRank];
  int64_t n = 1;
  bool is_bad = rank > kMaxRank;
  const auto* wanted = static_cast<const int32_t*>(TF_TensorData(shape.get()));
  for (int64_t i = 0; i < rank && !is_bad; ++i) {
    dims[i] = wanted[i];
    is_bad = dims[i] < 0 || __builtin_mul_overflow(n, dims[i], &n);
  }
  if (__builtin_expect(is_bad, false)) {
    return Fail(context, status.get(), TF_INVALID_ARGUMENT,
                "the shape is invalid");
  }
  const Tensor y(
      TF_AllocateOutput(context, 0, TF_ExpectedOutputDataType(context, 0), dims,
                        static_cast<int>(rank),
                        static_cast<size_t>(n) * sizeof(float), status.get()));
  if (!IsOk(status.get())) return Fail(context, status.get());
  const SP_Stream stream = GetStream(context, status.get());
  if (stream == nullptr) return;
  Finish(context, status.get(),
         drv_spread_async(stream->handle, Data(y), Data(value), n));
}

// ---- An asynchronous copy: completed by the stream --------------------------

// TensorFlow passes the address of a std::function that it destroys when the
// call returns, so the callback has to be copied.
using Done = std::function<void()>;

void Call(Done* done) {
  TF_RunAsyncOpKernelDoneCallback(
      reinterpret_cast<TF_AsyncOpKernelDoneCallback*>(done));
}

int RunDone(void* argument) {
  const std::unique_ptr<Done> done(static_cast<Done*>(argument));
  Call(done.get());
  return DRV_OK;
}

void CopyComputeAsync(void*, TF_OpKernelContext* context,
                      TF_AsyncOpKernelDoneCallback* c_done) {
  auto* const call_done = reinterpret_cast<Done*>(c_done);
  const Status status(TF_NewStatus());
  const Tensor x = GetInput(context, 0, status.get());
  if (x == nullptr) return Call(call_done);
  const Tensor y = AllocateLike(context, x.get(), status.get());
  if (y == nullptr) return Call(call_done);
  const SP_Stream stream = GetStream(context, status.get());
  if (stream == nullptr) return Call(call_done);
  auto* const done = new (std::nothrow) Done(*call_done);
  if (done == nullptr) {
    Fail(context, status.get(), TF_RESOURCE_EXHAUSTED, "out of host memory");
    return Call(call_done);
  }
  int result = drv_copy_async(stream->handle, Data(y), Data(x),
                              TF_TensorByteSize(x.get()));
  if (result == DRV_OK) result = drv_host_task(stream->handle, RunDone, done);
  if (__builtin_expect(result == DRV_OK, true)) return;
  Finish(context, status.get(), result);
  RunDone(done);
}

// ---- Registration -----------------------------------------------------------

void Register(const char* op, TF_KernelBuilder* builder, TF_Status* status) {
  TF_KernelBuilder_TypeConstraint(builder, "T", TF_FLOAT, status);
  if (IsOk(status)) TF_RegisterKernelBuilder(op, builder, status);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void TF_InitKernel() {
  const Status status(TF_NewStatus());
  constexpr char kDevice[] = "BY_HAND";
  Register("Scale",
           TF_NewKernelBuilder("Scale", kDevice, ScaleCreate, ScaleCompute,
                               ScaleDelete),
           status.get());
  Register(
      "Add",
      TF_NewKernelBuilder("Add", kDevice, NoState, AddCompute, DeleteNothing),
      status.get());
  TF_KernelBuilder* fill =
      TF_NewKernelBuilder("Fill", kDevice, NoState, FillCompute, DeleteNothing);
  TF_KernelBuilder_HostMemory(fill, "dims");
  Register("Fill", fill, status.get());
  Register("AsyncCopy",
           TF_NewAsyncKernelBuilder("AsyncCopy", kDevice, NoState,
                                    CopyComputeAsync, DeleteNothing),
           status.get());
}
