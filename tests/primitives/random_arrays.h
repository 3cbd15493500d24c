// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_PRIMITIVES_RANDOM_ARRAYS_H_
#define TFPLUG_TESTS_PRIMITIVES_RANDOM_ARRAYS_H_

#include "tfplug/base/narrow_types.h"
#include "tfplug/testing/internal/random_views.h"

// The types of tests that run primitives on random arrays of every type.
#define ALL_TYPES                                                      \
  float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, \
      uint32_t, uint64_t, ::tfplug::Half, ::tfplug::BFloat16

namespace tfplug {
using testing::Array, testing::Below, testing::Dims, testing::ForEachIndex,
    testing::Random;
}

#endif  // TFPLUG_TESTS_PRIMITIVES_RANDOM_ARRAYS_H_
