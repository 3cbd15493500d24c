// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_CONDITIONS_H_
#define TFPLUG_PATTERNS_CONDITIONS_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/graph/attr_value.h"
#include "tfplug/kernel/internal/op_attr_types.h"
#include "tfplug/patterns/internal/describe.h"
#include "tfplug/patterns/internal/element.h"
#include "tfplug/patterns/internal/typed_op.h"

#pragma GCC visibility push(hidden)

namespace tfplug::patterns {

// The conditions on attributes that patterns of nodes have. An attribute that
// the node lacks has the default of the op's definition in the running
// TensorFlow; without a default, the node does not match.
//
// With several Ops, a condition on a typed name applies to nodes of that op
// only; a condition on a plain name applies to all.
template <class Derived, class... Ops>
class Conditions {
 public:
  // Requires `attr` to be `value`.
  template <class E, class = kernel_internal::IfOpEnum<E>>
  Derived Where(E attr, kernel_internal::AttrType<E> value) const {
    return AddValues<kernel_internal::AttrType<E>>(
        OpOf<E>(), kernel_internal::NameOf(attr), {std::move(value)});
  }
  template <class E, class V, class = kernel_internal::IfOpEnum<E>,
            class = std::enable_if_t<!patterns_internal::IsAttrValue<
                V, kernel_internal::AttrType<E>>()>>
  Derived Where(E, const V&) const {
    static_assert(
        sizeof(E) == 0,
        "tfplug: Where takes a value of the attribute's type, such as "
        "true for a bool, 1 for an int or DataType::kFloat for a type");
  }
  // Requires `attr` to be one of `values`.
  template <class E, class = kernel_internal::IfOpEnum<E>>
  Derived WhereOneOf(
      E attr,
      std::initializer_list<kernel_internal::AttrType<E>> values) const {
    return AddValues<kernel_internal::AttrType<E>>(
        OpOf<E>(), kernel_internal::NameOf(attr), values);
  }
  // Requires predicate(value) to be true. `description`, such as "at least 2",
  // completes the explanation "attribute N is 1, not ...".
  template <class E, class F, class = kernel_internal::IfOpEnum<E>>
  Derived WhereSatisfies(E attr, std::string description, F predicate) const {
    return Add<kernel_internal::AttrType<E>>(
        OpOf<E>(), kernel_internal::NameOf(attr), std::move(description),
        std::move(predicate));
  }
  // Does the same as Where above with the name of the attribute as a string. T
  // is bool, int64_t, float, DataType, std::string, or a std::vector of one of
  // these.
  template <class T>
  Derived Where(absl::string_view attr, T value) const {
    return AddValues<T>("", attr, {std::move(value)});
  }
  Derived Where(absl::string_view attr, int value) const {
    return AddValues<int64_t>("", attr, {value});
  }
  Derived Where(absl::string_view attr, const char* value) const {
    return AddValues<std::string>("", attr, {value});
  }
  template <class T>
  Derived WhereOneOf(absl::string_view attr,
                     std::initializer_list<T> values) const {
    return AddValues<T>("", attr, values);
  }
  template <class T, class F>
  Derived WhereSatisfies(absl::string_view attr, std::string description,
                         F predicate) const {
    return Add<T>("", attr, std::move(description), std::move(predicate));
  }

 private:
  const Derived& derived() const { return static_cast<const Derived&>(*this); }

  // Returns the op to which E belongs if there are several Ops.
  template <class E>
  static std::string OpOf() {
    static_assert((patterns_internal::BelongsTo<E, Ops>() || ...),
                  "tfplug: this attribute does not belong to an op of the "
                  "pattern; for an op that is given by its name, write the "
                  "attribute's name as a string");
    std::string op;
    if constexpr (sizeof...(Ops) > 1) {
      ((op = patterns_internal::BelongsTo<E, Ops>() ? Ops::kName : op), ...);
    }
    return op;
  }
  template <class T>
  Derived AddValues(std::string op, absl::string_view attr,
                    std::vector<T> values) const {
    std::string description = values.size() > 1 ? "one of " : "";
    for (size_t i = 0; i < values.size(); ++i) {
      description +=
          (i == 0 ? "" : ", ") + patterns_internal::Describe(values[i]);
    }
    return Add<T>(std::move(op), attr, std::move(description),
                  [values = std::move(values)](const T& value) {
                    return std::find(values.begin(), values.end(), value) !=
                           values.end();
                  });
  }
  template <class T, class F>
  Derived Add(std::string op, absl::string_view attr, std::string description,
              F predicate) const {
    auto check = [predicate = std::move(predicate)](absl::string_view bytes) {
      const auto value = graph::AttrCodec<T>::Decode(bytes);
      return value.has_value() && predicate(*value);
    };
    return derived().AddCondition({std::move(op), std::string(attr),
                                   std::move(description), std::move(check)});
  }
};

}  // namespace tfplug::patterns

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_CONDITIONS_H_
