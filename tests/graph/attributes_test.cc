// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/graph/constant.h>
#include <tfplug/graph/graph.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tfplug/graph/internal/hash.h"

namespace tfplug::attributes_test {
namespace {

// Returns a graph of one node with `count` attributes "a0", "a1" and so on.
std::string ManyAttrs(const std::string& name, int count) {
  std::string node, graph;
  internal::AppendField(node, 1, name);
  internal::AppendField(node, 2, "X");
  for (int i = 0; i < count; ++i) {
    std::string entry;
    internal::AppendField(entry, 1, absl::StrCat("a", i));
    internal::AppendField(entry, 2, graph::AttrCodec<int64_t>::Encode(i));
    internal::AppendField(node, 5, entry);
  }
  internal::AppendField(graph, 1, node);
  return graph;
}

TEST_CASE("A tensor as an attribute") {
  Graph graph;
  const Node node = graph.AddNode("c", "Const").value();
  const float elements[] = {1, 2, 3, 4, 5, 6};
  node.SetTensor("value", TensorView<const float, 2>(elements, {3, 2}));
  node.SetAttr("dtype", DataType::kFloat);
  const auto constant = Constant::Read(node);
  REQUIRE(constant.ok());
  CHECK(constant->dtype() == DataType::kFloat);
  CHECK(constant->shape() == Shape{3, 2});
  CHECK(constant->GetElements<float>().value() ==
        std::vector<float>{1, 2, 3, 4, 5, 6});

  const absl::string_view bytes("\1\0\0\0\2\0\0\0", 8);
  REQUIRE(node.SetTensor("value", DataType::kInt32, Shape{2}, bytes).ok());
  CHECK(Constant::Read(node)->GetElements<int32_t>().value() ==
        std::vector<int32_t>{1, 2});
  REQUIRE(node.SetTensor("value", DataType::kInt32, Shape{0, 4}, "").ok());
  CHECK(Constant::Read(node)->num_elements() == 0);
  REQUIRE(node.SetTensor("value", DataType::kInt64, Shape{}, bytes).ok());
  CHECK(Constant::Read(node)->shape() == Shape{});

  const std::string before = graph.ToString();
  CHECK(node.SetTensor("value", DataType::kInt32, Shape{3}, bytes).message() ==
        "node 'c' (Const): cannot set attribute 'value' to a tensor of "
        "int32[3] from 8 bytes");
  CHECK(node.SetTensor("value", DataType::kString, Shape{8}, bytes).message() ==
        "node 'c' (Const): cannot set attribute 'value' to a tensor of string, "
        "which has no fixed size; use SetRawAttr()");
  const int64_t kHuge = int64_t{1} << 62;
  CHECK_FALSE(
      node.SetTensor("value", DataType::kInt32, Shape{kHuge, 4}, "").ok());
  CHECK(graph.ToString() == before);
}

TEST_CASE("A Shape is read from a shape that is fully known") {
  Graph graph;
  const Node node = graph.AddNode("n", "X").value();
  node.SetAttr("known", Shape{2, 3});
  node.SetAttr("partial", PartialShape(Shape{2, -1}));
  node.SetAttr("unknown", PartialShape());
  CHECK(node.GetAttr<Shape>("known").value() == Shape{2, 3});
  CHECK(node.GetAttr<PartialShape>("known").value() ==
        PartialShape(Shape{2, 3}));
  for (const char* name : {"partial", "unknown"}) {
    CHECK(node.GetAttr<PartialShape>(name).ok());
    CHECK(absl::IsInvalidArgument(node.GetAttr<Shape>(name).status()));
  }
}

// In quadratic time, this test would take minutes.
TEST_CASE("200,000 attributes") {
  constexpr int kMany = 200000;
  const std::string bytes = ManyAttrs("n", kMany);
  Graph graph = Graph::Parse(bytes).value();
  const Node node = graph.FindNode("n");
  CHECK(node.GetAttrs().size() == kMany);
  const Node copy = graph.AddNode("copy", "X").value();
  copy.CopyAttrs(node);
  copy.SetAttr("a7", 70);
  CHECK(copy.GetAttrs().size() == kMany);
  copy.CopyAttrs(node);  // Replaces the existing ones.
  CHECK(copy.GetAttr<int>("a7").value() == 7);
  Graph other;
  const Node away = other.AddNode("away", "X").value();
  away.SetAttr("own", true);
  away.CopyAttrs(copy);
  away.CopyAttrs(node);
  CHECK(away.GetAttrs().size() == kMany + 1);
  const std::string written = other.ToString();
  const Graph read = Graph::Parse(written).value();
  CHECK(read.FindNode("away").GetAttrs().size() == kMany + 1);
  CHECK(read.FindNode("away").GetAttr<int>("a199999").value() == 199999);
}

TEST_CASE("Attributes with long names, and names that are alike") {
  Graph graph = *Graph::Parse(ManyAttrs("n", 3));
  const Node node = graph.FindNode("n");
  const Node other = graph.AddNode("other", "X").value();
  std::map<std::string, int64_t> expected = {{"a0", 0}, {"a1", 1}, {"a2", 2}};
  const auto set = [&](const std::string& name, int64_t value) {
    node.SetAttr(name, value);
    expected[name] = value;
  };
  const auto check = [&] {
    const std::string bytes = graph.ToString();
    CHECK(bytes.size() == graph.ByteSize());
    Graph written = *Graph::Parse(bytes);
    for (const Node& found :
         {node, written.FindNode("n"), written.FindNode("other")}) {
      CHECK(found.GetAttrs().size() == expected.size());
      for (const auto& [name, value] : expected) {
        CHECK(found.GetAttr<int64_t>(name).value() == value);
        CHECK_FALSE(found.HasAttr(name + "?"));
      }
    }
  };
  // AttrList represents the first two by the same bit.
  for (const char* name : {"value", "grad_a", "", "T"}) set(name, 7);
  for (const size_t size : {126, 127, 128, 254, 255, 256, 300, 20000}) {
    set(std::string(size, 'x'), static_cast<int64_t>(size));
  }
  other.CopyAttrs(node);
  check();
  // New values of other sizes.
  for (const auto& attr : std::map<std::string, int64_t>(expected)) {
    set(attr.first, int64_t{1} << 40);
  }
  other.CopyAttrs(node);
  check();
  for (const size_t size : {127, 255, 20000}) {
    const std::string name(size, 'x');
    node.RemoveAttr(name);
    other.RemoveAttr(name);
    expected.erase(name);
  }
  for (const char* name : {"a1", "grad_a"}) {
    node.RemoveAttr(name);
    other.RemoveAttr(name);
    expected.erase(name);
  }
  check();
}

TEST_CASE("The last of several entries for an attribute is used") {
  std::string node, graph_def;
  internal::AppendField(node, 1, "n");
  for (int i = 0; i < 40; ++i) {
    std::string entry;
    internal::AppendField(entry, 1, absl::StrCat("a", i % 20));
    internal::AppendField(entry, 2, graph::AttrCodec<int64_t>::Encode(i));
    internal::AppendField(node, 5, entry);
  }
  internal::AppendField(graph_def, 1, node);
  Graph graph = Graph::Parse(graph_def).value();
  const Node n = graph.FindNode("n");
  const Node copy = graph.AddNode("copy", "X").value();
  copy.SetAttr("a3", -1);
  copy.CopyAttrs(n);
  for (Node each : {n, copy}) {
    CHECK(each.GetAttrs().size() == 20);
    for (int i = 0; i < 20; ++i) {
      CHECK(each.GetAttr<int>(absl::StrCat("a", i)).value() == 20 + i);
    }
  }
  n.SetAttr("a3", 5);
  CHECK(n.GetAttr<int>("a3").value() == 5);
  n.RemoveAttr("a3");
  CHECK_FALSE(n.HasAttr("a3"));
  CHECK(n.GetAttrs().size() == 19);
}

TEST_CASE("A hash table with equal hashes compares keys") {
  constexpr uint32_t kNone = graph_internal::HashTable::kNone;
  graph_internal::HashTable table;
  table.Reset(100);
  const auto never = [](uint32_t) { return false; };
  const auto is = [](uint32_t wanted) {
    return [wanted](uint32_t index) { return index == wanted; };
  };
  // The last slot, so that the search continues at the first one; only high
  // bits of the others distinguish them.
  const uint64_t hash = ~uint64_t{0};
  CHECK(table.Insert(hash, 7, never) == kNone);
  CHECK(table.Insert(hash ^ uint64_t{1} << 63, 8, never) == kNone);
  CHECK(table.Insert(hash ^ uint64_t{1} << 20, 9, never) == kNone);
  CHECK(table.is_exact());
  const graph_internal::HashTable::Reader reader(table);
  CHECK(reader.Find(hash) == 7);
  CHECK(reader.Find(hash ^ uint64_t{1} << 63) == 8);
  CHECK(reader.Find(hash ^ uint64_t{1} << 20) == 9);
  CHECK(reader.Find(hash ^ uint64_t{1} << 40) == kNone);
  CHECK(table.Insert(hash, 10, is(7)) == 7);
  CHECK(table.is_exact());
  CHECK(table.Insert(hash, 11, never) == kNone);
  CHECK_FALSE(table.is_exact());
  CHECK(table.Find(hash, is(11)) == 11);
  CHECK(table.Find(hash, is(7)) == 7);
  CHECK(table.Find(hash, is(8)) == kNone);
}

TEST_CASE("Texts are the same if their length and every byte are") {
  for (size_t size = 0; size < 150; ++size) {
    const std::string text(size, 'a');
    std::string other = text;
    CHECK(graph_internal::SameText(text, other));
    CHECK_FALSE(graph_internal::SameText(text, text + 'a'));
    for (char& byte : other) {
      byte = 'b';
      CHECK_FALSE(graph_internal::SameText(text, other));
      byte = 'a';
    }
  }
}

TEST_CASE("A hash depends on the length and on every byte") {
  const graph_internal::HashKey& key = graph_internal::ProcessHashKey();
  std::map<uint64_t, std::string> texts;
  const auto add = [&](const std::string& text) {
    const std::string& first =
        texts.emplace(graph_internal::Hash(text, key), text).first->second;
    CHECK_MESSAGE(first == text, text, " ", first);
  };
  for (size_t size = 0; size < 400; size = size < 70 ? size + 1 : size + 23) {
    for (char fill : {'a', '\0'}) {
      add(std::string(size, fill));
      for (size_t at = 0; at < size; ++at) {
        std::string text(size, fill);
        text[at] = '/';
        add(text);
        if (at + 16 < size) {
          // The hash also depends on the order of the 16-byte pieces.
          text[at + 16] = '+';
          add(text);
          std::swap(text[at], text[at + 16]);
          add(text);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tfplug::attributes_test
