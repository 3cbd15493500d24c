// SPDX-License-Identifier: Apache-2.0
// Fuzzes Graph: for arbitrary bytes, it must not crash and must agree with
// protobuf, also after edits. CONTRIBUTING.md describes longer runs.
#include <cstdio>
#include <cstdlib>

#include "graph/fuzz_mutator.h"
#include "graph/graph_oracle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static google::protobuf::LogSilencer quiet;
  uint32_t seed = 1;
  for (size_t i = 0; i < size; ++i) seed = seed * 31 + data[i];
  const std::string problem = tfplug::testing::CheckGraph(
      absl::string_view(reinterpret_cast<const char*>(data), size), seed, 4);
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  return 0;
}
