// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <tfplug/testing.h>
#include <tfplug/testing/guards.h>
#include <tfplug/testing/process.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

namespace tfplug::guards_test {
namespace {

using testing::GuardedBlock;
using testing::ScopedGuards;

// Returns whether the function crashes, in a process of its own.
bool Crashes(const std::function<void()>& function) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    function();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

TEST_CASE("a block without guard pages has bytes around it") {
  for (const size_t size : {0, 1, 35, 64, 92, 1000}) {
    CAPTURE(size);
    for (const int64_t at : {-64, -1, 0, 63}) {
      const GuardedBlock block(size, /*alignment=*/8);
      CHECK(reinterpret_cast<uintptr_t>(block.data()) % 8 == 0);
      CHECK(block.intact());
      unsigned char* const to =
          at < 0 ? block.data() + at : block.data() + size + at;
      *to ^= 1;
      CHECK(!block.intact());
    }
  }
}

TEST_CASE("with guards, what is behind a block crashes") {
  const ScopedGuards guards;
  for (const size_t alignment : {1, 8, 64, 256}) {
    for (const size_t size : {0, 1, 35, 256, 70000}) {
      CAPTURE(alignment);
      CAPTURE(size);
      const GuardedBlock block(size, alignment, /*margin=*/256);
      CHECK(reinterpret_cast<uintptr_t>(block.data()) % alignment == 0);
      std::memset(block.data(), 1, size);
      CHECK(block.intact());
      auto* const end =
          block.data() + (size + alignment - 1) / alignment * alignment;
      CHECK(Crashes([=] { static_cast<volatile unsigned char&>(*end) = 1; }));
      if (end != block.data() + size) {
        block.data()[size] ^= 1;
        CHECK(!block.intact());
        block.data()[size] ^= 1;
      }
      block.data()[-1] ^= 1;
      CHECK(!block.intact());
    }
  }
}

TEST_CASE("structs, tensors and buffers are guarded") {
  testing::ScopedFakeTensorFlow tensorflow;
  const ScopedGuards guards;
  const testing::WithCanary<capi::SP_StreamExecutor> old(264);
  CHECK(Crashes([&] { old->memset = nullptr; }));

  const auto tensor = testing::MakeTensor<float>({16}, std::vector<float>(16));
  auto* const elements = static_cast<float*>(tensor.buffer->data);
  CHECK(Crashes([=] { static_cast<volatile float&>(elements[16]) = 1; }));
  capi::TF_Buffer* const buffer = testing::TF_NewBufferFromString("abc", 3);
  const auto* const bytes = static_cast<const volatile char*>(buffer->data);
  CHECK(bytes[2] == 'c');
  CHECK(Crashes([=] { _exit(bytes[3] == 0 ? 1 : 2); }));
  testing::TF_DeleteBuffer(buffer);
  CHECK(guards.Problem() == absl::OkStatus());
  {
    const auto small = testing::MakeTensor<float>({3}, {1, 2, 3});
    static_cast<float*>(small.buffer->data)[3] = 4;
  }
  CHECK(guards.Problem().message() ==
        "the plug-in wrote beside a tensor in host memory");
}

TEST_CASE("the reports of one process are not those of the next") {
  testing::ScopedFakeTensorFlow tensorflow;
  testing::Process process;
  CHECK(process.Problems() == absl::OkStatus());
  capi::TF_Buffer* const buffer = testing::TF_NewBufferFromString("abc", 3);
  static_cast<char*>(const_cast<void*>(buffer->data))[3] = 'd';
  testing::TF_DeleteBuffer(buffer);
  CHECK(process.Problems().message() == "the plug-in wrote beside a TF_Buffer");
  testing::Process next;
  CHECK(next.Problems() == absl::OkStatus());
  capi::TF_Buffer* const replaced = testing::TF_NewBufferFromString("abc", 3);
  const void* const original = replaced->data;
  replaced->data = "def";
  testing::TF_DeleteBuffer(replaced);
  testing::BufferContents::Remove(const_cast<void*>(original));
  CHECK(next.Problems().message() ==
        "the plug-in replaced TF_Buffer::data without data_deallocator");
}

TEST_CASE("a tensor that is too large for memory is null or untouched") {
  testing::ScopedFakeTensorFlow tensorflow;
  const auto check = [] {
    const int64_t dims[] = {1};
    for (const size_t size : {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2,
                              (SIZE_MAX >> 1) - (size_t{1} << 20)}) {
      CHECK(testing::TF_AllocateTensor(capi::TF_UINT8, dims, 1, size) ==
            nullptr);
    }
  };
  check();
  const ScopedGuards guards;
  check();
  const auto tensor = testing::TensorBuffer::OnHost(size_t{1} << 40);
  if (tensor == nullptr) return;  // the addresses of the process are limited
  CHECK(static_cast<const char*>(tensor->data)[(size_t{1} << 40) - 1] == 0);
}

}  // namespace
}  // namespace tfplug::guards_test
