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
  ProgramObject program;
  KernelObject kernel;
  std::mutex mutex;  // of the kernel's arguments
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
    OPENCL_CREATE(program, clCreateProgramWithSource,
                  stream.machine().context.get(), 1, &text, nullptr);
    TFPLUG_RETURN_IF_ERROR(Build(stream.machine().id, program.get()));
    size_t size = 0;
    TFPLUG_RETURN_IF_ERROR(OPENCL_CALL(clGetProgramInfo, program.get(),
                                       CL_PROGRAM_BINARY_SIZES, sizeof(size),
                                       &size, nullptr));
    std::string binary(size, '\0');
    char* pointer = &binary[0];
    TFPLUG_RETURN_IF_ERROR(OPENCL_CALL(clGetProgramInfo, program.get(),
                                       CL_PROGRAM_BINARIES, sizeof(pointer),
                                       &pointer, nullptr));
    return binary;
  }

  absl::StatusOr<std::unique_ptr<Program>> Load(Stream& stream,
                                                const std::string& binary,
                                                const char* entry) override {
    const Machine& machine = stream.machine();
    const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
    const size_t size = binary.size();
    auto program = std::make_unique<Program>();
    OPENCL_CREATE(program->program, clCreateProgramWithBinary,
                  machine.context.get(), 1, &machine.id, &size, &bytes,
                  nullptr);
    TFPLUG_RETURN_IF_ERROR(Build(machine.id, program->program.get()));
    OPENCL_CREATE(program->kernel, clCreateKernel, program->program.get(),
                  entry);
    return program;
  }

  absl::Status Launch(Stream& stream, Program& program,
                      const tfplug::Grid& grid,
                      const tfplug::KernelArguments& arguments) override {
    const std::lock_guard<std::mutex> lock(program.mutex);
    const cl_kernel kernel = program.kernel.get();
    cl_uint i = 0;
    for (void* const pointer : arguments.pointers) {
      TFPLUG_ASSIGN_OR_RETURN(const auto at,
                              stream.machine().addresses.Find(pointer));
      arguments.offsets[i] = static_cast<int64_t>(at.offset);
      TFPLUG_RETURN_IF_ERROR(OPENCL_CALL(clSetKernelArg, kernel, i++,
                                         sizeof(at.handle), &at.handle));
    }
    TFPLUG_RETURN_IF_ERROR(OPENCL_CALL(clSetKernelArg, kernel, i,
                                       arguments.parameters_size,
                                       arguments.parameters));
    const size_t local = grid.group_size, global = local * grid.groups;
    return OPENCL_ENQUEUE(clEnqueueNDRangeKernel, stream.queue(), kernel, 1,
                          nullptr, &global, &local);
  }

  // Doubles are optional in OpenCL.
  bool Supports(tfplug::DataType type) const override {
    return type != tfplug::DataType::kDouble || cl.devices.empty() ||
           GetInfo<cl_device_fp_config>(cl.devices[0],
                                        CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  }

 private:
  // Builds a program. An error has the compiler's output.
  static absl::Status Build(cl_device_id device, cl_program program) {
    const absl::Status status =
        OPENCL_CALL(clBuildProgram, program, 1, &device, "-cl-std=CL1.2 -w",
                    nullptr, nullptr);
    if (status.ok()) return status;
    const auto log = ReadText([&](size_t size, char* text, size_t* text_size) {
      cl.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size,
                               text, text_size);
    });
    return absl::Status(status.code(),
                        absl::StrCat(status.message(), ":\n", log));
  }
};

}  // namespace opencl

#endif  // OPENCL_BACKEND_H_
