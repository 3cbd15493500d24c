// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_GRAPH_ITEM_H_
#define TFPLUG_GRAPH_GRAPH_ITEM_H_

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/capability.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/status.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// TensorFlow's information about the graph that it optimizes
// (TF_GrapplerItem), read on first use and cached. Not thread-safe.
class GraphItem {
 public:
  using Names = std::vector<std::string>;
  using NameSet = std::set<std::string, std::less<>>;

  // `item` must outlive this object.
  explicit GraphItem(const capi::TF_GrapplerItem* item) : item_(item) {}

  // Returns the names of nodes that must remain, with the same outputs: nodes
  // that are fed or fetched, initializers of variables, nodes with side
  // effects, and the arguments and results of a function's body. Some of the
  // names may have no node in the graph.
  absl::StatusOr<const NameSet*> GetNodesToPreserve() const {
    return Cached(preserve_, [this] {
      return Read(&CApi::TF_GetNodesToPreserveListSize,
                  &CApi::TF_GetNodesToPreserveList);
    });
  }

  // Returns the fetched nodes ("node") or outputs ("node:1"), in order.
  absl::StatusOr<const Names*> GetFetchNodes() const {
    return Cached(fetch_, [this] {
      return Read(&CApi::TF_GetFetchNodesListSize, &CApi::TF_GetFetchNodesList);
    });
  }

  const capi::TF_GrapplerItem* get() const { return item_; }

 private:
  template <class List>
  struct Cache {
    bool is_read = false;
    absl::Status status;
    List names;
  };

  template <class List, class ReadNames>
  static absl::StatusOr<const List*> Cached(Cache<List>& cache,
                                            ReadNames read) {
    if (!cache.is_read) {
      absl::StatusOr<Names> names = read();
      cache.status = names.status();
      if (names.ok()) cache.names = List(names->begin(), names->end());
      cache.is_read = true;
    }
    if (!cache.status.ok()) return cache.status;
    return &cache.names;
  }

  // Calls the TensorFlow functions `size` and `list`. The latter copies all
  // names into `storage`.
  template <class SizeFunction, class ListFunction>
  absl::StatusOr<Names> Read(SizeFunction size, ListFunction list) const {
    if (auto s = Require(size); !s.ok()) return s;
    if (auto s = Require(list); !s.ok()) return s;
    const OwnedStatus status;
    int count = 0;
    size_t bytes = 0;
    (internal::tensorflow.*size)(item_, &count, &bytes, status.get());
    if (!status.ok()) return status.ToStatus();
    std::vector<char*> values(static_cast<size_t>(count));
    std::vector<size_t> lengths(values.size());
    std::string storage(bytes, '\0');
    (internal::tensorflow.*list)(item_, values.data(), lengths.data(), count,
                                 storage.data(), bytes, status.get());
    if (!status.ok()) return status.ToStatus();
    Names names(values.size());
    for (size_t i = 0; i < names.size(); ++i) {
      names[i].assign(values[i], lengths[i]);
    }
    return names;
  }

  const capi::TF_GrapplerItem* const item_;
  mutable Cache<NameSet> preserve_;
  mutable Cache<Names> fetch_;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_GRAPH_ITEM_H_
