// SPDX-License-Identifier: Apache-2.0
#include "vulkan.h"

#include <tfplug/graph_pass.h>

#include "absl/strings/str_cat.h"

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

absl::Status Machine::Init(int ordinal) {
  TFPLUG_RETURN_IF_ERROR(vk.Load().status());
  physical = vk.devices[static_cast<size_t>(ordinal)];
  const float priority = 1;
  VkDeviceQueueCreateInfo queues = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queues.queueFamilyIndex = physical.family;
  queues.queueCount = 1;
  queues.pQueuePriorities = &priority;
  Features features;  // all that the device has
  vk.GetPhysicalDeviceFeatures2(physical.handle, &features.v10);
  features.v10.features.robustBufferAccess = 0;  // checks in kernels
  const VkDeviceCreateInfo info = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                   &features.v10, 0, 1, &queues};
  TFPLUG_RETURN_IF_ERROR(vk.Call(vk.CreateDevice, physical.handle, &info,
                                 nullptr, &device.object));
  vk.GetDeviceQueue(device, physical.family, 0, &queue);
  // The address of a kernel's arguments.
  const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                     sizeof(VkDeviceAddress)};
  VkPipelineLayoutCreateInfo constants = {
      VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  constants.pushConstantRangeCount = 1;
  constants.pPushConstantRanges = &range;
  TFPLUG_RETURN_IF_ERROR(
      vk.Create(vk.CreatePipelineLayout, device, constants, layout));
  const VkPhysicalDeviceProperties& properties = physical.properties;
  tfplug::Target target;
  target.language = &tfplug::Glsl();
  target.name = absl::StrCat(HardwareName(), "; ", properties.apiVersion, "; ",
                             properties.driverVersion);
  target.is_cpu = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  if (target.is_cpu) {
    target.group_size = 64;
    target.subgroup_size = 8;        // a vector
    target.most_iterations = 60000;  // of llvmpipe's 65,535
  }
  target.LimitGroupSize(properties.limits.maxComputeWorkGroupInvocations);
  target.LimitGroupSize(properties.limits.maxComputeWorkGroupSize[0]);
  target.most_groups = properties.limits.maxComputeWorkGroupCount[0];
  programs.SetTarget(std::move(target));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Buffer>> Machine::MakeBuffer(uint64_t size,
                                                            bool is_for_host) {
  auto buffer = std::make_unique<Buffer>();
  VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = size;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT |
               VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  TFPLUG_RETURN_IF_ERROR(
      vk.Create(vk.CreateBuffer, device, info, buffer->object));
  VkMemoryRequirements needs;
  vk.GetBufferMemoryRequirements(device, buffer->object, &needs);
  const VkMemoryAllocateFlagsInfo addressed = {
      VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO, nullptr,
      VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
  const VkMemoryAllocateInfo allocation = {
      VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &addressed, needs.size,
      FindMemory(physical, needs.memoryTypeBits, is_for_host)};
  TFPLUG_RETURN_IF_ERROR(
      vk.Create(vk.AllocateMemory, device, allocation, buffer->memory));
  TFPLUG_RETURN_IF_ERROR(
      vk.Call(vk.BindBufferMemory, device, buffer->object, buffer->memory, 0));
  const VkBufferDeviceAddressInfo asked = {
      VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, nullptr, buffer->object};
  buffer->address = vk.GetBufferDeviceAddress(device, &asked);
  if (is_for_host) {
    TFPLUG_ASSIGN_OR_RETURN(void* const mapped,
                            vk.Get<void*>(vk.MapMemory, device, buffer->memory,
                                          0, VK_WHOLE_SIZE, 0));
    buffer->host = static_cast<char*>(mapped);
  }
  return buffer;
}

absl::StatusOr<uint64_t> Machine::TotalMemory() {
  const uint32_t type = FindMemory(physical, ~0u, false);
  const uint32_t heap = physical.memory.memoryTypes[type].heapIndex;
  return physical.memory.memoryHeaps[heap].size;
}

absl::Status Machine::InitCounter(Counter& counter) {
  const VkSemaphoreTypeCreateInfo type = {
      VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, nullptr,
      VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo info = {VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                      &type};
  return vk.Create(vk.CreateSemaphore, device, info, counter.semaphore);
}

absl::Status Machine::MakeCommands(Batch& batch, VkCommandBufferLevel level) {
  const VkCommandPoolCreateInfo pool = {
      VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr,
      VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, physical.family};
  TFPLUG_RETURN_IF_ERROR(
      vk.Create(vk.CreateCommandPool, device, pool, batch.pool));
  const VkCommandBufferAllocateInfo info = {
      VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, batch.pool,
      level, 1};
  return vk.Call(vk.AllocateCommandBuffers, device, &info, &batch.commands);
}

absl::Status Machine::Begin(Batch& batch) {
  if (batch.commands == nullptr) {
    batch.period_ns = physical.properties.limits.timestampPeriod;
    const VkQueryPoolCreateInfo times = {
        VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, nullptr, 0,
        VK_QUERY_TYPE_TIMESTAMP, Stream::kMostTimes};
    TFPLUG_RETURN_IF_ERROR(
        vk.Create(vk.CreateQueryPool, device, times, batch.times));
    TFPLUG_RETURN_IF_ERROR(
        MakeCommands(batch, VK_COMMAND_BUFFER_LEVEL_PRIMARY));
  }
  const VkCommandBufferBeginInfo begin = {
      VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr,
      VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  return vk.Call(vk.BeginCommandBuffer, batch.commands, &begin);
}

// Batches execute the commands of a graph, any number of times at once.
absl::Status Machine::BeginGraph(Batch& graph) {
  TFPLUG_RETURN_IF_ERROR(
      MakeCommands(graph, VK_COMMAND_BUFFER_LEVEL_SECONDARY));
  const VkCommandBufferInheritanceInfo inherited = {
      VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO};
  const VkCommandBufferBeginInfo begin = {
      VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr,
      VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, &inherited};
  return vk.Call(vk.BeginCommandBuffer, graph.commands, &begin);
}

// The barriers order commands also after those of earlier batches: all are
// submitted to one queue. So nothing else is needed for the waits.
absl::Status Machine::Submit(Batch& batch, absl::Span<const Wait> /*waits*/,
                             Counter& counter, uint64_t value) {
  batch.Barrier();  // for the host
  TFPLUG_RETURN_IF_ERROR(vk.Call(vk.EndCommandBuffer, batch.commands));
  VkTimelineSemaphoreSubmitInfo timeline = {
      VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &value;
  VkSubmitInfo info = {VK_STRUCTURE_TYPE_SUBMIT_INFO, &timeline};
  info.commandBufferCount = info.signalSemaphoreCount = 1;
  info.pCommandBuffers = &batch.commands;
  info.pSignalSemaphores = &counter.semaphore.object;
  return vk.Call(vk.QueueSubmit, queue, 1, &info, nullptr);
}

}  // namespace vulkan
