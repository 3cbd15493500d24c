// SPDX-License-Identifier: Apache-2.0
// Tests that Graph accepts all bytes that protobuf parses as a GraphDef, and
// gives them the same meaning. The bytes are hand-written encodings that
// serializers do not produce.
#include <string>

#include "doctest/doctest.h"
#include "graph/graph_oracle.h"

namespace tfplug::testing::wire_forms_test {
namespace {

// Returns a string with the NUL bytes of a literal.
template <size_t n>
std::string Bytes(const char (&text)[n]) {
  return std::string(text, n - 1);
}

// Compares Graph with protobuf, also after edits, and returns whether protobuf
// accepts the bytes.
bool Valid(const std::string& bytes) {
  google::protobuf::LogSilencer quiet;
  CHECK(CheckGraph(bytes, /*seed=*/1, /*edits=*/2) == "");
  proto::GraphDef graph;
  const bool parsed = ParseGraphDef(bytes, &graph);
  CHECK(graph.ParseFromString(bytes) == parsed);
  return parsed;
}

std::string Varint(uint64_t value, int pad = 0) {
  std::string out;
  AppendVarint(value, pad, &out);
  return out;
}

std::string Field(uint32_t number, const std::string& bytes) {
  return Varint(number << 3 | 2) + Varint(bytes.size()) + bytes;
}

TEST_CASE("an empty graph") { CHECK(Valid("")); }

TEST_CASE("fields in any order, repeated, unknown, with a wrong wire type") {
  CHECK(Valid(Field(1, Field(2, "Op") + Field(1, "a") + Field(1, "b"))));
  CHECK(Valid(Field(1, "") + Field(99, "anything \xFF")));
  CHECK(Valid(Field(3, "a version is a varint")));
  CHECK(Valid(Varint(1 << 3) + Varint(5)));
  CHECK(Valid(Field(1, Varint(1 << 3 | 5) + "four")));
  CHECK_FALSE(Valid(Field(1, Varint(1 << 3 | 5) + "thr")));
  CHECK_FALSE(Valid(Varint(1 << 3 | 6) + "four"));
  CHECK_FALSE(Valid(Varint(1 << 3 | 7) + "four"));
}

TEST_CASE("tags and lengths of up to five bytes, values of up to ten") {
  CHECK(Valid(Varint(1 << 3 | 2, 4) + Varint(0)));
  CHECK_FALSE(Valid(Varint(1 << 3 | 2, 5) + Varint(0)));
  CHECK(Valid(Varint(1 << 3 | 2) + Varint(0, 4)));
  CHECK_FALSE(Valid(Varint(1 << 3 | 2) + Varint(0, 5)));
  CHECK(Valid(Varint(3 << 3) + Varint(0, 9)));
  CHECK_FALSE(Valid(Varint(3 << 3) + Varint(0, 10)));
  CHECK(Valid(Varint(3 << 3) + std::string(9, '\xFF') + "\x7F"));
  // Only four bits of a tag's fifth byte count.
  CHECK(Valid("\x8A\x80\x80\x80\x70" + Varint(0)));
}

TEST_CASE("field number 0 is invalid") {
  for (uint32_t wire_type = 0; wire_type < 8; ++wire_type) {
    CHECK_FALSE(Valid(Varint(wire_type) + Bytes("\0\0\0\0\0\0\0\0")));
    CHECK_FALSE(Valid(Field(1, Varint(wire_type) + Bytes("\0\0\0\0\0\0\0\0"))));
  }
}

TEST_CASE("values that are truncated or exceed the enclosing message") {
  const std::string node = Field(1, "name") + Field(2, "Op");
  const std::string graph = Field(1, node);
  for (size_t size = 1; size < graph.size(); ++size) {
    CHECK_FALSE(Valid(graph.substr(0, size)));
  }
  CHECK_FALSE(Valid(Field(1, Varint(1 << 3 | 2) + Varint(4) + "nam") + "e"));
  CHECK_FALSE(Valid(Varint(1 << 3 | 2) + "\xFF\xFF\xFF\xFF\x07"));
  CHECK_FALSE(Valid(Varint(1 << 3 | 2) + "\xFF\xFF\xFF\xFF\x0F"));
}

TEST_CASE("strings must be UTF-8, and bytes fields hold any bytes") {
  const auto name = [](const char* text) { return Field(1, Field(1, text)); };
  CHECK(Valid(name("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF")));
  CHECK(Valid(name("\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF")));
  for (const char* wrong :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xC3", "\xC3(", "\xE0\x9F\xBF",
        "\xED\xA0\x80", "\xE2\x82", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xFF", "\xF0\x9F\x98"}) {
    CHECK_FALSE(Valid(name(wrong)));
  }
  // A key of a map is a string; an attribute's s and the strings of debug_info,
  // which is proto2, are bytes.
  CHECK_FALSE(Valid(Field(1, Field(5, Field(1, "\xFF")))));
  CHECK(Valid(Field(1, Field(5, Field(2, Field(2, "\xFF"))))));
  CHECK(Valid(Field(5, Field(1, "\xFF"))));
}

TEST_CASE("packed and unpacked lists") {
  const auto tensor = [](const std::string& value) {
    return Field(1, Field(5, Field(2, Field(8, value))));
  };
  CHECK(Valid(tensor(Field(5, "12345678"))));
  CHECK(Valid(tensor(Varint(5 << 3 | 5) + "1234")));
  CHECK_FALSE(Valid(tensor(Field(5, "1234567"))));
  CHECK(Valid(tensor(Field(6, "12345678"))));
  CHECK_FALSE(Valid(tensor(Field(6, "123456781234"))));
  CHECK(Valid(tensor(Field(7, Varint(1) + Varint(2, 9)))));
  CHECK_FALSE(Valid(tensor(Field(7, Varint(1) + Varint(2, 10)))));
  CHECK_FALSE(Valid(tensor(Field(7, "\x80"))));
  CHECK(Valid(tensor(Varint(7 << 3) + Varint(1))));
  // Packed values of a field that is not a list are an unknown field.
  CHECK(Valid(tensor(Field(1, "\x80"))));
}

TEST_CASE("groups are unknown fields with matching ends") {
  const std::string start = Varint(9 << 3 | 3), end = Varint(9 << 3 | 4);
  CHECK(Valid(start + end));
  CHECK(Valid(start + Field(1, "\xFF") + start + end + end));
  CHECK(Valid(Field(1, start + end)));
  CHECK_FALSE(Valid(start));
  CHECK_FALSE(Valid(end));
  CHECK_FALSE(Valid(start + Varint(8 << 3 | 4)));
  CHECK_FALSE(Valid(Field(1, start) + end));
  CHECK_FALSE(Valid(Field(1, end)));
}

TEST_CASE("messages and groups up to a depth of 100") {
  const auto nested = [](int depth) {
    std::string types;  // node.experimental_type.args.args...
    for (int i = 2; i < depth; ++i) types = Field(2, types);
    return Field(1, Field(7, types));
  };
  CHECK(Valid(nested(100)));
  CHECK_FALSE(Valid(nested(101)));
  const auto groups = [](int depth) {
    std::string out;
    for (int i = 0; i < depth; ++i) out += Varint(9 << 3 | 3);
    for (int i = 0; i < depth; ++i) out += Varint(9 << 3 | 4);
    return out;
  };
  CHECK(Valid(groups(100)));
  CHECK_FALSE(Valid(groups(101)));
  CHECK(Valid(Field(1, groups(99))));
  CHECK_FALSE(Valid(Field(1, groups(100))));
}

TEST_CASE("random graphs, valid and invalid") {
  Random random(20);
  int valid = 0;
  for (int i = 0; i < 4000; ++i) {
    WireTree tree("");
    for (int changes = 1 + i % 40; changes > 0; --changes) tree.Mutate(random);
    valid += Valid(tree.ToString());
  }
  CHECK(valid > 400);
  CHECK(valid < 3600);
}

}  // namespace
}  // namespace tfplug::testing::wire_forms_test
