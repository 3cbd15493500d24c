// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_LANGUAGES_H_
#define TFPLUG_COMPILED_LANGUAGES_H_

// The languages that tfplug knows; for another one, see language.h.
#include "tfplug/compiled/languages/cuda.h"
#include "tfplug/compiled/languages/glsl.h"
#include "tfplug/compiled/languages/metal.h"
#include "tfplug/compiled/languages/opencl_c.h"
#include "tfplug/compiled/languages/plain_c.h"

#endif  // TFPLUG_COMPILED_LANGUAGES_H_
