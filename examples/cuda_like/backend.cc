// SPDX-License-Identifier: Apache-2.0
#include "backend.h"

#include <tfplug/base/status_macros.h>

#include "absl/container/inlined_vector.h"

namespace cuda_like {

Program::~Program() {
  if (module_ != nullptr) {
    device_.Call(device_.driver().cuModuleUnload, module_).IgnoreError();
  }
}

absl::Status Program::Load(const std::string& binary, const char* entry) {
  const Driver& driver = device_.driver();
  TFPLUG_RETURN_IF_ERROR(device_.Call(driver.cuModuleLoadData, &module_,
                                      static_cast<const void*>(binary.data())));
  return device_.Call(driver.cuModuleGetFunction, &function_, module_, entry);
}

absl::StatusOr<std::string> Backend::Compile(Stream& stream,
                                             const std::string& source) {
  return stream.device().driver().compiler().Compile(source,
                                                     stream.device().sm());
}

absl::StatusOr<std::unique_ptr<Program>> Backend::Load(
    Stream& stream, const std::string& binary, const char* entry) {
  auto program = std::make_unique<Program>(stream.device());
  TFPLUG_RETURN_IF_ERROR(program->Load(binary, entry));
  return program;
}

absl::Status Backend::Launch(Stream& stream, Program& program,
                             const tfplug::Grid& grid,
                             const tfplug::KernelArguments& arguments) {
  absl::InlinedVector<void*, 17> values;
  for (void* const& pointer : arguments.pointers) {
    values.push_back(const_cast<void**>(&pointer));
  }
  values.push_back(arguments.parameters);
  const Device& device = stream.device();
  return device.Call(device.driver().cuLaunchKernel, program.function(),
                     grid.groups, 1u, 1u, grid.group_size, 1u, 1u, 0u,
                     stream.handle(), values.data(), nullptr);
}

}  // namespace cuda_like
