// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PROFILER_INTERNAL_DEVICE_CLOCK_H_
#define TFPLUG_PROFILER_INTERNAL_DEVICE_CLOCK_H_

#include <cstdint>
#include <unordered_map>

#pragma GCC visibility push(hidden)

namespace tfplug::profiler_internal {

// Converts times of a device's clock, which begins anywhere and drifts, to Unix
// time. It is compared with the host's clock at the start and at the end of a
// profile; between these, both advance evenly.
class DeviceClock {
 public:
  // The device's time, read between two times of the host.
  struct Reading {
    uint64_t before_ns, device_ns, after_ns;

    uint64_t duration_ns() const { return after_ns - before_ns; }
  };

  bool is_set() const { return has_first_; }

  // Adds the reading at the start, or a later one, which replaces the last.
  void Add(const Reading& reading) {
    const Point point = {reading.device_ns,
                         reading.before_ns + reading.duration_ns() / 2};
    if (!has_first_) first_ = point;
    last_ = point;
    has_first_ = true;
  }

  uint64_t ToUnix(uint64_t device_ns) const {
    const double on_device =
        static_cast<double>(static_cast<int64_t>(device_ns - first_.device_ns));
    return first_.unix_ns +
           static_cast<uint64_t>(static_cast<int64_t>(on_device * Rate()));
  }

 private:
  struct Point {
    uint64_t device_ns = 0, unix_ns = 0;
  };

  // Returns the host's nanoseconds in one of the device.
  double Rate() const {
    if (last_.device_ns <= first_.device_ns ||
        last_.unix_ns <= first_.unix_ns) {
      return 1;
    }
    return static_cast<double>(last_.unix_ns - first_.unix_ns) /
           static_cast<double>(last_.device_ns - first_.device_ns);
  }

  bool has_first_ = false;
  Point first_, last_;
};

// The clocks of a library's devices, by ordinal.
using DeviceClocks = std::unordered_map<int64_t, DeviceClock>;

}  // namespace tfplug::profiler_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PROFILER_INTERNAL_DEVICE_CLOCK_H_
