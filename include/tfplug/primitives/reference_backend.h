// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_REFERENCE_BACKEND_H_
#define TFPLUG_PRIMITIVES_REFERENCE_BACKEND_H_

#include <cstdlib>
#include <memory>
#include <vector>

#include "tfplug/primitives/reference.h"
#include "tfplug/primitives/synchronous_backend.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The oracle as a backend, for a synchronous stream.
template <class StreamT>
class ReferenceBackend
    : public primitives::SynchronousBackend<StreamT, &ReferenceMap,
                                            &ReferenceReduce> {};

// Temporary host memory, freed with this object.
class HostScratch : public Scratch {
 public:
  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    blocks_.emplace_back(std::malloc(static_cast<size_t>(bytes) + 1));
    if (blocks_.back() == nullptr) {
      return absl::ResourceExhaustedError("out of host memory");
    }
    return blocks_.back().get();
  }

 private:
  struct Free {
    void operator()(void* block) const { std::free(block); }
  };
  std::vector<std::unique_ptr<void, Free>> blocks_;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_REFERENCE_BACKEND_H_
