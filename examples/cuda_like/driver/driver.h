// SPDX-License-Identifier: Apache-2.0
#ifndef CUDA_LIKE_DRIVER_DRIVER_H_
#define CUDA_LIKE_DRIVER_DRIVER_H_

#include <tfplug/base/load_driver.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/functions.h"
#include "driver/types.h"

namespace cuda_like {

// A function of the driver, with its name for error messages. Its pointer is
// null until Driver::Load has found it.
template <class Signature>
struct Function;
template <class Result, class... Parameters>
struct Function<Result(Parameters...)> {
  using Pointer = Result (*)(Parameters...);

  Result operator()(Parameters... arguments) const {
    return pointer(arguments...);
  }

  const char* name;
  Pointer pointer = nullptr;
};

// CUDA's driver, libcuda.so.1 or the library that CUDA_LIKE_DRIVER names, and
// its compiler, NVRTC: a table of functions. Immutable after Load.
class Driver {
 public:
  // Loads the libraries and initializes the driver. NOT_FOUND if there is no
  // driver, or only the toolkit's stub; UNAVAILABLE if it has no device.
  absl::Status Load();

  // Calls a function of the table, and converts its result.
  template <class... Parameters, class... Arguments>
  absl::Status Call(const Function<CUresult(Parameters...)>& function,
                    Arguments... arguments) const {
    const CUresult result = function(arguments...);
    return result == CUDA_SUCCESS ? absl::OkStatus()
                                  : Error(result, function.name);
  }

  // Returns the status for an error of the function: RESOURCE_EXHAUSTED if
  // memory has run out, otherwise INTERNAL.
  [[gnu::cold]] absl::Status Error(CUresult result, const char* name) const;

  // Compiles CUDA C++ for the architecture `sm`, such as 90 for sm_90. Returns
  // the binary for cuModuleLoadData, or INVALID_ARGUMENT with the compiler's
  // messages.
  absl::StatusOr<std::string> Compile(const std::string& source, int sm) const;

  // The version of CUDA that the driver supports, such as 12080 for 12.8.
  int version() const { return version_; }
  // The version of NVRTC, such as 12080; 0 if there is none.
  int compiler_version() const { return compiler_version_; }

#define CUDA_LIKE_MEMBER(name, suffix, parameters) \
  Function<CUresult parameters> name{#name};
  CUDA_LIKE_DRIVER_FUNCTIONS(CUDA_LIKE_MEMBER)
#undef CUDA_LIKE_MEMBER

 private:
  absl::StatusOr<tfplug::Driver> LoadFunctions();
  // Loads NVRTC, unless the driver contains it, as the emulated one does.
  absl::Status LoadCompiler(tfplug::Driver driver);

#define CUDA_LIKE_MEMBER(name, suffix, parameters) \
  Function<nvrtcResult parameters> name{#name};
  CUDA_LIKE_COMPILER_FUNCTIONS(CUDA_LIKE_MEMBER)
#undef CUDA_LIKE_MEMBER

  absl::Status compiler_;  // NOT_FOUND if there is no compiler
  int version_ = 0, compiler_version_ = 0;
};

}  // namespace cuda_like

#endif  // CUDA_LIKE_DRIVER_DRIVER_H_
