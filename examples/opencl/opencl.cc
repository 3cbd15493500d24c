// SPDX-License-Identifier: Apache-2.0
#include "opencl.h"

#include <tfplug/graph_pass.h>

TFPLUG_REGISTER_DEVICE(opencl::Platform);
TFPLUG_REGISTER_GRAPH_PASSES("OPENCL");
