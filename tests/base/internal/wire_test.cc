// SPDX-License-Identifier: Apache-2.0
#include "tfplug/base/internal/wire.h"

#include <doctest/doctest.h>

#include <string>

namespace tfplug::internal {
namespace {

// Returns `depth` nested groups of field 1.
std::string NestedGroups(int depth) {
  return std::string(static_cast<size_t>(depth), '\x0b') +
         std::string(static_cast<size_t>(depth), '\x0c');
}

bool SkipsGroups(int depth, int limit) {
  const std::string bytes = NestedGroups(depth);
  const char* const end = bytes.data() + bytes.size();
  // Skip the first tag, which SkipValue takes as an argument.
  return SkipValue(bytes.data() + 1, end, MakeTag(1, kGroupType), limit) == end;
}

TEST_CASE("SkipValue: skips groups nested up to the limit") {
  for (int limit : {1, 2, kMaxWireDepth - 1, kMaxWireDepth}) {
    CAPTURE(limit);
    CHECK(SkipsGroups(limit, limit));
    CHECK_FALSE(SkipsGroups(limit + 1, limit));
  }
  CHECK_FALSE(SkipsGroups(1, 0));
}

TEST_CASE("SkipValue: a group must end with its own field number") {
  const auto skips = [](const std::string& bytes) {
    return SkipValue(bytes.data(), bytes.data() + bytes.size(),
                     MakeTag(1, kGroupType)) != nullptr;
  };
  CHECK(skips("\x0c"));
  CHECK(skips("\x10\x01\x0c"));
  CHECK_FALSE(skips(""));
  CHECK_FALSE(skips("\x14"));
  CHECK_FALSE(skips("\x0b\x0c"));
  CHECK_FALSE(skips("\x0e\x0c"));
}

TEST_CASE("WireReader: reads fields up to the first malformed one") {
  std::string bytes;
  AppendField(bytes, 1, 300);
  AppendField(bytes, 2, "text");
  WireReader reader(bytes);
  REQUIRE(reader.Next());
  CHECK(reader.Is(1, kVarintType));
  CHECK(reader.varint() == 300);
  REQUIRE(reader.Next());
  CHECK(reader.number() == 2);
  CHECK(reader.bytes() == "text");
  CHECK(reader.varint() == 0);
  CHECK(reader.field().size() == 6);
  CHECK_FALSE(reader.Next());
  CHECK(reader.ok());

  WireReader cut(absl::string_view(bytes).substr(0, bytes.size() - 1));
  CHECK(cut.Next());
  CHECK_FALSE(cut.Next());
  CHECK_FALSE(cut.ok());
}

}  // namespace
}  // namespace tfplug::internal
