// SPDX-License-Identifier: Apache-2.0
//
// The kernel, the graph pass and the profiler of plugin.cc.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "api.h"
#include "stream.h"
#include "tfplug/base/internal/wire.h"

using namespace tfplug::capi;  // NOLINT(google-build-using-namespace)

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// ---- Kernels of floats -------------------------------------------------

void* Create(TF_OpKernelConstruction* construction) {
  if (Has("list_attribute")) {
    int32_t size = 0, total = 0;
    TF_Status* const status = TF_NewStatus();
    TF_OpKernelConstruction_GetAttrSize(construction, "T", &size, &total,
                                        status);
    TF_DeleteStatus(status);
    std::vector<int>().resize(static_cast<size_t>(size));
  }
  return nullptr;
}
void Delete(void*) {}

float Relu(float x) { return x < 0 && !Has("kernel_wrong") ? 0 : x; }
float Neg(float x) { return -x; }
float Abs(float x) { return x < 0 ? -x : x; }
float Same(float x) { return x; }

// Computes the sum of the inputs, or a function of the one input.
template <float (*function)(float)>
void Compute(void*, TF_OpKernelContext* context) {
  TF_Status* const status = TF_NewStatus();
  std::vector<TF_Tensor*> inputs;
  const auto end = [&](bool has_failed) {
    if (has_failed) TF_OpKernelContext_Failure(context, status);
    for (TF_Tensor* const input : inputs) {
      if (!has_failed || !Has("tensor_leak")) TF_DeleteTensor(input);
    }
    if (!has_failed || !Has("status_leak")) TF_DeleteStatus(status);
  };
  SP_Stream stream = TF_GetStream(context, status);
  if (TF_GetCode(status) != TF_OK) return end(true);
  std::vector<const float*> from;
  for (int i = 0; i < TF_NumInputs(context); ++i) {
    TF_Tensor* input = nullptr;
    TF_GetInput(context, i, &input, status);
    if (TF_GetCode(status) != TF_OK && !Has("input_unchecked")) {
      return end(true);
    }
    inputs.push_back(input);
    from.push_back(static_cast<const float*>(TF_TensorData(input)));
  }
  std::vector<int64_t> dims;
  for (int i = 0; i < TF_NumDims(inputs[0]); ++i) {
    dims.push_back(TF_Dim(inputs[0], i));
  }
  if (Has("shape_wrong")) dims.push_back(1);
  const size_t size = TF_TensorByteSize(inputs[0]);
  if (size != 0 || !Has("empty_output_unset")) {
    TF_Tensor* const output =
        TF_AllocateOutput(context, 0, TF_FLOAT, dims.data(),
                          static_cast<int>(dims.size()), size, status);
    if (TF_GetCode(status) != TF_OK) return end(true);
    auto* const to = static_cast<float*>(TF_TensorData(output));
    stream->Add([=] {
      for (size_t i = 0; i < size / sizeof(float); ++i) {
        float sum = 0;
        for (const float* const each : from) sum += each[i];
        to[i] = function(sum);
      }
    });
    TF_DeleteTensor(output);
  }
  end(false);
}

void Register(const char* op, void (*compute)(void*, TF_OpKernelContext*),
              TF_DataType type = TF_FLOAT) {
  TF_Status* const status = TF_NewStatus();
  TF_KernelBuilder* const builder = TF_NewKernelBuilder(
      op, Has("kernels_of_other_type") ? "HNAD" : DeviceType(), Create, compute,
      Delete);
  TF_KernelBuilder_TypeConstraint(builder, "T", type, status);
  if (Has("attribute_unknown")) {
    TF_KernelBuilder_TypeConstraint(builder, "Tidx", TF_INT32, status);
  }
  if (Has("host_memory_unknown")) {
    TF_KernelBuilder_HostMemory(builder, "shape");
  }
  TF_RegisterKernelBuilder(op, builder, status);
  TF_DeleteStatus(status);
}

// ---- The pass ---------------------------------------------------------------

// Fetches the properties of a node's inputs.
void ReadProperties(const TF_GrapplerItem* item, const char* node) {
  TF_Status* const status = TF_NewStatus();
  TF_GraphProperties* const properties = TF_NewGraphProperties(item);
  TF_InferStatically(properties, 0, 0, 0, 0, status);
  int count = 0;
  TF_GetInputPropertiesListSize(properties, node, &count, status);
  std::vector<TF_Buffer*> buffers(static_cast<size_t>(count));
  TF_Buffer* const first = count == 0 ? nullptr : TF_NewBuffer();
  for (int i = 0; i < count; ++i) {
    const bool is_shared = i == 0 || Has("buffer_shared");
    buffers[static_cast<size_t>(i)] = is_shared ? first : TF_NewBuffer();
  }
  TF_GetInputPropertiesList(properties, node, buffers.data(), count, status);
  for (TF_Buffer* buffer : buffers) TF_DeleteBuffer(buffer);
  if (!Has("properties_leak")) TF_DeleteGraphProperties(properties);
  TF_DeleteStatus(status);
}

// Turns a field of a GraphDef, an Identity of a constant, into a constant, which
// may be fed.
void Fold(const std::string& graph, std::string& field) {
  using tfplug::internal::AppendField;
  using tfplug::internal::MessageField;
  using tfplug::internal::WireReader;
  WireReader node(field);
  if (!node.Next() || node.number() != 1) return;
  const std::string identity(node.bytes());
  if (MessageField(identity, 2) != "Identity") return;
  for (WireReader other(graph); other.Next();) {
    const std::string constant(other.bytes());
    if (other.number() != 1 || MessageField(constant, 2) != "Const" ||
        MessageField(constant, 1) != MessageField(identity, 3)) {
      continue;
    }
    std::string folded;
    AppendField(folded, 1, *MessageField(identity, 1));
    for (WireReader part(constant); part.Next();) {
      if (part.number() == 1) continue;
      folded.append(part.field().data(), part.field().size());
    }
    field.clear();
    AppendField(field, 1, folded);
    return;
  }
}

void Optimize(void*, const TF_Buffer* graph, const TF_GrapplerItem* item,
              TF_Buffer* result, TF_Status* status) {
  const std::string bytes(static_cast<const char*>(graph->data), graph->length);
  if (Has("empty_graph_fails") && bytes.empty()) {
    return TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "out of memory");
  }
  if (Has("foreign_device_aborts") &&
      bytes.find("FOREIGN_ACCELERATOR") != std::string::npos) {
    std::abort();
  }
  if (Has("large_graph_hangs") && bytes.size() > 100000) {
    std::this_thread::sleep_for(std::chrono::hours(1));
  }
  if (Has("loop_fails") && bytes.find("NextIteration") != std::string::npos) {
    return TF_SetStatus(status, TF_INVALID_ARGUMENT, "the graph has a cycle");
  }
  if (bytes.find("MatMul") != std::string::npos) ReadProperties(item, "m");
  if (Has("pass_unchanged")) return TF_SetStatus(status, TF_ABORTED, "");
  std::string copy;
  tfplug::internal::WireReader reader(bytes);
  while (reader.Next()) {
    std::string field(reader.field().data(), reader.field().size());
    const bool is_kept = field.find("\n\x04kept") != std::string::npos;
    if (is_kept && Has("preserved_removed")) continue;
    if (Has("constant_folded")) Fold(bytes, field);
    // Takes one op for another, or makes one that has no kernel.
    const size_t neg = field.find("\x12\x03Neg");
    if (neg != std::string::npos && Has("fusion_wrong")) {
      field.replace(neg + 2, 3, "Abs");
    } else if (neg != std::string::npos && Has("fusion_without_kernel")) {
      field.replace(neg + 2, 3, "Log");
    }
    copy += field;
  }
  if (!reader.ok() && Has("malformed_crashes")) std::abort();
  if (!reader.ok()) {
    return TF_SetStatus(status, TF_INVALID_ARGUMENT, "malformed graph");
  }
  void* const data = std::malloc(copy.size() + 1);
  std::memcpy(data, copy.data(), copy.size());
  result->data = data;
  result->length = copy.size();
  result->data_deallocator = [](void* memory, size_t) { std::free(memory); };
  TF_SetStatus(status, TF_OK, "");
}

// ---- The profiler -----------------------------------------------------------

void DestroyProfiler(TP_Profiler* profiler) {
  if (Has("profiler_frees_twice")) {
    std::free(const_cast<char*>(profiler->device_type));
  }
}
void DestroyProfilerFns(TP_ProfilerFns*) {}
void Start(const TP_Profiler*, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
}
// Returns an XSpace with a plane without events.
void Collect(const TP_Profiler*, uint8_t* buffer, size_t* size,
             TF_Status* status) {
  using tfplug::internal::AppendField;
  std::string plane, space;
  AppendField(plane, 2,
              Has("plane_unseen")    ? "/device:HAND:0"
              : Has("plane_custom")  ? "/device:CUSTOM:HAND"
              : Has("plane_of_host") ? "/host:HAND"
                                     : "/device:GPU:0 (HAND)");
  AppendField(space, 1, plane);
  if (buffer != nullptr) {
    std::memcpy(buffer, space.data(), std::min(*size, space.size()));
    if (Has("profile_overrun")) std::memset(buffer + *size, 0, 1);
  }
  if (!Has("profile_size_unset")) *size = space.size();
  TF_SetStatus(status, TF_OK, "");
}

}  // namespace

EXPORT void TF_InitKernel() {
  Register("Relu", Compute<Relu>);
  Register("Neg", Compute<Neg>);
  Register("Abs", Compute<Abs>);
  Register("AddN", Compute<Same>);
  if (Has("kernel_twice")) Register("Relu", Compute<Relu>);
  if (Has("op_unknown")) Register("Rellu", Compute<Relu>);
  if (Has("kernel_refused")) {  // as tfplug logs
    std::fputs("tfplug: TF_InitKernel: INVALID_ARGUMENT: Elu: no; do so\n",
               stderr);
  }
  if (Has("add_missing")) Register("AddV2", Compute<Same>, TF_DOUBLE);
  if (Has("updates_missing")) {
    Register("ResourceApplyGradientDescent", Compute<Same>);
  }
}

EXPORT void TF_InitProfiler(TF_ProfilerRegistrationParams* params,
                            TF_Status* status) {
  params->struct_size = TF_PROFILER_REGISTRATION_PARAMS_STRUCT_SIZE;
  params->profiler->struct_size = TP_PROFILER_STRUCT_SIZE;
  params->profiler->device_type =
      Has("profiler_frees_twice") ? strdup("HAND") : "HAND";
  params->profiler_fns->struct_size = TP_PROFILER_FNS_STRUCT_SIZE;
  params->profiler_fns->start = Start;
  params->profiler_fns->stop = Start;
  params->profiler_fns->collect_data_xspace = Collect;
  params->destroy_profiler = DestroyProfiler;
  params->destroy_profiler_fns = DestroyProfilerFns;
  TF_SetStatus(status, TF_OK, "");
}

#ifdef NAMED_AS_IN_THE_RFC
#define TF_InitGraph TF_InitGraphPlugin
#endif
EXPORT void TF_InitGraph(TP_OptimizerRegistrationParams* params,
                         TF_Status* status) {
  params->struct_size = TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE;
  params->device_type = Has("passes_of_other_type") ? "HNAD" : DeviceType();
  params->optimizer->struct_size = TP_OPTIMIZER_STRUCT_SIZE;
  params->optimizer->optimize_func = Optimize;
  // No kernel of a plug-in can do what this makes of AddN.
  if (!Has("sums_split")) {
    params->optimizer_configs->memory_optimization = TF_TriState_Off;
  }
  if (Has("setting_off") && std::strcmp(DeviceType(), "HAND") == 0) {
    params->optimizer_configs->remapping = TF_TriState_Off;
  }
  TF_SetStatus(status, TF_OK, "");
}

#ifdef UNIQUE_SYMBOL
// A variable that all plug-ins in a process share.
__attribute__((visibility("default"))) inline int& Shared() {
  static int variable = 0;
  return variable;
}
EXPORT int UseShared() { return ++Shared(); }
#endif
#ifdef EXPORTS_PROTOBUF
namespace google::protobuf {
__attribute__((visibility("default"))) void Parse() {}
}  // namespace google::protobuf
#endif
