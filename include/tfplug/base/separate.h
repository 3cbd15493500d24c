// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_SEPARATE_H_
#define TFPLUG_BASE_SEPARATE_H_

// By default, every function of the library is inline. With TFPLUG_SEPARATE, which
// the build systems' targets for separate compilation define, headers only declare
// the largest parts: op kernels, default passes, the tables of graphs and
// computation on the host. The files in tfplug/separate/ define them, once in a
// plug-in. Of these, those that register kernels define TFPLUG_SEPARATE_PART.
#ifdef TFPLUG_SEPARATE
#define TFPLUG_SEPARABLE
#else
#define TFPLUG_SEPARABLE inline
#endif

#endif  // TFPLUG_BASE_SEPARATE_H_
