// SPDX-License-Identifier: Apache-2.0
#ifndef VULKAN_BACKEND_H_
#define VULKAN_BACKEND_H_

#include <tfplug/compiled/capture_graph.h>
#include <tfplug/compiled/compiled.h>
#include <tfplug/compiled/glslang.h>

#include "vulkan.h"

namespace vulkan {

struct Program final : tfplug::Program {
  Owned<VkPipeline, &Driver::DestroyPipeline> pipeline;
};

// tfplug generates GLSL for each kernel.
class Backend final : public tfplug::CompiledBackend<Stream, Program> {
 public:
  tfplug::ProgramCache& Programs(Stream& stream) override {
    return stream.machine().programs;
  }

  absl::StatusOr<std::string> Compile(Stream& /*stream*/,
                                      const std::string& source) override {
    return tfplug::CompileGlsl(source);
  }

  absl::StatusOr<std::unique_ptr<Program>> Load(
      Stream& stream, const std::string& binary,
      const char* /*entry*/) override {
    const Machine& machine = stream.machine();
    VkShaderModuleCreateInfo code = {
        VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    code.codeSize = binary.size();
    code.pCode = reinterpret_cast<const uint32_t*>(binary.data());
    Owned<VkShaderModule, &Driver::DestroyShaderModule> module;
    TFPLUG_RETURN_IF_ERROR(
        vk.Create(vk.CreateShaderModule, machine.device, code, module));
    VkComputePipelineCreateInfo info = {
        VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = module;
    info.stage.pName = "main";
    info.layout = machine.layout;
    auto program = std::make_unique<Program>();
    program->pipeline.parent = machine.device;
    TFPLUG_RETURN_IF_ERROR(vk.Call(vk.CreateComputePipelines, machine.device,
                                   nullptr, 1, &info, nullptr,
                                   &program->pipeline.object));
    return program;
  }

  absl::Status Launch(Stream& stream, Program& program,
                      const tfplug::Grid& grid,
                      const tfplug::KernelArguments& arguments) override {
    const Machine& machine = stream.machine();
    return tfplug::EnqueueWithBlock(
        stream, machine.addresses, arguments,
        [&](Batch& batch, VkDeviceAddress address) {
          vk.CmdBindPipeline(batch.commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                             program.pipeline);
          vk.CmdPushConstants(batch.commands, machine.layout,
                              VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(address),
                              &address);
          vk.CmdDispatch(batch.commands, grid.groups, grid.rows, 1);
        });
  }

  tfplug::NewLaunchGraph Capture(
      Stream& stream, const tfplug::CapturedWork<Stream>& work) override {
    return tfplug::CaptureGraph<Stream::Graph>(stream, work);
  }

  // Doubles are optional in Vulkan.
  bool Supports(tfplug::DataType type) const override {
    return Platform::Supports(type);
  }
};

}  // namespace vulkan

#endif  // VULKAN_BACKEND_H_
