// SPDX-License-Identifier: Apache-2.0
#ifndef CUDA_LIKE_BACKEND_H_
#define CUDA_LIKE_BACKEND_H_

#include <tfplug/compiled/compiled.h>

#include <memory>
#include <string>

#include "cuda_like.h"

namespace cuda_like {

// A kernel that is loaded on a device.
class Program final : public tfplug::Program {
 public:
  explicit Program(const Device& device) : device_(device) {}
  ~Program() override;
  absl::Status Load(const std::string& binary, const char* entry);

  CUfunction function() const { return function_; }

 private:
  const Device& device_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
};

// The primitives: sources that tfplug generates, which NVRTC compiles, and
// products of matrices by cuBLAS.
class Backend final : public tfplug::CompiledBackend<Stream, Program> {
 public:
  // `uses_blas`: false for products by generated kernels only.
  explicit Backend(bool uses_blas = true) : uses_blas_(uses_blas) {}

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

  absl::Status MatMul(Stream& stream, tfplug::Launcher& launcher,
                      const tfplug::Operand& a, const tfplug::Operand& b,
                      const tfplug::Operand& c) override;
  absl::Status MatMulMap(Stream& stream, tfplug::Launcher& launcher,
                         const tfplug::Operand& a, const tfplug::Operand& b,
                         const tfplug::Expression& expression,
                         tfplug::Operands inputs,
                         tfplug::Operands outputs) override;

  // Captures with CUDA's graphs.
  tfplug::NewLaunchGraph Capture(
      Stream& stream, const tfplug::CapturedWork<Stream>& work) override {
    return stream.graphs().Capture(work);
  }

 private:
  const bool uses_blas_;
};

}  // namespace cuda_like

#endif  // CUDA_LIKE_BACKEND_H_
