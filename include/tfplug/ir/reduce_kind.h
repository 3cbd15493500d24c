// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_IR_REDUCE_KIND_H_
#define TFPLUG_IR_REDUCE_KIND_H_

#include <cstdint>

#pragma GCC visibility push(hidden)

namespace tfplug {

// How Reduce combines values. Max and Min are NaN if any value is NaN; of
// bools they are "any" and "all".
enum class ReduceKind : uint8_t { kSum, kProduct, kMax, kMin };

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_IR_REDUCE_KIND_H_
