// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_ACCESS_H_
#define TFPLUG_BASE_INTERNAL_ACCESS_H_

namespace tfplug::internal {

// The only friend of public classes: lets the library's own code reach what
// authors have no use for. A class grants it with
//
//   friend struct internal::Access;
//
// and each function here is named after the private member that it reaches, so
// this file lists everything that the public classes hide. The functions are
// templates, because this header is below all of those classes.
struct Access {};

}  // namespace tfplug::internal

#endif  // TFPLUG_BASE_INTERNAL_ACCESS_H_
