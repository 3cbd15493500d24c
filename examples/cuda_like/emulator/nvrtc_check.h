// SPDX-License-Identifier: Apache-2.0
#ifndef CUDA_LIKE_EMULATOR_NVRTC_CHECK_H_
#define CUDA_LIKE_EMULATOR_NVRTC_CHECK_H_

#include <string>
#include <vector>

namespace cuda_like::emulator {

// Compiles a source with the real NVRTC, if CUDA_LIKE_CHECK names its library,
// for sm_75, sm_90 and the newest architecture, with the other options given.
// It needs no driver. Returns the messages of failures, "" if there are none.
std::string CheckWithNvrtc(const std::string& source,
                           const std::vector<std::string>& options);

}  // namespace cuda_like::emulator

#endif  // CUDA_LIKE_EMULATOR_NVRTC_CHECK_H_
