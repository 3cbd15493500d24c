// SPDX-License-Identifier: Apache-2.0
// The jobs with upb, the C implementation of protocol buffers in Python's
// protobuf package, by an experienced author: a schema that leaves attributes
// unparsed, strings that alias the graph's bytes, one block of memory for the
// messages and the result, and flat tables.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "flat_tables.h"
#include "graph_bytes.h"
#include "worker.h"

namespace {

using graph_bytes::Get;
using graph_bytes::GetList;
using graph_bytes::List;

// The name in a serialized entry of the map of attributes.
std::string_view NameOfAttr(upb_StringView entry) {
  const auto byte = [&](size_t i) {
    return static_cast<unsigned char>(entry.data[i]);
  };
  if (entry.size < 2 || byte(0) != 0x0a || byte(1) >= 0x80) std::abort();
  return std::string_view(entry.data + 2, byte(1));
}
// Returns an entry with the fields key and value; both are short.
std::string Entry(std::string_view name, std::string_view value) {
  std::string entry = {0x0a, static_cast<char>(name.size())};
  entry += name;
  entry += {0x12, static_cast<char>(value.size())};
  return entry += value;
}

class Nodes {
 public:
  Nodes(upb_Message* graph, upb_Arena* arena)
      : array_(upb_Message_GetMutableArray(graph, &graph_bytes::kNode)),
        nodes_(static_cast<upb_Message**>(upb_Array_MutableDataPtr(array_))),
        size_(static_cast<int>(upb_Array_Size(array_))),
        arena_(arena) {}

  int size() const { return size_; }
  std::string_view name(int n) const {
    return Get(nodes_[n], graph_bytes::kName);
  }
  std::string_view op(int n) const { return Get(nodes_[n], graph_bytes::kOp); }
  std::string_view device(int n) const {
    return Get(nodes_[n], graph_bytes::kDevice);
  }
  int num_inputs(int n) const { return static_cast<int>(Inputs(n).size); }
  std::string_view input(int n, int i) const {
    const upb_StringView text = Inputs(n).data[i];
    return std::string_view(text.data, text.size);
  }

  void Replace(int n, int bias, int product) {
    const bool has_activation = bias != n;
    std::string fused_ops =
        "\x0a\x09\x12\x07"
        "BiasAdd";
    if (has_activation) {
      fused_ops += {0x12, static_cast<char>(op(n).size())};
      fused_ops += op(n);
      fused_ops[1] += static_cast<char>(2 + op(n).size());
    }
    ReplaceAttrs(n, product, CopyToArena(Entry("fused_ops", fused_ops)));
    const List<upb_StringView> old = Inputs(n), inner = Inputs(product);
    const upb_StringView b = Inputs(bias).data[1];
    const size_t first = has_activation ? 1 : 2;
    upb_Array* const inputs = upb_Array_New(arena_, kUpb_CType_Bytes);
    upb_StringView* const to = Resize(inputs, 3 + old.size - first);
    to[0] = inner.data[0];
    to[1] = inner.data[1];
    to[2] = b;
    std::copy(old.data + first, old.data + old.size, to + 3);
    upb_Message_SetBaseField(nodes_[n], &graph_bytes::kInput, &inputs);
    graph_bytes::Set(nodes_[n], graph_bytes::kOp,
                     op(product) == "Conv2D" ? "_FusedConv2D" : "_FusedMatMul");
  }
  void Remove(const std::vector<char>& removed) {
    size_t kept = 0;
    for (int n = 0; n < size_; ++n) {
      if (!removed[n]) nodes_[kept++] = nodes_[n];
    }
    if (!upb_Array_Resize(array_, kept, arena_)) std::abort();
  }

 private:
  List<upb_StringView> Inputs(int n) const {
    return GetList<upb_StringView>(nodes_[n], graph_bytes::kInput);
  }
  upb_StringView* Resize(upb_Array* array, size_t size) const {
    if (!upb_Array_Resize(array, size, arena_)) std::abort();
    return static_cast<upb_StringView*>(upb_Array_MutableDataPtr(array));
  }
  upb_StringView CopyToArena(std::string_view text) const {
    char* const copy =
        static_cast<char*>(upb_Arena_Malloc(arena_, text.size()));
    std::memcpy(copy, text.data(), text.size());
    return {copy, text.size()};
  }
  // The attributes of the product replace those of node `n`.
  void ReplaceAttrs(int n, int product, upb_StringView fused_ops) {
    static const std::string num_args = Entry("num_args", "\x18\x01");
    static const std::string epsilon =
        Entry("epsilon", std::string_view("\x25\0\0\0\0", 5));
    const auto old = GetList<upb_StringView>(nodes_[n], graph_bytes::kAttr);
    const auto inner =
        GetList<upb_StringView>(nodes_[product], graph_bytes::kAttr);
    upb_Array* const attrs = upb_Array_New(arena_, kUpb_CType_Bytes);
    upb_StringView* const begin = Resize(attrs, old.size + inner.size + 3);
    upb_StringView* end = begin;
    *end++ = fused_ops;
    *end++ = {num_args.data(), num_args.size()};
    *end++ = {epsilon.data(), epsilon.size()};
    for (const List<upb_StringView>& from : {inner, old}) {
      for (size_t i = 0; i < from.size; ++i) {
        const std::string_view name = NameOfAttr(from.data[i]);
        const bool exists = std::any_of(begin, end, [&](upb_StringView entry) {
          return NameOfAttr(entry) == name;
        });
        if (!exists) *end++ = from.data[i];
      }
    }
    Resize(attrs, static_cast<size_t>(end - begin));
    upb_Message_SetBaseField(nodes_[n], &graph_bytes::kAttr, &attrs);
  }

  upb_Array* array_;
  upb_Message** nodes_;
  int size_;
  upb_Arena* arena_;
};

class UpbWorker : public Worker {
 public:
  // A call on a graph of this size needs at most this much memory, unless its
  // nodes have hardly any attributes.
  explicit UpbWorker(std::string_view graph)
      : block_size_(graph.empty() ? 0 : graph.size() * 4 + (1 << 20)),
        block_(static_cast<char*>(std::malloc(block_size_ + 1))) {}
  ~UpbWorker() override {
    if (arena_ != nullptr) upb_Arena_Free(arena_);
    std::free(block_);
  }

  int Run(Job job, std::string_view bytes, Output& out) override {
    // The last result is part of the last arena.
    if (arena_ != nullptr) upb_Arena_Free(arena_);
    arena_ = upb_Arena_Init(block_size_ > 0 ? block_ : nullptr, block_size_,
                            &upb_alloc_global);
    upb_Message* const graph =
        upb_Message_New(&graph_bytes::kGraphTable, arena_);
    if (upb_Decode(bytes.data(), bytes.size(), graph, &graph_bytes::kGraphTable,
                   nullptr, kUpb_DecodeOption_AliasString,
                   arena_) != kUpb_DecodeStatus_Ok) {
      return -1;
    }
    const int found = jobs_.Run(job, Nodes(graph, arena_));
    if (found < 0 || job == Job::kIdle) return found;
    char* data = nullptr;
    size_t size = 0;
    if (upb_Encode(graph, &graph_bytes::kGraphTable, 0, arena_, &data, &size) !=
        kUpb_EncodeStatus_Ok) {
      return -1;
    }
    out.Set(std::string_view(data, size));
    return found;
  }

 private:
  const size_t block_size_;
  char* const block_;
  upb_Arena* arena_ = nullptr;
  FlatJobs jobs_;
};

}  // namespace

Worker* MakeWorker(std::string_view graph) { return new UpbWorker(graph); }
