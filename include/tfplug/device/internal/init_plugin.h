// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_INIT_PLUGIN_H_
#define TFPLUG_DEVICE_INTERNAL_INIT_PLUGIN_H_

#include <string>
#include <string_view>

#include "tfplug/base/internal/python_converter.h"
#include "tfplug/base/internal/python_devices.h"
#include "tfplug/base/internal/python_fit.h"
#include "tfplug/base/internal/python_iterators.h"
#include "tfplug/base/internal/python_lists.h"
#include "tfplug/base/internal/python_load.h"
#include "tfplug/base/internal/python_loops.h"
#include "tfplug/base/internal/python_optionals.h"
#include "tfplug/base/internal/python_rnn.h"
#include "tfplug/base/internal/registered_platform.h"
#include "tfplug/base/internal/static_text.h"
#include "tfplug/base/internal/type_setting.h"
#include "tfplug/device/internal/class_checks.h"
#include "tfplug/device/internal/default_profiler.h"
#include "tfplug/device/internal/platform_table.h"
#include "tfplug/profiler/internal/init_profiler.h"
#include "tfplug/profiler/internal/profiler_table.h"

#pragma GCC visibility push(hidden)

namespace tfplug::device_internal {

template <class PlatformT>
struct PlatformNames {
  static constexpr auto kName =
      internal::CopyText<std::string_view(PlatformT::kName).size()>(
          PlatformT::kName);
  static constexpr auto kType =
      internal::CopyText<std::string_view(PlatformT::kType).size()>(
          PlatformT::kType);

  static const char* RegisteredType() {
    return internal::RegisteredType(kType.text);
  }
};

// The entry point SE_InitPlugin for an author's Platform.
template <class PlatformT>
struct PlatformRegistration {
  PlatformRegistration() {
    if constexpr (kMistakesOf<PlatformT> == 0) {
      internal::registered_platform = {
          PlatformNames<PlatformT>::RegisteredType(),
          internal::TypeTag<typename PlatformT::Device::Stream>(),
          PlatformT::kWrapsPythonUpdates ? &internal::WrapPythonUpdates
                                         : nullptr};
      if constexpr (PlatformT::kHasProfiler) {
        profiler_internal::EmitInitProfiler();
        profiler_internal::registered_profiler.of_device = &InitDefaultProfiler;
      }
    } else if constexpr ((kMistakesOf<PlatformT> & kOtherHooks) != 0) {
      RequireHook<PlatformT, kMistakesOf<PlatformT>>();
    }
  }

  // Implements SE_InitPlugin: fills `params`, or reports an error in `status`,
  // on which TensorFlow aborts.
  static void InitPlugin(capi::SE_PlatformRegistrationParams* params,
                         capi::TF_Status* status) {
    // If the classes are invalid, nothing else is compiled, so that the
    // compiler reports nothing but the mistake.
    if constexpr (kMistakesOf<PlatformT> == 0) {
      if (!internal::LoadTensorFlow()) {
        internal::LogError(
            "SE_InitPlugin",
            "found no TensorFlow in this process; load the plug-in through "
            "TensorFlow");
        return;
      }
      internal::Guard(status, "SE_InitPlugin", [&] { return Fill(*params); });
    }
  }

 private:
  static void InitDefaultProfiler(capi::TF_ProfilerRegistrationParams* params,
                                  capi::TF_Status* status) {
    profiler_internal::InitProfiler<
        DefaultProfiler<typename PlatformT::Device>>(
        PlatformNames<PlatformT>::RegisteredType(), params, status);
  }

  static absl::Status Fill(capi::SE_PlatformRegistrationParams& params) {
    if (auto s = internal::CheckStruct(params); !s.ok()) return s;
    if (params.major_version != 0) {
      return absl::FailedPreconditionError(
          "this TensorFlow has version " +
          std::to_string(params.major_version) +
          " of the StreamExecutor C API, but this plug-in was built for "
          "version 0; rebuild it with a newer tfplug");
    }
    PlatformOptions options;
    internal::Owned<PlatformT> platform = CreateOrLog(&options);

    capi::SP_Platform ours = {};
    ours.struct_size = capi::StructInfo<capi::SP_Platform>::kSize;
    ours.ext = platform.get();
    ours.name = PlatformNames<PlatformT>::kName.text;
    ours.type = PlatformNames<PlatformT>::RegisteredType();
    ours.supports_unified_memory =
        Handles<typename PlatformT::Device>::kHasUnifiedMemory;
    ours.use_bfc_allocator = options.use_bfc_allocator;
    ours.force_memory_growth = options.force_memory_growth;
    if (auto s = internal::FillStruct(params.platform, ours); !s.ok()) return s;
    using Table = PlatformFnsTable<PlatformT>;
    if (auto s = internal::FillStruct(params.platform_fns, Table::Make());
        !s.ok()) {
      return s;
    }
    params.destroy_platform = &Table::destroy_platform;
    params.destroy_platform_fns = &Table::destroy_platform_fns;
    platform.release();
    internal::GuardOrLog("SE_InitPlugin", [] {
      return internal::RefuseSecondLoad(PlatformNames<PlatformT>::kName.text);
    });
    internal::GuardOrLog("SE_InitPlugin",
                         [] { return internal::ReadTypeSetting().status(); });
    internal::GuardOrLog("SE_InitPlugin", [] {
      return internal::AdaptPythonToDevices(
          PlatformNames<PlatformT>::RegisteredType());
    });
    if constexpr (PlatformT::kPollMicroseconds > 0) {
      internal::GuardOrLog("SE_InitPlugin", [] {
        return internal::PollEvery(PlatformT::kPollMicroseconds);
      });
    }
    internal::GuardOrLog("SE_InitPlugin", [] {
      return internal::ComputeListsOnHost(
          PlatformNames<PlatformT>::RegisteredType());
    });
    internal::GuardOrLog("SE_InitPlugin", [] {
      return internal::TrainWithRnnKernels(
          PlatformNames<PlatformT>::RegisteredType());
    });
    internal::GuardOrLog("SE_InitPlugin", &internal::ConvertOnCpu);
    internal::GuardOrLog("SE_InitPlugin", &internal::FitWithoutWaiting);
    internal::GuardOrLog("SE_InitPlugin", &internal::FreeIteratorsElsewhere);
    internal::GuardOrLog("SE_InitPlugin", &internal::KeepOptionalsOnHost);
    internal::GuardOrLog("SE_InitPlugin", &internal::LowerLoops);
    return absl::OkStatus();
  }

  // Creates the platform and reads its options. Returns null after a failure,
  // which is logged.
  static internal::Owned<PlatformT> CreateOrLog(PlatformOptions* options) {
    internal::Owned<PlatformT> platform;
    internal::GuardOrLog(PlatformNames<PlatformT>::kName.text,
                         [&]() -> absl::Status {
                           auto created = internal::Create<PlatformT>();
                           if (!created.ok()) return created.status();
                           *options = (*created)->PlatformT::Options();
                           platform = *std::move(created);
                           return absl::OkStatus();
                         });
    return platform;
  }
};

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_INIT_PLUGIN_H_
