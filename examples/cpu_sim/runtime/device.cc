// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fault.h"
#include "machine.h"
#include "stream.h"

namespace cpu_sim::rt {
namespace {

// TensorFlow 2.22 requires this alignment.
constexpr std::align_val_t kHostAlignment{256};

absl::StatusOr<void*> AllocateFrom(Heap& heap, const Arena& arena,
                                   size_t bytes) {
  if (bytes == 0) return nullptr;
  absl::StatusOr<size_t> offset = heap.Allocate(bytes);
  if (!offset.ok()) return offset.status();
  return static_cast<void*>(static_cast<char*>(arena.base()) + *offset);
}

absl::Status FreeTo(Heap& heap, const Arena& arena, void* address) {
  if (address == nullptr) return absl::OkStatus();
  if (!arena.Contains(address, 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot free 0x", absl::Hex(reinterpret_cast<uintptr_t>(address)),
        ": it is not memory of this device"));
  }
  return heap.Free(static_cast<size_t>(static_cast<char*>(address) -
                                       static_cast<char*>(arena.base())));
}

absl::Status NotMemory(absl::string_view of, const void* address,
                       size_t bytes) {
  return absl::InvalidArgumentError(absl::StrCat(
      bytes, " bytes at 0x", absl::Hex(reinterpret_cast<uintptr_t>(address)),
      " are not all memory ", of));
}

absl::Status SelfWait() {
  return absl::FailedPreconditionError(
      "a task must not wait for its own stream");
}

}  // namespace

Device::Device(Machine& machine, int ordinal, std::unique_ptr<Arena> memory,
               std::unique_ptr<Arena> managed_memory, bool has_canaries)
    : machine_(machine),
      ordinal_(ordinal),
      memory_(std::move(memory)),
      managed_memory_(std::move(managed_memory)),
      heap_(memory_->size()),
      managed_heap_(managed_memory_->size()),
      canaries_(has_canaries ? std::make_unique<Canaries>() : nullptr) {}

Device::~Device() = default;

absl::StatusOr<void*> Device::Allocate(size_t bytes) {
  absl::Status status = CheckFault("allocate");
  if (!status.ok()) return status;
  if (canaries_ == nullptr || bytes == 0) {
    return AllocateFrom(heap_, *memory_, bytes);
  }
  if (bytes > memory_->size()) return heap_.Allocate(bytes).status();
  absl::StatusOr<void*> whole =
      AllocateFrom(heap_, *memory_, bytes + 2 * Canaries::kBytes);
  if (!whole.ok()) return whole;
  void* const block = static_cast<char*>(*whole) + Canaries::kBytes;
  canaries_->Place(static_cast<uint8_t*>(memory_->ToPrivate(block)), bytes);
  return block;
}

absl::StatusOr<void*> Device::AllocateManaged(size_t bytes) {
  absl::Status status = CheckFault("unified_memory_allocate");
  if (!status.ok()) return status;
  return AllocateFrom(managed_heap_, *managed_memory_, bytes);
}

absl::StatusOr<void*> Device::AllocateHost(size_t bytes) {
  absl::Status status = CheckFault("host_memory_allocate");
  if (!status.ok()) return status;
  if (bytes == 0) return nullptr;
  // libstdc++ rounds the size up without a check for overflow.
  const bool fits = bytes <= SIZE_MAX - static_cast<size_t>(kHostAlignment);
  void* address =
      fits ? ::operator new(bytes, kHostAlignment, std::nothrow) : nullptr;
  if (address == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the host cannot allocate ", bytes, " bytes"));
  }
  return address;
}

absl::Status Device::Free(void* address) {
  absl::Status status = CheckFault("deallocate");
  if (!status.ok()) return status;
  if (canaries_ == nullptr || !memory_->Contains(address, 0)) {
    return FreeTo(heap_, *memory_, address);
  }
  // Work that is enqueued may still write.
  Await(/*clear=*/false).IgnoreError();
  const std::string change =
      canaries_->Remove(static_cast<uint8_t*>(memory_->ToPrivate(address)));
  if (!change.empty()) {
    fprintf(stderr, "CPU_SIM_CANARIES: %s\n", change.c_str());
    abort();
  }
  return FreeTo(heap_, *memory_,
                static_cast<char*>(address) - Canaries::kBytes);
}

absl::Status Device::FreeManaged(void* address) {
  absl::Status status = CheckFault("unified_memory_deallocate");
  if (!status.ok()) return status;
  return FreeTo(managed_heap_, *managed_memory_, address);
}

void Device::FreeHost(void* address) {
  ::operator delete(address, kHostAlignment);
}

absl::StatusOr<HeapStats> Device::Stats() const {
  absl::Status status = CheckFault("device_memory_usage");
  if (!status.ok()) return status;
  return heap_.stats();
}

absl::Status Device::CopyToDevice(void* device_dst, const void* host_src,
                                  size_t bytes) {
  absl::Status status = CheckFault("sync_memcpy_htod");
  if (status.ok()) status = CheckHostRange(host_src, bytes);
  if (!status.ok()) return status;
  absl::StatusOr<void*> dst = ToPrivate(device_dst, bytes);
  if (!dst.ok()) return dst.status();
  if (bytes > 0) memcpy(*dst, host_src, bytes);
  return absl::OkStatus();
}

absl::Status Device::CopyToHost(void* host_dst, const void* device_src,
                                size_t bytes) {
  absl::Status status = CheckFault("sync_memcpy_dtoh");
  if (status.ok()) status = CheckHostRange(host_dst, bytes);
  if (!status.ok()) return status;
  absl::StatusOr<void*> src = ToPrivate(device_src, bytes);
  if (!src.ok()) return src.status();
  if (bytes > 0) memcpy(host_dst, *src, bytes);
  return absl::OkStatus();
}

absl::Status Device::CopyOnDevice(void* device_dst, const void* device_src,
                                  size_t bytes) {
  absl::Status status = CheckFault("sync_memcpy_dtod");
  if (!status.ok()) return status;
  absl::StatusOr<void*> dst = ToPrivateOfAny(device_dst, bytes);
  if (!dst.ok()) return dst.status();
  absl::StatusOr<void*> src = ToPrivateOfAny(device_src, bytes);
  if (!src.ok()) return src.status();
  if (bytes > 0) memmove(*dst, *src, bytes);
  return absl::OkStatus();
}

absl::Status Device::Synchronize() {
  absl::Status status = CheckFault("synchronize_all_activity");
  if (!status.ok()) return status;
  return Await(/*clear=*/true);
}

absl::Status Device::Await(bool clear) {
  absl::Status status;
  std::vector<std::shared_ptr<Moment>> moments;
  {
    // Released before waiting, because a task may create or destroy a stream.
    std::lock_guard<std::mutex> lock(streams_mutex_);
    for (Stream* stream : streams_) {
      if (stream->IsThisThread()) return SelfWait();
    }
    for (Stream* stream : streams_) {
      moments.push_back(stream->EnqueueMoment(clear));
    }
  }
  for (const std::shared_ptr<Moment>& moment : moments) {
    moment->Await();
    status.Update(moment->status());
  }
  return status;
}

absl::StatusOr<void*> Device::ToPrivate(const void* address,
                                        size_t bytes) const {
  if (bytes == 0) return nullptr;
  if (void* found = Find(address, bytes)) return found;
  return NotMemory(absl::StrCat("of device ", ordinal_), address, bytes);
}

absl::StatusOr<void*> Device::ToPrivateOfAny(const void* address,
                                             size_t bytes) const {
  if (bytes == 0) return nullptr;
  if (void* found = Find(address, bytes)) return found;
  if (void* found = machine_.Find(address, bytes)) return found;
  return NotMemory("of any device", address, bytes);
}

absl::Status Device::CheckHostRange(const void* address, size_t bytes) const {
  if (!machine_.OverlapsDeviceMemory(address, bytes)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the host range of ", bytes, " bytes at 0x",
                   absl::Hex(reinterpret_cast<uintptr_t>(address)),
                   " contains device memory"));
}

void* Device::Find(const void* address, size_t bytes) const {
  for (const Arena* arena : {memory_.get(), managed_memory_.get()}) {
    if (arena->Contains(address, bytes)) return arena->ToPrivate(address);
  }
  return nullptr;
}

}  // namespace cpu_sim::rt
