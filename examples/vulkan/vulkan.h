// SPDX-License-Identifier: Apache-2.0
#ifndef VULKAN_VULKAN_H_
#define VULKAN_VULKAN_H_

#include <tfplug/compiled/languages/glsl.h>
#include <tfplug/compiled/program_cache.h>
#include <tfplug/device/driver_platform.h>
#include <tfplug/device/timeline_device.h>
#include <tfplug/plugin.h>

#include <memory>
#include <string>

#include "driver.h"

// A TensorFlow device for any Vulkan 1.2 driver.
namespace vulkan {

// Memory with an address for kernels and, if wanted, for the host.
struct Buffer {
  Owned<VkDeviceMemory, &Driver::FreeMemory> memory;
  Owned<VkBuffer, &Driver::DestroyBuffer> object;
  VkDeviceAddress address = 0;
  char* host = nullptr;
};
using Location = tfplug::AddressSpace<Buffer*>::Location;

// A timeline semaphore.
struct Counter {
  absl::StatusOr<uint64_t> Get() {
    return vk.Get<uint64_t>(vk.GetSemaphoreCounterValue, semaphore.parent,
                            semaphore);
  }
  absl::Status Wait(uint64_t value) {
    VkSemaphoreWaitInfo info = {VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
    info.semaphoreCount = 1;
    info.pSemaphores = &semaphore.object;
    info.pValues = &value;
    return vk.Call(vk.WaitSemaphores, semaphore.parent, &info, UINT64_MAX);
  }

  Owned<VkSemaphore, &Driver::DestroySemaphore> semaphore;
};

// A command buffer with its pool and its time stamps.
struct Batch {
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
  void Execute(Batch& graph) {
    vk.CmdExecuteCommands(commands, 1, &graph.commands);
  }
  void WriteTime(uint32_t slot) {
    vk.CmdResetQueryPool(commands, times, slot, 1);
    vk.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, times,
                         slot);
  }
  absl::StatusOr<uint64_t> ReadTime(uint32_t slot) {
    uint64_t ticks;
    TFPLUG_RETURN_IF_ERROR(vk.Call(vk.GetQueryPoolResults, times.parent, times,
                                   slot, 1, 8, &ticks, 8,
                                   VK_QUERY_RESULT_64_BIT));
    return static_cast<uint64_t>(static_cast<double>(ticks) * period_ns);
  }

  double period_ns = 1;
  VkCommandBuffer commands = nullptr;
  Owned<VkCommandPool, &Driver::DestroyCommandPool> pool;
  Owned<VkQueryPool, &Driver::DestroyQueryPool> times;
};

// The driver's object of a device, which outlives all others.
struct OwnedDevice {
  tfplug::OwnedRoot<VkDevice, vk, &Driver::DestroyDevice> device;
};

// Holds what a device's streams, memory and kernels share.
struct Machine : OwnedDevice, tfplug::TimelineMachine<Buffer, Batch, Counter> {
  absl::Status Init(int ordinal);
  std::string HardwareName() { return physical.properties.deviceName; }

  absl::StatusOr<std::unique_ptr<Buffer>> MakeBuffer(uint64_t size,
                                                     bool is_for_host);
  absl::StatusOr<uint64_t> TotalMemory();
  absl::Status InitCounter(Counter& counter);
  absl::Status Begin(Batch& batch);
  absl::Status Submit(Batch& batch, absl::Span<const Wait> waits,
                      Counter& counter, uint64_t value);
  absl::Status BeginGraph(Batch& graph);
  absl::Status EndGraph(Batch& graph) {
    return vk.Call(vk.EndCommandBuffer, graph.commands);
  }

  PhysicalDevice physical = {};
  VkQueue queue = nullptr;  // of all streams
  Owned<VkPipelineLayout, &Driver::DestroyPipelineLayout> layout;
  tfplug::ProgramCache programs;

 private:
  // Makes a batch's pool and command buffer.
  absl::Status MakeCommands(Batch& batch, VkCommandBufferLevel level);
};
using Device = tfplug::TimelineDevice<Machine>;
using Stream = Device::Stream;

struct Platform final : tfplug::DriverPlatform<Device, vk> {
  static constexpr char kName[] = "VULKAN", kType[] = "VULKAN";
};

}  // namespace vulkan

#endif  // VULKAN_VULKAN_H_
