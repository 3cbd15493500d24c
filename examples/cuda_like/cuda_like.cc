// SPDX-License-Identifier: Apache-2.0
#include "cuda_like.h"

#include <tfplug/base/ask_in_child.h>
#include <tfplug/base/status_macros.h>
#include <tfplug/compiled/languages/cuda.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace cuda_like {
namespace {

CUdeviceptr Address(const void* memory) {
  return reinterpret_cast<CUdeviceptr>(memory);
}

void* Pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace

// ---- Event -----------------------------------------------------------------

absl::Status Event::Init() {
  return device_.Call(device_.driver().cuEventCreate, &event_, flags_);
}

Event::~Event() {
  if (event_ != nullptr) {
    device_.Call(device_.driver().cuEventDestroy, event_).IgnoreError();
  }
}

absl::StatusOr<tfplug::EventStatus> Event::Poll() {
  const auto& query = device_.driver().cuEventQuery;
  switch (const CUresult result = query(event_)) {
    case CUDA_SUCCESS:
      return tfplug::EventStatus::kComplete;
    case CUDA_ERROR_NOT_READY:
      return tfplug::EventStatus::kPending;
    default:
      return device_.driver().Error(result, query.name);
  }
}

absl::Status Event::BlockHost() {
  return device_.Call(device_.driver().cuEventSynchronize, event_);
}

// ---- Stream ----------------------------------------------------------------

absl::Status Stream::Init() {
  const Driver& driver = device_.driver();
  int priority = 0;
  if (options_.has_priority) {
    // A smaller number is a higher priority.
    int least = 0, greatest = 0;
    TFPLUG_RETURN_IF_ERROR(
        device_.Call(driver.cuCtxGetStreamPriorityRange, &least, &greatest));
    priority = std::clamp(options_.priority, greatest, least);
  }
  device_.AddStream(*this);
  return device_.Call(driver.cuStreamCreateWithPriority, &stream_,
                      CU_STREAM_NON_BLOCKING, priority);
}

Stream::~Stream() {
  FinishCopies().IgnoreError();
  device_.RemoveStream(*this);
  graphs_->Destroy();
  blas_.Destroy(*this);
  if (stream_ != nullptr) {
    device_.Call(device_.driver().cuStreamDestroy, stream_).IgnoreError();
  }
}

absl::Status Stream::CheckRuns(const char* work) const {
  if (!is_capturing_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("a graph cannot contain ", work));
}

absl::Status Stream::GetStatus() {
  const auto& query = device_.driver().cuStreamQuery;
  const CUresult result = query(stream_);
  if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY) {
    return absl::OkStatus();
  }
  return device_.driver().Error(result, query.name);
}

absl::Status Stream::BlockHostUntilDone() {
  TFPLUG_RETURN_IF_ERROR(FinishCopies());
  return device_.Call(device_.driver().cuStreamSynchronize, stream_);
}

absl::Status Stream::RecordEvent(Event& event) {
  TFPLUG_RETURN_IF_ERROR(CheckRuns("an event"));
  TFPLUG_RETURN_IF_ERROR(FinishCopies());
  return device_.Call(device_.driver().cuEventRecord, event.handle(), stream_);
}

absl::Status Stream::WaitForEvent(Event& event) {
  TFPLUG_RETURN_IF_ERROR(CheckRuns("an event"));
  return device_.Call(device_.driver().cuStreamWaitEvent, stream_,
                      event.handle(), 0u);
}

absl::Status Stream::CopyHostToDevice(tfplug::DeviceMemory dst, const void* src,
                                      uint64_t size) {
  // The memory of the host may be freed before the graph.
  TFPLUG_RETURN_IF_ERROR(CheckRuns("a copy from the host"));
  return device_.Call(device_.driver().cuMemcpyHtoDAsync, Address(dst.opaque()),
                      src, size, stream_);
}

absl::Status Stream::CopyDeviceToHost(void* dst, tfplug::DeviceMemory src,
                                      uint64_t size) {
  TFPLUG_RETURN_IF_ERROR(CheckRuns("a copy to the host"));
  std::unique_lock<std::mutex> lock(staged_mutex_);
  const bool is_staged = is_computing_.load(std::memory_order_relaxed) &&
                         size > 0 && size <= Staging::kSize;
  void* const staged = is_staged ? device_.staging().Allocate() : nullptr;
  if (staged == nullptr) {
    // In the order of the copies.
    TFPLUG_RETURN_IF_ERROR(AddCallback(nullptr, nullptr));
    lock.unlock();  // it may wait
    return device_.Call(device_.driver().cuMemcpyDtoHAsync, dst,
                        Address(src.opaque()), size, stream_);
  }
  const absl::Status status =
      device_.Call(device_.driver().cuMemcpyDtoHAsync, staged,
                   Address(src.opaque()), size, stream_);
  if (status.ok()) {
    staged_.push_back({dst, staged, size});
  } else {
    device_.staging().Free(staged);
  }
  return status;
}

// All devices have one address space, so this copies between devices as well.
absl::Status Stream::CopyDeviceToDevice(tfplug::DeviceMemory dst,
                                        tfplug::DeviceMemory src,
                                        uint64_t size) {
  return device_.Call(device_.driver().cuMemcpyAsync, Address(dst.opaque()),
                      Address(src.opaque()), size, stream_);
}

absl::Status Stream::Memset(tfplug::DeviceMemory dst,
                            tfplug::BytePattern pattern, uint64_t size) {
  return device_.Call(device_.driver().cuMemsetD8Async, Address(dst.opaque()),
                      pattern.value, size, stream_);
}

absl::Status Stream::Memset32(tfplug::DeviceMemory dst,
                              tfplug::WordPattern pattern, uint64_t size) {
  return device_.Call(device_.driver().cuMemsetD32Async, Address(dst.opaque()),
                      pattern.value, size / 4, stream_);
}

absl::Status Stream::FinishCopies() {
  const std::lock_guard<std::mutex> lock(staged_mutex_);
  return AddCallback(nullptr, nullptr);
}

absl::Status Stream::AddCallback(CUstreamCallback run, void* argument) {
  const auto& add = device_.driver().cuStreamAddCallback;
  if (staged_.empty()) {
    return run == nullptr ? absl::OkStatus()
                          : device_.Call(add, stream_, run, argument, 0u);
  }
  // One callback for all: each costs tens of microseconds.
  struct Finish {
    Staging& staging;
    std::vector<StagedCopy> copies;
    CUstreamCallback run;
    void* argument;
  };
  auto finish = std::make_unique<Finish>(
      Finish{device_.staging(), std::move(staged_), run, argument});
  staged_.clear();
  const CUstreamCallback call = [](CUstream stream, CUresult result,
                                   void* owned) {
    const std::unique_ptr<Finish> finish(static_cast<Finish*>(owned));
    for (const StagedCopy& copy : finish->copies) {
      if (result == CUDA_SUCCESS) std::memcpy(copy.to, copy.from, copy.size);
      finish->staging.Free(copy.from);
    }
    if (finish->run != nullptr) finish->run(stream, result, finish->argument);
  };
  const absl::Status status =
      device_.Call(add, stream_, call, static_cast<void*>(finish.get()), 0u);
  // After a failure, the copies may be under way: their memory is lost.
  if (status.ok()) static_cast<void>(finish.release());
  return status;
}

// cuLaunchHostFunc, its successor, does not run a function if the device failed
// before it, but TensorFlow waits for each task.
absl::Status Stream::RunOnHost(tfplug::HostTask task) {
  auto owned = std::make_unique<tfplug::HostTask>(std::move(task));
  const CUstreamCallback run = [](CUstream, CUresult, void* argument) {
    const std::unique_ptr<tfplug::HostTask> owned_task(
        static_cast<tfplug::HostTask*>(argument));
    owned_task->Run().IgnoreError();
  };
  absl::Status status = CheckRuns("a task on the host");
  if (status.ok()) {
    const std::lock_guard<std::mutex> lock(staged_mutex_);
    status = AddCallback(run, owned.get());
  }
  if (status.ok()) {
    static_cast<void>(owned.release());
  } else {
    owned->Release();
  }
  return status;
}

// ---- Memory ----------------------------------------------------------------

absl::StatusOr<tfplug::DeviceMemory> Memory::Allocate(uint64_t size,
                                                      int64_t /*space*/) {
  CUdeviceptr address = 0;
  TFPLUG_RETURN_IF_ERROR(
      device_.Call(device_.driver().cuMemAlloc, &address, size));
  return tfplug::DeviceMemory(Pointer(address), size);
}

absl::Status Memory::Deallocate(tfplug::DeviceMemory memory) {
  return device_.Call(device_.driver().cuMemFree, Address(memory.opaque()));
}

absl::StatusOr<void*> Memory::AllocateHost(uint64_t size) {
  void* memory = nullptr;
  TFPLUG_RETURN_IF_ERROR(device_.Call(device_.driver().cuMemHostAlloc, &memory,
                                      size, CU_MEMHOSTALLOC_PORTABLE));
  return memory;
}

absl::Status Memory::DeallocateHost(void* memory) {
  return device_.Call(device_.driver().cuMemFreeHost, memory);
}

absl::StatusOr<void*> Memory::AllocateUnified(uint64_t size) {
  CUdeviceptr address = 0;
  TFPLUG_RETURN_IF_ERROR(device_.Call(device_.driver().cuMemAllocManaged,
                                      &address, size, CU_MEM_ATTACH_GLOBAL));
  return Pointer(address);
}

absl::Status Memory::DeallocateUnified(void* memory) {
  return device_.Call(device_.driver().cuMemFree, Address(memory));
}

absl::StatusOr<tfplug::MemoryUsage> Memory::Usage() {
  size_t free = 0, total = 0;
  TFPLUG_RETURN_IF_ERROR(
      device_.Call(device_.driver().cuMemGetInfo, &free, &total));
  return tfplug::MemoryUsage{static_cast<int64_t>(free),
                             static_cast<int64_t>(total)};
}

// ---- Device ----------------------------------------------------------------

Device::Device(Platform& platform, int ordinal)
    : platform_(platform), driver_(platform.driver()), ordinal_(ordinal) {}

absl::Status Device::Init() {
  TFPLUG_RETURN_IF_ERROR(platform_.Load());
  TFPLUG_RETURN_IF_ERROR(driver_.Call(driver_.cuDeviceGet, &device_, ordinal_));
  TFPLUG_RETURN_IF_ERROR(
      driver_.Call(driver_.cuDevicePrimaryCtxRetain, &context_, device_));
  TFPLUG_RETURN_IF_ERROR(Call(driver_.cuStreamCreateWithPriority, &clock_,
                              CU_STREAM_NON_BLOCKING, 0));
  sm_ = 10 * GetAttribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
        GetAttribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  tfplug::Target target;
  target.language = &tfplug::Cuda();
  target.name =
      absl::StrCat(HardwareName(), " sm_", sm_, " CUDA ", driver_.version(),
                   " NVRTC ", driver_.compiler().version());
  target.compiler_version = "1";  // changes with NVRTC's options (driver.cc)
  target.group_size = 256;
  target.local_memory = 48 << 10;  // what every device has
  programs_.emplace(std::move(target));
  const std::lock_guard<std::mutex> lock(platform_.mutex_);
  for (const Device* peer : platform_.devices_) {
    EnablePeerAccess(*peer);
    peer->EnablePeerAccess(*this);
  }
  platform_.devices_.push_back(this);
  return absl::OkStatus();
}

Device::~Device() {
  if (context_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(platform_.mutex_);
  auto& devices = platform_.devices_;
  devices.erase(std::remove(devices.begin(), devices.end(), this),
                devices.end());
  programs_.reset();
  staging_.Destroy();
  epoch_ = Epoch();
  if (clock_ != nullptr) Call(driver_.cuStreamDestroy, clock_).IgnoreError();
  driver_.cuDevicePrimaryCtxRelease(device_);
}

// Without access, copies between the devices pass through host memory.
void Device::EnablePeerAccess(const Device& peer) const {
  int can_access = 0;
  driver_.cuDeviceCanAccessPeer(&can_access, device_, peer.device_);
  if (can_access != 0) {
    Call(driver_.cuCtxEnablePeerAccess, peer.context_, 0u).IgnoreError();
  }
}

int Device::GetAttribute(CUdevice_attribute attribute) const {
  int value = 0;
  driver_.cuDeviceGetAttribute(&value, attribute, device_);
  return value;
}

std::string Device::HardwareName() {
  char name[256] = "";
  driver_.cuDeviceGetName(name, sizeof(name), device_);
  return name;
}

std::string Device::PciBusId() {
  char id[16] = "";
  driver_.cuDeviceGetPCIBusId(id, sizeof(id), device_);
  return id;
}

// TensorFlow logs a line if the node is unknown, and uses 0.
int32_t Device::NumaNode() {
  return std::max(0, GetAttribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID));
}

int64_t Device::MemoryBandwidth() {
  // The memory transfers twice per cycle of the clock.
  return int64_t{2000} * GetAttribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) *
         GetAttribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8;
}

const BlasLibrary& Device::blas() const { return platform_.blas(); }

void Device::AddStream(Stream& stream) {
  const std::lock_guard<std::mutex> lock(streams_mutex_);
  streams_.push_back(&stream);
}

void Device::RemoveStream(Stream& stream) {
  const std::lock_guard<std::mutex> lock(streams_mutex_);
  streams_.erase(std::remove(streams_.begin(), streams_.end(), &stream),
                 streams_.end());
}

absl::Status Device::SynchronizeAllActivity() {
  {
    const std::lock_guard<std::mutex> lock(streams_mutex_);
    for (Stream* const stream : streams_) {
      TFPLUG_RETURN_IF_ERROR(stream->FinishCopies());
    }
  }
  const std::lock_guard<std::mutex> lock(capture_mutex_);
  return Call(driver_.cuCtxSynchronize);
}

// ---- Platform --------------------------------------------------------------

tfplug::PlatformOptions Platform::Options() {
  tfplug::PlatformOptions options;
  const char* const bfc = std::getenv("CUDA_LIKE_BFC");
  options.use_bfc_allocator = bfc == nullptr || absl::string_view(bfc) != "0";
  return options;
}

absl::Status Platform::Init() {
  const auto count = [this]() -> absl::StatusOr<std::string> {
    TFPLUG_RETURN_IF_ERROR(Load());
    int devices = 0;
    TFPLUG_RETURN_IF_ERROR(driver_.Call(driver_.cuDeviceGetCount, &devices));
    return absl::StrCat(devices);
  };
  TFPLUG_ASSIGN_OR_RETURN(const std::string devices, tfplug::AskInChild(count));
  count_ = std::atoi(devices.c_str());
  return absl::OkStatus();
}

absl::Status Platform::Load() {
  std::call_once(load_, [this] { loaded_ = driver_.Load(); });
  return loaded_;
}

const BlasLibrary& Platform::blas() {
  std::call_once(load_blas_, [this] { blas_.Load().IgnoreError(); });
  return blas_;
}

}  // namespace cuda_like

TFPLUG_REGISTER_DEVICE(cuda_like::Platform);
