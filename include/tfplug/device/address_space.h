// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_ADDRESS_SPACE_H_
#define TFPLUG_DEVICE_ADDRESS_SPACE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/internal/os.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Addresses for device memory that the driver knows by handles, such as
// OpenCL's cl_mem. TensorFlow computes addresses in the middle of the memory
// that an allocator returned; Find returns the handle and the offset.
//
// The addresses are reserved in the process, never mapped, and a gap follows
// each region: code that reads them on the host crashes, and an address beyond
// a region is not found. Thread-safe; Find takes no lock and takes constant
// time.
template <class Handle>
class AddressSpace {
 public:
  struct Location {
    Handle handle;
    uint64_t offset;  // in bytes
  };

  // Fails with RESOURCE_EXHAUSTED if the addresses cannot be reserved.
  AddressSpace() = default;
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;
  ~AddressSpace() {
    if (base_ != nullptr) {
      internal::ReleaseAddresses(base_, SizeOf(size_ / kGranule));
    }
  }

  // Reserves `size` bytes of addresses for the memory that `handle` stands for.
  // They are aligned to 2 MiB.
  absl::StatusOr<void*> Insert(Handle handle, uint64_t size) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (base_ == nullptr && !Reserve()) return Full();
    const uint64_t granules = GranulesOf(size);
    uint64_t begin = next_;
    if (!FindGap(granules, &begin)) return Full();
    next_ = begin + granules;
    auto region =
        std::make_unique<Region>(Region{handle, begin * kGranule, size});
    for (uint64_t i = begin; i < next_; ++i) table_[i] = region.get();
    regions_[begin] = std::move(region);
    used_ += size;
    return reinterpret_cast<void*>(first_ + begin * kGranule);
  }

  // Removes the region that begins at `address`, and returns its handle.
  absl::StatusOr<Handle> Remove(void* address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = regions_.find(
        (reinterpret_cast<uint64_t>(address) - first_) / kGranule);
    if (found == regions_.end()) {
      return absl::InvalidArgumentError("the address is not allocated");
    }
    const Region& region = *found->second;
    const Handle handle = region.handle;
    ++removals_;
    used_ -= region.size;
    for (uint64_t i = 0; i < GranulesOf(region.size); ++i) {
      table_[found->first + i] = nullptr;
    }
    regions_.erase(found);
    return handle;
  }

  // Returns where `address` lies, or INVALID_ARGUMENT. The end of a region is
  // an address of empty memory; so is null, of a null handle.
  absl::StatusOr<Location> Find(const void* address) const {
    Location at;
    if (ABSL_PREDICT_TRUE(TryFind(address, at))) return at;
    return NotFound();
  }
  // Does the same for launches: returns false instead of NotFound(), and `at` is
  // then unspecified.
  bool TryFind(const void* address, Location& at) const {
    const uint64_t offset = reinterpret_cast<uint64_t>(address) - first_;
    if (ABSL_PREDICT_TRUE(offset < size_)) {
      const Region* const region =
          table_[offset / kGranule].load(std::memory_order_acquire);
      if (ABSL_PREDICT_TRUE(region != nullptr)) {
        at = {region->handle, offset - region->offset};
        return at.offset <= region->size;
      }
    }
    at = {Handle{}, 0};
    return address == nullptr;
  }

  // Fails with INVALID_ARGUMENT if `address` is one of the device's: eager
  // TensorFlow takes 32-bit integers of some ops for arguments in host memory
  // although they are on the device, and asks for a copy to it.
  absl::Status CheckHostAddress(const void* address) const {
    if (ABSL_PREDICT_TRUE(reinterpret_cast<uint64_t>(address) - first_ >=
                          size_)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        "the host memory of a copy has an address of device memory: TensorFlow "
        "took an argument of the op for one on the host");
  }

  [[gnu::cold, gnu::noinline]] static absl::Status NotFound() {
    return absl::InvalidArgumentError(
        "the address lies in no memory that the device's allocator returned");
  }

  // Returns how many regions were removed so far. While the number stays the
  // same, an address of a region stands for the same memory.
  uint64_t removals() const { return removals_; }

  // Returns the sizes of all regions together, in bytes.
  uint64_t Used() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return used_;
  }

 private:
  struct Region {
    Handle handle;
    uint64_t offset;  // of its first address, in bytes
    uint64_t size;
  };
  static constexpr uint64_t kGranule = 2 << 20;
  static constexpr uint64_t kMostGranules = 1 << 19;  // 1 TiB
  static constexpr uint64_t kLeastGranules = 1 << 12;

  // Returns the granules of a region of `size` bytes and of the gap after it.
  static constexpr uint64_t GranulesOf(uint64_t size) {
    return size / kGranule + 2;
  }
  // Returns how many addresses to reserve for `granules` aligned ones.
  static constexpr uint64_t SizeOf(uint64_t granules) {
    return (granules + 1) * kGranule;
  }

  // Reserves as many addresses as the process may have: debuggers and limits
  // (ulimit -v) allow fewer. Allocates no memory for them.
  bool Reserve() {
    for (uint64_t n = kMostGranules; n >= kLeastGranules; n /= 2) {
      void* const base = internal::ReserveAddresses(SizeOf(n));
      if (base == nullptr) continue;
      base_ = base;
      size_ = n * kGranule;
      first_ = (reinterpret_cast<uint64_t>(base) + kGranule - 1) / kGranule *
               kGranule;
      return true;
    }
    return false;
  }

  static absl::Status Full() {
    return absl::ResourceExhaustedError(
        "no addresses are left for device memory: the process may reserve too "
        "little (ulimit -v), or holds too many allocations");
  }
  // Finds unused granules from `*begin` on, then from the first one on, so that
  // addresses are not reused soon.
  bool FindGap(uint64_t granules, uint64_t* begin) const {
    for (const uint64_t start : {*begin, uint64_t{0}}) {
      uint64_t at = start;
      auto region = regions_.lower_bound(start);
      if (region != regions_.begin()) {
        const auto& before = *std::prev(region);
        at = std::max(at, before.first + GranulesOf(before.second->size));
      }
      for (; region != regions_.end(); ++region) {
        if (region->first >= at + granules) break;
        at = region->first + GranulesOf(region->second->size);
      }
      if (at + granules <= size_ / kGranule) {
        *begin = at;
        return true;
      }
    }
    return false;
  }

  mutable std::mutex mutex_;
  void* base_ = nullptr;
  uint64_t size_ = 0;   // of all addresses, in bytes
  uint64_t first_ = 0;  // an address
  uint64_t next_ = 0;   // a granule
  uint64_t used_ = 0;   // in bytes
  std::atomic<uint64_t> removals_{0};
  std::map<uint64_t, std::unique_ptr<Region>> regions_;
  std::unique_ptr<std::atomic<Region*>[]> table_ {
    new std::atomic<Region*>[ kMostGranules ]()
  };
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_ADDRESS_SPACE_H_
