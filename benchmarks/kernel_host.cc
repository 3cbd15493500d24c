// SPDX-License-Identifier: Apache-2.0
//
// Runs one kernel of a plug-in as TensorFlow does:
//
//   kernel_host PLUGIN OP CALLS    runs it CALLS times
//   kernel_host --list             lists the ops
//
// TensorFlow's functions are implemented in as few instructions as possible. As
// in TensorFlow, each tensor is a handle on the heap that shares a
// reference-counted buffer. TensorFlow itself executes far more instructions
// per launch.
#include <atomic>
#include <cstring>
#include <functional>
#include <vector>

#include "host.h"

namespace tfplug::capi {

constexpr int kMaxDims = 8;

struct Memory {
  std::atomic<int> owners{1};
  alignas(64) char bytes[kBytes] = {};
};

struct TF_Tensor {
  TF_DataType dtype;
  int rank;
  int64_t dims[kMaxDims];
  Memory* memory;
};

struct TF_OpKernelContext {
  std::vector<TF_Tensor> inputs;
  TF_Tensor output = {TF_FLOAT, 0, {}, new Memory};
  SP_Stream stream = nullptr;
  bool has_output = false;
  bool is_done = false;
};

struct TF_KernelBuilder {
  std::string op;
  void* (*create_func)(TF_OpKernelConstruction*) = nullptr;
  void (*compute_func)(void*, TF_OpKernelContext*) = nullptr;
  void (*compute_async_func)(void*, TF_OpKernelContext*,
                             TF_AsyncOpKernelDoneCallback*) = nullptr;
};

std::vector<TF_KernelBuilder*>& Registry() {
  static std::vector<TF_KernelBuilder*> registry;
  return registry;
}

static TF_Tensor* Share(const TF_Tensor& tensor) {
  tensor.memory->owners.fetch_add(1, std::memory_order_relaxed);
  return new TF_Tensor(tensor);
}
static size_t SizeOf(TF_DataType) { return 4; }  // float and int32

#pragma GCC visibility push(default)

extern "C" {

// ---- Runs -------------------------------------------------------------------

void TF_OpKernelContext_Failure(TF_OpKernelContext*, TF_Status* status) {
  Require(false, status->message.c_str());
}
int TF_NumInputs(TF_OpKernelContext* context) {
  return static_cast<int>(context->inputs.size());
}
int TF_NumOutputs(TF_OpKernelContext*) { return 1; }
TF_DataType TF_ExpectedOutputDataType(TF_OpKernelContext* context, int) {
  return context->output.dtype;
}
void TF_GetInput(TF_OpKernelContext* context, int i, TF_Tensor** tensor,
                 TF_Status* status) {
  if (i < 0 || i >= TF_NumInputs(context)) {
    return TF_SetStatus(status, TF_OUT_OF_RANGE, "There is no such input.");
  }
  *tensor = Share(context->inputs[static_cast<size_t>(i)]);
  TF_SetStatus(status, TF_OK, "");
}
TF_Tensor* TF_AllocateOutput(TF_OpKernelContext* context, int i,
                             TF_DataType dtype, const int64_t* dims, int rank,
                             size_t, TF_Status* status) {
  if (i != 0 || rank > kMaxDims) {
    TF_SetStatus(status, TF_OUT_OF_RANGE, "There is no such output.");
    return nullptr;
  }
  context->output.dtype = dtype;
  context->output.rank = rank;
  for (int k = 0; k < rank; ++k) context->output.dims[k] = dims[k];
  context->has_output = true;
  TF_SetStatus(status, TF_OK, "");
  return Share(context->output);
}
SP_Stream TF_GetStream(TF_OpKernelContext* context, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
  return context->stream;
}
void TF_RunAsyncOpKernelDoneCallback(TF_AsyncOpKernelDoneCallback* done) {
  (*reinterpret_cast<std::function<void()>*>(done))();
}

// ---- Tensors ----------------------------------------------------------------

TF_DataType TF_TensorType(const TF_Tensor* tensor) { return tensor->dtype; }
int TF_NumDims(const TF_Tensor* tensor) { return tensor->rank; }
int64_t TF_Dim(const TF_Tensor* tensor, int i) { return tensor->dims[i]; }
int64_t TF_TensorElementCount(const TF_Tensor* tensor) {
  int64_t n = 1;
  for (int i = 0; i < tensor->rank; ++i) n *= tensor->dims[i];
  return n;
}
size_t TF_TensorByteSize(const TF_Tensor* tensor) {
  return static_cast<size_t>(TF_TensorElementCount(tensor)) *
         SizeOf(tensor->dtype);
}
void* TF_TensorData(const TF_Tensor* tensor) { return tensor->memory->bytes; }
void TF_DeleteTensor(TF_Tensor* tensor) {
  tensor->memory->owners.fetch_sub(1, std::memory_order_relaxed);
  delete tensor;
}
size_t TF_DataTypeSize(TF_DataType dtype) { return SizeOf(dtype); }

// ---- Construction and registration ------------------------------------------

void TF_OpKernelConstruction_GetAttrFloat(TF_OpKernelConstruction*, const char*,
                                          float* value, TF_Status* status) {
  *value = 2;
  TF_SetStatus(status, TF_OK, "");
}
void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction*,
                                     TF_Status* status) {
  Require(false, status->message.c_str());
}
TF_KernelBuilder* TF_NewKernelBuilder(
    const char* op, const char*, void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_func)(void*, TF_OpKernelContext*), void (*)(void*)) {
  return new TF_KernelBuilder{op, create_func, compute_func, nullptr};
}
TF_KernelBuilder* TF_NewAsyncKernelBuilder(
    const char* op, const char*, void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_async_func)(void*, TF_OpKernelContext*,
                               TF_AsyncOpKernelDoneCallback*),
    void (*)(void*)) {
  return new TF_KernelBuilder{op, create_func, nullptr, compute_async_func};
}
void TF_KernelBuilder_TypeConstraint(TF_KernelBuilder*, const char*,
                                     TF_DataType, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
}
void TF_KernelBuilder_HostMemory(TF_KernelBuilder*, const char*) {}
void TF_RegisterKernelBuilder(const char*, TF_KernelBuilder* builder,
                              TF_Status* status) {
  Registry().push_back(builder);
  TF_SetStatus(status, TF_OK, "");
}
// Determines whether tfplug may copy the callback of an async kernel.
const char* TF_Version() { return "2.21.0"; }

}  // extern "C"

#pragma GCC visibility pop
}  // namespace tfplug::capi

namespace {

struct Launch {
  capi::TF_KernelBuilder* kernel = nullptr;
  void* object = nullptr;
  capi::TF_OpKernelContext context;
  std::function<void()> done = [this] { context.is_done = true; };

  void AddInput(capi::TF_DataType dtype, std::vector<int64_t> dims,
                const void* elements, size_t bytes) {
    capi::TF_Tensor tensor = {
        dtype, static_cast<int>(dims.size()), {}, new capi::Memory};
    for (size_t i = 0; i < dims.size(); ++i) tensor.dims[i] = dims[i];
    std::memcpy(tensor.memory->bytes, elements, bytes);
    context.inputs.push_back(tensor);
  }
};

struct Case {
  const char* op;
  void (*set_up)(Launch&);
  std::vector<float> result;
};

constexpr float kX[] = {1, 2, 3, 4, 5, 6};
constexpr int32_t kShape[] = {2, 3};

const Case kCases[] = {
    {"Scale",
     [](Launch& l) {
       l.AddInput(capi::TF_FLOAT, {2, 3}, kX, sizeof(kX));
     },
     {2, 4, 6, 8, 10, 12}},
    {"Add",
     [](Launch& l) {
       l.AddInput(capi::TF_FLOAT, {2, 3}, kX, sizeof(kX));
       l.AddInput(capi::TF_FLOAT, {2, 3}, kX, sizeof(kX));
     },
     {2, 4, 6, 8, 10, 12}},
    {"Fill",
     [](Launch& l) {
       l.AddInput(capi::TF_INT32, {2}, kShape, sizeof(kShape));
       l.AddInput(capi::TF_FLOAT, {}, kX, sizeof(float));
     },
     {1, 1, 1, 1, 1, 1}},
    {"AsyncCopy",
     [](Launch& l) {
       l.AddInput(capi::TF_FLOAT, {2, 3}, kX, sizeof(kX));
     },
     {1, 2, 3, 4, 5, 6}},
};

}  // namespace

static void Run(Launch& launch) {
  if (launch.kernel->compute_func != nullptr) {
    return launch.kernel->compute_func(launch.object, &launch.context);
  }
  // As in TensorFlow, the callback is destroyed when the call returns.
  std::function<void()> done = launch.done;
  launch.kernel->compute_async_func(
      launch.object, &launch.context,
      reinterpret_cast<capi::TF_AsyncOpKernelDoneCallback*>(&done));
}

// tools/bench passes this name to Callgrind.
extern "C" [[gnu::noinline]] void measured(Launch& launch) { Run(launch); }

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (const Case& each : kCases) std::puts(each.op);
    return 0;
  }
  Require(argc == 4, "usage: kernel_host PLUGIN OP CALLS");
  static Bench bench;
  void* const library = bench.Load(argv[1]);
  auto* const init =
      reinterpret_cast<void (*)()>(dlsym(library, "TF_InitKernel"));
  Require(init != nullptr, "The plug-in does not export TF_InitKernel.");
  init();

  static Launch launch;
  const Case* the_case = nullptr;
  for (const Case& each : kCases) {
    if (std::strcmp(each.op, argv[2]) == 0) the_case = &each;
  }
  for (capi::TF_KernelBuilder* each : capi::Registry()) {
    if (each->op == argv[2]) launch.kernel = each;
  }
  Require(the_case != nullptr && launch.kernel != nullptr,
          "There is no such kernel; see --list.");
  the_case->set_up(launch);
  launch.context.stream = bench.stream;
  launch.object = launch.kernel->create_func(nullptr);

  const bool is_async = launch.kernel->compute_async_func != nullptr;
  const int calls = kFirstCalls + std::atoi(argv[3]);
  for (int i = 0; i < calls; ++i) {
    launch.context.has_output = launch.context.is_done = false;
    capi::Memory& output = *launch.context.output.memory;
    std::memset(output.bytes, 0, sizeof(output.bytes));
    if (i < kFirstCalls) {
      Run(launch);
    } else {
      measured(launch);
    }
    Require(launch.context.has_output, "The kernel did not set its output.");
    Require(launch.context.is_done == is_async,
            "The kernel did not complete as it was registered.");
    Require(std::memcmp(output.bytes, the_case->result.data(),
                        the_case->result.size() * sizeof(float)) == 0,
            "The kernel computed a wrong result.");
    Require(output.owners == 1, "The kernel leaked a tensor.");
  }
  return 0;
}
