// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BENCHMARKS_HOST_H_
#define TFPLUG_BENCHMARKS_HOST_H_

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tfplug/abi/abi.h"

// Shared by the programs host.cc and kernel_host.cc: TensorFlow's functions for
// statuses, and the device of a plug-in. Each program is a single source file.
namespace capi = tfplug::capi;

// ---- Functions that TensorFlow exports --------------------------------------

namespace tfplug::capi {
struct TF_Status {
  TF_Code code = TF_OK;
  std::string message;
};
}  // namespace tfplug::capi

// tfplug's headers declare them hidden, but plug-ins are to find them.
#pragma GCC visibility push(default)

extern "C" {

capi::TF_Status* TF_NewStatus() { return new capi::TF_Status; }

void TF_DeleteStatus(capi::TF_Status* status) { delete status; }

void TF_SetStatus(capi::TF_Status* status, capi::TF_Code code,
                  const char* message) {
  if (code == capi::TF_OK) {
    if (status->code != capi::TF_OK) status->message.clear();
    status->code = capi::TF_OK;
    return;
  }
  status->code = code;
  status->message = message;
}

capi::TF_Code TF_GetCode(const capi::TF_Status* status) { return status->code; }

const char* TF_Message(const capi::TF_Status* status) {
  return status->message.c_str();
}

}  // extern "C"

#pragma GCC visibility pop

inline void Require(bool condition, const char* message) {
  if (condition) return;
  std::fprintf(stderr, "host: %s\n", message);
  std::exit(1);
}

// ---- A device, created in the order in which TensorFlow does ----------------

inline constexpr uint64_t kBytes = 64;

struct Bench {
  capi::TF_Status status;
  capi::SP_Platform platform = {};
  capi::SP_PlatformFns platform_fns = {};
  capi::SP_Device device = {};
  capi::SP_StreamExecutor table = {};

  capi::SP_Stream stream = nullptr, other = nullptr;
  capi::SP_Event event = nullptr, scratch_event = nullptr;
  capi::SP_DeviceMemoryBase a = {}, b = {}, scratch = {};
  char host_memory[kBytes] = {};
  int host_tasks_run = 0;

  void RequireOk(const char* call) {
    if (status.code == capi::TF_OK) return;
    Require(false, (std::string(call) + ": " + status.message).c_str());
  }

  // Loads the plug-in, creates its device and returns the library's handle.
  void* Load(const char* plugin) {
    // Lazily: host.cc lacks the functions that kernels call.
    void* library = dlopen(plugin, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) Require(false, dlerror());
    auto* init_plugin = reinterpret_cast<void (*)(
        capi::SE_PlatformRegistrationParams*, capi::TF_Status*)>(
        dlsym(library, "SE_InitPlugin"));
    Require(init_plugin != nullptr,
            "The plug-in does not export SE_InitPlugin.");

    platform.struct_size = capi::SP_PLATFORM_STRUCT_SIZE;
    platform_fns.struct_size = capi::SP_PLATFORM_FNS_STRUCT_SIZE;
    capi::SE_PlatformRegistrationParams params = {};
    params.struct_size = capi::SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE;
    params.platform = &platform;
    params.platform_fns = &platform_fns;
    init_plugin(&params, &status);
    RequireOk("SE_InitPlugin");

    device.struct_size = capi::SP_DEVICE_STRUCT_SIZE;
    capi::SE_CreateDeviceParams device_params = {};
    device_params.struct_size = capi::SE_CREATE_DEVICE_PARAMS_STRUCT_SIZE;
    device_params.device = &device;
    platform_fns.create_device(&platform, &device_params, &status);
    RequireOk("create_device");

    table.struct_size = capi::SP_STREAMEXECUTOR_STRUCT_SIZE;
    capi::SE_CreateStreamExecutorParams executor_params = {};
    executor_params.struct_size =
        capi::SE_CREATE_STREAM_EXECUTOR_PARAMS_STRUCT_SIZE;
    executor_params.stream_executor = &table;
    platform_fns.create_stream_executor(&platform, &executor_params, &status);
    RequireOk("create_stream_executor");

    for (capi::SP_DeviceMemoryBase* memory : {&a, &b, &scratch}) {
      memory->struct_size = capi::SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
    }
    table.allocate(&device, kBytes, 0, &a);
    table.allocate(&device, kBytes, 0, &b);
    Require(a.opaque != nullptr && b.opaque != nullptr, "allocate");
    table.create_stream(&device, &stream, &status);
    table.create_stream(&device, &other, &status);
    table.create_event(&device, &event, &status);
    table.record_event(&device, stream, event, &status);
    RequireOk("create_stream, create_event");
    return library;
  }
};

// Number of calls before Callgrind collects: they bind symbols and fill caches.
inline constexpr int kFirstCalls = 10;

#endif  // TFPLUG_BENCHMARKS_HOST_H_
