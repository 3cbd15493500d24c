// SPDX-License-Identifier: Apache-2.0
#ifndef VULKAN_BACKEND_H_
#define VULKAN_BACKEND_H_

#include <tfplug/compiled/compiled.h>
#include <tfplug/compiled/glslang.h>

#include <cstring>

#include "vulkan.h"

namespace vulkan {

struct Program final : tfplug::Program {
  explicit Program(VkDevice owner) : device(owner) {}
  ~Program() override { vk.DestroyPipeline(device, pipeline, nullptr); }

  const VkDevice device;
  VkPipeline pipeline = nullptr;
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
    VkComputePipelineCreateInfo info = {
        VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.pName = "main";
    info.layout = machine.layout;
    TFPLUG_RETURN_IF_ERROR(vk.Call(vk.CreateShaderModule, machine.device, &code,
                                   nullptr, &info.stage.module));
    auto program = std::make_unique<Program>(machine.device);
    const absl::Status status =
        vk.Call(vk.CreateComputePipelines, machine.device, nullptr, 1, &info,
                nullptr, &program->pipeline);
    vk.DestroyShaderModule(machine.device, info.stage.module, nullptr);
    TFPLUG_RETURN_IF_ERROR(status);
    return program;
  }

  absl::Status Launch(Stream& stream, Program& program,
                      const tfplug::Grid& grid,
                      const tfplug::KernelArguments& arguments) override {
    const Machine& machine = stream.machine();
    absl::InlinedVector<VkDeviceAddress, 16> pointers;
    for (void* const pointer : arguments.pointers) {
      TFPLUG_ASSIGN_OR_RETURN(const Location at,
                              machine.addresses.Find(pointer));
      const VkDeviceAddress base =
          at.handle == nullptr ? 0 : at.handle->address;
      pointers.push_back(base + at.offset);
    }
    const size_t size = pointers.size() * sizeof(VkDeviceAddress);
    return stream.Enqueue(
        size + arguments.parameters_size,
        [&](Batch& batch, const Stream::Block& block) {
          std::memcpy(block.host, pointers.data(), size);
          std::memcpy(block.host + size, arguments.parameters,
                      arguments.parameters_size);
          const VkDeviceAddress address =
              block.at.handle->address + block.at.offset;
          vk.CmdBindPipeline(batch.commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                             program.pipeline);
          vk.CmdPushConstants(batch.commands, machine.layout,
                              VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(address),
                              &address);
          vk.CmdDispatch(batch.commands, grid.groups, grid.rows, 1);
        });
  }

  // Doubles are optional in Vulkan.
  bool Supports(tfplug::DataType type) const override {
    return type != tfplug::DataType::kDouble ||
           vk.Probe().value_or("f")[0] == 'd';
  }
};

}  // namespace vulkan

#endif  // VULKAN_BACKEND_H_
