// SPDX-License-Identifier: Apache-2.0
#include "vulkan.h"

#include <tfplug/graph_pass.h>

TFPLUG_REGISTER_DEVICE(vulkan::Platform);
TFPLUG_REGISTER_GRAPH_PASSES("VULKAN");

namespace vulkan {
namespace {

// Returns a type of memory among the allowed ones.
uint32_t FindMemory(const PhysicalDevice& device, uint32_t allowed,
                    bool is_for_host) {
  const VkMemoryPropertyFlags flags =
      is_for_host ? VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                        VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
                  : VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  // Memory that is not cached is slow to read.
  for (const auto wanted :
       {flags | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, flags}) {
    for (uint32_t i = 0; i < device.memory.memoryTypeCount; ++i) {
      const auto has = device.memory.memoryTypes[i].propertyFlags;
      if ((allowed >> i & 1) != 0 && (has & wanted) == wanted) return i;
    }
  }
  return 0;  // Vulkan guarantees both for buffers
}

}  // namespace

absl::Status Handles::Init(const PhysicalDevice& physical_device) {
  physical = physical_device;
  Features features;
  features.VisitNeeded([](const char*, VkBool32& feature) { feature = 1; });
  features.v10.features.shaderFloat64 = physical.has_doubles;
  const float priority = 1;
  VkDeviceQueueCreateInfo queues = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queues.queueFamilyIndex = physical.family;
  queues.queueCount = 1;
  queues.pQueuePriorities = &priority;
  const VkDeviceCreateInfo info = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                   &features.v10, 0, 1, &queues};
  TFPLUG_RETURN_IF_ERROR(
      vk.Call(vk.CreateDevice, physical.handle, &info, nullptr, &device));
  vk.GetDeviceQueue(device, physical.family, 0, &queue);
  // The address of a kernel's arguments.
  const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                     sizeof(VkDeviceAddress)};
  VkPipelineLayoutCreateInfo constants = {
      VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  constants.pushConstantRangeCount = 1;
  constants.pPushConstantRanges = &range;
  return vk.Call(vk.CreatePipelineLayout, device, &constants, nullptr, &layout);
}

absl::Status Device::Init() {
  TFPLUG_RETURN_IF_ERROR(vk.Load().status());
  TFPLUG_RETURN_IF_ERROR(
      Handles::Init(vk.devices[static_cast<size_t>(ordinal_)]));
  const VkPhysicalDeviceProperties& properties = physical.properties;
  tfplug::Target target;
  target.language = &tfplug::Glsl();
  target.name = absl::StrCat(HardwareName(), "; ", properties.apiVersion, "; ",
                             properties.driverVersion);
  target.LimitGroupSize(properties.limits.maxComputeWorkGroupInvocations);
  target.LimitGroupSize(properties.limits.maxComputeWorkGroupSize[0]);
  target.local_memory = properties.limits.maxComputeSharedMemorySize;
  target.most_groups = properties.limits.maxComputeWorkGroupCount[0];
  programs.SetTarget(std::move(target));
  return clock_.Init();
}

absl::StatusOr<std::unique_ptr<Buffer>> Buffer::Create(const Handles& handles,
                                                       uint64_t size,
                                                       bool is_for_host) {
  const VkDevice device = handles.device;
  std::unique_ptr<Buffer> buffer(new Buffer{device});
  VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = size;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT |
               VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  TFPLUG_RETURN_IF_ERROR(
      vk.Call(vk.CreateBuffer, device, &info, nullptr, &buffer->object));
  VkMemoryRequirements needs;
  vk.GetBufferMemoryRequirements(device, buffer->object, &needs);
  const VkMemoryAllocateFlagsInfo addressed = {
      VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO, nullptr,
      VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
  const VkMemoryAllocateInfo allocation = {
      VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &addressed, needs.size,
      FindMemory(handles.physical, needs.memoryTypeBits, is_for_host)};
  TFPLUG_RETURN_IF_ERROR(vk.Call(vk.AllocateMemory, device, &allocation,
                                 nullptr, &buffer->memory));
  TFPLUG_RETURN_IF_ERROR(
      vk.Call(vk.BindBufferMemory, device, buffer->object, buffer->memory, 0));
  const VkBufferDeviceAddressInfo asked = {
      VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, nullptr, buffer->object};
  buffer->address = vk.GetBufferDeviceAddress(device, &asked);
  void* mapped = nullptr;
  if (is_for_host) {
    TFPLUG_RETURN_IF_ERROR(vk.Call(vk.MapMemory, device, buffer->memory, 0,
                                   VK_WHOLE_SIZE, 0, &mapped));
  }
  buffer->host = static_cast<char*>(mapped);
  return buffer;
}

absl::Status Counter::Init(VkDevice owner) {
  device = owner;
  const VkSemaphoreTypeCreateInfo type = {
      VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, nullptr,
      VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo info = {VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                      &type};
  return vk.Call(vk.CreateSemaphore, device, &info, nullptr, &semaphore);
}

absl::Status Batch::Begin(const Handles& owner) {
  const VkDevice device = owner.device;
  if (handles == nullptr) {
    handles = &owner;
    const VkCommandPoolCreateInfo pool_info = {
        VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr, 0,
        owner.physical.family};
    TFPLUG_RETURN_IF_ERROR(
        vk.Call(vk.CreateCommandPool, device, &pool_info, nullptr, &pool));
    const VkQueryPoolCreateInfo times_info = {
        VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, nullptr, 0,
        VK_QUERY_TYPE_TIMESTAMP, Stream::kMostTimes};
    TFPLUG_RETURN_IF_ERROR(
        vk.Call(vk.CreateQueryPool, device, &times_info, nullptr, &times));
    const VkCommandBufferAllocateInfo info = {
        VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool,
        VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
    TFPLUG_RETURN_IF_ERROR(
        vk.Call(vk.AllocateCommandBuffers, device, &info, &commands));
  }
  TFPLUG_RETURN_IF_ERROR(vk.Call(vk.ResetCommandPool, device, pool, 0));
  const VkCommandBufferBeginInfo begin = {
      VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr,
      VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  return vk.Call(vk.BeginCommandBuffer, commands, &begin);
}

absl::Status Stream::SubmitBatch(Batch& batch, absl::Span<const Wait> waits,
                                 Counter& counter, uint64_t value) {
  batch.Barrier();  // for the host
  TFPLUG_RETURN_IF_ERROR(vk.Call(vk.EndCommandBuffer, batch.commands));
  absl::InlinedVector<VkSemaphore, 4> semaphores;
  absl::InlinedVector<uint64_t, 4> values;
  for (const Wait& wait : waits) {
    semaphores.push_back(wait.counter->semaphore);
    values.push_back(wait.value);
  }
  const absl::InlinedVector<VkPipelineStageFlags, 4> stages(
      waits.size(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  const auto count = static_cast<uint32_t>(waits.size());
  const VkTimelineSemaphoreSubmitInfo timeline = {
      VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
      nullptr,
      count,
      values.data(),
      1,
      &value};
  VkSubmitInfo info = {VK_STRUCTURE_TYPE_SUBMIT_INFO, &timeline, count,
                       semaphores.data(), stages.data()};
  info.commandBufferCount = info.signalSemaphoreCount = 1;
  info.pCommandBuffers = &batch.commands;
  info.pSignalSemaphores = &counter.semaphore;
  const std::lock_guard<std::mutex> lock(machine_.queue_mutex);
  return vk.Call(vk.QueueSubmit, machine_.queue, 1, &info, nullptr);
}

Memory::Memory(Device& device) : TimelineAllocator(device), device_(device) {}

absl::StatusOr<std::unique_ptr<Buffer>> Memory::MakeBuffer(uint64_t size) {
  return Buffer::Create(device_, size, false);
}

absl::StatusOr<uint64_t> Memory::TotalMemory() {
  const VkPhysicalDeviceMemoryProperties& memory = device_.physical.memory;
  const uint32_t type = FindMemory(device_.physical, ~0u, false);
  return memory.memoryHeaps[memory.memoryTypes[type].heapIndex].size;
}

}  // namespace vulkan
