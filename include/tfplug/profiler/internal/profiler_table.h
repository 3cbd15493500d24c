// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PROFILER_INTERNAL_PROFILER_TABLE_H_
#define TFPLUG_PROFILER_INTERNAL_PROFILER_TABLE_H_

#include <cstring>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "tfplug/abi/tf_profiler_registration_params.h"
#include "tfplug/abi/tp_profiler.h"
#include "tfplug/abi/tp_profiler_fns.h"
#include "tfplug/base/internal/construct.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/internal/struct_copy.h"
#include "tfplug/profiler/profiler.h"

#pragma GCC visibility push(hidden)

namespace tfplug::profiler_internal {

// The author's profiler and the profile that TensorFlow is about to read.
template <class ProfilerT>
struct ProfilerState {
  std::mutex mutex;
  internal::Owned<ProfilerT> profiler;
  std::string collected;
  bool is_collected = false;
};

// The trampolines of TP_ProfilerFns. TP_Profiler::ext is the ProfilerState.
template <class ProfilerT>
struct ProfilerTable {
  using State = ProfilerState<ProfilerT>;

  static void start(const capi::TP_Profiler* profiler,
                    capi::TF_Status* status) {
    internal::Guard(status, "start", [&] {
      State& state = ToState(profiler);
      std::lock_guard<std::mutex> lock(state.mutex);
      Discard(state);
      return state.profiler->ProfilerT::Start();
    });
  }

  static void stop(const capi::TP_Profiler* profiler, capi::TF_Status* status) {
    internal::Guard(status, "stop", [&] {
      State& state = ToState(profiler);
      std::lock_guard<std::mutex> lock(state.mutex);
      Discard(state);
      return state.profiler->ProfilerT::Stop();
    });
  }

  // Collects the profile and returns its size if `buffer` is null; otherwise,
  // copies that profile. TensorFlow passes an uninitialized `*size_in_bytes` to
  // the first call, and allocates that many bytes even if the call fails.
  static void collect_data_xspace(const capi::TP_Profiler* profiler,
                                  uint8_t* buffer, size_t* size_in_bytes,
                                  capi::TF_Status* status) {
    const size_t capacity = buffer == nullptr ? 0 : *size_in_bytes;
    *size_in_bytes = 0;
    internal::Guard(status, "collect_data_xspace", [&]() -> absl::Status {
      State& state = ToState(profiler);
      std::lock_guard<std::mutex> lock(state.mutex);
      if (!state.is_collected || buffer == nullptr) {
        Discard(state);
        XSpace space;
        absl::Status collected = state.profiler->ProfilerT::Collect(space);
        if (!collected.ok()) return collected;
        state.collected = space.Serialize();
        state.is_collected = true;
      }
      const size_t size = state.collected.size();
      if (buffer != nullptr) {
        if (capacity < size) return BufferTooSmall(capacity, size);
        std::memcpy(buffer, state.collected.data(), size);
        Discard(state);
      }
      *size_in_bytes = size;
      return absl::OkStatus();
    });
  }

  // These do nothing: TensorFlow calls each twice right after TF_InitProfiler,
  // and then uses the profiler.
  static void destroy_profiler(capi::TP_Profiler*) {}
  static void destroy_profiler_fns(capi::TP_ProfilerFns*) {}

  static capi::TP_ProfilerFns Make() {
    capi::TP_ProfilerFns table = {};
    table.struct_size = capi::StructInfo<capi::TP_ProfilerFns>::kSize;
    table.start = &start;
    table.stop = &stop;
    table.collect_data_xspace = &collect_data_xspace;
    return table;
  }

 private:
  static State& ToState(const capi::TP_Profiler* profiler) {
    return *static_cast<State*>(profiler->ext);
  }
  static void Discard(State& state) {
    state.is_collected = false;
    std::string().swap(state.collected);
  }
  static absl::Status BufferTooSmall(size_t capacity, size_t size) {
    return absl::OutOfRangeError(
        "TensorFlow's buffer has " + std::to_string(capacity) +
        " bytes, but the profile has " + std::to_string(size));
  }
};

// Implements TF_InitProfiler: creates the profiler and fills `params`.
template <class ProfilerT>
void InitProfiler(const char* device_type,
                  capi::TF_ProfilerRegistrationParams* params,
                  capi::TF_Status* status) {
  if (!internal::LoadTensorFlow()) {
    internal::LogError(
        "TF_InitProfiler",
        "found no TensorFlow in this process; load the plug-in through "
        "TensorFlow");
    return;
  }
  internal::Guard(status, "TF_InitProfiler", [&]() -> absl::Status {
    using Table = ProfilerTable<ProfilerT>;
    if (auto s = internal::CheckStruct(*params); !s.ok()) return s;
    if (params->major_version != 0) {
      return absl::FailedPreconditionError(
          "this TensorFlow has version " +
          std::to_string(params->major_version) +
          " of the profiler C API, but this plug-in was built for version 0; "
          "rebuild it with a newer tfplug");
    }
    // Belongs to TensorFlow from here on, which never frees it.
    static auto* const state = new ProfilerState<ProfilerT>;
    if (state->profiler == nullptr)
      state->profiler = internal::Construct<ProfilerT>();
    capi::TP_Profiler ours = {};
    ours.struct_size = capi::StructInfo<capi::TP_Profiler>::kSize;
    ours.ext = state;
    ours.device_type = device_type;
    if (auto s = internal::FillStruct(params->profiler, ours); !s.ok())
      return s;
    if (auto s = internal::FillStruct(params->profiler_fns, Table::Make());
        !s.ok()) {
      return s;
    }
    params->destroy_profiler = &Table::destroy_profiler;
    params->destroy_profiler_fns = &Table::destroy_profiler_fns;
    return absl::OkStatus();
  });
}

}  // namespace tfplug::profiler_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PROFILER_INTERNAL_PROFILER_TABLE_H_
