// SPDX-License-Identifier: Apache-2.0
// Measures examples/opencl on the driver of this machine, beside a copy,
// CLBlast and launches written by hand: benchmarks/opencl.py.
//
//   opencl            prints Markdown tables
//   opencl launches   launches only, for Callgrind: functions measured_flat,
//                     measured_views and measured_by_hand
//   opencl stub       the same on a driver that returns at once
#include <clblast_c.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "backend.h"
#include "launches.h"

extern "C" void SE_InitPlugin(tfplug::capi::SE_PlatformRegistrationParams*,
                              tfplug::capi::TF_Status*);

namespace {

using benchmarks::Replace;
using opencl::Backend;
using tfplug::DataType;
using tfplug::DeviceMemory;
using tfplug::Operand;

// Of the kernel whose launches are measured.
constexpr size_t kParametersSize = 56;

// A launch as the driver sees it, to repeat it by hand.
struct {
  cl_kernel kernel;
  size_t global, local;
  char parameters[kParametersSize];  // the last argument
} seen;

cl_int CL_API_CALL KeepArgument(cl_kernel kernel, cl_uint, size_t size,
                                const void* value) {
  seen.kernel = kernel;
  if (size == sizeof(cl_mem)) return CL_SUCCESS;  // a buffer
  if (size != kParametersSize) return CL_INVALID_ARG_SIZE;
  std::memcpy(seen.parameters, value, size);
  return CL_SUCCESS;
}
cl_int CL_API_CALL KeepLaunch(cl_command_queue, cl_kernel, cl_uint,
                              const size_t*, const size_t* global,
                              const size_t* local, cl_uint, const cl_event*,
                              cl_event*) {
  seen.global = *global;
  seen.local = *local;
  return CL_SUCCESS;
}

cl_int CL_API_CALL IgnoreArgument(cl_kernel, cl_uint, size_t, const void*) {
  return CL_SUCCESS;
}
cl_int CL_API_CALL IgnoreLaunch(cl_command_queue, cl_kernel, cl_uint,
                                const size_t*, const size_t*, const size_t*,
                                cl_uint, const cl_event*, cl_event*) {
  return CL_SUCCESS;
}
cl_int CL_API_CALL IgnoreFlush(cl_command_queue) { return CL_SUCCESS; }

class Benchmarks {
 public:
  explicit Benchmarks(tfplug::testing::FakeDevice& device)
      : stream_(device.compute()),
        own_(*static_cast<opencl::Stream*>(
            static_cast<void*>(stream_.handle()))),
        memory_(device),
        launcher_(tfplug::MakeLauncher(backend_, own_, memory_)),
        sum_(backend_, own_, memory_) {}

  // Square products, in turn with CLBlast's.
  absl::Status Products() {
    void* const library = dlopen("libclblast.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return absl::NotFoundError(dlerror());
    const auto gemm = reinterpret_cast<decltype(&CLBlastSgemm)>(
        dlsym(library, "CLBlastSgemm"));
    std::printf(
        "| product of floats | CLBlast, ms | tfplug, ms | speed |\n"
        "|---|---:|---:|---:|\n");
    for (const int64_t n : {128, 256, 512, 1024}) {
      TFPLUG_ASSIGN_OR_RETURN(const cl_mem a, Matrix(n, 0));
      TFPLUG_ASSIGN_OR_RETURN(const cl_mem b, Matrix(n, 1));
      TFPLUG_ASSIGN_OR_RETURN(const cl_mem c, Matrix(n, 2));
      const auto size = static_cast<size_t>(n);
      const auto theirs = [&] {
        cl_command_queue queue = own_.queue();
        return gemm(CLBlastLayoutRowMajor, CLBlastTransposeNo,
                    CLBlastTransposeNo, size, size, size, 1, a, 0, size, b, 0,
                    size, 0, c, 0, size, &queue, nullptr) == CLBlastSuccess
                   ? absl::OkStatus()
                   : absl::InternalError("CLBlastSgemm failed");
      };
      const auto ours = [&] {
        return launcher_.MatMul(Operand::Dense(address_[0], kType, {n, n}),
                                Operand::Dense(address_[1], kType, {n, n}),
                                Operand::Dense(address_[2], kType, {n, n}));
      };
      std::vector<double> ratios, first, second;
      for (int round = 0; round < 9; ++round) {
        TFPLUG_ASSIGN_OR_RETURN(const double x,
                                benchmarks::MedianTime(stream_, 3, theirs));
        TFPLUG_ASSIGN_OR_RETURN(const double y,
                                benchmarks::MedianTime(stream_, 3, ours));
        first.push_back(x);
        second.push_back(y);
        ratios.push_back(x / y);
      }
      for (auto* list : {&first, &second, &ratios}) {
        std::sort(list->begin(), list->end());
      }
      std::printf("| %d x %d | %.2f | %.2f | %.2f |\n", static_cast<int>(n),
                  static_cast<int>(n), 1e3 * first[4], 1e3 * second[4],
                  ratios[4]);
    }
    return absl::OkStatus();
  }

  // A sum of three vectors, launched by tfplug and by hand.
  absl::Status Launches(bool on_stub) {
    TFPLUG_RETURN_IF_ERROR(sum_.Init());
    auto& cl = opencl::cl;
    void* const set = Replace(cl.clSetKernelArg, &KeepArgument);
    void* const launch = Replace(cl.clEnqueueNDRangeKernel, &KeepLaunch);
    TFPLUG_RETURN_IF_ERROR(sum_.MapFlat());
    if (on_stub) {
      Replace(cl.clSetKernelArg, &IgnoreArgument);
      Replace(cl.clEnqueueNDRangeKernel, &IgnoreLaunch);
      Replace(cl.clFlush, &IgnoreFlush);
    } else {
      cl.clSetKernelArg.address = set;
      cl.clEnqueueNDRangeKernel.address = launch;
    }
    TFPLUG_RETURN_IF_ERROR(sum_.measured_flat());
    TFPLUG_RETURN_IF_ERROR(sum_.measured_views());
    return measured_by_hand();
  }

  // Launches the kernel as an author without tfplug would. TensorFlow's
  // addresses lie inside buffers, so the kernel needs offsets.
  [[gnu::noinline]] absl::Status measured_by_hand() {
    auto& cl = opencl::cl;
    for (int i = 0; i < benchmarks::kLaunches; ++i) {
      const std::lock_guard<std::mutex> lock(mutex_);
      struct {
        uint64_t offsets[4];
        uint64_t sizes[3];
      } parameters;
      static_assert(sizeof(parameters) == kParametersSize);
      std::memcpy(parameters.sizes,
                  seen.parameters + sizeof(parameters.offsets),
                  sizeof(parameters.sizes));
      cl_uint k = 0;
      cl_int code = CL_SUCCESS;
      for (void* const address : sum_.addresses()) {
        const auto at = opencl::addresses.Find(address);
        if (!at.ok()) return at.status();
        parameters.offsets[k] = at->offset;
        code |=
            cl.clSetKernelArg(seen.kernel, k++, sizeof(cl_mem), &at->handle);
      }
      code |=
          cl.clSetKernelArg(seen.kernel, k, sizeof(parameters), &parameters);
      code |= cl.clEnqueueNDRangeKernel(own_.queue(), seen.kernel, 1, nullptr,
                                        &seen.global, &seen.local, 0, nullptr,
                                        nullptr);
      code |= cl.clFlush(own_.queue());
      if (code != CL_SUCCESS) return cl.Check(code, "launch");
    }
    return absl::OkStatus();
  }

  Backend& backend() { return backend_; }
  const std::string& name() { return backend_.Programs(own_).target().name; }

 private:
  static constexpr DataType kType = DataType::kFloat;

  // Allocates the k-th matrix, of small numbers.
  absl::StatusOr<cl_mem> Matrix(int64_t n, int k) {
    TFPLUG_ASSIGN_OR_RETURN(address_[k], memory_.Allocate(4 * n * n));
    const DeviceMemory memory(address_[k], static_cast<uint64_t>(4 * n * n));
    TFPLUG_RETURN_IF_ERROR(own_.Memset32(memory, {0x3f000000}, memory.size()));
    TFPLUG_ASSIGN_OR_RETURN(const auto at, opencl::addresses.Find(address_[k]));
    return at.handle;
  }

  tfplug::testing::FakeStream& stream_;
  opencl::Stream& own_;
  Backend backend_;
  benchmarks::Memories memory_;
  tfplug::Launcher launcher_;
  benchmarks::SumLaunches sum_;
  std::mutex mutex_;
  void* address_[3] = {};
};

absl::Status Run(const std::string& part) {
  tfplug::testing::ScopedFakeTensorFlow tensorflow;
  auto host = tfplug::testing::Host::Register(&SE_InitPlugin);
  if (!host.ok()) return host.status();
  TFPLUG_ASSIGN_OR_RETURN(auto* const device, (*host)->Device(0));
  Benchmarks benchmarks(*device);
  std::printf("Device: %s\n\n", benchmarks.name().c_str());
  if (!part.empty()) return benchmarks.Launches(part == "stub");
  TFPLUG_RETURN_IF_ERROR(
      benchmarks::GeneratedKernels(benchmarks.backend(), *device).Run());
  std::printf("\n");
  return benchmarks.Products();
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status = Run(argc > 1 ? argv[1] : "");
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
