// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_FAULT_CORE_FAULTS_H_
#define TFPLUG_TESTS_FAULT_CORE_FAULTS_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "tfplug/testing/fake_status.h"

namespace tfplug::testing {

// Makes the stand-in's kernel functions fail. Each call of one that can fail is
// counted; the one with the number `fail_at` fails as core may fail it: with
// RESOURCE_EXHAUSTED and the function's name, or by giving no object.
//
//   const int calls = CountCalls(run);
//   for (int n = 1; n <= calls; ++n) { Fault fault(n); run(); ... }
class Fault {
 public:
  explicit Fault(int64_t fail_at) {
    calls() = 0;
    number() = fail_at;
    failed_call().clear();
  }
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;
  ~Fault() { number() = 0; }

  // Which function has failed; "" if none was called so often.
  const std::string& failed() const { return failed_call(); }

  // For the stand-in: whether this call of `function` fails.
  static bool Hits(const char* function) {
    if (++calls() != number()) return false;
    failed_call() = function;
    return true;
  }
  static bool Hits(const char* function, TF_Status* status) {
    if (!Hits(function)) return false;
    TF_SetStatus(status, capi::TF_RESOURCE_EXHAUSTED,
                 (std::string("injected into ") + function).c_str());
    return true;
  }
  static std::atomic<int64_t>& calls() {
    static std::atomic<int64_t> calls{0};
    return calls;
  }

 private:
  static std::atomic<int64_t>& number() {
    static std::atomic<int64_t> number{0};
    return number;
  }
  static std::string& failed_call() {
    static std::string name;
    return name;
  }
};

// How many calls that can fail `run` makes.
template <class Run>
int64_t CountCalls(Run&& run) {
  Fault none(0);
  run();
  return Fault::calls();
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTS_FAULT_CORE_FAULTS_H_
