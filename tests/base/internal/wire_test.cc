// SPDX-License-Identifier: Apache-2.0
#include "tfplug/base/internal/wire.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/base/internal/os.h"

namespace tfplug::internal::wire_test {
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

TEST_CASE("varints: sizes and values at the limits of each length") {
  for (int bits = 0; bits < 64; ++bits) {
    for (uint64_t value : {(uint64_t{1} << bits) - 1, uint64_t{1} << bits}) {
      CAPTURE(value);
      std::string appended;
      AppendVarint(appended, value);
      CHECK(appended.size() == VarintSize(value));
      std::vector<char> written(VarintSize(value));
      CHECK(WriteVarint(written.data(), value) ==
            written.data() + written.size());
      CHECK(std::string(written.begin(), written.end()) == appended);
      uint64_t read = ~value;
      CHECK(ReadVarint(written.data(), written.data() + written.size(),
                       &read) == written.data() + written.size());
      CHECK(read == value);
      CHECK(ReadVarint(written.data(), written.data() + written.size() - 1,
                       &read) == nullptr);
    }
  }
}

TEST_CASE("tags and lengths have at most five bytes") {
  const auto reads = [](auto read, std::string bytes) {
    bytes.resize(32, '\0');
    uint32_t value = 0;
    return read(bytes.data(), bytes.data() + bytes.size(), &value) != nullptr;
  };
  const std::string five = "\x88\x80\x80\x80";  // and a zero
  CHECK(reads(&ReadTag, five));
  CHECK(reads(&ReadLength, five));
  CHECK_FALSE(reads(&ReadTag, five + '\x80'));
  CHECK_FALSE(reads(&ReadLength, five + '\x80'));
  uint32_t length = 0;
  const char unfinished = '\x80';
  CHECK(ReadLength(&unfinished, &unfinished + 1, &length) == nullptr);
}

TEST_CASE("ReadLength: the limit is libprotobuf's") {
  constexpr size_t kSize = size_t{3} << 30;
  char* const begin = static_cast<char*>(ReserveAddresses(kSize));
  if (begin == nullptr) return;  // The process may not have that many.
  REQUIRE(AllowAccess(begin, 4096));
  for (const auto& [length, is_read] :
       {std::make_pair(INT32_MAX - 16, true), {INT32_MAX - 15, false}}) {
    WriteVarint(begin, static_cast<uint64_t>(length));
    uint32_t read = 0;
    CHECK((ReadLength(begin, begin + kSize, &read) != nullptr) == is_read);
  }
  ReleaseAddresses(begin, kSize);
}

TEST_CASE("WriteField: copies bytes of every length, and nothing after them") {
  std::vector<size_t> sizes(200);
  std::iota(sizes.begin(), sizes.end(), size_t{0});
  // Lengths of two, three and four bytes.
  for (const size_t size : {(1 << 14) - 1, 1 << 14, 1 << 21}) {
    sizes.push_back(size);
  }
  for (const size_t size : sizes) {
    CAPTURE(size);
    std::string bytes;
    for (size_t i = 0; i < size; ++i) bytes += static_cast<char>('a' + i % 26);
    const size_t field_size = BytesFieldSize(size);
    std::vector<char> field(field_size + 1, '#');
    CHECK(WriteField(field.data(), 2, bytes) == field.data() + field_size);
    CHECK(field.back() == '#');
    WireReader reader(absl::string_view(field.data(), field_size));
    REQUIRE(reader.Next());
    CHECK(reader.number() == 2);
    CHECK((reader.bytes() == bytes));
    CHECK_FALSE(reader.Next());
    CHECK(reader.ok());
  }
}

TEST_CASE("WireReader: fields of four and eight bytes") {
  std::string bytes(
      "\x0d"
      "1234"
      "\x11"
      "12345678");
  WireReader reader(bytes);
  REQUIRE(reader.Next());
  CHECK(reader.bytes() == "1234");
  REQUIRE(reader.Next());
  CHECK(reader.number() == 2);
  CHECK(reader.bytes() == "12345678");
  CHECK_FALSE(reader.Next());
  CHECK(reader.ok());
  for (const size_t size : {4, 13}) {
    WireReader cut(absl::string_view(bytes).substr(0, size));
    while (cut.Next()) {
    }
    CHECK_FALSE(cut.ok());
  }
}

TEST_CASE("MessageField merges the field's occurrences") {
  std::string bytes;
  AppendField(bytes, 1, "a");
  AppendField(bytes, 2, 7);
  AppendField(bytes, 3, "other");
  AppendField(bytes, 1, "b");
  CHECK(MessageField(bytes, 1) == "ab");
  CHECK_FALSE(MessageField(bytes, 2).has_value());
  CHECK_FALSE(MessageField(bytes, 4).has_value());
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

  // Memory after the end is not read, wherever the end is.
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<char> part(bytes.begin(),
                                 bytes.begin() + static_cast<long>(size));
    WireReader cut(absl::string_view(part.data(), part.size()));
    int fields = 0;
    while (cut.Next()) ++fields;
    CHECK(fields == (size < 3 ? 0 : 1));
    CHECK(cut.ok() == (size == 0 || size == 3));
  }

  WireReader cut(absl::string_view(bytes).substr(0, bytes.size() - 1));
  CHECK(cut.Next());
  CHECK_FALSE(cut.Next());
  CHECK_FALSE(cut.ok());
}

}  // namespace
}  // namespace tfplug::internal::wire_test
