// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_STRING_FUNCTIONS_H_
#define TFPLUG_TESTING_INTERNAL_STRING_FUNCTIONS_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tfplug/abi/tf_tstring.h"
#include "tfplug/testing/internal/fake_function.h"

#pragma GCC visibility push(hidden)

// Strings as TensorFlow lays them out: the two lowest bits of the first byte
// are the type; the other bits and, in long strings, the next bytes are the
// size. Short strings are stored in the object, terminated by NUL.
namespace tfplug::testing {

using capi::TF_TString;

inline constexpr size_t kShortStringCapacity =
    sizeof(capi::TF_TString_Small) - sizeof(uint8_t) - sizeof('\0');

TFPLUG_FAKE_FUNCTION void TF_StringInit(TF_TString* str) {
  std::memset(str, 0, sizeof(*str));
}
TFPLUG_FAKE_FUNCTION capi::TF_TString_Type TF_StringGetType(
    const TF_TString* str) {
  return static_cast<capi::TF_TString_Type>(str->u.raw.raw[0] & 3);
}
TFPLUG_FAKE_FUNCTION void TF_StringDealloc(TF_TString* str) {
  if (TF_StringGetType(str) == capi::TF_TSTR_LARGE) std::free(str->u.large.ptr);
  TF_StringInit(str);
}
TFPLUG_FAKE_FUNCTION void TF_StringCopy(TF_TString* dst, const char* src,
                                        size_t size) {
  TF_TString copy;
  TF_StringInit(&copy);
  char* to = copy.u.smll.str;
  if (size > kShortStringCapacity) {
    to = static_cast<char*>(std::malloc(size + 1));
    copy.u.large = {size << 2 | capi::TF_TSTR_LARGE, size, to};
  } else {
    copy.u.smll.size = static_cast<uint8_t>(size << 2 | capi::TF_TSTR_SMALL);
  }
  if (size != 0) std::memcpy(to, src, size);
  to[size] = '\0';
  TF_StringDealloc(dst);
  *dst = copy;
}
TFPLUG_FAKE_FUNCTION void TF_StringAssignView(TF_TString* dst, const char* src,
                                              size_t size) {
  TF_StringDealloc(dst);
  dst->u.view = {size << 2 | capi::TF_TSTR_VIEW, src, nullptr};
}
TFPLUG_FAKE_FUNCTION size_t TF_StringGetSize(const TF_TString* str) {
  return TF_StringGetType(str) == capi::TF_TSTR_SMALL
             ? static_cast<size_t>(str->u.smll.size >> 2)
             : str->u.large.size >> 2;
}
TFPLUG_FAKE_FUNCTION size_t TF_StringGetCapacity(const TF_TString* str) {
  switch (TF_StringGetType(str)) {
    case capi::TF_TSTR_SMALL:
      return kShortStringCapacity;
    case capi::TF_TSTR_LARGE:
      return str->u.large.cap;
    default:
      return 0;
  }
}
TFPLUG_FAKE_FUNCTION const char* TF_StringGetDataPointer(
    const TF_TString* str) {
  switch (TF_StringGetType(str)) {
    case capi::TF_TSTR_SMALL:
      return str->u.smll.str;
    case capi::TF_TSTR_LARGE:
      return str->u.large.ptr;
    case capi::TF_TSTR_VIEW:
      return str->u.view.ptr;
    default:  // TF_TSTR_OFFSET, which only mapped files have
      return reinterpret_cast<const char*>(str) + str->u.offset.offset;
  }
}

inline void InstallStringFunctions(capi::Functions& functions) {
  TFPLUG_FAKE_INSTALL(TF_StringInit);
  TFPLUG_FAKE_INSTALL(TF_StringGetType);
  TFPLUG_FAKE_INSTALL(TF_StringDealloc);
  TFPLUG_FAKE_INSTALL(TF_StringCopy);
  TFPLUG_FAKE_INSTALL(TF_StringAssignView);
  TFPLUG_FAKE_INSTALL(TF_StringGetSize);
  TFPLUG_FAKE_INSTALL(TF_StringGetCapacity);
  TFPLUG_FAKE_INSTALL(TF_StringGetDataPointer);
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_STRING_FUNCTIONS_H_
