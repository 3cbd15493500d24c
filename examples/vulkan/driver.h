// SPDX-License-Identifier: Apache-2.0
#ifndef VULKAN_DRIVER_H_
#define VULKAN_DRIVER_H_

#include <tfplug/base/driver_table.h>
#include <tfplug/base/status_macros.h>
#include <vulkan/vulkan.h>

#include <string>
#include <vector>

// Initializers of Vulkan's structs leave out the fields that are zero.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

// Vulkan 1.2, loaded at run time.
namespace vulkan {

// The features of a device, in a chain that begins with v10.
struct Features {
  // Calls visit(name, feature) for those that streams and kernels need.
  template <class Visit>
  void VisitNeeded(const Visit& visit) const {
    visit("shaderInt16", v10.features.shaderInt16);
    visit("shaderInt64", v10.features.shaderInt64);
    visit("storageBuffer16BitAccess", v11.storageBuffer16BitAccess);
    visit("storageBuffer8BitAccess", v12.storageBuffer8BitAccess);
    visit("shaderInt8", v12.shaderInt8);
    visit("timelineSemaphore", v12.timelineSemaphore);
    visit("bufferDeviceAddress", v12.bufferDeviceAddress);
  }

  VkPhysicalDeviceVulkan12Features v12 = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceVulkan11Features v11 = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, &v12};
  VkPhysicalDeviceFeatures2 v10 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                   &v11};
};

struct PhysicalDevice {
  VkPhysicalDevice handle;
  uint32_t family;  // of queues with compute
  VkPhysicalDeviceProperties properties;
  VkPhysicalDeviceMemoryProperties memory;
};

class Driver final : public tfplug::DriverTable<VkResult> {
  absl::Status ToStatus(VkResult code, const char* function) const override;
  // Returns what the device lacks, or null.
  const char* Describe(PhysicalDevice& device, Features& features) const;

 public:
  // Finds the devices. Returns for each d if it has doubles, or f.
  absl::StatusOr<std::string> Load();

  std::string found;                    // the answer of Load
  std::vector<PhysicalDevice> devices;  // those that can be used; set by Load

#define VK(name) \
  tfplug::DriverFunction<decltype(::vk##name)> name{*this, "vk" #name};
  // clang-format off
  VK(CreateInstance) VK(EnumeratePhysicalDevices)
  VK(GetPhysicalDeviceProperties) VK(GetPhysicalDeviceMemoryProperties)
  VK(GetPhysicalDeviceFeatures2) VK(GetPhysicalDeviceQueueFamilyProperties)
  VK(CreateDevice) VK(DestroyDevice) VK(GetDeviceQueue) VK(CreateBuffer)
  VK(DestroyBuffer) VK(GetBufferMemoryRequirements) VK(AllocateMemory)
  VK(FreeMemory) VK(BindBufferMemory) VK(MapMemory) VK(GetBufferDeviceAddress)
  VK(CreateSemaphore) VK(DestroySemaphore) VK(GetSemaphoreCounterValue)
  VK(WaitSemaphores) VK(CreateCommandPool) VK(DestroyCommandPool)
  VK(AllocateCommandBuffers) VK(BeginCommandBuffer)
  VK(EndCommandBuffer) VK(QueueSubmit) VK(CmdPipelineBarrier) VK(CmdCopyBuffer)
  VK(CmdFillBuffer) VK(CmdBindPipeline) VK(CmdPushConstants) VK(CmdDispatch)
  VK(CreateQueryPool) VK(DestroyQueryPool) VK(CmdResetQueryPool)
  VK(CmdWriteTimestamp) VK(GetQueryPoolResults) VK(CreateShaderModule)
  VK(DestroyShaderModule) VK(CreatePipelineLayout) VK(DestroyPipelineLayout)
  VK(CreateComputePipelines) VK(DestroyPipeline) VK(CmdExecuteCommands)
  // clang-format on
#undef VK
};
inline Driver vk;

template <class Object, auto destroy>
using Owned = tfplug::OwnedChild<VkDevice, Object, vk, destroy>;

}  // namespace vulkan

#endif  // VULKAN_DRIVER_H_
