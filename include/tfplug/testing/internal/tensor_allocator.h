// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_TENSOR_ALLOCATOR_H_
#define TFPLUG_TESTING_INTERNAL_TENSOR_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tfplug/testing/bfc_allocator.h"
#include "tfplug/testing/event_manager.h"
#include "tfplug/testing/fake_device.h"
#include "tfplug/testing/guards.h"
#include "tfplug/testing/release.h"
#include "tfplug/testing/tensor.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// Allocates the memory of a device's tensors and the host memory of its copies, as
// TensorFlow does. Thread-safe.
class TensorAllocator {
 public:
  TensorAllocator(FakeDevice& device, EventManager& events, Release release,
                  bool use_bfc_allocator, bool grows)
      : device_(device),
        events_(events),
        release_(release),
        use_bfc_allocator_(use_bfc_allocator),
        grows_(grows) {}
  TensorAllocator(const TensorAllocator&) = delete;
  TensorAllocator& operator=(const TensorAllocator&) = delete;

  // Return null if there is no memory.
  std::shared_ptr<TensorBuffer> Allocate(size_t size) {
    // The C API gives an empty tensor an address of the host.
    if (size == 0) return TensorBuffer::OnHost(0);
    return ScopedGuards::AreActive() ? AllocateGuarded(size)
                                     : AllocateUnguarded(size);
  }
  std::shared_ptr<TensorBuffer> AllocateOnHost(size_t size) {
    BfcAllocator& memory = HostMemory();
    const size_t zone = ScopedGuards::AreActive() ? kZone : 0;
    auto* const begin =
        static_cast<unsigned char*>(memory.Allocate(size + 2 * zone));
    if (begin == nullptr) return nullptr;
    std::memset(begin, kCanary, zone);
    std::memset(begin + zone + size, kCanary, zone);
    return std::make_shared<TensorBuffer>(
        begin + zone, size, [&memory, begin, zone, size] {
          if (!AreCanaries(begin, zone) ||
              !AreCanaries(begin + zone + size, zone)) {
            ScopedGuards::Report(
                "the plug-in wrote beside the host memory of a copy");
          }
          memory.Deallocate(begin);
        });
  }

  // Returns an error if memory is not aligned as TensorFlow requires, or if a copy
  // to or from the bytes beside a tensor failed.
  absl::Status status() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return status_;
  }

 private:
  static constexpr size_t kZone = BfcAllocator::kUnit;

  BfcAllocator& Memory() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (memory_ == nullptr) {
      memory_ = std::make_unique<BfcAllocator>(
          BfcAllocator::Options{device_.memory_limit(), grows_},
          [this](size_t size) {
            return Checked("allocate", device_.Allocate(size).opaque());
          },
          [this](void* memory, size_t size) {
            device_.Deallocate(DeviceMemory(memory, size));
          });
    }
    return *memory_;
  }
  BfcAllocator& HostMemory() {
    constexpr size_t kLimit = size_t{64} << 30;
    std::lock_guard<std::mutex> lock(mutex_);
    if (host_memory_ == nullptr) {
      host_memory_ = std::make_unique<BfcAllocator>(
          BfcAllocator::Options{kLimit, /*grows=*/true},
          [this](size_t size) {
            return Checked("host_memory_allocate", device_.AllocateHost(size));
          },
          [this](void* memory, size_t) { device_.DeallocateHost(memory); });
    }
    return *host_memory_;
  }
  // Notes memory on which TensorFlow aborts from 2.22 on.
  void* Checked(const char* slot, void* memory) {
    const auto address = reinterpret_cast<uintptr_t>(memory);
    if (!(release_ < Release{2, 22}) && address % BfcAllocator::kUnit != 0) {
      Note(absl::AbortedError(
          absl::StrCat(slot, " returned memory that is not aligned to ",
                       BfcAllocator::kUnit, " bytes: TensorFlow would abort")));
    }
    return memory;
  }
  void Note(const absl::Status& problem) {
    std::lock_guard<std::mutex> lock(mutex_);
    status_.Update(problem);
  }
  // Notes the failure of a copy that only ScopedGuards makes.
  void NoteCopy(const char* slot, const absl::Status& status) {
    Note(absl::Status(status.code(),
                      absl::StrCat("the check of the bytes beside a tensor: ",
                                   slot, ": ", status.message())));
  }

  std::shared_ptr<TensorBuffer> AllocateUnguarded(size_t size) {
    if (!use_bfc_allocator_) return AllocateByPlugin(size);
    BfcAllocator& memory = Memory();
    void* const allocated = memory.Allocate(size);
    if (allocated == nullptr) return nullptr;
    return std::make_shared<TensorBuffer>(
        allocated, size,
        [&memory, allocated] { memory.Deallocate(allocated); });
  }
  // TensorFlow passes no size to deallocate.
  std::shared_ptr<TensorBuffer> AllocateByPlugin(size_t size) {
    const DeviceMemory memory = device_.Allocate(size);
    if (memory.is_null()) return nullptr;
    return std::make_shared<TensorBuffer>(
        memory.opaque(), size, [this, memory] {
          device_.Deallocate(DeviceMemory(memory.opaque(), 0));
        });
  }
  // Allocates memory between two zones of known bytes, of which a plug-in's own
  // allocation has the second only. Once the work that was enqueued before the
  // release is done, the zones are checked and the memory is released.
  std::shared_ptr<TensorBuffer> AllocateGuarded(size_t size) {
    const size_t front = use_bfc_allocator_ ? kZone : 0;
    const size_t back = (size / kZone + 2) * kZone - size;
    auto memory = AllocateUnguarded(front + size + back);
    if (memory == nullptr) {  // before the memory of earlier tensors is checked
      events_.Wait();
      memory = AllocateUnguarded(front + size + back);
    }
    if (memory == nullptr) return nullptr;
    auto* const begin = static_cast<unsigned char*>(memory->data);
    const DeviceMemory zones[] = {{begin, front}, {begin + front + size, back}};
    for (const DeviceMemory& zone : zones) {
      const std::string bytes(zone.size(), static_cast<char>(kCanary));
      if (bytes.empty()) continue;
      const absl::Status status =
          device_.CopyHostToDevice(zone, bytes.data(), bytes.size());
      if (!status.ok()) {
        NoteCopy("sync_memcpy_htod", status);
        return nullptr;
      }
    }
    const auto check = [this, memory, front_zone = zones[0],
                        back_zone = zones[1]] {
      for (const DeviceMemory& zone : {front_zone, back_zone}) {
        std::string bytes(zone.size(), 0);
        if (bytes.empty()) continue;
        const absl::Status status =
            device_.CopyDeviceToHost(bytes.data(), zone, bytes.size());
        if (!status.ok()) {
          NoteCopy("sync_memcpy_dtoh", status);
        } else if (!AreCanaries(bytes.data(), bytes.size())) {
          ScopedGuards::Report(
              "the plug-in wrote beside a tensor on the device");
        }
      }
    };
    return std::make_shared<TensorBuffer>(begin + front, size, [this, check] {
      events_.ThenExecute(device_.compute(), check).IgnoreError();
    });
  }

  FakeDevice& device_;
  EventManager& events_;
  const Release release_;
  const bool use_bfc_allocator_, grows_;
  mutable std::mutex mutex_;
  absl::Status status_;
  std::unique_ptr<BfcAllocator> memory_, host_memory_;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_TENSOR_ALLOCATOR_H_
