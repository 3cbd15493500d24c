// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_JITTER_H_
#define TFPLUG_TESTING_INTERNAL_JITTER_H_

#include <chrono>
#include <cstdint>
#include <mutex>
#include <random>
#include <thread>

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// Pauses of random length, from a seed, that change the order in which threads
// come to their calls. With seed 0 there are none. Thread-safe.
class Jitter {
 public:
  explicit Jitter(uint64_t seed) : is_on_(seed != 0), random_(seed) {}

  // Returns a delay: none in one of two cases, otherwise up to 300 microseconds.
  std::chrono::microseconds Delay() {
    if (!is_on_) return {};
    std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t number = random_();
    return std::chrono::microseconds(number % 2 == 0 ? 0 : number / 2 % 300);
  }
  void Pause() {
    const auto delay = Delay();
    if (delay.count() > 0) std::this_thread::sleep_for(delay);
  }

 private:
  const bool is_on_;
  std::mutex mutex_;
  std::mt19937_64 random_;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_JITTER_H_
