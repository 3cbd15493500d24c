// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_ROWS_H_
#define CPU_SIM_KERNELS_ROWS_H_

#include <Eigen/Core>

namespace cpu_sim {

// Rows of elements as Eigen's arrays.
template <typename T>
using Row = Eigen::Array<T, 1, Eigen::Dynamic>;
template <typename T>
using RowMap = Eigen::Map<Row<T>>;
template <typename T>
using ConstRowMap = Eigen::Map<const Row<T>>;

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_ROWS_H_
