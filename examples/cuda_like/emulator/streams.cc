// SPDX-License-Identifier: Apache-2.0
// The emulated driver: streams, events, copies, kernels.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/binary.h"
#include "emulator/exports.h"
#include "emulator/objects.h"

namespace cuda_like {

using emulator::Enqueue;
using emulator::RunInContext;
using emulator::RunOnStream;
using emulator::RunUncaptured;

namespace {

std::atomic<int64_t> graph_launches{0}, kernel_launches{0}, blocking_copies{0};

// Returns whether the memory was allocated page-locked in the context.
bool IsPageLocked(CUctx_st& context, const void* memory) {
  const auto* const address = static_cast<const char*>(memory);
  const std::lock_guard<std::mutex> lock(context.mutex);
  auto next = context.page_locked.upper_bound(address);
  return next != context.page_locked.begin() &&
         address < (--next)->first + next->second;
}

// Implements the function `name`, which destroys an object.
template <class Object>
CUresult Destroy(const char* name, Object* object) {
  return emulator::Run(name, [&] {
    delete object;
    return CUDA_SUCCESS;
  });
}

// Ends the stream's capture. Returns null if there is none.
std::unique_ptr<CUgraph_st> StopCapture(CUstream_st& stream) {
  const std::lock_guard<std::mutex> lock(stream.context.mutex);
  auto& capturing = stream.context.capturing;
  capturing.erase(std::remove(capturing.begin(), capturing.end(), &stream),
                  capturing.end());
  return std::move(stream.capture);
}

// Enqueues a copy between private or host addresses.
absl::Status EnqueueCopy(CUstream_st& stream, void* dst, const void* src,
                         size_t bytes) {
  return Enqueue(stream, [dst, src, bytes] {
    if (bytes > 0) std::memmove(dst, src, bytes);
    return CUDA_SUCCESS;
  });
}

// Enqueues a copy from memory of the host. A GPU reads ordinary memory at the
// call, and page-locked memory when it copies: the bytes must stay the same.
absl::Status EnqueueUpload(CUstream_st& stream, void* dst, const void* src,
                           size_t bytes) {
  const char* const from = static_cast<const char*>(src);
  return Enqueue(stream,
                 [dst, from, read = std::vector<char>(from, from + bytes)] {
                   if (!std::equal(read.begin(), read.end(), from)) {
                     return CUDA_ERROR_INVALID_VALUE;
                   }
                   std::copy(read.begin(), read.end(), static_cast<char*>(dst));
                   return CUDA_SUCCESS;
                 });
}

const void* Pointer(CUdeviceptr address) {
  return reinterpret_cast<const void*>(address);
}

// Enqueues filling with `value`, of type T.
template <class T>
absl::Status EnqueueFill(CUstream_st& stream, CUdeviceptr dst, T value,
                         size_t count) {
  if (dst % sizeof(T) != 0) return absl::InvalidArgumentError("misaligned");
  const absl::StatusOr<void*> first =
      stream.context.device->ToPrivate(Pointer(dst), count * sizeof(T));
  if (!first.ok()) return first.status();
  return Enqueue(stream, [first = static_cast<T*>(*first), value, count] {
    std::fill_n(first, count, value);
    return CUDA_SUCCESS;
  });
}

// The arguments of one launch: addresses and a struct, which are copied, and
// the pointers to them that the kernel expects.
class Arguments {
 public:
  // `arguments` is that of cuLaunchKernel.
  Arguments(const CUfunc_st& function, void** arguments)
      : addresses_(function.pointers), parameters_(function.parameters_size) {
    for (size_t i = 0; i < function.pointers; ++i) {
      void* address;
      std::memcpy(&address, arguments[i], sizeof(address));
      // Accepts any size: the kernel's accesses are not checked.
      const absl::StatusOr<void*> found =
          function.context.device->ToPrivateOfAny(address, 1);
      if (address != nullptr && !found.ok()) is_valid_ = false;
      addresses_[i] = found.ok() ? *found : nullptr;
    }
    if (!parameters_.empty()) {
      std::memcpy(parameters_.data(), arguments[function.pointers],
                  parameters_.size());
    }
  }

  // Returns whether all addresses are device memory.
  bool is_valid() const { return is_valid_; }

  // Returns the argument of the kernel's function, valid as long as this
  // object is not moved.
  std::vector<void*> Pointers() {
    std::vector<void*> pointers;
    for (void*& address : addresses_) pointers.push_back(&address);
    pointers.push_back(parameters_.data());
    return pointers;
  }

 private:
  std::vector<void*> addresses_;
  std::vector<char> parameters_;  // aligned like any memory from operator new
  bool is_valid_ = true;
};

// Loads the shared library that a binary contains.
void* LoadLibrary(const void* image) {
  emulator::BinaryHeader header;
  std::memcpy(&header, image, sizeof(header));
  if (std::string_view(header.magic, sizeof(header.magic)) !=
      emulator::Magic()) {
    return nullptr;
  }
  // A file of its own name: dlopen would take another for the same library.
  const char* const parent = std::getenv("TMPDIR");
  std::string path =
      std::string(parent != nullptr ? parent : "/tmp") + "/cuda_like-XXXXXX";
  const int file = mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) return nullptr;
  const char* from = static_cast<const char*>(image) + sizeof(header);
  void* library = nullptr;
  if (write(file, from, header.size) == static_cast<ssize_t>(header.size)) {
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  close(file);
  unlink(path.c_str());
  return library;
}

}  // namespace

// ---- Copies ----------------------------------------------------------------

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void* src, size_t bytes,
                              CUstream stream) {
  return RunOnStream(__func__, stream, [&](CUstream_st& on) {
    absl::Status status = on.context.device->CheckHostRange(src, bytes);
    if (!status.ok()) return status;
    const absl::StatusOr<void*> to =
        on.context.device->ToPrivate(Pointer(dst), bytes);
    return to.ok() ? EnqueueUpload(on, *to, src, bytes) : to.status();
  });
}

CUresult cuMemcpyDtoHAsync_v2(void* dst, CUdeviceptr src, size_t bytes,
                              CUstream stream) {
  return RunOnStream(__func__, stream, [&](CUstream_st& on) {
    absl::Status status = on.context.device->CheckHostRange(dst, bytes);
    if (!status.ok()) return status;
    const absl::StatusOr<void*> from =
        on.context.device->ToPrivate(Pointer(src), bytes);
    if (!IsPageLocked(on.context, dst)) ++blocking_copies;
    return from.ok() ? EnqueueCopy(on, dst, *from, bytes) : from.status();
  });
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
                       CUstream stream) {
  return RunOnStream(__func__, stream, [&](CUstream_st& on) {
    const absl::StatusOr<void*> to =
        on.context.device->ToPrivateOfAny(Pointer(dst), bytes);
    const absl::StatusOr<void*> from =
        on.context.device->ToPrivateOfAny(Pointer(src), bytes);
    if (!to.ok() || !from.ok()) {
      return to.ok() ? from.status() : to.status();
    }
    return EnqueueCopy(on, *to, *from, bytes);
  });
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count,
                         CUstream stream) {
  return RunOnStream(__func__, stream, [&](CUstream_st& on) {
    return EnqueueFill(on, dst, value, count);
  });
}

CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count,
                          CUstream stream) {
  return RunOnStream(__func__, stream, [&](CUstream_st& on) {
    return EnqueueFill(on, dst, value, count);
  });
}

// ---- Streams ---------------------------------------------------------------

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags,
                                    int priority) {
  return RunInContext(__func__, [&](CUctx_st& context) -> CUresult {
    if (flags != CU_STREAM_NON_BLOCKING ||
        priority < emulator::kGreatestPriority ||
        priority > emulator::kLeastPriority) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *stream = new CUstream_st(context);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  return emulator::Run(__func__, [&] {
    StopCapture(*stream);
    delete stream;  // runs what is enqueued
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamQuery(CUstream stream) {
  return emulator::Run(__func__, [&]() -> CUresult {
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult failure = stream->context.failure;
    if (failure != CUDA_SUCCESS) return failure;
    if (stream->capture != nullptr) {
      stream->is_invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return stream->pending == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuStreamSynchronize(CUstream stream) {
  return RunUncaptured(__func__, stream, [&](CUstream_st& on) {
    return on.stream.Synchronize();
  });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return RunOnStream(__func__, stream, [&](CUstream_st& on) -> CUresult {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (on.capture != nullptr) {  // no event here belongs to a capture
      on.is_invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    absl::Status status = on.stream.WaitFor(event->event);
    if (status.ok()) {
      status = Enqueue(on, [] { return CUDA_SUCCESS; });  // for cuStreamQuery
    }
    return emulator::ToResult(status);
  });
}

// The callback runs after a failure, too. Unlike cuLaunchHostFunc, this
// function cannot be captured.
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback,
                             void* argument, unsigned flags) {
  return RunUncaptured(__func__, stream, [&](CUstream_st& on) {
    if (flags != 0) return absl::InvalidArgumentError("flags");
    ++on.pending;
    return on.stream.RunOnHost([&on, callback, argument] {
      emulator::in_callback = true;
      callback(&on, on.context.failure, argument);
      emulator::in_callback = false;
      --on.pending;
    });
  });
}

// ---- Graphs ----------------------------------------------------------------

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return RunOnStream(__func__, stream, [&](CUstream_st& on) -> CUresult {
    if (mode != CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    if (on.capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    on.capture.reset(new CUgraph_st{on.context, {}});
    const std::lock_guard<std::mutex> lock(on.context.mutex);
    on.context.capturing.push_back(&on);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return RunInContext(__func__, [&](CUctx_st& context) -> CUresult {
    *graph = nullptr;
    if (stream == nullptr || &stream->context != &context) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    const std::unique_ptr<CUgraph_st> captured = StopCapture(*stream);
    if (stream->is_invalid.exchange(false)) {
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    *graph = new CUgraph_st(std::move(*captured));
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph,
                                     unsigned long long flags) {
  return RunInContext(__func__, [&](CUctx_st& context) -> CUresult {
    if (&graph->context != &context || flags != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *executable = new CUgraphExec_st{
        context,
        std::make_shared<std::vector<std::function<CUresult()>>>(graph->works)};
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphDestroy(CUgraph graph) { return Destroy(__func__, graph); }

// A graph that runs is destroyed when it is done.
CUresult cuGraphExecDestroy(CUgraphExec executable) {
  return Destroy(__func__, executable);
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  return RunOnStream(__func__, stream, [&](CUstream_st& on) {
    if (&executable->context != &on.context) {
      return absl::InvalidArgumentError("a graph of another device");
    }
    ++graph_launches;
    return Enqueue(on, [works = executable->works] {
      for (const auto& work : *works) {
        const CUresult result = work();
        if (result != CUDA_SUCCESS) return result;
      }
      return CUDA_SUCCESS;
    });
  });
}

// For tests: the number of copies for which CUDA lets the caller wait, because
// their target is not page-locked.
extern "C" CUDA_LIKE_EXPORT int64_t cudaLikeBlockingCopies() {
  return blocking_copies;
}

// For tests: the numbers of graphs and of single kernels that were launched.
extern "C" CUDA_LIKE_EXPORT int64_t cudaLikeGraphLaunches() {
  return graph_launches;
}
extern "C" CUDA_LIKE_EXPORT int64_t cudaLikeKernelLaunches() {
  return kernel_launches;
}

// ---- Events ----------------------------------------------------------------

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return RunInContext(__func__, [&](CUctx_st& context) -> CUresult {
    const bool has_time = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    *event = new CUevent_st{context, has_time, {}};
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy_v2(CUevent event) { return Destroy(__func__, event); }

// CUDA would make it an event of the capture.
CUresult cuEventRecord(CUevent event, CUstream stream) {
  return RunUncaptured(__func__, stream, [&](CUstream_st& on) {
    if (&event->context != &on.context) {
      return absl::InvalidArgumentError("an event of another device");
    }
    return on.stream.Record(event->event);
  });
}

CUresult cuEventQuery(CUevent event) {
  return emulator::Run(__func__, [&]() -> CUresult {
    const CUresult failure = event->context.failure;
    if (failure != CUDA_SUCCESS) return failure;
    const absl::StatusOr<rt::Event::State> state = event->event.Poll();
    if (!state.ok()) return emulator::ToResult(state.status());
    return *state == rt::Event::State::kPending ? CUDA_ERROR_NOT_READY
                                                : CUDA_SUCCESS;
  });
}

CUresult cuEventSynchronize(CUevent event) {
  return RunInContext(__func__,
                      [&](CUctx_st&) { return event->event.Synchronize(); });
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  return RunInContext(__func__, [&](CUctx_st&) -> CUresult {
    if (!begin->has_time || !end->has_time) return CUDA_ERROR_INVALID_HANDLE;
    const absl::StatusOr<uint64_t> from = begin->event.Nanoseconds();
    const absl::StatusOr<uint64_t> to = end->event.Nanoseconds();
    if (!from.ok() || !to.ok()) {
      return absl::IsUnavailable((from.ok() ? to : from).status())
                 ? CUDA_ERROR_NOT_READY
                 : CUDA_ERROR_INVALID_HANDLE;
    }
    *milliseconds = static_cast<float>(
        static_cast<double>(static_cast<int64_t>(*to - *from)) / 1e6);
    return CUDA_SUCCESS;
  });
}

// ---- Kernels ---------------------------------------------------------------

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return RunInContext(__func__, [&](CUctx_st& context) -> CUresult {
    void* const library = LoadLibrary(image);
    if (library == nullptr) return CUDA_ERROR_INVALID_IMAGE;
    *module = new CUmod_st{context, library, {}};
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleUnload(CUmodule module) {
  return RunInContext(__func__, [&](CUctx_st& context) {
    const absl::Status status = context.device->Synchronize();
    dlclose(module->library);
    delete module;
    return status;
  });
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module,
                             const char* name) {
  return RunInContext(__func__, [&](CUctx_st& context) -> CUresult {
    const std::string kernel = name;
    const auto find = [&](const char* suffix) {
      return dlsym(module->library, (kernel + suffix).c_str());
    };
    void* const run_block = find("");
    const auto* const pointers = static_cast<int*>(find("_pointers"));
    const auto* const size = static_cast<int*>(find("_parameters_size"));
    if (run_block == nullptr || pointers == nullptr || size == nullptr) {
      return CUDA_ERROR_NOT_FOUND;
    }
    module->functions.push_back(std::make_unique<CUfunc_st>(CUfunc_st{
        context,
        reinterpret_cast<decltype(CUfunc_st::run_block)>(run_block),
        static_cast<size_t>(*pointers),
        static_cast<size_t>(*size),
    }));
    *function = module->functions.back().get();
    return CUDA_SUCCESS;
  });
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                        unsigned grid_z, unsigned block_x, unsigned block_y,
                        unsigned block_z, unsigned /*shared_bytes*/,
                        CUstream stream, void** arguments, void** extra) {
  return RunOnStream(__func__, stream, [&](CUstream_st& on) {
    if (&function->context != &on.context || grid_x == 0 || grid_y != 1 ||
        grid_z != 1 || block_x == 0 || block_x > 1024 || block_y != 1 ||
        block_z != 1 || extra != nullptr) {
      return absl::InvalidArgumentError("a launch of this form");
    }
    if (on.capture == nullptr) ++kernel_launches;
    return Enqueue(on, [run_block = function->run_block, grid_x,
                        copied = Arguments(*function, arguments)]() mutable {
      if (!copied.is_valid()) return CUDA_ERROR_ILLEGAL_ADDRESS;
      std::vector<void*> pointers = copied.Pointers();
      for (unsigned block = 0; block < grid_x; ++block) {
        run_block(&block, pointers.data());
      }
      return CUDA_SUCCESS;
    });
  });
}

}  // namespace cuda_like
