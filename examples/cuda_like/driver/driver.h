// SPDX-License-Identifier: Apache-2.0
#ifndef CUDA_LIKE_DRIVER_DRIVER_H_
#define CUDA_LIKE_DRIVER_DRIVER_H_

#include <tfplug/base/driver_table.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/functions.h"
#include "driver/types.h"

namespace cuda_like {

// Returns the library that an environment variable names, or the defaults.
std::vector<std::string> LibraryNames(const char* variable,
                                      std::vector<std::string> defaults);

// NVRTC, CUDA's compiler. Immutable after Load.
class Compiler final : public tfplug::DriverTable<nvrtcResult> {
 public:
  // Finds it in the driver, which the emulated one contains, or loads it.
  // NOT_FOUND if there is none.
  absl::Status Load(const tfplug::Driver& driver);

  // Compiles CUDA C++ for the architecture `sm`, such as 90 for sm_90. Returns
  // the binary for cuModuleLoadData, or INVALID_ARGUMENT with the compiler's
  // messages.
  absl::StatusOr<std::string> Compile(const std::string& source, int sm) const;

  // Returns the version, such as 12080; 0 if there is no compiler.
  int version() const { return version_; }

#define CUDA_LIKE_MEMBER(name, suffix, parameters) \
  tfplug::DriverFunction<nvrtcResult parameters> name{*this, #name};
  CUDA_LIKE_COMPILER_FUNCTIONS(CUDA_LIKE_MEMBER)
#undef CUDA_LIKE_MEMBER

 private:
  absl::Status ToStatus(nvrtcResult result, const char* name) const override;

  absl::Status loaded_;
  int version_ = 0;
};

// CUDA's driver, libcuda.so.1 or the library that CUDA_LIKE_DRIVER names, and
// its compiler. Immutable after Load.
class Driver final : public tfplug::DriverTable<CUresult> {
 public:
  // Loads the libraries and initializes the driver. NOT_FOUND if there is no
  // driver, or only the toolkit's stub; UNAVAILABLE if it has no device.
  absl::Status Load();

  // Returns the version of CUDA that the driver supports, such as 12080 for
  // 12.8.
  int version() const { return version_; }
  const Compiler& compiler() const { return compiler_; }

#define CUDA_LIKE_MEMBER(name, suffix, parameters) \
  tfplug::DriverFunction<CUresult parameters> name{*this, #name};
  CUDA_LIKE_DRIVER_FUNCTIONS(CUDA_LIKE_MEMBER)
#undef CUDA_LIKE_MEMBER

 private:
  absl::StatusOr<tfplug::Driver> LoadFunctions();
  // Returns RESOURCE_EXHAUSTED if memory has run out, otherwise INTERNAL.
  absl::Status ToStatus(CUresult result, const char* name) const override;

  Compiler compiler_;
  int version_ = 0;
};

}  // namespace cuda_like

#endif  // CUDA_LIKE_DRIVER_DRIVER_H_
