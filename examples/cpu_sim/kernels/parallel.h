// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_PARALLEL_H_
#define CPU_SIM_KERNELS_PARALLEL_H_

#include <algorithm>
#include <cstdint>

// The threads on which the loops of a device run, shared by all streams. Work is
// divided into blocks by its size alone, never by the number of threads, so that
// results do not depend on that number. The files in simd/ include this header: see
// simd.h about inline functions. The functions below have a name of its own for
// each level, because their callers' lambdas have.
namespace cpu_sim {

// Returns the number of threads, the calling one included.
int64_t NumThreads();

// Calls run(context, block, slot) once for each block in [0, blocks), on this
// thread and on others, and returns after the last call: Threads::Get().Run.
void RunBlocks(int64_t blocks, void (*run)(void*, int64_t, int64_t),
               void* context);

// Returns the elements of a piece that is worth the time of another thread
// (kPieceCost), and at least one.
int64_t PieceOf(int64_t cost_of_element);

// The unit of a cost is the time in which an element of an array is read, added
// and written, or kLanes products of floats are summed.
constexpr int64_t kPieceCost = 1 << 16;
constexpr int64_t kLanes = 16;

// Calls f(block, slot) as RunBlocks does.
template <class F>
void ForEachBlock(int64_t blocks, F f) {
  if (blocks == 1) return f(int64_t{0}, int64_t{0});
  RunBlocks(
      blocks,
      [](void* context, int64_t block, int64_t slot) {
        (*static_cast<F*>(context))(block, slot);
      },
      &f);
}

// Calls f(begin, end, slot) for pieces of [0, size), each but the last with
// `piece` elements.
template <class F>
void ForEachPiece(int64_t size, int64_t piece, F f) {
  if (size <= 0) return;
  ForEachBlock((size + piece - 1) / piece, [&](int64_t block, int64_t slot) {
    f(block * piece, std::min(size, (block + 1) * piece), slot);
  });
}

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_PARALLEL_H_
