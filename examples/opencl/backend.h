// SPDX-License-Identifier: Apache-2.0
#ifndef OPENCL_BACKEND_H_
#define OPENCL_BACKEND_H_

#include <tfplug/compiled/capture_graph.h>
#include <tfplug/compiled/compiled.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string>
#include <utility>

#include "command_buffer.h"
#include "opencl.h"

namespace opencl {

struct Program final : tfplug::Program {
  ProgramObject program;
  KernelObject kernel;
  std::string entry;  // the kernel's name
  std::mutex mutex;   // of the kernel's arguments
};

// tfplug generates OpenCL C for each kernel.
class Backend final : public tfplug::CompiledBackend<Stream, Program> {
 public:
  tfplug::ProgramCache& Programs(Stream& stream) override {
    return stream.machine().programs;
  }

  absl::StatusOr<std::string> Compile(Stream& stream,
                                      const std::string& source) override {
    const char* text = source.c_str();
    ProgramObject program;
    TFPLUG_RETURN_IF_ERROR(Create(program, cl.clCreateProgramWithSource,
                                  stream.machine().context, 1u, &text,
                                  nullptr));
    TFPLUG_RETURN_IF_ERROR(Build(stream.machine().id, program.get()));
    // Only this device of the context has a binary.
    TFPLUG_ASSIGN_OR_RETURN(
        const auto sizes,
        (Get<std::array<size_t, 16>>(cl.clGetProgramInfo, program.get(),
                                     CL_PROGRAM_BINARY_SIZES)));
    const auto own = std::max_element(sizes.begin(), sizes.end());
    std::string binary(*own, '\0');
    std::array<char*, 16> pointers = {};  // null omits a device
    pointers[own - sizes.begin()] = &binary[0];
    TFPLUG_RETURN_IF_ERROR(cl.Call(cl.clGetProgramInfo, program.get(),
                                   CL_PROGRAM_BINARIES, sizeof(pointers),
                                   &pointers, nullptr));
    return binary;
  }

  absl::StatusOr<std::unique_ptr<Program>> Load(Stream& stream,
                                                const std::string& binary,
                                                const char* entry) override {
    const Machine& machine = stream.machine();
    const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
    const size_t size = binary.size();
    auto program = std::make_unique<Program>();
    TFPLUG_RETURN_IF_ERROR(Create(program->program,
                                  cl.clCreateProgramWithBinary, machine.context,
                                  1u, &machine.id, &size, &bytes, nullptr));
    TFPLUG_RETURN_IF_ERROR(Build(machine.id, program->program.get()));
    TFPLUG_RETURN_IF_ERROR(Create(program->kernel, cl.clCreateKernel,
                                  program->program.get(), entry));
    program->entry = entry;
    return program;
  }

  absl::Status Launch(Stream& stream, Program& program,
                      const tfplug::Grid& grid,
                      const tfplug::KernelArguments& arguments) override {
    CommandBuffer* const graph = stream.graph();
    // PoCL 3.1 repeats commands with the last arguments of their kernel.
    KernelObject own;
    if (graph != nullptr) {
      TFPLUG_RETURN_IF_ERROR(Create(own, cl.clCreateKernel,
                                    program.program.get(),
                                    program.entry.c_str()));
    }
    const std::lock_guard<std::mutex> lock(program.mutex);
    const cl_kernel kernel =
        graph != nullptr ? own.get() : program.kernel.get();
    TFPLUG_RETURN_IF_ERROR(tfplug::SetArguments(
        arguments, addresses, [&](cl_uint i, size_t size, const void* value) {
          return cl.Call(cl.clSetKernelArg, kernel, i, size, value);
        }));
    const size_t local = grid.group_size, global = local * grid.groups;
    if (graph != nullptr) return graph->Add(std::move(own), global, local);
    return stream.Enqueue(cl.clEnqueueNDRangeKernel, kernel, 1u, nullptr,
                          &global, &local);
  }

  tfplug::NewLaunchGraph Capture(
      Stream& stream, const tfplug::CapturedWork<Stream>& work) override {
    return tfplug::CaptureGraph<CommandBuffer>(stream, work);
  }

  // Doubles are optional in OpenCL. Is called before Platform::Init.
  bool Supports(tfplug::DataType type) const override {
    return Platform::Supports(type);
  }

 private:
  // Builds a program. An error has the compiler's output.
  static absl::Status Build(cl_device_id device, cl_program program) {
    absl::Status status = cl.Call(cl.clBuildProgram, program, 1, &device,
                                  "-cl-std=CL1.2 -w", nullptr, nullptr);
    if (status.ok()) return status;
    return absl::Status(status.code(),
                        absl::StrCat(status.message(), ":\n",
                                     GetText(cl.clGetProgramBuildInfo, program,
                                             device, CL_PROGRAM_BUILD_LOG)));
  }
};

}  // namespace opencl

#endif  // OPENCL_BACKEND_H_
