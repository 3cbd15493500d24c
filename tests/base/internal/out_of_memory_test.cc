// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/base/internal/guard.h>
#include <tfplug/testing.h>

#include <cstdlib>
#include <new>
#include <stdexcept>

// The number of upcoming allocations that fail.
[[maybe_unused]] static int failing_allocations = 0;

void* operator new(std::size_t size) {
#if defined(__cpp_exceptions)
  if (failing_allocations > 0) {
    --failing_allocations;
    throw std::bad_alloc();
  }
#endif
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace tfplug::internal {
namespace {

#if defined(__cpp_exceptions)

constexpr char kSlot[] = "a slot whose name exceeds every small-string buffer";

// Returns the code that TensorFlow receives if a hook fails and the next
// `allocations` allocations fail as well.
template <class Hook>
capi::TF_Code CodeOf(int allocations, Hook hook) {
  capi::TF_Status status;
  Guard(&status, kSlot, [&]() -> absl::Status {
    failing_allocations = allocations;
    return hook();
  });
  CHECK(failing_allocations == 0);
  failing_allocations = 0;
  return status.code;
}

TEST_CASE("without memory for an exception's message, the code is correct") {
  testing::ScopedFakeTensorFlow fake;
  const auto throw_bad_alloc = []() -> absl::Status { throw std::bad_alloc(); };
  const auto throw_error = []() -> absl::Status {
    throw std::runtime_error(
        "a message that exceeds every small-string buffer");
  };
  for (int allocations : {0, 1, 2}) {
    CAPTURE(allocations);
    CHECK(CodeOf(allocations, throw_bad_alloc) == capi::TF_RESOURCE_EXHAUSTED);
  }
  // The first allocation is for the runtime_error's own copy of the message.
  for (int allocations : {1, 2, 3}) {
    CAPTURE(allocations);
    CHECK(CodeOf(allocations, throw_error) == capi::TF_RESOURCE_EXHAUSTED);
  }
}

TEST_CASE("without memory for a copy, a status is RESOURCE_EXHAUSTED") {
  testing::ScopedFakeTensorFlow fake;
  // Never destroyed, because a status that cannot be copied leaks.
  static const auto& failure = *new absl::Status(absl::DataLossError("lost"));
  for (int allocations : {0, 1, 2}) {
    CAPTURE(allocations);
    const capi::TF_Code code = CodeOf(allocations, [] { return failure; });
    CHECK(code == (allocations == 0 ? capi::TF_DATA_LOSS
                                    : capi::TF_RESOURCE_EXHAUSTED));
  }
}

TEST_CASE("without memory for a message, a line is logged nevertheless") {
  testing::FakeOptions options;
  options.release = {2, 18};
  testing::ScopedFakeTensorFlow fake(options);
  for (int allocations : {0, 1, 2}) {
    CAPTURE(allocations);
    testing::LogCapture log;
    CHECK_FALSE(GuardOrLog("slot", [&]() -> absl::Status {
      failing_allocations = allocations;
      throw std::bad_alloc();
    }));
    failing_allocations = 0;
    CHECK(log.lines().size() == 1);
  }
}

#endif

}  // namespace
}  // namespace tfplug::internal
