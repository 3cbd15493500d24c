// SPDX-License-Identifier: Apache-2.0
#include "backend.h"

namespace opencl {
namespace {

// Builds a program. An error has the compiler's output.
absl::Status Build(cl_device_id device, cl_program program) {
  const cl_int code = cl.clBuildProgram(program, 1, &device, "-cl-std=CL1.2 -w",
                                        nullptr, nullptr);
  if (code == CL_SUCCESS) return absl::OkStatus();
  size_t size = 0;
  cl.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr,
                           &size);
  std::string log(size, '\0');
  cl.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, &log[0],
                           nullptr);
  return absl::InternalError(absl::StrCat(
      ToStatus(code, "clBuildProgram").message(), ":\n", log.c_str()));
}

}  // namespace

absl::StatusOr<std::string> Backend::Compile(Stream& stream,
                                             const std::string& source) {
  cl_int code;
  const char* text = source.c_str();
  const ClProgram program(cl.clCreateProgramWithSource(
      stream.device().context(), 1, &text, nullptr, &code));
  TFPLUG_RETURN_IF_ERROR(ToStatus(code, "clCreateProgramWithSource"));
  TFPLUG_RETURN_IF_ERROR(Build(stream.device().id(), program.get()));
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

absl::StatusOr<std::unique_ptr<Program>> Backend::Load(
    Stream& stream, const std::string& binary, const char* entry) {
  const cl_device_id device = stream.device().id();
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const size_t size = binary.size();
  cl_int code, binary_code;
  auto program = std::make_unique<Program>();
  program->program = ClProgram(
      cl.clCreateProgramWithBinary(stream.device().context(), 1, &device, &size,
                                   &bytes, &binary_code, &code));
  TFPLUG_RETURN_IF_ERROR(ToStatus(code, "clCreateProgramWithBinary"));
  TFPLUG_RETURN_IF_ERROR(Build(device, program->program.get()));
  program->kernel =
      ClKernel(cl.clCreateKernel(program->program.get(), entry, &code));
  TFPLUG_RETURN_IF_ERROR(ToStatus(code, "clCreateKernel"));
  return program;
}

absl::Status Backend::Launch(Stream& stream, Program& program,
                             const tfplug::Grid& grid,
                             const tfplug::KernelArguments& arguments) {
  const std::lock_guard<std::mutex> lock(program.mutex);
  const cl_kernel kernel = program.kernel.get();
  cl_uint i = 0;
  for (void* const pointer : arguments.pointers) {
    TFPLUG_ASSIGN_OR_RETURN(const auto at, stream.device().Find(pointer));
    arguments.offsets[i] = static_cast<int64_t>(at.offset);
    TFPLUG_RETURN_IF_ERROR(OPENCL_CALL(clSetKernelArg, kernel, i++,
                                       sizeof(at.handle), &at.handle));
  }
  TFPLUG_RETURN_IF_ERROR(OPENCL_CALL(clSetKernelArg, kernel, i,
                                     arguments.parameters_size,
                                     arguments.parameters));
  const size_t local = grid.group_size, global = local * grid.groups;
  TFPLUG_RETURN_IF_ERROR(OPENCL_CALL(clEnqueueNDRangeKernel, stream.queue(),
                                     kernel, 1, nullptr, &global, &local, 0,
                                     nullptr, nullptr));
  return OPENCL_CALL(clFlush, stream.queue());
}

// Doubles are optional in OpenCL.
bool Backend::Supports(tfplug::DataType type) const {
  if (type != tfplug::DataType::kDouble || cl.devices.empty()) return true;
  return GetInfo<cl_device_fp_config>(cl.devices[0],
                                      CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
}

}  // namespace opencl
