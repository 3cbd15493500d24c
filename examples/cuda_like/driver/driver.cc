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

}  // namespace

std::vector<std::string> LibraryNames(const char* variable,
                                      std::vector<std::string> defaults) {
  const char* const name = std::getenv(variable);
  if (name != nullptr && *name != '\0') return {name};
  return defaults;
}

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
  // Without a compiler, kernels in the cache still run.
  compiler_.Load(library).IgnoreError();
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

  for (tfplug::DriverSymbol* const symbol : symbols()) {
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    const CUresult result =
        get_address(symbol->name, &symbol->address, kCudaVersion,
                    CU_GET_PROC_ADDRESS_DEFAULT, &found);
    // The stub's fails, too.
    if (result == CUDA_ERROR_STUB_LIBRARY) {
      return absl::NotFoundError(absl::StrCat(
          library.path(), " is the stub of NVIDIA's toolkit: ", kRemedy));
    }
    if (result != CUDA_SUCCESS || symbol->address == nullptr) {
      return absl::NotFoundError(absl::StrCat("the CUDA driver ",
                                              library.path(), " has no ",
                                              symbol->name, ": ", kRemedy));
    }
  }
  return library;
}

absl::Status Driver::ToStatus(CUresult result, const char* name) const {
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

absl::Status Compiler::Load(const tfplug::Driver& driver) {
  loaded_ = FindAll(driver);
  if (!loaded_.ok()) {
    const absl::StatusOr<tfplug::Driver> library = tfplug::LoadDriver(
        LibraryNames("CUDA_LIKE_COMPILER",
                     {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}),
        {"install NVRTC (the package nvidia-cuda-nvrtc of PyPI), or name it in "
         "CUDA_LIKE_COMPILER"});
    loaded_ = library.ok() ? FindAll(*library) : library.status();
  }
  int major = 0, minor = 0;
  if (loaded_.ok()) nvrtcVersion(&major, &minor);
  version_ = 1000 * major + 10 * minor;
  return loaded_;
}

absl::Status Compiler::ToStatus(nvrtcResult result, const char* name) const {
  return absl::InternalError(absl::StrCat(name, " failed with error ", result));
}

absl::StatusOr<std::string> Compiler::Compile(const std::string& source,
                                              int sm) const {
  TFPLUG_RETURN_IF_ERROR(loaded_);
  nvrtcProgram program = nullptr;
  TFPLUG_RETURN_IF_ERROR(Call(nvrtcCreateProgram, &program, source.c_str(),
                              "tfplug.cu", 0, nullptr, nullptr));
  const std::string architecture = absl::StrCat("--gpu-architecture=sm_", sm);
  // TensorFlow's CPU, with which results are compared, rounds each operation.
  const char* const options[] = {architecture.c_str(), "--fmad=false",
                                 "--std=c++17", "-default-device"};
  absl::Status status = Call(nvrtcCompileProgram, program, 4, options);
  std::string text;
  size_t size = 0;
  if (status.ok()) status = Call(nvrtcGetCUBINSize, program, &size);
  if (status.ok()) {
    text.resize(size);
    status = Call(nvrtcGetCUBIN, program, text.data());
  } else if (nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS) {
    text.resize(size);
    nvrtcGetProgramLog(program, text.data());
    text = text.c_str();  // without the null at its end
  }
  nvrtcDestroyProgram(&program);
  if (status.ok()) return text;
  return absl::InvalidArgumentError(
      absl::StrCat("NVRTC failed: ", status.message(), ":\n", text));
}

}  // namespace cuda_like
