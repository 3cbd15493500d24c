// SPDX-License-Identifier: Apache-2.0
//
// A plug-in in plain C whose functions log their calls (call_log.h). Its device
// type is the last part of its file name, so that copies are other plug-ins; its
// device works at once, in host memory. $TFPLUG_PROBE has its settings.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "call_log.h"
#include "tfplug/base/internal/wire.h"

namespace tfplug::record {

// Returns NAME for the file libprobe_NAME.so.
std::string OwnType() {
  static const auto* const type = [] {
    Dl_info info;
    dladdr(reinterpret_cast<void*>(&OwnType), &info);
    std::string name = info.dli_fname;
    name = name.substr(name.rfind('_') + 1);
    return new std::string(name.substr(0, name.find('.')));
  }();
  return *type;
}

namespace {

const auto& tf = internal::tensorflow;

int64_t Number(const char* name, int64_t otherwise) {
  const std::string text = Setting(name);
  return text.empty() ? otherwise : std::atoll(text.c_str());
}
void Ok(TF_Status* status) { tf.TF_SetStatus(status, TF_OK, ""); }

// Makes a slot call the logger, which calls `function`.
#define PROBE_SLOT(S, object, slot, ...)                                       \
  (Logged<& S::slot>::name = #slot, Logged<& S::slot>::original = __VA_ARGS__, \
   (object)->slot = &Logged<&S::slot>::Call)

// ---- The device ---------------------------------------------------------------

void* Allocate(uint64_t size) {
  return std::aligned_alloc(256, (size + 255) / 256 * 256);
}
int64_t FreeBytes() { return Number("memory", 1 << 24); }
std::map<int, int64_t> bytes_in_use;  // of each device; guarded by Mutex()

void FillExecutor(SP_StreamExecutor& to, size_t size) {
  SP_StreamExecutor table = {};
  SP_StreamExecutor* const se = &table;
#define SLOT(slot, ...) PROBE_SLOT(SP_StreamExecutor, se, slot, __VA_ARGS__)
  SLOT(allocate, [](const SP_Device* device, uint64_t n, int64_t,
                    SP_DeviceMemoryBase* memory) {
    int64_t& used = bytes_in_use[device->ordinal];
    const int64_t sum = used + static_cast<int64_t>(n);
    memory->opaque = sum > FreeBytes() ? nullptr : Allocate(n);
    memory->size = n;
    if (memory->opaque != nullptr) used = sum;
  });
  SLOT(deallocate, [](const SP_Device* device, SP_DeviceMemoryBase* memory) {
    bytes_in_use[device->ordinal] -= static_cast<int64_t>(memory->size);
    std::free(memory->opaque);
  });
  SLOT(host_memory_allocate,
       [](const SP_Device*, uint64_t n) { return Allocate(n); });
  SLOT(host_memory_deallocate,
       [](const SP_Device*, void* memory) { std::free(memory); });
  SLOT(get_allocator_stats,
       [](const SP_Device*, SP_AllocatorStats*) -> TF_Bool { return 0; });
  SLOT(device_memory_usage,
       [](const SP_Device*, int64_t* free, int64_t* total) -> TF_Bool {
         *free = *total = FreeBytes();
         return 1;
       });
  SLOT(create_stream, [](const SP_Device*, SP_Stream* stream, TF_Status* s) {
    *stream = reinterpret_cast<SP_Stream>(new char);
    Ok(s);
  });
  SLOT(destroy_stream, [](const SP_Device*, SP_Stream) {});
  SLOT(create_stream_dependency,
       [](const SP_Device*, SP_Stream, SP_Stream, TF_Status* s) { Ok(s); });
  SLOT(get_stream_status,
       [](const SP_Device*, SP_Stream, TF_Status* s) { Ok(s); });
  SLOT(create_event, [](const SP_Device*, SP_Event* event, TF_Status* s) {
    *event = reinterpret_cast<SP_Event>(new char);
    Ok(s);
  });
  SLOT(destroy_event, [](const SP_Device*, SP_Event) {});
  SLOT(get_event_status,
       [](const SP_Device*, SP_Event) { return SE_EVENT_COMPLETE; });
  SLOT(record_event,
       [](const SP_Device*, SP_Stream, SP_Event, TF_Status* s) { Ok(s); });
  SLOT(wait_for_event,
       [](const SP_Device*, SP_Stream, SP_Event, TF_Status* s) { Ok(s); });
  SLOT(create_timer, [](const SP_Device*, SP_Timer* timer, TF_Status* s) {
    *timer = reinterpret_cast<SP_Timer>(new char);
    Ok(s);
  });
  SLOT(destroy_timer, [](const SP_Device*, SP_Timer) {});
  SLOT(start_timer,
       [](const SP_Device*, SP_Stream, SP_Timer, TF_Status* s) { Ok(s); });
  SLOT(stop_timer,
       [](const SP_Device*, SP_Stream, SP_Timer, TF_Status* s) { Ok(s); });
  SLOT(memcpy_dtoh,
       [](const SP_Device*, SP_Stream, void* dst,
          const SP_DeviceMemoryBase* src, uint64_t n, TF_Status* s) {
         std::memcpy(dst, src->opaque, n);
         Ok(s);
       });
  SLOT(memcpy_htod, [](const SP_Device*, SP_Stream, SP_DeviceMemoryBase* dst,
                       const void* src, uint64_t n, TF_Status* s) {
    std::memcpy(dst->opaque, src, n);
    Ok(s);
  });
  SLOT(memcpy_dtod,
       [](const SP_Device*, SP_Stream, SP_DeviceMemoryBase* dst,
          const SP_DeviceMemoryBase* src, uint64_t n, TF_Status* s) {
         std::memmove(dst->opaque, src->opaque, n);
         Ok(s);
       });
  SLOT(sync_memcpy_dtoh,
       [](const SP_Device*, void* dst, const SP_DeviceMemoryBase* src,
          uint64_t n, TF_Status* s) {
         std::memcpy(dst, src->opaque, n);
         Ok(s);
       });
  SLOT(sync_memcpy_htod, [](const SP_Device*, SP_DeviceMemoryBase* dst,
                            const void* src, uint64_t n, TF_Status* s) {
    std::memcpy(dst->opaque, src, n);
    Ok(s);
  });
  SLOT(sync_memcpy_dtod,
       [](const SP_Device*, SP_DeviceMemoryBase* dst,
          const SP_DeviceMemoryBase* src, uint64_t n, TF_Status* s) {
         std::memmove(dst->opaque, src->opaque, n);
         Ok(s);
       });
  SLOT(block_host_for_event,
       [](const SP_Device*, SP_Event, TF_Status* s) { Ok(s); });
  SLOT(block_host_until_done,
       [](const SP_Device*, SP_Stream, TF_Status* s) { Ok(s); });
  SLOT(synchronize_all_activity, [](const SP_Device*, TF_Status* s) { Ok(s); });
  SLOT(mem_zero, [](const SP_Device*, SP_Stream, SP_DeviceMemoryBase* to,
                    uint64_t n, TF_Status* s) {
    std::memset(to->opaque, 0, n);
    Ok(s);
  });
  SLOT(memset, [](const SP_Device*, SP_Stream, SP_DeviceMemoryBase* to,
                  uint8_t pattern, uint64_t n, TF_Status* s) {
    std::memset(to->opaque, pattern, n);
    Ok(s);
  });
  SLOT(memset32, [](const SP_Device*, SP_Stream, SP_DeviceMemoryBase* to,
                    uint32_t pattern, uint64_t n, TF_Status* s) {
    std::fill_n(static_cast<uint32_t*>(to->opaque), n / 4, pattern);
    Ok(s);
  });
  SLOT(create_stream_with_options, [](const SP_Device*, const SP_StreamOptions*,
                                      SP_Stream* stream, TF_Status* s) {
    *stream = reinterpret_cast<SP_Stream>(new char);
    Ok(s);
  });
#undef SLOT
  // Without the logger, whose lock the function that it runs may want.
  table.host_callback = [](const SP_Device* device, SP_Stream stream,
                           SE_StatusCallbackFn function,
                           void* argument) -> TF_Bool {
    Write(OwnType(),
          "host_callback(" + Text(device) + ", " + Text(stream) + ")");
    TF_Status* const status = tf.TF_NewStatus();
    function(argument, status);
    tf.TF_DeleteStatus(status);
    return 1;
  };
  table.struct_size = std::min(size, sizeof(table));
  std::memcpy(&to, &table, table.struct_size);
}

// ---- The platform -------------------------------------------------------------

void FillDeviceFns(SP_DeviceFns* fns) {
  fns->struct_size = SP_DEVICE_FNS_STRUCT_SIZE;
#define SLOT(slot, ...) PROBE_SLOT(SP_DeviceFns, fns, slot, __VA_ARGS__)
  SLOT(get_numa_node, [](const SP_Device*) { return -1; });
  SLOT(get_memory_bandwidth, [](const SP_Device*) { return int64_t{-1}; });
  SLOT(get_gflops, [](const SP_Device*) { return -1.0; });
#undef SLOT
}

void InitPlatform(SE_PlatformRegistrationParams* params) {
  SP_Platform& platform = *params->platform;
  platform.struct_size = SP_PLATFORM_STRUCT_SIZE;
  const std::string type = Setting("type", OwnType());
  platform.name = (new std::string(OwnType()))->c_str();
  platform.type =
      type.empty() ? platform.name : (new std::string(type))->c_str();
  platform.use_bfc_allocator = Number("bfc", 1) != 0;
  SP_PlatformFns* const fns = params->platform_fns;
  fns->struct_size = SP_PLATFORM_FNS_STRUCT_SIZE;
#define SLOT(slot, ...) PROBE_SLOT(SP_PlatformFns, fns, slot, __VA_ARGS__)
  SLOT(get_device_count, [](const SP_Platform*, int* count, TF_Status* s) {
    *count = static_cast<int>(Number("devices", 1));
    Ok(s);
  });
  SLOT(create_device,
       [](const SP_Platform*, SE_CreateDeviceParams* create, TF_Status* s) {
         create->device->struct_size = SP_DEVICE_STRUCT_SIZE;
         create->device->ordinal = create->ordinal;
         create->device->hardware_name = "probe";
         Ok(s);
       });
  SLOT(destroy_device, [](const SP_Platform*, SP_Device*) {});
  SLOT(create_device_fns,
       [](const SP_Platform*, SE_CreateDeviceFnsParams* create, TF_Status* s) {
         FillDeviceFns(create->device_fns);
         Ok(s);
       });
  SLOT(destroy_device_fns, [](const SP_Platform*, SP_DeviceFns*) {});
  SLOT(create_stream_executor,
       [](const SP_Platform*, SE_CreateStreamExecutorParams* create,
          TF_Status* s) {
         FillExecutor(*create->stream_executor,
                      create->stream_executor->struct_size);
         Ok(s);
       });
  SLOT(destroy_stream_executor, [](const SP_Platform*, SP_StreamExecutor*) {});
  SLOT(create_timer_fns,
       [](const SP_Platform*, SP_TimerFns* timers, TF_Status* s) {
         timers->struct_size = SP_TIMER_FNS_STRUCT_SIZE;
         PROBE_SLOT(SP_TimerFns, timers, nanoseconds,
                    [](SP_Timer) { return uint64_t{0}; });
         Ok(s);
       });
  SLOT(destroy_timer_fns, [](const SP_Platform*, SP_TimerFns*) {});
#undef SLOT
  PROBE_SLOT(SE_PlatformRegistrationParams, params, destroy_platform,
             [](SP_Platform*) {});
  PROBE_SLOT(SE_PlatformRegistrationParams, params, destroy_platform_fns,
             [](SP_PlatformFns*) {});
}

// ---- The kernels: MatMul, AddV2 and Relu of floats -----------------------------

struct Kernel {
  std::string op, name;
};

template <char op>
void* Create(TF_OpKernelConstruction* construction) {
  const TF_StringView name = tf.TF_OpKernelConstruction_GetName(construction);
  const char* const text = op == 'm' ? "MatMul" : op == 'a' ? "AddV2" : "Relu";
  auto* const kernel = new Kernel{text, std::string(name.data, name.len)};
  Write(OwnType(), "create_func " + kernel->op + " " + kernel->name);
  return kernel;
}
void Delete(void* object) {
  auto* const kernel = static_cast<Kernel*>(object);
  Write(OwnType(), "delete_func " + kernel->op + " " + kernel->name);
  delete kernel;
}

void Compute(void* object, TF_OpKernelContext* context) {
  const auto& kernel = *static_cast<Kernel*>(object);
  TF_Status* const status = tf.TF_NewStatus();
  {
    std::lock_guard<std::mutex> lock(Mutex());
    Write(OwnType(), "compute_func(" + Text(tf.TF_GetStream(context, status)) +
                         ") " + kernel.op + " " + kernel.name);
  }
  static std::atomic<int> calls{0};
  const bool fails = IsToFail("compute_func", ++calls);
  if (fails) tf.TF_SetStatus(status, TF_INTERNAL, "the kernel must fail");
  TF_Tensor* inputs[2] = {};
  int64_t dims[2][4] = {};
  int rank = 0;
  const auto is_ok = [&] { return tf.TF_GetCode(status) == TF_OK; };
  const int count = kernel.op == "Relu" ? 1 : 2;
  for (int i = 0; i < count && is_ok(); ++i) {
    tf.TF_GetInput(context, i, &inputs[i], status);
    if (!is_ok()) break;
    rank = tf.TF_NumDims(inputs[i]);
    for (int d = 0; d < rank && d < 4; ++d) {
      dims[i][d] = tf.TF_Dim(inputs[i], d);
    }
  }
  if (is_ok()) {
    int64_t shape[4] = {dims[0][0], dims[0][1], dims[0][2], dims[0][3]};
    if (kernel.op == "MatMul") shape[1] = dims[1][1];
    int64_t size = 1;
    for (int d = 0; d < rank; ++d) size *= shape[d];
    TF_Tensor* const output =
        tf.TF_AllocateOutput(context, 0, TF_FLOAT, shape, rank,
                             static_cast<size_t>(size) * sizeof(float), status);
    if (is_ok()) {
      const auto* const x =
          static_cast<const float*>(tf.TF_TensorData(inputs[0]));
      const auto* const y =
          count == 1 ? nullptr
                     : static_cast<const float*>(tf.TF_TensorData(inputs[1]));
      auto* const z = static_cast<float*>(tf.TF_TensorData(output));
      for (int64_t i = 0; i < size; ++i) {
        if (kernel.op == "MatMul") {
          z[i] = 0;
          for (int64_t k = 0; k < dims[0][1]; ++k) {
            z[i] += x[i / shape[1] * dims[0][1] + k] *
                    y[k * shape[1] + i % shape[1]];
          }
        } else {
          z[i] = y == nullptr ? std::max(x[i], 0.0f) : x[i] + y[i];
        }
      }
    }
    if (output != nullptr) tf.TF_DeleteTensor(output);
  }
  if (!is_ok()) tf.TF_OpKernelContext_Failure(context, status);
  for (TF_Tensor* input : inputs) {
    if (input != nullptr) tf.TF_DeleteTensor(input);
  }
  tf.TF_DeleteStatus(status);
}

template <char op>
void RegisterKernel(const char* name) {
  TF_Status* const status = tf.TF_NewStatus();
  TF_KernelBuilder* const builder = tf.TF_NewKernelBuilder(
      name, OwnType().c_str(), &Create<op>, &Compute, &Delete);
  tf.TF_KernelBuilder_TypeConstraint(builder, "T", TF_FLOAT, status);
  tf.TF_RegisterKernelBuilder(name, builder, status);
  tf.TF_DeleteStatus(status);
}

// ---- The graph optimizer --------------------------------------------------------

void FillConfigs(TP_OptimizerConfigs& to) {
  TP_OptimizerConfigs configs = {};
  const std::string off = Setting("off", OwnType());
  if (off == "constant_folding") configs.constant_folding = TF_TriState_Off;
  configs.struct_size = std::min(to.struct_size, sizeof(configs));
  std::memcpy(&to, &configs, configs.struct_size);
}

void Optimize(void*, const TF_Buffer* graph, const TF_GrapplerItem*, TF_Buffer*,
              TF_Status* status) {
  std::vector<std::string> ops;
  const absl::string_view bytes(static_cast<const char*>(graph->data),
                                graph->length);
  for (internal::WireReader field(bytes); field.Next();) {
    if (field.number() != 1) continue;  // GraphDef.node
    std::string op, device;
    for (internal::WireReader node(field.bytes()); node.Next();) {
      if (node.number() == 2) op = std::string(node.bytes());
      if (node.number() == 4) device = std::string(node.bytes());
    }
    ops.push_back(op + "@" +
                  device.substr(device.rfind(':', device.size() - 3) + 1));
  }
  std::sort(ops.begin(), ops.end());
  std::string text;
  for (const std::string& op : ops) text += " " + op;
  Write(OwnType(), "optimize_func" + text);
  const bool fails = Setting("fail") == "optimize_func:all";
  tf.TF_SetStatus(status, fails ? TF_INTERNAL : TF_ABORTED, "");
}

}  // namespace
}  // namespace tfplug::record

// ---- The entry points -----------------------------------------------------------

using namespace tfplug::record;  // NOLINT(google-build-using-namespace)

#define PROBE_EXPORT extern "C" __attribute__((visibility("default")))

PROBE_EXPORT void SE_InitPlugin(SE_PlatformRegistrationParams* params,
                                TF_Status* status) {
  if (!tfplug::internal::LoadTensorFlow()) return;
  Write(OwnType(), "SE_InitPlugin");
  InitPlatform(params);
  Ok(status);
}

PROBE_EXPORT void TF_InitKernel() {
  if (!tfplug::internal::LoadTensorFlow()) return;
  Write(OwnType(), "TF_InitKernel");
  RegisterKernel<'m'>("MatMul");
  RegisterKernel<'a'>("AddV2");
  RegisterKernel<'r'>("Relu");
}

PROBE_EXPORT void TF_InitGraph(TP_OptimizerRegistrationParams* params,
                               TF_Status* status) {
  if (!tfplug::internal::LoadTensorFlow()) return;
  Write(OwnType(), "TF_InitGraph");
  params->struct_size =
      tfplug::capi::StructInfo<TP_OptimizerRegistrationParams>::kSize;
  params->device_type = (new std::string(OwnType()))->c_str();
  params->optimizer->struct_size =
      tfplug::capi::StructInfo<TP_Optimizer>::kSize;
  params->optimizer->create_func = []() -> void* {
    Write(OwnType(), "create_func of the optimizer");
    return nullptr;
  };
  params->optimizer->optimize_func = &Optimize;
  params->optimizer->destroy_func = [](void*) {
    Write(OwnType(), "destroy_func of the optimizer");
  };
  FillConfigs(*params->optimizer_configs);
  Ok(status);
}

PROBE_EXPORT void TF_InitProfiler(TF_ProfilerRegistrationParams* params,
                                  TF_Status* status) {
  if (!tfplug::internal::LoadTensorFlow()) return;
  Write(OwnType(), "TF_InitProfiler");
  params->struct_size =
      tfplug::capi::StructInfo<TF_ProfilerRegistrationParams>::kSize;
  params->profiler->struct_size = tfplug::capi::StructInfo<TP_Profiler>::kSize;
  params->profiler->device_type = (new std::string(OwnType()))->c_str();
  TP_ProfilerFns* const fns = params->profiler_fns;
  fns->struct_size = tfplug::capi::StructInfo<TP_ProfilerFns>::kSize;
#define SLOT(slot, ...) PROBE_SLOT(TP_ProfilerFns, fns, slot, __VA_ARGS__)
  SLOT(start, [](const TP_Profiler*, TF_Status* s) { Ok(s); });
  SLOT(stop, [](const TP_Profiler*, TF_Status* s) { Ok(s); });
  SLOT(collect_data_xspace,
       [](const TP_Profiler*, uint8_t* buffer, size_t* size, TF_Status* s) {
         const char kEmptyPlane[] = {'\x0a', '\0'};
         *size = sizeof(kEmptyPlane);
         if (buffer != nullptr) std::memcpy(buffer, kEmptyPlane, *size);
         Ok(s);
       });
#undef SLOT
  PROBE_SLOT(TF_ProfilerRegistrationParams, params, destroy_profiler,
             [](TP_Profiler*) {});
  PROBE_SLOT(TF_ProfilerRegistrationParams, params, destroy_profiler_fns,
             [](TP_ProfilerFns*) {});
  Ok(status);
}
