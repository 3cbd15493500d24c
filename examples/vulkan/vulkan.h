// SPDX-License-Identifier: Apache-2.0
#ifndef VULKAN_VULKAN_H_
#define VULKAN_VULKAN_H_

#include <tfplug/compiled/languages/glsl.h>
#include <tfplug/compiled/program_cache.h>
#include <tfplug/device/timeline_memory.h>
#include <tfplug/device/timeline_stream.h>
#include <tfplug/plugin.h>

#include <memory>
#include <mutex>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "driver.h"

// A TensorFlow device for any Vulkan 1.2 driver.
namespace vulkan {

// The driver's objects of a device.
struct Handles {
  ~Handles() {
    if (device == nullptr) return;
    vk.DestroyPipelineLayout(device, layout, nullptr);
    vk.DestroyDevice(device, nullptr);
  }
  absl::Status Init(const PhysicalDevice& physical_device);

  PhysicalDevice physical = {};
  VkDevice device = nullptr;
  VkQueue queue = nullptr;  // of all streams
  std::mutex queue_mutex;
  VkPipelineLayout layout = nullptr;  // of all pipelines
};

// Memory with an address for kernels and, if wanted, for the host.
struct Buffer {
  static absl::StatusOr<std::unique_ptr<Buffer>> Create(const Handles& handles,
                                                        uint64_t size,
                                                        bool is_for_host);
  ~Buffer() {
    vk.DestroyBuffer(device, object, nullptr);
    vk.FreeMemory(device, memory, nullptr);
  }

  const VkDevice device;
  VkBuffer object = nullptr;
  VkDeviceMemory memory = nullptr;
  VkDeviceAddress address = 0;
  char* host = nullptr;
};
using Location = tfplug::AddressSpace<Buffer*>::Location;

// The state that a device's streams, memory and kernels share.
struct Machine : Handles, tfplug::TimelineMachine<Buffer> {
  tfplug::ProgramCache programs;
};

// A timeline semaphore.
struct Counter {
  ~Counter() {
    if (device != nullptr) vk.DestroySemaphore(device, semaphore, nullptr);
  }
  absl::Status Init(VkDevice owner);
  absl::StatusOr<uint64_t> Get() {
    uint64_t value;
    TFPLUG_RETURN_IF_ERROR(
        vk.Call(vk.GetSemaphoreCounterValue, device, semaphore, &value));
    return value;
  }
  absl::Status Wait(uint64_t value) {
    const VkSemaphoreWaitInfo info = {VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                      nullptr,
                                      0,
                                      1,
                                      &semaphore,
                                      &value};
    return vk.Call(vk.WaitSemaphores, device, &info, UINT64_MAX);
  }

  VkDevice device = nullptr;
  VkSemaphore semaphore = nullptr;
};

// A command buffer with its pool and its time stamps.
struct Batch {
  ~Batch() {
    if (handles == nullptr) return;
    vk.DestroyCommandPool(handles->device, pool, nullptr);
    vk.DestroyQueryPool(handles->device, times, nullptr);
  }
  absl::Status Begin(const Handles& owner);

  void Barrier() {
    const VkMemoryBarrier barrier = {
        VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_MEMORY_WRITE_BIT,
        VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT};
    vk.CmdPipelineBarrier(
        commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
        VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
        &barrier, 0, nullptr, 0, nullptr);
  }
  void Copy(Location to, Location from, uint64_t size) {
    const VkBufferCopy copy = {from.offset, to.offset, size};
    vk.CmdCopyBuffer(commands, from.handle->object, to.handle->object, 1,
                     &copy);
  }
  void Fill(Location to, uint32_t word, uint64_t size) {
    vk.CmdFillBuffer(commands, to.handle->object, to.offset, size, word);
  }
  void WriteTime(uint32_t slot) {
    vk.CmdResetQueryPool(commands, times, slot, 1);
    vk.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, times,
                         slot);
  }
  absl::StatusOr<uint64_t> ReadTime(uint32_t slot) {
    uint64_t ticks;
    TFPLUG_RETURN_IF_ERROR(vk.Call(vk.GetQueryPoolResults, handles->device,
                                   times, slot, 1, 8, &ticks, 8,
                                   VK_QUERY_RESULT_64_BIT));
    const float period = handles->physical.properties.limits.timestampPeriod;
    return static_cast<uint64_t>(static_cast<double>(ticks) * double{period});
  }

  const Handles* handles = nullptr;
  VkCommandPool pool = nullptr;
  VkCommandBuffer commands = nullptr;
  VkQueryPool times = nullptr;
};

class Stream final
    : public tfplug::TimelineStream<Stream, Buffer, Batch, Counter> {
 public:
  explicit Stream(Machine& machine)
      : TimelineStream(machine), machine_(machine) {}
  absl::Status Init() override { return counter().Init(machine_.device); }

  absl::Status BeginBatch(Batch& batch) override {
    return batch.Begin(machine_);
  }
  absl::Status SubmitBatch(Batch& batch, absl::Span<const Wait> waits,
                           Counter& counter, uint64_t value) override;
  absl::StatusOr<std::unique_ptr<Buffer>> Map(uint64_t size) override {
    return Buffer::Create(machine_, size, true);
  }
  Machine& machine() { return machine_; }

 private:
  Machine& machine_;
};

class Device;

class Memory final : public tfplug::TimelineAllocator<Memory, Buffer> {
 public:
  explicit Memory(Device& device);

  absl::StatusOr<std::unique_ptr<Buffer>> MakeBuffer(uint64_t size) override;
  absl::StatusOr<uint64_t> TotalMemory() override;

 private:
  Device& device_;
};

class Device final : public tfplug::Device<Stream, Memory>, public Machine {
 public:
  explicit Device(int ordinal) : ordinal_(ordinal) {}
  absl::Status Init() override;

  std::string HardwareName() override { return physical.properties.deviceName; }
  absl::StatusOr<uint64_t> GetTime() override { return clock_.GetTime(); }

 private:
  const int ordinal_;
  Stream clock_{*this};  // for GetTime
};

class Platform final : public tfplug::Platform<Device> {
 public:
  static constexpr char kName[] = "VULKAN", kType[] = "VULKAN";

  absl::Status Init() override { return vk.Probe().status(); }
  // The driver's largest buffer may be smaller than its memory: TensorFlow
  // allocates step by step.
  tfplug::PlatformOptions Options() override {
    tfplug::PlatformOptions options;
    options.force_memory_growth = true;
    return options;
  }
  absl::StatusOr<int> DeviceCount() override { return vk.Probe()->size(); }
};

}  // namespace vulkan

#endif  // VULKAN_VULKAN_H_
