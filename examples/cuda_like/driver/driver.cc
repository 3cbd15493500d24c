// SPDX-License-Identifier: Apache-2.0
#include "driver/driver.h"

#include <tfplug/base/status_macros.h>

#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"

namespace cuda_like {
namespace {

// The version of CUDA whose signatures functions.h declares. Newer drivers have
// them, too: cuGetProcAddress takes the version.
constexpr int kCudaVersion = 12000;
constexpr char kRemedy[] =
    "install NVIDIA's driver 525 or newer, or name another one in "
    "CUDA_LIKE_DRIVER";

// Returns the library that the variable names, or the default.
std::vector<std::string> LibraryNames(const char* variable,
                                      std::vector<std::string> names) {
  const char* const name = std::getenv(variable);
  if (name != nullptr && *name != '\0') return {name};
  return names;
}

}  // namespace

absl::Status Driver::Load() {
  TFPLUG_ASSIGN_OR_RETURN(const tfplug::Driver library, LoadFunctions());
  if (const CUresult result = cuInit(0); result != CUDA_SUCCESS) {
    if (result == CUDA_ERROR_STUB_LIBRARY) {
      return absl::NotFoundError(absl::StrCat(
          "the CUDA driver is the stub of NVIDIA's toolkit: ", kRemedy));
    }
    if (result == CUDA_ERROR_NO_DEVICE) {
      return absl::UnavailableError("the CUDA driver has no device");
    }
    return Error(result, cuInit.name);
  }
  TFPLUG_RETURN_IF_ERROR(Call(cuDriverGetVersion, &version_));
  compiler_ = LoadCompiler(library);
  return absl::OkStatus();
}

absl::StatusOr<tfplug::Driver> Driver::LoadFunctions() {
  tfplug::DriverOptions options;
  options.remedy = kRemedy;
  TFPLUG_ASSIGN_OR_RETURN(
      const tfplug::Driver library,
      tfplug::LoadDriver(LibraryNames("CUDA_LIKE_DRIVER", {"libcuda.so.1"}),
                         options));
  CUresult (*get_address)(const char* symbol, void** function, int version,
                          cuuint64_t flags,
                          CUdriverProcAddressQueryResult* found);
  TFPLUG_RETURN_IF_ERROR(library.Get("cuGetProcAddress_v2", &get_address));

  absl::Status status;
  const auto get = [&](auto& function) {
    void* address = nullptr;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    const CUresult result = get_address(function.name, &address, kCudaVersion,
                                        CU_GET_PROC_ADDRESS_DEFAULT, &found);
    // The stub's fails, too.
    if (result == CUDA_ERROR_STUB_LIBRARY) {
      status.Update(absl::NotFoundError(absl::StrCat(
          library.path(), " is the stub of NVIDIA's toolkit: ", kRemedy)));
    } else if (result != CUDA_SUCCESS || address == nullptr) {
      status.Update(absl::NotFoundError(
          absl::StrCat("the CUDA driver ", library.path(), " has no ",
                       function.name, ": ", kRemedy)));
    }
    function.pointer = reinterpret_cast<decltype(function.pointer)>(address);
  };
#define CUDA_LIKE_GET(name, suffix, parameters) get(name);
  CUDA_LIKE_DRIVER_FUNCTIONS(CUDA_LIKE_GET)
#undef CUDA_LIKE_GET
  if (!status.ok()) return status;
  return library;
}

absl::Status Driver::LoadCompiler(tfplug::Driver driver) {
  if (driver.Find<nvrtcResult(int*, int*)>("nvrtcVersion") == nullptr) {
    tfplug::DriverOptions options;
    options.remedy =
        "install NVRTC (the package nvidia-cuda-nvrtc of PyPI), or name it in "
        "CUDA_LIKE_COMPILER";
    TFPLUG_ASSIGN_OR_RETURN(
        driver,
        tfplug::LoadDriver(
            LibraryNames("CUDA_LIKE_COMPILER",
                         {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}),
            options));
  }
  absl::Status status;
#define CUDA_LIKE_GET(name, suffix, parameters) \
  status.Update(driver.Get(#name, &name.pointer));
  CUDA_LIKE_COMPILER_FUNCTIONS(CUDA_LIKE_GET)
#undef CUDA_LIKE_GET
  int major = 0, minor = 0;
  if (status.ok()) nvrtcVersion(&major, &minor);
  compiler_version_ = 1000 * major + 10 * minor;
  return status;
}

absl::Status Driver::Error(CUresult result, const char* name) const {
  const char *code = nullptr, *text = nullptr;
  cuGetErrorName(result, &code);
  cuGetErrorString(result, &text);
  const std::string message =
      absl::StrCat(name, ": ", code != nullptr ? code : "CUDA error", " (",
                   static_cast<int>(result), ")", text != nullptr ? ": " : "",
                   text != nullptr ? text : "");
  return result == CUDA_ERROR_OUT_OF_MEMORY
             ? absl::ResourceExhaustedError(message)
             : absl::InternalError(message);
}

absl::StatusOr<std::string> Driver::Compile(const std::string& source,
                                            int sm) const {
  TFPLUG_RETURN_IF_ERROR(compiler_);
  nvrtcProgram program = nullptr;
  nvrtcResult result = nvrtcCreateProgram(&program, source.c_str(), "tfplug.cu",
                                          0, nullptr, nullptr);
  if (result != NVRTC_SUCCESS) {
    return absl::InternalError(
        absl::StrCat("nvrtcCreateProgram failed with error ", result));
  }
  const std::string architecture = absl::StrCat("--gpu-architecture=sm_", sm);
  // TensorFlow's CPU, with which results are compared, rounds each operation.
  const char* const options[] = {architecture.c_str(), "--fmad=false",
                                 "--std=c++17", "-default-device"};
  result = nvrtcCompileProgram(program, 4, options);
  std::string text;
  size_t size = 0;
  if (result == NVRTC_SUCCESS) result = nvrtcGetCUBINSize(program, &size);
  if (result == NVRTC_SUCCESS) {
    text.resize(size);
    result = nvrtcGetCUBIN(program, text.data());
  } else if (nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS) {
    text.resize(size);
    nvrtcGetProgramLog(program, text.data());
    text = text.c_str();  // without the null at its end
  }
  nvrtcDestroyProgram(&program);
  if (result == NVRTC_SUCCESS) return text;
  return absl::InvalidArgumentError(
      absl::StrCat("NVRTC failed with error ", result, ":\n", text));
}

}  // namespace cuda_like
