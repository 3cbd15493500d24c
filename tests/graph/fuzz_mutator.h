// SPDX-License-Identifier: Apache-2.0
// Creates new inputs for libFuzzer: three in four by changing the tree of
// fields, the others by changing random bytes. Include it in only one file of a
// fuzzer, because it defines LLVMFuzzerCustomMutator.
#ifndef TFPLUG_TESTS_GRAPH_FUZZ_MUTATOR_H_
#define TFPLUG_TESTS_GRAPH_FUZZ_MUTATOR_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "graph/wire_tree.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max, unsigned int seed) {
  using tfplug::testing::Below;
  tfplug::testing::Random random(seed);
  if (Below(random, 4) == 0) return LLVMFuzzerMutate(data, size, max);
  tfplug::testing::WireTree tree(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  for (uint32_t i = 1 + Below(random, 4); i > 0; --i) tree.Mutate(random);
  const std::string out = tree.ToString();
  if (out.size() > max) return LLVMFuzzerMutate(data, size, max);
  std::memcpy(data, out.data(), out.size());
  return out.size();
}

#endif  // TFPLUG_TESTS_GRAPH_FUZZ_MUTATOR_H_
