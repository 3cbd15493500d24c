// SPDX-License-Identifier: Apache-2.0
//
// A process that plays TensorFlow's part for one operation of one plug-in:
//
//   host PLUGIN OPERATION CALLS    calls it so many times
//   host --list                    names the operations
//
// Each call goes through measured(), which callgrind collects, with all that it
// calls; what puts things back (the deallocation after an allocation) does not.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tfplug/abi/abi.h"

namespace abi = tfplug::abi;

// ---- What core exports
// --------------------------------------------------------

namespace tfplug::abi {
struct TF_Status {
  TF_Code code = TF_OK;
  std::string message;
};
}  // namespace tfplug::abi

extern "C" {

abi::TF_Status* TF_NewStatus() { return new abi::TF_Status; }

void TF_DeleteStatus(abi::TF_Status* status) { delete status; }

void TF_SetStatus(abi::TF_Status* status, abi::TF_Code code,
                  const char* message) {
  if (code == abi::TF_OK) {
    if (status->code != abi::TF_OK) status->message.clear();
    status->code = abi::TF_OK;
    return;
  }
  status->code = code;
  status->message = message;
}

abi::TF_Code TF_GetCode(const abi::TF_Status* status) { return status->code; }

const char* TF_Message(const abi::TF_Status* status) {
  return status->message.c_str();
}

}  // extern "C"

namespace {

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "host: %s\n", what);
  std::exit(1);
}

// ---- A device, made as core makes it
// ------------------------------------------

constexpr uint64_t kBytes = 64;

struct Bench {
  abi::TF_Status status;
  abi::SP_Platform platform = {};
  abi::SP_PlatformFns platform_fns = {};
  abi::SP_Device device = {};
  abi::SP_StreamExecutor table = {};

  abi::SP_Stream stream = nullptr, other = nullptr;
  abi::SP_Event event = nullptr, scratch_event = nullptr;
  abi::SP_DeviceMemoryBase a = {}, b = {}, scratch = {};
  char host_memory[kBytes] = {};
  int host_tasks_run = 0;

  void RequireOk(const char* what) {
    if (status.code == abi::TF_OK) return;
    Require(false, (std::string(what) + ": " + status.message).c_str());
  }

  void Load(const char* plugin) {
    void* library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) Require(false, dlerror());
    auto* init_plugin = reinterpret_cast<void (*)(
        abi::SE_PlatformRegistrationParams*, abi::TF_Status*)>(
        dlsym(library, "SE_InitPlugin"));
    Require(init_plugin != nullptr, "the plug-in has no SE_InitPlugin");

    platform.struct_size = abi::SP_PLATFORM_STRUCT_SIZE;
    platform_fns.struct_size = abi::SP_PLATFORM_FNS_STRUCT_SIZE;
    abi::SE_PlatformRegistrationParams params = {};
    params.struct_size = abi::SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE;
    params.platform = &platform;
    params.platform_fns = &platform_fns;
    init_plugin(&params, &status);
    RequireOk("SE_InitPlugin");

    device.struct_size = abi::SP_DEVICE_STRUCT_SIZE;
    abi::SE_CreateDeviceParams device_params = {};
    device_params.struct_size = abi::SE_CREATE_DEVICE_PARAMS_STRUCT_SIZE;
    device_params.device = &device;
    platform_fns.create_device(&platform, &device_params, &status);
    RequireOk("create_device");

    table.struct_size = abi::SP_STREAMEXECUTOR_STRUCT_SIZE;
    abi::SE_CreateStreamExecutorParams executor_params = {};
    executor_params.struct_size =
        abi::SE_CREATE_STREAM_EXECUTOR_PARAMS_STRUCT_SIZE;
    executor_params.stream_executor = &table;
    platform_fns.create_stream_executor(&platform, &executor_params, &status);
    RequireOk("create_stream_executor");

    for (abi::SP_DeviceMemoryBase* memory : {&a, &b, &scratch}) {
      memory->struct_size = abi::SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
    }
    table.allocate(&device, kBytes, 0, &a);
    table.allocate(&device, kBytes, 0, &b);
    Require(a.opaque != nullptr && b.opaque != nullptr, "allocate");
    table.create_stream(&device, &stream, &status);
    table.create_stream(&device, &other, &status);
    table.create_event(&device, &event, &status);
    table.record_event(&device, stream, event, &status);
    RequireOk("create_stream, create_event");
  }
};

// ---- The operations
// -----------------------------------------------------------

void Nothing(Bench&) {}

void Allocate(Bench& s) { s.table.allocate(&s.device, kBytes, 0, &s.scratch); }
void Deallocate(Bench& s) { s.table.deallocate(&s.device, &s.scratch); }

void CreateEvent(Bench& s) {
  s.table.create_event(&s.device, &s.scratch_event, &s.status);
}
void DestroyEvent(Bench& s) {
  s.table.destroy_event(&s.device, s.scratch_event);
}

struct Operation {
  const char* slot;
  void (*call)(Bench&);
  void (*before)(Bench&) = Nothing;
  void (*after)(Bench&) = Nothing;
};

const Operation kOperations[] = {
    {"allocate", Allocate, Nothing, Deallocate},
    {"deallocate", Deallocate, Allocate, Nothing},
    {"memcpy_htod",
     [](Bench& s) {
       s.table.memcpy_htod(&s.device, s.stream, &s.a, s.host_memory, kBytes,
                           &s.status);
     }},
    {"memcpy_dtoh",
     [](Bench& s) {
       s.table.memcpy_dtoh(&s.device, s.stream, s.host_memory, &s.a, kBytes,
                           &s.status);
     }},
    {"memcpy_dtod",
     [](Bench& s) {
       s.table.memcpy_dtod(&s.device, s.stream, &s.a, &s.b, kBytes, &s.status);
     }},
    {"sync_memcpy_htod",
     [](Bench& s) {
       s.table.sync_memcpy_htod(&s.device, &s.a, s.host_memory, kBytes,
                                &s.status);
     }},
    {"sync_memcpy_dtoh",
     [](Bench& s) {
       s.table.sync_memcpy_dtoh(&s.device, s.host_memory, &s.a, kBytes,
                                &s.status);
     }},
    {"sync_memcpy_dtod",
     [](Bench& s) {
       s.table.sync_memcpy_dtod(&s.device, &s.a, &s.b, kBytes, &s.status);
     }},
    {"mem_zero",
     [](Bench& s) {
       s.table.mem_zero(&s.device, s.stream, &s.a, kBytes, &s.status);
     }},
    {"memset",
     [](Bench& s) {
       s.table.memset(&s.device, s.stream, &s.a, 7, kBytes, &s.status);
     }},
    {"memset32",
     [](Bench& s) {
       s.table.memset32(&s.device, s.stream, &s.a, 7, kBytes, &s.status);
     }},
    {"create_event", CreateEvent, Nothing, DestroyEvent},
    {"destroy_event", DestroyEvent, CreateEvent, Nothing},
    {"record_event",
     [](Bench& s) {
       s.table.record_event(&s.device, s.stream, s.event, &s.status);
     }},
    {"get_event_status",
     [](Bench& s) {
       Require(s.table.get_event_status(&s.device, s.event) ==
                   abi::SE_EVENT_COMPLETE,
               "get_event_status");
     }},
    {"wait_for_event",
     [](Bench& s) {
       s.table.wait_for_event(&s.device, s.other, s.event, &s.status);
     }},
    {"block_host_for_event",
     [](Bench& s) {
       s.table.block_host_for_event(&s.device, s.event, &s.status);
     }},
    {"create_stream_dependency",
     [](Bench& s) {
       s.table.create_stream_dependency(&s.device, s.other, s.stream,
                                        &s.status);
     }},
    {"get_stream_status",
     [](Bench& s) {
       s.table.get_stream_status(&s.device, s.stream, &s.status);
     }},
    {"block_host_until_done",
     [](Bench& s) {
       s.table.block_host_until_done(&s.device, s.stream, &s.status);
     }},
    {"host_callback",
     [](Bench& s) {
       Require(s.table.host_callback(
                   &s.device, s.stream,
                   [](void* bench, abi::TF_Status*) {
                     ++static_cast<Bench*>(bench)->host_tasks_run;
                   },
                   &s),
               "host_callback");
     }},
};

}  // namespace

// Its name is what tools/bench tells callgrind to collect under.
extern "C" [[gnu::noinline]] void measured(void (*call)(Bench&), Bench& bench) {
  call(bench);
}

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (const Operation& operation : kOperations) std::puts(operation.slot);
    return 0;
  }
  Require(argc == 4, "usage: host PLUGIN OPERATION CALLS");
  const Operation* operation = nullptr;
  for (const Operation& each : kOperations) {
    if (std::strcmp(each.slot, argv[2]) == 0) operation = &each;
  }
  Require(operation != nullptr, "no such operation");

  static Bench bench;
  bench.Load(argv[1]);
  const int calls = std::atoi(argv[3]);
  // The first calls bind symbols and fill caches, which is not looked at.
  constexpr int kFirstCalls = 10;
  for (int i = 0; i < kFirstCalls + calls; ++i) {
    operation->before(bench);
    if (i < kFirstCalls) {
      operation->call(bench);
    } else {
      measured(operation->call, bench);
    }
    operation->after(bench);
    bench.RequireOk(operation->slot);
  }
  if (std::strcmp(argv[2], "host_callback") == 0) {
    Require(bench.host_tasks_run == kFirstCalls + calls,
            "a host task was not run");
  }
  return 0;
}
