// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_TENSORFLOW_PLUGINS_PLAIN_C_H_
#define TFPLUG_TESTS_TENSORFLOW_PLUGINS_PLAIN_C_H_

#include <memory>
#include <string>

#include "reference_device.h"
#include "tfplug/compiled/compiled.h"

// A device whose processor has 32 bits and a C compiler, but no library: `cc
// -m32` compiles each kernel, PlainC(), to a program, and each launch runs it.
// Device memory is shared with these processes, at the same addresses.
namespace plain_c {

using Stream = reference::Stream;

// The file of a program that runs all groups of a launch.
struct Program : tfplug::Program {
  ~Program() override;

  int file = -1;
};

// If TFPLUG_LANGUAGE_SOURCES names a folder, the source of each kernel is stored
// there in all languages.
class Backend final : public tfplug::CompiledBackend<Stream, Program> {
 public:
  using Base = tfplug::CompiledBackend<Stream, Program>;

  tfplug::ProgramCache& Programs(Stream& stream) override;
  absl::StatusOr<std::string> Compile(Stream& stream,
                                      const std::string& source) override;
  absl::StatusOr<std::unique_ptr<Program>> Load(Stream& stream,
                                                const std::string& binary,
                                                const char* entry) override;
  absl::Status Launch(Stream& stream, Program& program,
                      const tfplug::Grid& grid,
                      const tfplug::KernelArguments& arguments) override;

  // Record the sources, and call the base's.
  absl::Status Map(Stream& stream, const tfplug::Expression& expression,
                   tfplug::Operands inputs, tfplug::Operands outputs) override;
  absl::Status Reduce(Stream& stream, const tfplug::Reduction& reduction,
                      tfplug::Operands inputs,
                      tfplug::Operands outputs) override;
  absl::Status MapLoops(Stream& stream, const tfplug::Expression& expression,
                        absl::Span<tfplug::Operand> inputs,
                        absl::Span<tfplug::Operand> outputs);
  absl::Status ReduceLoops(Stream& stream, tfplug::Launcher& launcher,
                           const tfplug::Reduction& reduction,
                           absl::Span<tfplug::Operand> inputs,
                           absl::Span<tfplug::Operand> outputs);
  static absl::Status MapFlat(Backend& self, Stream& stream,
                              const tfplug::Expression& expression,
                              const tfplug::FlatOperands& operands);
  absl::Status MatMul(Stream& stream, tfplug::Launcher& launcher,
                      const tfplug::Operand& a, const tfplug::Operand& b,
                      const tfplug::Operand& c) override;
  absl::Status MatMulMap(Stream& stream, tfplug::Launcher& launcher,
                         const tfplug::Operand& a, const tfplug::Operand& b,
                         const tfplug::Expression& expression,
                         tfplug::Operands inputs,
                         tfplug::Operands outputs) override;
};

}  // namespace plain_c

#endif  // TFPLUG_TESTS_TENSORFLOW_PLUGINS_PLAIN_C_H_
