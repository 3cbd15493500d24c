// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PROFILER_PROFILER_H_
#define TFPLUG_PROFILER_PROFILER_H_

#include "absl/status/status.h"
#include "tfplug/profiler/xspace.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// A source of events for TensorFlow's profiles (TP_Profiler). A device has one
// without its author's help: see Platform::kHasProfiler. A class of its own
// replaces it:
//
//   class Profiler : public tfplug::Profiler {
//    public:
//     static constexpr char kDeviceType[] = "MY_DEVICE";
//     absl::Status Start() override;
//     absl::Status Stop() override;
//     absl::Status Collect(tfplug::XSpace& space) override;
//   };
//   TFPLUG_REGISTER_PROFILER(Profiler);
//
// Constructed without arguments when TensorFlow loads the library, and never
// destroyed: TensorFlow calls destroy_profiler right after that.
//
// Threads: the thread that starts and stops the profile, in Python usually the
// main thread. No two calls overlap.
class Profiler {
 public:
  virtual ~Profiler() = default;

  // ---- TP_ProfilerFns ----------------------------------------------------

  // start: begins to record, and discards the events of an earlier profile.
  // After a failure, which TensorFlow only logs, it calls neither Stop nor
  // Collect.
  virtual absl::Status Start() = 0;

  // stop: ends the recording. May be called without Start.
  virtual absl::Status Stop() = 0;

  // collect_data_xspace: adds what was recorded to `space`. TensorFlow asks
  // twice, for the size and for the contents; tfplug calls this once and keeps
  // the result in between.
  virtual absl::Status Collect(XSpace& space) = 0;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PROFILER_PROFILER_H_
