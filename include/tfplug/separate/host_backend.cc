// SPDX-License-Identifier: Apache-2.0
// Defines the host's primitives of host/host_backend.h.
#include "tfplug/host/internal/generic_host.h"
