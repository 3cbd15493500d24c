// SPDX-License-Identifier: Apache-2.0
// The validator accepts exactly what protobuf parses. For longer:
// CONTRIBUTING.md.
#include <cstdio>
#include <cstdlib>

#include "graph/fuzz_mutator.h"
#include "tfplug/proto/graph.pb.h"
#include "tfplug/testing/graph_validator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static google::protobuf::LogSilencer quiet;
  static tfplug::proto::GraphDef graph;
  const bool parsed = graph.ParseFromArray(data, static_cast<int>(size));
  const absl::Status status = tfplug::testing::ValidateGraphDef(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (parsed != status.ok()) {
    std::fprintf(stderr, "protobuf %s this, the validator says %s\n",
                 parsed ? "parses" : "refuses", status.ToString().c_str());
    std::abort();
  }
  return 0;
}
