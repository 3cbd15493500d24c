// SPDX-License-Identifier: Apache-2.0
#include "emulator/nvrtc_check.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <set>

#include "driver/functions.h"
#include "driver/types.h"

namespace cuda_like::emulator {
namespace {

// The functions of a real NVRTC.
struct Nvrtc {
#define CUDA_LIKE_MEMBER(name, suffix, parameters) \
  nvrtcResult(*name) parameters = nullptr;
  CUDA_LIKE_COMPILER_FUNCTIONS(CUDA_LIKE_MEMBER)
#undef CUDA_LIKE_MEMBER
  nvrtcResult (*nvrtcGetNumSupportedArchs)(int* count) = nullptr;
  nvrtcResult (*nvrtcGetSupportedArchs)(int* architectures) = nullptr;

  std::set<int> architectures;
};

Nvrtc* Load(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "CUDA_LIKE_CHECK: %s\n", dlerror());
    std::abort();  // a check that does not run would seem to pass
  }
  static Nvrtc nvrtc;
  const auto get = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        dlsym(library, name));
  };
#define CUDA_LIKE_GET(name, suffix, parameters) get(#name, nvrtc.name);
  CUDA_LIKE_COMPILER_FUNCTIONS(CUDA_LIKE_GET)
#undef CUDA_LIKE_GET
  get("nvrtcGetNumSupportedArchs", nvrtc.nvrtcGetNumSupportedArchs);
  get("nvrtcGetSupportedArchs", nvrtc.nvrtcGetSupportedArchs);
  int count = 0;
  nvrtc.nvrtcGetNumSupportedArchs(&count);
  std::vector<int> all(static_cast<size_t>(count));
  nvrtc.nvrtcGetSupportedArchs(all.data());
  nvrtc.architectures = {75, 90, all.back()};
  return &nvrtc;
}

std::string Compile(const Nvrtc& nvrtc, const std::string& source,
                    std::vector<std::string> options, int sm) {
  options.push_back("--gpu-architecture=sm_" + std::to_string(sm));
  std::vector<const char*> arguments;
  for (const std::string& option : options) arguments.push_back(option.c_str());
  nvrtcProgram program = nullptr;
  nvrtc.nvrtcCreateProgram(&program, source.c_str(), "tfplug.cu", 0, nullptr,
                           nullptr);
  size_t size = 0;
  nvrtcResult result = nvrtc.nvrtcCompileProgram(
      program, static_cast<int>(arguments.size()), arguments.data());
  if (result == NVRTC_SUCCESS) result = nvrtc.nvrtcGetCUBINSize(program, &size);
  std::string text;
  if (result != NVRTC_SUCCESS || size == 0) {
    nvrtc.nvrtcGetProgramLogSize(program, &size);
    text.resize(size);
    nvrtc.nvrtcGetProgramLog(program, text.data());
    text = "NVRTC failed for sm_" + std::to_string(sm) + ":\n" + text.c_str();
  }
  nvrtc.nvrtcDestroyProgram(&program);
  return text;
}

}  // namespace

std::string CheckWithNvrtc(const std::string& source,
                           const std::vector<std::string>& options) {
  const char* const path = std::getenv("CUDA_LIKE_CHECK");
  if (path == nullptr || *path == '\0') return "";
  static const Nvrtc* const nvrtc = Load(path);
  std::string text;
  for (const int sm : nvrtc->architectures) {
    text += Compile(*nvrtc, source, options, sm);
  }
  return text;
}

}  // namespace cuda_like::emulator
