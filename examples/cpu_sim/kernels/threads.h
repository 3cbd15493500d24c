// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_THREADS_H_
#define CPU_SIM_KERNELS_THREADS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace cpu_sim {

// A set of threads, to which the calling thread belongs.
class Threads {
 public:
  // Starts `count` - 1 threads.
  explicit Threads(int count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // Returns the threads of this process, which are never destroyed: streams may
  // be in use until the process exits. CPU_SIM_THREADS is their number; by
  // default it is that of the processors that the process may use.
  static Threads& Get();
  // Reads CPU_SIM_THREADS (1 to 256). Returns INVALID_ARGUMENT for other text.
  static absl::StatusOr<int> CountFromEnvironment();

  int64_t count() const { return count_; }

  // Calls run(context, block, slot) once for each block in [0, blocks), on this
  // thread and on others, and returns after the last call. Calls at the same
  // time have different slots, which are less than `count`. An exception of a
  // call is thrown here, after the other calls. Any threads may call this at the
  // same time, a block included.
  void Run(int64_t blocks, void (*run)(void*, int64_t, int64_t), void* context);

 private:
  struct Pool;
  const int64_t count_;
  std::unique_ptr<Pool> pool_;  // null: there is one thread
};

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_THREADS_H_
