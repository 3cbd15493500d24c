// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BENCHMARKS_PROCESSOR_TIME_H_
#define TFPLUG_BENCHMARKS_PROCESSOR_TIME_H_

#include <time.h>

#include <cstdio>
#include <vector>

// Returns the processor time of this thread in seconds, which other load on the
// machine does not affect.
inline double Now() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}
template <class F>
double Seconds(const F& f) {
  const double start = Now();
  f();
  return Now() - start;
}

// Prints the values as a JSON list.
inline void PrintSeconds(const std::vector<double>& seconds) {
  const char* separator = "[";
  for (double each : seconds) {
    std::printf("%s%.9f", separator, each);
    separator = ", ";
  }
  std::printf("]");
}

#endif  // TFPLUG_BENCHMARKS_PROCESSOR_TIME_H_
