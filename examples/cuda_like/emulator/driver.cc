// SPDX-License-Identifier: Apache-2.0
// The emulated driver: libraries, devices, contexts and memory.
#include <cstdio>
#include <cstring>
#include <string_view>

#include "absl/status/statusor.h"
#include "emulator/exports.h"
#include "emulator/objects.h"

namespace cuda_like {
namespace emulator {

std::atomic<Machine*> machine{nullptr};
thread_local CUcontext current = nullptr;
thread_local bool in_callback = false;

CUresult ToResult(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return CUDA_SUCCESS;
    case absl::StatusCode::kResourceExhausted:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case absl::StatusCode::kInvalidArgument:
      return CUDA_ERROR_INVALID_VALUE;
    case absl::StatusCode::kFailedPrecondition:
      return CUDA_ERROR_NOT_PERMITTED;
    default:
      return CUDA_ERROR_UNKNOWN;
  }
}

namespace {

struct Error {
  CUresult code;
  const char* name;
  const char* text;
};

#define CUDA_LIKE_ERROR(code, text) \
  { code, #code, text }
constexpr Error kErrors[] = {
    CUDA_LIKE_ERROR(CUDA_SUCCESS, "no error"),
    CUDA_LIKE_ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    CUDA_LIKE_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    CUDA_LIKE_ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    CUDA_LIKE_ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    CUDA_LIKE_ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    CUDA_LIKE_ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    CUDA_LIKE_ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    CUDA_LIKE_ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    CUDA_LIKE_ERROR(CUDA_ERROR_ILLEGAL_STATE,
                    "the operation cannot be performed in the present state"),
    CUDA_LIKE_ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    CUDA_LIKE_ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    CUDA_LIKE_ERROR(CUDA_ERROR_ILLEGAL_ADDRESS,
                    "an illegal memory access was encountered"),
    CUDA_LIKE_ERROR(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
                    "peer access is already enabled"),
    CUDA_LIKE_ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    CUDA_LIKE_ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    CUDA_LIKE_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                    "operation not permitted when stream is capturing"),
    CUDA_LIKE_ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                    "operation failed due to a previous error during capture"),
    CUDA_LIKE_ERROR(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                    "dependency created on uncaptured work in another stream"),
    CUDA_LIKE_ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};
#undef CUDA_LIKE_ERROR

CUresult FindError(CUresult code, const char* Error::*member,
                   const char** text) {
  for (const Error& error : kErrors) {
    if (error.code != code) continue;
    *text = error.*member;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult CreateMachine() {
  absl::Status status = rt::InjectFaultsFromEnvironment("CUDA_LIKE");
  absl::StatusOr<rt::Options> options = rt::OptionsFromEnvironment("CUDA_LIKE");
  status.Update(options.status());
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (options->devices == 0) return CUDA_ERROR_NO_DEVICE;
  auto made = std::make_unique<Machine>();
  auto runtime = rt::Machine::Create(*options);
  if (!runtime.ok()) return ToResult(runtime.status());
  made->machine = *std::move(runtime);
  for (int ordinal = 0; ordinal < options->devices; ++ordinal) {
    made->contexts.push_back(std::make_unique<CUctx_st>());
    made->contexts.back()->device = *made->machine->GetDevice(ordinal);
  }
  machine = made.release();
  return CUDA_SUCCESS;
}

CUctx_st* Find(CUdevice device) {
  const auto& contexts = machine.load()->contexts;
  return device >= 0 && static_cast<size_t>(device) < contexts.size()
             ? contexts[static_cast<size_t>(device)].get()
             : nullptr;
}

int AttributeOf(CUdevice_attribute attribute) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return 1;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return 9;
    default:  // unknown speeds
      return 0;
  }
}

}  // namespace
}  // namespace emulator

using emulator::Find;
using emulator::Run;
using emulator::RunInContext;

// ---- Libraries -------------------------------------------------------------

extern "C" CUresult cuGetProcAddress_v2(const char* symbol, void** function,
                                        int version, cuuint64_t /*flags*/,
                                        CUdriverProcAddressQueryResult* found) {
  *function = nullptr;
  const std::string_view name = symbol;
#define CUDA_LIKE_ADDRESS(base, suffix, parameters) \
  if (name == #base) *function = reinterpret_cast<void*>(&base##suffix);
  CUDA_LIKE_DRIVER_FUNCTIONS(CUDA_LIKE_ADDRESS)
#undef CUDA_LIKE_ADDRESS
  CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SUCCESS;
  if (*function == nullptr) {
    result = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  } else if (version < emulator::kCudaVersion) {  // another function, perhaps
    *function = nullptr;
    result = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
  }
  if (found != nullptr) *found = result;
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuInit(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  static const CUresult result = emulator::CreateMachine();
  return result;
}

CUresult cuDriverGetVersion(int* version) {
  *version = emulator::kCudaVersion;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  return emulator::FindError(error, &emulator::Error::name, name);
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  return emulator::FindError(error, &emulator::Error::text, text);
}

// ---- Devices and contexts --------------------------------------------------

CUresult cuDeviceGetCount(int* count) {
  return Run(__func__, [&] {
    *count = static_cast<int>(emulator::machine.load()->contexts.size());
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return Run(__func__, [&] {
    *device = ordinal;
    return Find(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  });
}

CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  return Run(__func__, [&] {
    std::snprintf(name, static_cast<size_t>(size), "emulated on host threads");
    return Find(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute,
                              CUdevice device) {
  return Run(__func__, [&] {
    *value = emulator::AttributeOf(attribute);
    return Find(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  });
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return Run(__func__, [&]() -> CUresult {
    const CUctx_st* const context = Find(device);
    if (context == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const absl::StatusOr<rt::HeapStats> stats = context->device->Stats();
    if (stats.ok()) *bytes = stats->limit;
    return emulator::ToResult(stats.status());
  });
}

CUresult cuDeviceGetPCIBusId(char* id, int size, CUdevice device) {
  return Run(__func__, [&] {
    std::snprintf(id, static_cast<size_t>(size), "0000:%02x:00.0", device);
    return Find(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  });
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return Run(__func__, [&] {
    *can = device != peer;
    return Find(device) && Find(peer) ? CUDA_SUCCESS
                                      : CUDA_ERROR_INVALID_DEVICE;
  });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return Run(__func__, [&]() -> CUresult {
    *context = Find(device);
    if (*context == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const std::lock_guard<std::mutex> lock((*context)->mutex);
    ++(*context)->users;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return Run(__func__, [&]() -> CUresult {
    CUctx_st* const context = Find(device);
    if (context == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const std::lock_guard<std::mutex> lock(context->mutex);
    if (context->users == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--context->users == 0) {  // the next user gets a working context
      context->failure = CUDA_SUCCESS;
      context->peers.clear();
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return Run(__func__, [&] {
    emulator::current = context;
    return CUDA_SUCCESS;
  });
}

// While a stream captures, CUDA permits no waiting for its context.
CUresult cuCtxSynchronize() {
  return RunInContext(__func__, [](CUctx_st& context) -> CUresult {
    {
      const std::lock_guard<std::mutex> lock(context.mutex);
      for (const CUstream stream : context.capturing) {
        stream->is_invalid = true;
      }
      if (!context.capturing.empty()) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
      }
    }
    return emulator::ToResult(context.device->Synchronize());
  });
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return RunInContext(__func__, [&](CUctx_st&) {
    *least = emulator::kLeastPriority;
    *greatest = emulator::kGreatestPriority;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  return RunInContext(__func__, [&](CUctx_st& context) -> CUresult {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (peer == nullptr || peer == &context) return CUDA_ERROR_INVALID_CONTEXT;
    const std::lock_guard<std::mutex> lock(context.mutex);
    for (const CUcontext other : context.peers) {
      if (other == peer) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    }
    context.peers.push_back(peer);
    return CUDA_SUCCESS;
  });
}

// ---- Memory ----------------------------------------------------------------

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  return RunInContext(__func__, [&](CUctx_st& context) {
    const absl::StatusOr<rt::HeapStats> stats = context.device->Stats();
    if (stats.ok()) {
      *free = stats->limit - stats->in_use;
      *total = stats->limit;
    }
    return stats.status();
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return RunInContext(__func__, [&](CUctx_st& context) -> CUresult {
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    const absl::StatusOr<void*> memory = context.device->Allocate(bytes);
    if (memory.ok()) *address = reinterpret_cast<CUdeviceptr>(*memory);
    return emulator::ToResult(memory.status());
  });
}

CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  return RunInContext(__func__, [&](CUctx_st& context) -> CUresult {
    if (bytes == 0 || flags != CU_MEM_ATTACH_GLOBAL) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const absl::StatusOr<void*> memory = context.device->AllocateManaged(bytes);
    if (memory.ok()) *address = reinterpret_cast<CUdeviceptr>(*memory);
    return emulator::ToResult(memory.status());
  });
}

// Waits for the work that may use the memory, as CUDA does.
CUresult cuMemFree_v2(CUdeviceptr address) {
  return RunInContext(__func__, [&](CUctx_st& context) {
    absl::Status status = context.device->Synchronize();
    if (!status.ok()) return status;
    void* const memory = reinterpret_cast<void*>(address);
    status = context.device->Free(memory);
    return absl::IsInvalidArgument(status) ? context.device->FreeManaged(memory)
                                           : status;
  });
}

CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  return RunInContext(__func__, [&](CUctx_st& context) -> CUresult {
    if (bytes == 0 || (flags & ~CU_MEMHOSTALLOC_PORTABLE) != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const absl::StatusOr<void*> allocated = context.device->AllocateHost(bytes);
    if (allocated.ok()) {
      *memory = *allocated;
      const std::lock_guard<std::mutex> lock(context.mutex);
      context.page_locked[static_cast<char*>(*allocated)] = bytes;
    }
    return emulator::ToResult(allocated.status());
  });
}

CUresult cuMemFreeHost(void* memory) {
  return RunInContext(__func__, [&](CUctx_st& context) {
    {
      const std::lock_guard<std::mutex> lock(context.mutex);
      context.page_locked.erase(static_cast<char*>(memory));
    }
    context.device->FreeHost(memory);
    return CUDA_SUCCESS;
  });
}

}  // namespace cuda_like
