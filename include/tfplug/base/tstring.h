// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_TSTRING_H_
#define TFPLUG_BASE_TSTRING_H_

#include <cstddef>

#include "absl/strings/string_view.h"
#include "tfplug/abi/tf_tstring.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/tensorflow.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// An element of a string tensor, accessed in place:
//
//   for (tfplug::TString& s : tensor.flat<tfplug::TString>()) s.Assign("x");
//
// The layout of its 24 bytes changed in 2.21, so every access calls
// TensorFlow's functions. String tensors are in host memory: name the argument
// in HostMemory when you register the kernel.
class TString {
 public:
  TString(const TString&) = delete;
  TString& operator=(const TString&) = delete;

  absl::string_view view() const { return absl::string_view(data(), size()); }
  operator absl::string_view() const { return view(); }
  const char* data() const {
    return internal::tensorflow.TF_StringGetDataPointer(&raw_);
  }
  size_t size() const { return internal::tensorflow.TF_StringGetSize(&raw_); }
  // Returns the number of bytes that fit without an allocation; 0 for a string
  // assigned with AssignView.
  size_t capacity() const {
    return internal::tensorflow.TF_StringGetCapacity(&raw_);
  }
  capi::TF_TString_Type type() const {
    return internal::tensorflow.TF_StringGetType(&raw_);
  }

  // Copies `text`.
  void Assign(absl::string_view text) {
    internal::tensorflow.TF_StringCopy(&raw_, text.data(), text.size());
  }
  // Refers to `text`, which must outlive this string and its copies.
  void AssignView(absl::string_view text) {
    internal::tensorflow.TF_StringAssignView(&raw_, text.data(), text.size());
  }

  capi::TF_TString* get() { return &raw_; }

 protected:
  TString() { internal::tensorflow.TF_StringInit(&raw_); }

 private:
  capi::TF_TString raw_;
};
static_assert(sizeof(TString) == capi::StructInfo<capi::TF_TString>::kSize,
              "the elements of a string tensor are an array of TString");

// A string that is not an element of a tensor.
class OwnedTString : public TString {
 public:
  OwnedTString() = default;
  explicit OwnedTString(absl::string_view text) { Assign(text); }
  ~OwnedTString() { internal::tensorflow.TF_StringDealloc(get()); }
};

template <>
inline constexpr DataType kDataTypeOf<TString> = DataType::kString;

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_TSTRING_H_
