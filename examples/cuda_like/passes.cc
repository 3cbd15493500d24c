// SPDX-License-Identifier: Apache-2.0
#include <tfplug/graph_pass.h>

TFPLUG_REGISTER_GRAPH_PASSES("CUDA_LIKE");
