// SPDX-License-Identifier: Apache-2.0
// Includes our declarations after TensorFlow's headers, which define macros
// with the names of our types, constants and enumerators.
#define TF_Bool unsigned char
#define TF_OK TSL_OK
#define SE_MAJOR 0
#define SP_PLATFORM_STRUCT_SIZE 35
#define SP_STREAMEXECUTOR_STRUCT_SIZE 296
extern "C" {
typedef struct SP_Stream_st* SP_Stream;
typedef struct TSL_Status TF_Status;
typedef struct SP_Platform {
  int not_ours;
} SP_Platform;
}

#include <doctest/doctest.h>

#include <type_traits>

#include "tfplug/abi/abi.h"

TEST_CASE("our types coexist with TensorFlow's") {
  static_assert(!std::is_same_v<SP_Platform, tfplug::capi::SP_Platform>);
  static_assert(!std::is_same_v<SP_Stream, tfplug::capi::SP_Stream>);
  static_assert(!std::is_same_v<TF_Status, tfplug::capi::TF_Status>);
  CHECK(tfplug::capi::StructInfo<tfplug::capi::SP_Platform>::kSize == 35);
  CHECK(SP_PLATFORM_STRUCT_SIZE == 35);
  const tfplug::capi::TF_Bool yes = 1;
  const TF_Bool also_yes = yes;
  CHECK(also_yes == 1);
}
