// SPDX-License-Identifier: Apache-2.0
#include "driver.h"

#include "absl/strings/str_cat.h"

namespace vulkan {

absl::Status Driver::ToStatus(VkResult code, const char* function) const {
  const bool is_full = code == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
                       code == VK_ERROR_OUT_OF_HOST_MEMORY ||
                       code == VK_ERROR_TOO_MANY_OBJECTS;
  const bool is_lost = code == VK_ERROR_DEVICE_LOST;
  return DriverError(function, "Vulkan", code, is_full,
                     is_lost ? ": the device is lost" : "");
}

absl::StatusOr<std::string> Driver::Load() {
  if (!found.empty()) return found;
  tfplug::LoadDriversListedIn("VK_DRIVER_FILES",
                              {"/etc/vulkan/icd.d", "/usr/share/vulkan/icd.d"});
  const char* const remedy =
      "install Vulkan's loader and a driver (Debian: libvulkan1, and "
      "mesa-vulkan-drivers, which also has one for CPUs)";
  TFPLUG_RETURN_IF_ERROR(LoadAll({"libvulkan.so.1", "libvulkan.so"}, {remedy}));
  VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;
  VkInstance instance;  // lives as long as the process
  VkPhysicalDevice handles[16];
  uint32_t count = 16;
  if (CreateInstance(&info, nullptr, &instance) != VK_SUCCESS ||
      EnumeratePhysicalDevices(instance, &count, handles) < VK_SUCCESS) {
    return absl::NotFoundError(
        absl::StrCat("Vulkan's loader found no driver: ", remedy));
  }
  std::string reasons;
  for (uint32_t i = 0; i < count; ++i) {
    PhysicalDevice device = {handles[i]};
    Features features;
    if (const char* const missing = Describe(device, features)) {
      absl::StrAppend(&reasons, "; ", device.properties.deviceName, " has no ",
                      missing);
      continue;
    }
    devices.push_back(device);
    found += features.v10.features.shaderFloat64 != 0 ? 'd' : 'f';
  }
  if (!found.empty()) return found;
  return absl::NotFoundError(
      absl::StrCat("there is no suitable Vulkan device", reasons));
}

const char* Driver::Describe(PhysicalDevice& device, Features& features) const {
  GetPhysicalDeviceProperties(device.handle, &device.properties);
  GetPhysicalDeviceMemoryProperties(device.handle, &device.memory);
  if (device.properties.apiVersion < VK_API_VERSION_1_2) return "Vulkan 1.2";
  GetPhysicalDeviceFeatures2(device.handle, &features.v10);
  VkQueueFamilyProperties families[32];
  uint32_t count = 32;
  GetPhysicalDeviceQueueFamilyProperties(device.handle, &count, families);
  const char* missing = "queue for compute with timestamps";
  while (count-- > 0) {
    if ((families[count].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    if (families[count].timestampValidBits == 0) continue;
    device.family = count;
    missing = nullptr;
  }
  features.VisitNeeded([&](const char* name, VkBool32 feature) {
    if (feature == 0) missing = name;
  });
  return missing;
}

}  // namespace vulkan
