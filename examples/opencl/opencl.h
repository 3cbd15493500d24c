// SPDX-License-Identifier: Apache-2.0
#ifndef OPENCL_OPENCL_H_
#define OPENCL_OPENCL_H_

#include <tfplug/backend/source/program_cache.h>
#include <tfplug/device/address_space.h>
#include <tfplug/plugin.h>

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "driver.h"

// A TensorFlow device for any OpenCL 1.2 driver.
namespace opencl {

class Device;

class Event final : public tfplug::Event {
 public:
  absl::StatusOr<tfplug::EventStatus> Poll() override;
  absl::Status BlockHost() override;

  // Returns the recorded point, or null.
  ClEvent Get();
  void Set(ClEvent event);

 private:
  std::mutex mutex_;
  ClEvent event_;
};

class Stream final : public tfplug::Stream<Stream, Event> {
 public:
  explicit Stream(Device& device) : device_(device) {}
  ~Stream() override;
  absl::Status Init() override;

  absl::Status GetStatus() override { return absl::OkStatus(); }
  absl::Status BlockHostUntilDone() override;
  absl::Status RecordEvent(Event& event) override;
  absl::Status WaitForEvent(Event& event) override;
  absl::Status CopyHostToDevice(tfplug::DeviceMemory dst, const void* src,
                                uint64_t size) override;
  absl::Status CopyDeviceToHost(void* dst, tfplug::DeviceMemory src,
                                uint64_t size) override;
  absl::Status CopyDeviceToDevice(tfplug::DeviceMemory dst,
                                  tfplug::DeviceMemory src,
                                  uint64_t size) override;
  absl::Status Memset(tfplug::DeviceMemory dst, tfplug::BytePattern pattern,
                      uint64_t size) override;
  absl::Status Memset32(tfplug::DeviceMemory dst, tfplug::WordPattern pattern,
                        uint64_t size) override;
  absl::Status RunOnHost(tfplug::HostTask task) override;

  Device& device() { return device_; }
  cl_command_queue queue() const { return queue_.get(); }

 private:
  absl::Status Fill(tfplug::DeviceMemory dst, const void* pattern,
                    size_t pattern_size, uint64_t size);

  Device& device_;
  Queue queue_;
};

class Memory final : public tfplug::Allocator {
 public:
  explicit Memory(Device& device) : device_(device) {}

  absl::StatusOr<tfplug::DeviceMemory> Allocate(uint64_t size,
                                                int64_t space) override;
  absl::Status Deallocate(tfplug::DeviceMemory memory) override;
  absl::StatusOr<tfplug::MemoryUsage> Usage() override;

 private:
  Device& device_;
  std::atomic<int64_t> used_{0};
};

class Device final : public tfplug::Device<Stream, Memory> {
 public:
  explicit Device(int ordinal)
      : id_(cl.devices[static_cast<size_t>(ordinal)]) {}
  absl::Status Init() override;

  std::string HardwareName() override { return GetText(id_, CL_DEVICE_NAME); }
  std::string Vendor() override { return GetText(id_, CL_DEVICE_VENDOR); }
  absl::Status SynchronizeAllActivity() override;
  void AddStream(Stream* stream);
  void RemoveStream(Stream* stream);

  cl_device_id id() const { return id_; }
  cl_context context() const { return context_.get(); }
  tfplug::AddressSpace<cl_mem>& addresses() { return addresses_; }
  tfplug::ProgramCache& programs() { return programs_; }

  // Returns the buffer and the offset of an address.
  absl::StatusOr<tfplug::AddressSpace<cl_mem>::Location> Find(
      const void* address) const;

 private:
  const cl_device_id id_;
  std::mutex mutex_;  // of streams_
  std::set<Stream*> streams_;
  Context context_;
  tfplug::AddressSpace<cl_mem> addresses_;
  tfplug::ProgramCache programs_;  // destroyed before the context
};

class Platform final : public tfplug::Platform<Device> {
 public:
  static constexpr char kName[] = "OPENCL";
  static constexpr char kType[] = "OPENCL";

  absl::Status Init() override { return cl.Load(); }
  tfplug::PlatformOptions Options() override;
  absl::StatusOr<int> DeviceCount() override {
    return static_cast<int>(cl.devices.size());
  }
};

}  // namespace opencl

#endif  // OPENCL_OPENCL_H_
