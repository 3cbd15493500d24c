// SPDX-License-Identifier: Apache-2.0
// A layer between Vulkan's loader and its drivers that lets them fail. VULKAN_FAULT:
//
//   queues     no queue has compute
//   features   the feature shaderInt64 is missing
//   pipelines  the driver refuses every kernel
//   N          the device is lost at submission N
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

PFN_vkGetInstanceProcAddr next_of_instance = nullptr;
PFN_vkGetDeviceProcAddr next_of_device = nullptr;
VkInstance instance = nullptr;
VkDevice device = nullptr;  // the newest
// The loader finds this layer's own functions once the instance exists.
PFN_vkGetPhysicalDeviceFeatures2 next_features = nullptr;
PFN_vkGetPhysicalDeviceQueueFamilyProperties next_families = nullptr;
std::atomic<int> submissions{0};

const char* Fault() {
  const char* const fault = std::getenv("VULKAN_FAULT");
  return fault == nullptr ? "" : fault;
}
bool IsLost() {
  const int last = std::atoi(Fault());
  return last > 0 && submissions >= last;
}

template <class Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(next_of_device(device, name));
}

// Returns the loader's link to the next layer, and removes it.
template <class Link>
Link* TakeLink(const void* chain, VkStructureType type) {
  auto* info = static_cast<Link*>(const_cast<void*>(chain));
  while (info->sType != type || info->function != VK_LAYER_LINK_INFO) {
    info = static_cast<Link*>(const_cast<void*>(info->pNext));
  }
  return info;
}

VkResult CreateInstance(const VkInstanceCreateInfo* info,
                        const VkAllocationCallbacks* allocator,
                        VkInstance* created) {
  auto* const link = TakeLink<VkLayerInstanceCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  next_of_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto next = reinterpret_cast<PFN_vkCreateInstance>(
      next_of_instance(nullptr, "vkCreateInstance"));
  const VkResult result = next(info, allocator, created);
  instance = *created;
  next_features = reinterpret_cast<PFN_vkGetPhysicalDeviceFeatures2>(
      next_of_instance(instance, "vkGetPhysicalDeviceFeatures2"));
  next_families =
      reinterpret_cast<PFN_vkGetPhysicalDeviceQueueFamilyProperties>(
          next_of_instance(instance,
                           "vkGetPhysicalDeviceQueueFamilyProperties"));
  return result;
}

VkResult CreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                      const VkAllocationCallbacks* allocator,
                      VkDevice* created) {
  auto* const link = TakeLink<VkLayerDeviceCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  const auto next = reinterpret_cast<PFN_vkCreateDevice>(
      link->u.pLayerInfo->pfnNextGetInstanceProcAddr(instance,
                                                     "vkCreateDevice"));
  next_of_device = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const VkResult result = next(physical, info, allocator, created);
  device = *created;
  return result;
}

void GetPhysicalDeviceFeatures2(VkPhysicalDevice physical,
                                VkPhysicalDeviceFeatures2* features) {
  next_features(physical, features);
  if (std::strcmp(Fault(), "features") == 0) features->features.shaderInt64 = 0;
}

void GetPhysicalDeviceQueueFamilyProperties(VkPhysicalDevice physical,
                                            uint32_t* count,
                                            VkQueueFamilyProperties* families) {
  next_families(physical, count, families);
  if (families == nullptr || std::strcmp(Fault(), "queues") != 0) return;
  for (uint32_t i = 0; i < *count; ++i) {
    families[i].queueFlags &= ~uint32_t{VK_QUEUE_COMPUTE_BIT};
  }
}

VkResult CreateComputePipelines(VkDevice owner, VkPipelineCache cache,
                                uint32_t count,
                                const VkComputePipelineCreateInfo* infos,
                                const VkAllocationCallbacks* allocator,
                                VkPipeline* pipelines) {
  if (std::strcmp(Fault(), "pipelines") == 0) return VK_ERROR_UNKNOWN;
  return Next<decltype(vkCreateComputePipelines)>("vkCreateComputePipelines")(
      owner, cache, count, infos, allocator, pipelines);
}

VkResult QueueSubmit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos,
                     VkFence fence) {
  ++submissions;
  if (IsLost()) return VK_ERROR_DEVICE_LOST;
  return Next<decltype(vkQueueSubmit)>("vkQueueSubmit")(queue, count, infos,
                                                        fence);
}

VkResult GetSemaphoreCounterValue(VkDevice owner, VkSemaphore semaphore,
                                  uint64_t* value) {
  if (IsLost()) return VK_ERROR_DEVICE_LOST;
  return Next<decltype(vkGetSemaphoreCounterValue)>(
      "vkGetSemaphoreCounterValue")(owner, semaphore, value);
}

PFN_vkVoidFunction GetDeviceProcAddr(VkDevice owner, const char* name);
PFN_vkVoidFunction GetInstanceProcAddr(VkInstance owner, const char* name);

// Returns this layer's function, or null.
PFN_vkVoidFunction Find(const std::string& name) {
#define LAYER_FUNCTION(function) \
  if (name == "vk" #function)    \
    return reinterpret_cast<PFN_vkVoidFunction>(&function);
  LAYER_FUNCTION(GetInstanceProcAddr)
  LAYER_FUNCTION(GetDeviceProcAddr)
  LAYER_FUNCTION(CreateInstance)
  LAYER_FUNCTION(CreateDevice)
  LAYER_FUNCTION(GetPhysicalDeviceFeatures2)
  LAYER_FUNCTION(GetPhysicalDeviceQueueFamilyProperties)
  LAYER_FUNCTION(CreateComputePipelines)
  LAYER_FUNCTION(QueueSubmit)
  LAYER_FUNCTION(GetSemaphoreCounterValue)
#undef LAYER_FUNCTION
  return nullptr;
}

PFN_vkVoidFunction GetDeviceProcAddr(VkDevice owner, const char* name) {
  const PFN_vkVoidFunction own = Find(name);
  return own != nullptr || next_of_device == nullptr
             ? own
             : next_of_device(owner, name);
}
PFN_vkVoidFunction GetInstanceProcAddr(VkInstance owner, const char* name) {
  const PFN_vkVoidFunction own = Find(name);
  return own != nullptr || next_of_instance == nullptr
             ? own
             : next_of_instance(owner, name);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] VkResult
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* version) {
  version->loaderLayerInterfaceVersion = 2;
  version->pfnGetInstanceProcAddr = &GetInstanceProcAddr;
  version->pfnGetDeviceProcAddr = &GetDeviceProcAddr;
  version->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}
