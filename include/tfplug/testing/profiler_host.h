// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_PROFILER_HOST_H_
#define TFPLUG_TESTING_PROFILER_HOST_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/abi/abi.h"
#include "tfplug/testing/guards.h"
#include "tfplug/testing/internal/status_functions.h"
#include "tfplug/testing/internal/with_canary.h"
#include "tfplug/testing/struct_sizes.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// TensorFlow's side of a profiler: registers it and records profiles, with
// TensorFlow's calls in TensorFlow's order. Each struct has its size in the
// release and lies between canary bytes.
//
//   tfplug::testing::ScopedFakeTensorFlow tensorflow;
//   auto host = tfplug::testing::ProfilerHost::Register(&TF_InitProfiler);
//   (*host)->Start();
//   ...
//   (*host)->Stop();
//   std::string xspace = (*host)->Collect().value();
class ProfilerHost {
 public:
  using InitProfiler = void (*)(capi::TF_ProfilerRegistrationParams* params,
                                capi::TF_Status* status);

  // Registers a profiler and, as TensorFlow does, calls both destroy functions
  // twice right after that. Fails as TensorFlow does, with the plug-in's status
  // or for a missing field.
  static absl::StatusOr<std::unique_ptr<ProfilerHost>> Register(
      InitProfiler init_profiler,
      const StructSizes& sizes = capi::kNewestRelease,
      int32_t major_version = 0) {
    std::unique_ptr<ProfilerHost> host(new ProfilerHost(sizes));
    WithCanary<capi::TF_ProfilerRegistrationParams> params(
        sizes.profiler_params);
    WithCanary<capi::TP_Profiler> profiler(host->profiler_.size());
    WithCanary<capi::TP_ProfilerFns> fns(host->fns_.size());
    params->major_version = major_version;
    params->patch_version = 1;
    params->profiler = profiler.get();
    params->profiler_fns = fns.get();
    absl::Status status = CallWithStatus(init_profiler, params.get());
    if (!status.ok()) return status;
    const auto missing = [](const char* field) {
      return absl::FailedPreconditionError(std::string(field) + " is null");
    };
    if (params->destroy_profiler == nullptr) return missing("destroy_profiler");
    if (params->destroy_profiler_fns == nullptr) {
      return missing("destroy_profiler_fns");
    }
    if (profiler->device_type == nullptr) return missing("device_type");
    if (fns->start == nullptr) return missing("start");
    if (fns->stop == nullptr) return missing("stop");
    if (fns->collect_data_xspace == nullptr) {
      return missing("collect_data_xspace");
    }
    if (!params.intact() || !profiler.intact() || !fns.intact()) {
      return absl::InternalError(
          "the plug-in wrote beyond one of TensorFlow's structs");
    }
    host->profiler_ = profiler;
    host->fns_ = fns;
    for (int i = 0; i < 2; ++i) {
      params->destroy_profiler(profiler.get());
      params->destroy_profiler_fns(fns.get());
    }
    return host;
  }

  std::string device_type() const { return profiler_->device_type; }

  absl::Status Start() const {
    return CallWithStatus(fns_->start, profiler_.get());
  }
  absl::Status Stop() const {
    return CallWithStatus(fns_->stop, profiler_.get());
  }

  // Returns the serialized XSpace. Asks for the size and, unless it is 0, for
  // the contents.
  absl::StatusOr<std::string> Collect() const {
    size_t size = kGarbage;
    absl::Status status = CallWithStatus(fns_->collect_data_xspace,
                                         profiler_.get(), nullptr, &size);
    if (size == kGarbage) {
      return absl::InternalError(
          "collect_data_xspace left size_in_bytes unset, and TensorFlow would "
          "allocate that many bytes");
    }
    if (!status.ok()) return status;
    return size == 0 ? std::string() : Read(size);
  }

  // Asks for the contents with a buffer of `size` bytes.
  absl::StatusOr<std::string> Read(size_t size) const {
    const GuardedBlock buffer(size, /*alignment=*/1);
    std::memset(buffer.data(), 0xA5, size);
    absl::Status status = CallWithStatus(fns_->collect_data_xspace,
                                         profiler_.get(), buffer.data(), &size);
    if (!buffer.intact()) {
      return absl::InternalError("the plug-in wrote beyond the buffer");
    }
    if (!status.ok()) return status;
    return std::string(reinterpret_cast<const char*>(buffer.data()),
                       buffer.size());
  }

 private:
  static constexpr size_t kGarbage = 0xDEADBEEFDEADBEEF;

  explicit ProfilerHost(const StructSizes& sizes)
      : profiler_(sizes.profiler), fns_(sizes.profiler_fns) {}

  WithCanary<capi::TP_Profiler> profiler_;
  WithCanary<capi::TP_ProfilerFns> fns_;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_PROFILER_HOST_H_
