// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_PROGRAM_H_
#define TFPLUG_COMPILED_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/compiled/language.h"
#include "tfplug/device/address_space.h"

#pragma GCC visibility push(hidden)

// The types that the author of a compiled backend (compiled.h) uses.
namespace tfplug {

// The properties of one device on which the source of kernels depends.
struct Target {
  // The language of kernels (languages.h).
  const Language* language = nullptr;
  // Identifies the device, its driver and the driver's version: programs in the
  // cache on disk are used only by targets of the same name. Empty: no cache.
  std::string name;
  // Identifies the author's Compile: another one finds no binaries of this one
  // in the cache on disk. Change it with the compiler's options, or with
  // anything else that changes the binary of a source.
  std::string compiler_version;
  // Items of a group, a power of two from 32 to 1024. The device must be able
  // to run groups of this size.
  int group_size = 256;
  // The largest number of groups in one dimension. A launch of more of them has
  // rows (Grid::rows).
  uint32_t most_groups = UINT32_MAX;
  // The largest number of bytes of a kernel's arguments, 8 of each address among
  // them. A launch of more fails; ops then use several launches or report it.
  size_t most_argument_bytes = 1024;
  // Items that the device runs in step: a subgroup, warp or wave, or a vector of a
  // CPU. Items with neighbouring indices access neighbouring elements.
  int subgroup_size = 32;
  // Bytes of memory that the items of a group share.
  int64_t local_memory = 32 << 10;
  // The largest number of iterations of all loops that an item may run. Long sums
  // are divided (split.h). Mesa's llvmpipe ends a kernel after 65,535 iterations,
  // without an error.
  int64_t most_iterations = INT64_MAX;
  // Whether the device is a CPU. If the language has vectors, it runs the items
  // of a group in a loop, so that barriers cost nothing and loops over items
  // should be innermost. Otherwise the driver runs the items, and kernels do not
  // use what it has to emulate: shared memory and barriers.
  bool is_cpu = false;

  bool HasRows() const { return most_groups < UINT32_MAX; }
  bool RunsItemsInLoops() const {
    return is_cpu && language != nullptr && language->has_vectors;
  }
  bool HasIndependentItems() const { return is_cpu && !RunsItemsInLoops(); }

  // Makes groups no larger than `most` items, if that is at least 32. A group
  // that runs in a loop is one item of the driver, whatever its size. Set the
  // language and is_cpu before.
  void LimitGroupSize(size_t most) {
    while (!RunsItemsInLoops() && group_size > 32 &&
           static_cast<size_t>(group_size) > most) {
      group_size /= 2;
    }
  }
};

// The groups of a launch: `groups` in the first dimension, and as many in each
// row of the second one, of which there is one if Target::most_groups was not
// set. The items of a group that the driver starts are Target::group_size, or
// one that runs all of them in a loop.
struct Grid {
  uint32_t groups = 1;
  uint32_t rows = 1;
  uint32_t group_size = 1;
};

// The arguments of a kernel: the pointers, and, after them, a struct that is
// passed by value.
struct KernelArguments {
  // Addresses of device memory.
  absl::Span<void* const> pointers;
  // The struct, which may be copied byte by byte.
  void* parameters = nullptr;
  size_t parameters_size = 0;
  // Language::has_offsets: for each pointer the byte offset of the address in the
  // buffer that is passed for it. It is part of the struct; Launch sets it
  // (SetArguments). Empty for other
  // languages.
  absl::Span<int64_t> offsets;
};

// Sets the arguments of a kernel on a device whose memory has handles: calls
// set(index, size, value), which returns a status, as the driver's function for
// one argument does (clSetKernelArg, zeKernelSetArgumentValue).
template <class Handle, class Set>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline absl::Status SetArguments(
    const KernelArguments& arguments, const AddressSpace<Handle>& addresses,
    Set set) {
  int64_t* const offsets = arguments.offsets.data();
  uint32_t i = 0;
  for (void* const pointer : arguments.pointers) {
    typename AddressSpace<Handle>::Location at;
    if (!addresses.TryFind(pointer, at)) return addresses.NotFound();
    offsets[i] = static_cast<int64_t>(at.offset);
    TFPLUG_RETURN_IF_ERROR(set(i++, sizeof(at.handle), &at.handle));
  }
  return set(i, arguments.parameters_size, arguments.parameters);
}

// Enqueues a kernel whose arguments are a block of memory: the pointers, which
// `addresses` converts to the device's (8 bytes each, Buffer::address and the
// offset), and then the parameters, as Glsl() expects them. Calls record(batch,
// address of the block) in TimelineStream::Enqueue.
template <class StreamT, class Handle, class Record>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline absl::Status EnqueueWithBlock(
    StreamT& stream, const AddressSpace<Handle>& addresses,
    const KernelArguments& arguments, Record record) {
  const auto address = [](const auto& at) {
    return at.handle == nullptr ? uint64_t{0} : at.handle->address + at.offset;
  };
  const size_t size = arguments.pointers.size() * sizeof(uint64_t);
  bool is_found = true;
  TFPLUG_RETURN_IF_ERROR(stream.Enqueue(
      size + arguments.parameters_size, [&](auto& batch, const auto& block) {
        char* to = block.host;
        for (void* const pointer : arguments.pointers) {
          typename AddressSpace<Handle>::Location at;
          if (ABSL_PREDICT_FALSE(!addresses.TryFind(pointer, at))) {
            is_found = false;
            return;
          }
          const uint64_t found = address(at);
          std::memcpy(to, &found, sizeof(found));
          to += sizeof(found);
        }
        std::memcpy(to, arguments.parameters, arguments.parameters_size);
        record(batch, address(block.at));
      }));
  return is_found ? absl::OkStatus() : addresses.NotFound();
}

// A program on a device. Derive from it.
class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  virtual ~Program() = default;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_PROGRAM_H_
