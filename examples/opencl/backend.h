// SPDX-License-Identifier: Apache-2.0
#ifndef OPENCL_BACKEND_H_
#define OPENCL_BACKEND_H_

#include <tfplug/backend/compiled.h>

#include <memory>
#include <mutex>
#include <string>

#include "opencl.h"

namespace opencl {

struct Program final : tfplug::Program {
  ClProgram program;
  ClKernel kernel;
  std::mutex mutex;  // of the kernel's arguments
};

// tfplug generates OpenCL C for each kernel.
class Backend final : public tfplug::CompiledBackend<Stream, Program> {
 public:
  tfplug::ProgramCache& Programs(Stream& stream) override {
    return stream.device().programs();
  }
  absl::StatusOr<std::string> Compile(Stream& stream,
                                      const std::string& source) override;
  absl::StatusOr<std::unique_ptr<Program>> Load(Stream& stream,
                                                const std::string& binary,
                                                const char* entry) override;
  absl::Status Launch(Stream& stream, Program& program,
                      const tfplug::Grid& grid,
                      const tfplug::KernelArguments& arguments) override;
  bool Supports(tfplug::DataType type) const override;
};

}  // namespace opencl

#endif  // OPENCL_BACKEND_H_
