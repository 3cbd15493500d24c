// SPDX-License-Identifier: Apache-2.0
// Includes what nearly all unit tests include. See precompile.py.
#include <doctest/doctest.h>
#include <tfplug/plugin.h>
#include <tfplug/testing.h>
