// SPDX-License-Identifier: Apache-2.0
#ifndef CUDA_LIKE_EMULATOR_OBJECTS_H_
#define CUDA_LIKE_EMULATOR_OBJECTS_H_

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "driver/functions.h"
#include "driver/types.h"
#include "runtime/device.h"
#include "runtime/event.h"
#include "runtime/fault.h"
#include "runtime/machine.h"
#include "runtime/stream.h"

// The objects behind the handles of the emulated driver: those of cpu_sim's
// runtime, with CUDA's rules about contexts and errors.
namespace cuda_like {

namespace rt = cpu_sim::rt;

// The primary context of one device. A failure on the device is sticky: the
// context's calls return it from then on, and its streams run nothing but
// callbacks.
struct CUctx_st {
  rt::Device* device = nullptr;
  std::atomic<CUresult> failure{CUDA_SUCCESS};
  std::mutex mutex;  // guards the members below
  int users = 0;
  std::vector<CUcontext> peers;
  std::vector<CUstream> capturing;
  std::map<const char*, size_t> page_locked;
};

// Work that was captured, in order.
struct CUgraph_st {
  CUctx_st& context;
  std::vector<std::function<CUresult()>> works;
};
struct CUgraphExec_st {
  CUctx_st& context;
  std::shared_ptr<const std::vector<std::function<CUresult()>>> works;
};

struct CUstream_st {
  explicit CUstream_st(CUctx_st& owner)
      : context(owner), stream(*owner.device) {}

  CUctx_st& context;
  std::atomic<int64_t> pending{0};  // works that are not done
  std::unique_ptr<CUgraph_st> capture;
  // Whether a call that a capture does not permit has ended it.
  std::atomic<bool> is_invalid{false};
  rt::Stream stream;
};

struct CUevent_st {
  CUctx_st& context;
  bool has_time;
  rt::Event event;
};

struct CUfunc_st {
  CUctx_st& context;
  // Runs all threads of the block `*block`.
  void (*run_block)(const unsigned* block, void** arguments);
  size_t pointers;         // the number of arguments that are device addresses
  size_t parameters_size;  // the size of the argument after them; 0: none
};

struct CUmod_st {
  CUctx_st& context;
  void* library;
  std::vector<std::unique_ptr<CUfunc_st>> functions;
};

namespace emulator {

// The emulated machine: set by cuInit, never destroyed.
struct Machine {
  std::unique_ptr<rt::Machine> machine;
  std::vector<std::unique_ptr<CUctx_st>> contexts;  // one per device
};
extern std::atomic<Machine*> machine;

// The calling thread's current context, and whether the thread runs a callback,
// in which CUDA permits no calls.
extern thread_local CUcontext current;
extern thread_local bool in_callback;

CUresult ToResult(const absl::Status& status);

// Runs a call of the API that needs no context: checks injected faults, and
// returns the result of `call`, an absl::Status or CUresult.
template <class Call>
CUresult Run(const char* name, Call call) {
  if (in_callback) return CUDA_ERROR_NOT_PERMITTED;
  try {
    if (machine == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
    const absl::Status fault = rt::CheckFault(name);
    if (!fault.ok()) return ToResult(fault);
    if constexpr (std::is_same_v<decltype(call()), CUresult>) {
      return call();
    } else {
      return ToResult(call());
    }
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

// Does the same as Run with the calling thread's context as the argument of
// `call`.
template <class Call>
CUresult RunInContext(const char* name, Call call) {
  return Run(name, [&]() -> CUresult {
    if (current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    CUresult failure = current->failure;
    if (failure != CUDA_SUCCESS) return failure;
    CUresult result;
    if constexpr (std::is_same_v<decltype(call(*current)), CUresult>) {
      result = call(*current);
    } else {
      result = ToResult(call(*current));
    }
    // A call that waited finds out that the work has failed.
    failure = current->failure;
    return failure != CUDA_SUCCESS ? failure : result;
  });
}

// Does the same as RunInContext for a call that enqueues work on a stream,
// which must belong to the current context. A stream whose capture has become
// invalid accepts none.
template <class Call>
CUresult RunOnStream(const char* name, CUstream stream, Call call) {
  return RunInContext(name, [&](CUctx_st& context) -> CUresult {
    if (stream == nullptr || &stream->context != &context) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    if (stream->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if constexpr (std::is_same_v<decltype(call(*stream)), CUresult>) {
      return call(*stream);
    } else {
      return ToResult(call(*stream));
    }
  });
}

// Does the same as RunOnStream for a call that a capture does not permit, and
// makes it invalid.
template <class Call>
CUresult RunUncaptured(const char* name, CUstream stream, Call call) {
  return RunOnStream(name, stream, [&](CUstream_st& on) -> CUresult {
    if (on.capture == nullptr) return ToResult(call(on));
    on.is_invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  });
}

// Enqueues `work`, a CUresult(), on the stream, or adds it to the graph that
// the stream captures; its failure is the context's. The fault "device" makes
// it fail.
template <class Work>
absl::Status Enqueue(CUstream_st& stream, Work work) {
  if (stream.capture != nullptr) {
    stream.capture->works.emplace_back(std::move(work));
    return absl::OkStatus();
  }
  ++stream.pending;
  absl::Status status =
      stream.stream.RunOnHost([&stream, work = std::move(work)]() mutable {
        CUctx_st& context = stream.context;
        if (context.failure == CUDA_SUCCESS) {
          CUresult result = CUDA_ERROR_LAUNCH_FAILED;
          try {
            if (rt::CheckFault("device").ok()) result = work();
          } catch (...) {
          }
          if (result != CUDA_SUCCESS) context.failure = result;
        }
        --stream.pending;
      });
  if (!status.ok()) --stream.pending;
  return status;
}

}  // namespace emulator
}  // namespace cuda_like

#endif  // CUDA_LIKE_EMULATOR_OBJECTS_H_
