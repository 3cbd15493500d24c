// SPDX-License-Identifier: Apache-2.0
// Launches a kernel with examples/vulkan and by hand on a driver that returns at
// once, for Callgrind: functions measured_flat, measured_views and
// measured_by_hand. With the argument `working`, the device always has a batch to
// do; otherwise it has none. See benchmarks/opencl.py.
#include "vulkan.h"

#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#include "backend.h"
#include "launches.h"

extern "C" void SE_InitPlugin(tfplug::capi::SE_PlatformRegistrationParams*,
                              tfplug::capi::TF_Status*);

namespace vulkan {
namespace {

using benchmarks::Replace;

// The kernel's arguments after the pointers: its size and two constants.
struct Parameters {
  uint64_t words[3];
};

VkPipeline seen_pipeline;

bool is_working;
uint64_t submitted = 0;

VkResult Succeed() { return VK_SUCCESS; }
void Ignore() {}

// Makes all functions of a launch return at once. C's functions may be called
// with more arguments than they have on the machines where Callgrind runs.
void ReplaceDriver() {
  Replace(vk.BeginCommandBuffer, &Succeed);
  Replace(vk.EndCommandBuffer, &Succeed);
  Replace(vk.WaitSemaphores, &Succeed);
  Replace(
      vk.QueueSubmit,
      +[](VkQueue, uint32_t, const VkSubmitInfo* info, VkFence) {
        submitted =
            *static_cast<const VkTimelineSemaphoreSubmitInfo*>(info->pNext)
                 ->pSignalSemaphoreValues;
        return VK_SUCCESS;
      });
  Replace(vk.CreateComputePipelines, &Succeed);  // compilers take long there
  Replace(vk.CmdPipelineBarrier, &Ignore);
  Replace(vk.CmdPushConstants, &Ignore);
  Replace(vk.CmdDispatch, &Ignore);
  Replace(
      vk.CmdBindPipeline,
      +[](VkCommandBuffer, VkPipelineBindPoint, VkPipeline pipeline) {
        seen_pipeline = pipeline;
      });
  Replace(
      vk.GetSemaphoreCounterValue, +[](VkDevice, VkSemaphore, uint64_t* value) {
        *value = !is_working     ? uint64_t{1} << 60
                 : submitted > 0 ? submitted - 1
                                 : 0;
        return VK_SUCCESS;
      });
}

// Launches the kernel as an author without tfplug would, from any thread: with
// memory for the arguments, a command buffer that is not in use, and a counter.
[[gnu::noinline]] absl::Status measured_by_hand(
    Machine& machine, const VkDeviceAddress (&addresses)[4],
    const Buffer& arguments, Batch& batch, Counter& counter) {
  for (uint64_t i = 0; i < benchmarks::kLaunches; ++i) {
    const Parameters parameters = {{16, 1, 2}};
    std::memcpy(arguments.host, addresses, sizeof(addresses));
    std::memcpy(arguments.host + sizeof(addresses), &parameters,
                sizeof(parameters));
    const VkCommandBufferBeginInfo begin = {
        VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr,
        VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    VkResult code = vk.BeginCommandBuffer(batch.commands, &begin);
    if (code != VK_SUCCESS) return vk.Check(code, "vkBeginCommandBuffer");
    batch.Barrier();
    vk.CmdBindPipeline(batch.commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                       seen_pipeline);
    vk.CmdPushConstants(batch.commands, machine.layout,
                        VK_SHADER_STAGE_COMPUTE_BIT, 0, 8, &arguments.address);
    vk.CmdDispatch(batch.commands, 1, 1, 1);
    batch.Barrier();
    code = vk.EndCommandBuffer(batch.commands);
    if (code != VK_SUCCESS) return vk.Check(code, "vkEndCommandBuffer");
    const VkTimelineSemaphoreSubmitInfo timeline = {
        VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        nullptr,
        0,
        nullptr,
        1,
        &i};
    VkSubmitInfo info = {VK_STRUCTURE_TYPE_SUBMIT_INFO, &timeline};
    info.commandBufferCount = info.signalSemaphoreCount = 1;
    info.pCommandBuffers = &batch.commands;
    info.pSignalSemaphores = &counter.semaphore.object;
    const std::lock_guard<std::mutex> lock(machine.stream_mutex());
    code = vk.QueueSubmit(machine.queue, 1, &info, nullptr);
    if (code != VK_SUCCESS) return vk.Check(code, "vkQueueSubmit");
  }
  return absl::OkStatus();
}

absl::Status Run() {
  tfplug::testing::ScopedFakeTensorFlow tensorflow;
  auto host = tfplug::testing::Host::Register(&SE_InitPlugin);
  if (!host.ok()) return host.status();
  TFPLUG_ASSIGN_OR_RETURN(auto* const device, (*host)->Device(0));
  auto& stream =
      *static_cast<Stream*>(static_cast<void*>(device->compute().handle()));
  Backend backend;
  benchmarks::Memories memory(*device);
  benchmarks::SumLaunches sum(backend, stream, memory);

  Machine& machine = stream.machine();
  TFPLUG_ASSIGN_OR_RETURN(const auto arguments, machine.MakeBuffer(4096, true));
  Batch batch;
  Counter counter;
  TFPLUG_RETURN_IF_ERROR(machine.Begin(batch));
  TFPLUG_RETURN_IF_ERROR(machine.InitCounter(counter));
  ReplaceDriver();
  TFPLUG_RETURN_IF_ERROR(sum.Init());
  for (int i = 0; i < 200; ++i) TFPLUG_RETURN_IF_ERROR(sum.MapFlat());
  TFPLUG_RETURN_IF_ERROR(sum.measured_flat());
  TFPLUG_RETURN_IF_ERROR(sum.measured_views());
  return measured_by_hand(machine, {1, 2, 3, 4}, *arguments, batch, counter);
}

}  // namespace
}  // namespace vulkan

int main(int count, char** arguments) {
  vulkan::is_working = count > 1 && std::strcmp(arguments[1], "working") == 0;
  const absl::Status status = vulkan::Run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
