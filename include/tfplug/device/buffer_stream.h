// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_BUFFER_STREAM_H_
#define TFPLUG_DEVICE_BUFFER_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/device_memory.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/device/address_space.h"
#include "tfplug/device/allocator.h"
#include "tfplug/device/command_event.h"
#include "tfplug/device/stream.h"

#pragma GCC visibility push(hidden)

// Streams and memory for drivers in which memory is a handle and an offset, and
// commands are handles, such as OpenCL. They convert TensorFlow's addresses.
namespace tfplug {

// A stream whose copies take locations in buffers. `Self` is the author's
// class, `Buffer` the driver's handle of memory; see command_event.h for
// `Commands`.
//
// The hooks below are called like those of Stream, which says more about them.
template <class Self, class Buffer, class Commands>
class BufferStream
    : public Stream<Self, CommandEvent<Commands>, CommandTimer<Commands>> {
  using Base = Stream<Self, CommandEvent<Commands>, CommandTimer<Commands>>;

 public:
  using typename Base::Event;
  using typename Base::Timer;
  using Command = typename Commands::Handle;
  using Location = typename AddressSpace<Buffer>::Location;

  // `addresses`: those of the device's memory.
  explicit BufferStream(const AddressSpace<Buffer>& addresses)
      : addresses_(addresses) {}

  // Returns how many buffers were released (AddressSpace::removals).
  uint64_t removals() const { return addresses_.removals(); }
  // Returns a pointer that expires when the stream is destroyed.
  std::weak_ptr<void> lifetime() const { return lifetime_; }

  // Enqueue a copy of `size` bytes. Host memory lives until it is done.
  virtual absl::Status CopyToBuffer(Location to, const void* from,
                                    uint64_t size) = 0;
  virtual absl::Status CopyFromBuffer(void* to, Location from,
                                      uint64_t size) = 0;
  virtual absl::Status CopyBuffer(Location to, Location from,
                                  uint64_t size) = 0;

  // Enqueues filling `size` bytes with the pattern of 1 or 4 bytes, which the
  // call copies.
  virtual absl::Status FillBuffer(Location to, const void* pattern,
                                  size_t pattern_size, uint64_t size) = 0;

  // Enqueues a command that is complete once all work enqueued so far is done.
  // The caller owns the handle.
  virtual absl::StatusOr<Command> Mark() = 0;

  // Lets the device begin with the work enqueued so far, so that other streams
  // may wait for it.
  virtual absl::Status Submit() = 0;

  // Makes work enqueued from now on wait for a command of this or another
  // stream.
  virtual absl::Status WaitForCommand(Command command) = 0;

  // Returns the device's clock, for Device::GetTime of a device with a stream
  // that has no other work: waits for a command, which ends now.
  absl::StatusOr<uint64_t> GetTime() {
    TFPLUG_ASSIGN_OR_RETURN(const Command command, self().Self::Mark());
    Event event;
    event.Set(command);
    TFPLUG_RETURN_IF_ERROR(event.BlockHost());
    TFPLUG_ASSIGN_OR_RETURN(const WorkTimes times, Commands::GetTimes(command));
    return times.end_ns;
  }

  // Keeps the first error of work that its driver does not report, such as a host
  // task, for GetStatus. A BlockHostUntilDone of `Self` returns GetStatus's error,
  // too. Thread-safe: also for threads of the driver.
  void KeepError(const absl::Status& status) {
    const std::lock_guard<std::mutex> lock(status_mutex_);
    status_.Update(status);
  }

  // ---- The hooks of Stream -------------------------------------------------

  absl::Status GetStatus() override {
    const std::lock_guard<std::mutex> lock(status_mutex_);
    return status_;
  }
  absl::Status RecordEvent(Event& event) override {
    TFPLUG_ASSIGN_OR_RETURN(const Command command, self().Self::Mark());
    event.Set(command);
    return self().Self::Submit();
  }
  absl::Status WaitForEvent(Event& event) override {
    const auto command = event.Get();
    if (command == nullptr) return absl::OkStatus();
    return self().Self::WaitForCommand(command.get());
  }
  absl::Status CopyHostToDevice(DeviceMemory dst, const void* src,
                                uint64_t size) override {
    TFPLUG_ASSIGN_OR_RETURN(const Location to, addresses_.Find(dst.opaque()));
    TFPLUG_RETURN_IF_ERROR(addresses_.CheckHostAddress(src));
    return self().Self::CopyToBuffer(to, src, size);
  }
  absl::Status CopyDeviceToHost(void* dst, DeviceMemory src,
                                uint64_t size) override {
    TFPLUG_ASSIGN_OR_RETURN(const Location from, addresses_.Find(src.opaque()));
    TFPLUG_RETURN_IF_ERROR(addresses_.CheckHostAddress(dst));
    return self().Self::CopyFromBuffer(dst, from, size);
  }
  absl::Status CopyDeviceToDevice(DeviceMemory dst, DeviceMemory src,
                                  uint64_t size) override {
    TFPLUG_ASSIGN_OR_RETURN(const Location from, addresses_.Find(src.opaque()));
    TFPLUG_ASSIGN_OR_RETURN(const Location to, addresses_.Find(dst.opaque()));
    return self().Self::CopyBuffer(to, from, size);
  }
  absl::Status Memset(DeviceMemory dst, BytePattern pattern,
                      uint64_t size) override {
    TFPLUG_ASSIGN_OR_RETURN(const Location to, addresses_.Find(dst.opaque()));
    return self().Self::FillBuffer(to, &pattern.value, 1, size);
  }
  absl::Status Memset32(DeviceMemory dst, WordPattern pattern,
                        uint64_t size) override {
    TFPLUG_ASSIGN_OR_RETURN(const Location to, addresses_.Find(dst.opaque()));
    return self().Self::FillBuffer(to, &pattern.value, 4, size);
  }
  absl::Status StartTimer(Timer& timer) override {
    timer.Start();
    return absl::OkStatus();
  }
  absl::Status StopTimer(Timer& timer) override {
    timer.Stop();
    return absl::OkStatus();
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }

  const AddressSpace<Buffer>& addresses_;
  const std::shared_ptr<void> lifetime_ = std::make_shared<char>();
  std::mutex status_mutex_;
  absl::Status status_;
};

// An allocator of buffers, which have addresses in an AddressSpace.
template <class Self, class Buffer>
class BufferAllocator : public Allocator {
 public:
  explicit BufferAllocator(AddressSpace<Buffer>& addresses)
      : addresses_(addresses) {}

  // Creates a buffer of `size` bytes; RESOURCE_EXHAUSTED if the device is full.
  virtual absl::StatusOr<Buffer> CreateBuffer(uint64_t size) = 0;

  // Releases a buffer. Work that was enqueued before may still use it.
  virtual absl::Status ReleaseBuffer(Buffer buffer) = 0;

  // Returns the size of the device's memory in bytes.
  virtual absl::StatusOr<uint64_t> TotalMemory() = 0;

  // ---- The hooks of Allocator ----------------------------------------------

  absl::StatusOr<DeviceMemory> Allocate(uint64_t size,
                                        int64_t /*memory_space*/) override {
    TFPLUG_ASSIGN_OR_RETURN(const Buffer buffer,
                            self().Self::CreateBuffer(size));
    const absl::StatusOr<void*> address = addresses_.Insert(buffer, size);
    if (address.ok()) return DeviceMemory(*address, size);
    self().Self::ReleaseBuffer(buffer).IgnoreError();
    return address.status();
  }
  absl::Status Deallocate(DeviceMemory memory) override {
    TFPLUG_ASSIGN_OR_RETURN(const Buffer buffer,
                            addresses_.Remove(memory.opaque()));
    return self().Self::ReleaseBuffer(buffer);
  }
  absl::StatusOr<MemoryUsage> Usage() override {
    TFPLUG_ASSIGN_OR_RETURN(const uint64_t total, self().Self::TotalMemory());
    MemoryUsage usage;
    usage.total = static_cast<int64_t>(total);
    usage.free = usage.total - static_cast<int64_t>(addresses_.Used());
    return usage;
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }

  AddressSpace<Buffer>& addresses_;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_BUFFER_STREAM_H_
