// SPDX-License-Identifier: Apache-2.0
// What nearly all unit tests include; see precompile.py.
#include <doctest/doctest.h>
#include <tfplug/plugin.h>
#include <tfplug/testing.h>
