// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_OPTIMIZER_CLASS_H_
#define TFPLUG_PASSES_INTERNAL_OPTIMIZER_CLASS_H_

#include <vector>

#include "tfplug/base/separate.h"
#include "tfplug/graph/internal/pipeline.h"
#include "tfplug/graph/optimizer_settings.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// An author's class of optimizer, as functions.
struct OptimizerClass {
  const char* (*device_type)();
  OptimizerSettings (*settings)();
  void (*append_passes)(std::vector<graph_internal::PassEntry>& entries);
  void* (*create_func)();
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_OPTIMIZER_CLASS_H_
