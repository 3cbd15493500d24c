// SPDX-License-Identifier: Apache-2.0
//
// Calls one function of a plug-in's device as TensorFlow does:
//
//   host PLUGIN OPERATION CALLS    calls it CALLS times
//   host --list                    lists the operations
//
// Callgrind counts the instructions of measured() and of everything that it
// calls. Preparation and cleanup, such as the deallocation after an allocation,
// are not counted.
#include "host.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

// ---- The operations ---------------------------------------------------------

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

void CopyToDevice(Bench& s) {
  s.table.memcpy_htod(&s.device, s.stream, &s.a, s.host_memory, kBytes,
                      &s.status);
}
// Calls create_stream_dependency, as TensorFlow does before every copy except
// those of constants.
void Order(Bench& s) {
  s.table.create_stream_dependency(&s.device, s.stream, s.other, &s.status);
}

const Operation kOperations[] = {
    {"allocate", Allocate, Nothing, Deallocate},
    {"deallocate", Deallocate, Allocate, Nothing},
    {"memcpy_htod", CopyToDevice, Order},
    {"memcpy_htod:constant", CopyToDevice},
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
                   capi::SE_EVENT_COMPLETE,
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
                   [](void* bench, capi::TF_Status*) {
                     ++static_cast<Bench*>(bench)->host_tasks_run;
                   },
                   &s),
               "host_callback");
     }},
};

}  // namespace

// tools/bench passes this name to Callgrind.
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
  Require(operation != nullptr, "There is no such operation; see --list.");

  static Bench bench;
  bench.Load(argv[1]);
  const int calls = std::atoi(argv[3]);
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
            "A host task was not run.");
  }
  return 0;
}
