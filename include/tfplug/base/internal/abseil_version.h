// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_ABSEIL_VERSION_H_
#define TFPLUG_BASE_INTERNAL_ABSEIL_VERSION_H_

#include "absl/base/config.h"
#include "tfplug/base/contents.h"

#ifdef ABSL_LTS_RELEASE_VERSION
// clang-format off
TFPLUG_CONTAINS(
    "abseil-cpp", TFPLUG_TEXT(ABSL_LTS_RELEASE_VERSION) "."
    TFPLUG_TEXT(ABSL_LTS_RELEASE_PATCH_LEVEL), "Apache-2.0");
// clang-format on
#else
TFPLUG_CONTAINS("abseil-cpp", "head", "Apache-2.0");
#endif

#endif  // TFPLUG_BASE_INTERNAL_ABSEIL_VERSION_H_
