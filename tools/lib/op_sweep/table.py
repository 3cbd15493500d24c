# SPDX-License-Identifier: Apache-2.0
"""Imports the modules that fill rows.ROWS."""

from op_sweep import (  # noqa: F401
    rows_array, rows_cells, rows_elementwise, rows_image, rows_index, rows_lists,
    rows_nn, rows_sparse, rows_state, rows_window)
