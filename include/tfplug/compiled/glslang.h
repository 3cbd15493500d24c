// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_GLSLANG_H_
#define TFPLUG_COMPILED_GLSLANG_H_

#include <glslang/Include/glslang_c_interface.h>
#include <glslang/Public/resource_limits_c.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Compiles a compute shader in GLSL to SPIR-V for Vulkan 1.2, for
// CompiledBackend::Compile of a device whose language is Glsl(). An error has the
// compiler's output. Link the plug-in with the static libraries of glslang
// (Debian: glslang-dev). Threads: any.
inline absl::StatusOr<std::string> CompileGlsl(const std::string& source) {
  static const bool is_ready = glslang_initialize_process() != 0;
  if (!is_ready) return absl::InternalError("glslang cannot be initialized");
  glslang_input_t input = {};
  input.language = GLSLANG_SOURCE_GLSL;
  input.stage = GLSLANG_STAGE_COMPUTE;
  input.client = GLSLANG_CLIENT_VULKAN;
  input.client_version = GLSLANG_TARGET_VULKAN_1_2;
  input.target_language = GLSLANG_TARGET_SPV;
  input.target_language_version = GLSLANG_TARGET_SPV_1_5;
  input.code = source.c_str();
  input.default_version = 450;
  input.default_profile = GLSLANG_NO_PROFILE;
  input.messages = static_cast<glslang_messages_t>(
      GLSLANG_MSG_SPV_RULES_BIT | GLSLANG_MSG_VULKAN_RULES_BIT);
  input.resource = glslang_default_resource();

  const std::unique_ptr<glslang_shader_t, decltype(&glslang_shader_delete)>
      shader(glslang_shader_create(&input), &glslang_shader_delete);
  if (glslang_shader_preprocess(shader.get(), &input) == 0 ||
      glslang_shader_parse(shader.get(), &input) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("glslang rejects a shader:\n",
                     glslang_shader_get_info_log(shader.get())));
  }
  const std::unique_ptr<glslang_program_t, decltype(&glslang_program_delete)>
      program(glslang_program_create(), &glslang_program_delete);
  glslang_program_add_shader(program.get(), shader.get());
  if (glslang_program_link(program.get(), input.messages) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("glslang cannot link a shader:\n",
                     glslang_program_get_info_log(program.get())));
  }
  glslang_program_SPIRV_generate(program.get(), input.stage);
  const unsigned* const words = glslang_program_SPIRV_get_ptr(program.get());
  return std::string(
      reinterpret_cast<const char*>(words),
      glslang_program_SPIRV_get_size(program.get()) * sizeof(*words));
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_GLSLANG_H_
