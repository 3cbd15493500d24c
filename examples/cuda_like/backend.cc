// SPDX-License-Identifier: Apache-2.0
#include "backend.h"

#include <tfplug/base/status_macros.h>

#include <cstdint>
#include <optional>

#include "absl/container/inlined_vector.h"

namespace cuda_like {
namespace {

// Returns whether cuBLAS and a second kernel, which takes about 3 us, are faster
// than one generated kernel. Measured on an H200: a small product takes cuBLAS
// 5 us and the generated kernel 0.08 us for each element of a row of `a`.
bool IsWorthBlas(int64_t elements, int64_t depth) {
  return depth > 128 || elements * depth >= int64_t{512} * 512 * 512;
}

}  // namespace

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
  stream.set_computing();
  return device.Call(device.driver().cuLaunchKernel, program.function(),
                     grid.groups, 1u, 1u, grid.group_size, 1u, 1u, 0u,
                     stream.handle(), values.data(), nullptr);
}

absl::Status Backend::MatMul(Stream& stream, tfplug::Launcher& launcher,
                             const tfplug::Operand& a, const tfplug::Operand& b,
                             const tfplug::Operand& c) {
  const BlasLibrary& library = stream.device().blas();
  if (uses_blas_ && library.is_used()) {
    const std::optional<BlasProduct> product = MakeBlasProduct(a, b, c);
    if (product.has_value()) {
      const absl::Status status =
          stream.blas().Multiply(stream, *product, library.uses_tf32());
      if (!absl::IsUnimplemented(status)) return status;
    }
  }
  return CompiledBackend::MatMul(stream, launcher, a, b, c);
}

// A generated kernel applies the expression before it stores the product.
// cuBLAS multiplies faster, but needs a second kernel for the expression.
absl::Status Backend::MatMulMap(Stream& stream, tfplug::Launcher& launcher,
                                const tfplug::Operand& a,
                                const tfplug::Operand& b,
                                const tfplug::Expression& expression,
                                tfplug::Operands inputs,
                                tfplug::Operands outputs) {
  tfplug::Operand product = outputs[0];
  product.type = a.type;
  if (uses_blas_ && stream.device().blas().is_used() &&
      IsWorthBlas(product.num_elements(), a.dim(a.rank - 1)) &&
      MakeBlasProduct(a, b, product).has_value()) {
    return tfplug::Backend<Stream>::MatMulMap(stream, launcher, a, b,
                                              expression, inputs, outputs);
  }
  return CompiledBackend::MatMulMap(stream, launcher, a, b, expression, inputs,
                                    outputs);
}

}  // namespace cuda_like
