// SPDX-License-Identifier: Apache-2.0
#include "tfplug/base/internal/construct.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <stdexcept>

// The number of memory blocks in use.
static int live_blocks = 0;

static void* Allocate(std::size_t alignment, std::size_t size) {
  ++live_blocks;
  size = (size / alignment + 1) * alignment;
  void* const memory = std::aligned_alloc(alignment, size);
  if (memory == nullptr) std::abort();
  return memory;
}
static void Free(void* memory) {
  if (memory != nullptr) --live_blocks;
  std::free(memory);
}
void* operator new(std::size_t size) { return Allocate(16, size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return Allocate(static_cast<std::size_t>(alignment), size);
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  Free(memory);
}

namespace tfplug::internal::construct_test {
namespace {

enum Fault { kNone, kThrows, kInitFails, kInitThrows };

#if defined(__cpp_exceptions)
constexpr Fault kFaults[] = {kNone, kThrows, kInitFails, kInitThrows};
#else
constexpr Fault kFaults[] = {kNone, kInitFails};
#endif

void Throw() {
#if defined(__cpp_exceptions)
  throw std::runtime_error("");
#endif
}

int live_objects = 0;

template <std::size_t kAlignment>
class alignas(kAlignment) Object {
 public:
  explicit Object(Fault fault) : fault_(fault) {
    if (fault == kThrows) Throw();
    ++live_objects;
  }
  ~Object() { --live_objects; }
  absl::Status Init() {
    if (fault_ == kInitThrows) Throw();
    return fault_ == kInitFails ? absl::UnavailableError("") : absl::OkStatus();
  }

 private:
  Fault fault_;
};

// Runs `body` and returns whether it threw.
template <class Body>
bool Catches(Body body) {
  TFPLUG_INTERNAL_TRY {
    body();
    return false;
  }
  TFPLUG_INTERNAL_CATCH_ALL { return true; }
}

TEST_CASE_TEMPLATE("no failure leaks memory", T, Object<16>, Object<256>) {
  for (Fault fault : kFaults) {
    CAPTURE(static_cast<int>(fault));
    const int blocks = live_blocks;
    const bool throws = fault == kThrows || fault == kInitThrows;
    bool made = false;
    CHECK(Catches([&] { made = Create<T>(fault).ok(); }) == throws);
    CHECK(made == (fault == kNone));
    CHECK(live_objects == 0);
    CHECK(live_blocks == blocks);

    void* handle = &handle;
    CHECK(Catches([&] { made = CreateHandle<T>(&handle, fault).ok(); }) ==
          throws);
    CHECK((handle != nullptr) == (fault == kNone));
    CHECK(live_objects == (fault == kNone));
    Destroy("slot", static_cast<T*>(handle));
    CHECK(live_objects == 0);
    CHECK(live_blocks == blocks);
  }
}

TEST_CASE("the default constructor is used if there is no other") {
  struct Plain {
    absl::Status Init() { return absl::OkStatus(); }
  };
  CHECK(Create<Plain>(1).ok());
  CHECK((*Create<Object<64>>(kNone)).get() != nullptr);
}

}  // namespace
}  // namespace tfplug::internal::construct_test
