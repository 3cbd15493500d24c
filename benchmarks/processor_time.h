// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TOOLS_BENCHMARKS_PROCESSOR_TIME_H_
#define TFPLUG_TOOLS_BENCHMARKS_PROCESSOR_TIME_H_

#include <time.h>

#include <cstdio>
#include <vector>

// Of the processor, for this thread: what else the machine does is not in it.
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

// As a list of JSON.
inline void PrintSeconds(const std::vector<double>& seconds) {
  const char* separator = "[";
  for (double each : seconds) {
    std::printf("%s%.9f", separator, each);
    separator = ", ";
  }
  std::printf("]");
}

#endif  // TFPLUG_TOOLS_BENCHMARKS_PROCESSOR_TIME_H_
