// A block of threads has a block of rows, of one expert from one source, or a
// part of it. Where it lies in the buffer follows from the offsets of one
// source and of those before it; for its place among the grouped rows the
// threads add up the blocks before it.
#include "ops/cuda/block.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/regroup.h"

namespace troupe::cuda {
namespace {

constexpr int kThreads = 256;
// Blocks of threads for one block of rows; more would be without work where
// routing is even.
constexpr int64_t kRowsPerThreadBlock = 32;
constexpr int64_t kPartsMax = 32;

struct Round {
  ExpertRounds rounds;
  int rank;
  int64_t number;
};

Round RoundOn(const RoundOfRows& round) {
  return {
      .rounds = RoundsOf(round), .rank = round.rank, .number = round.number};
}

// Grouped rows of the blocks before `block`, which are numbered by expert, then
// source. The same in all threads.
__device__ int64_t RowsBefore(const Round& round, int block) {
  int64_t rows = 0;
  for (int i = threadIdx.x; i < block; i += blockDim.x) {
    const int ranks = round.rounds.ranks();
    rows += round.rounds
                .ReceivedBlock(round.rank, round.number, i / ranks, i % ranks)
                .size();
  }
  return BlockSum(rows);
}

// blockIdx.x: the block of rows; blockIdx.y: a part of it.
template <typename Word>
__global__ void RegroupKernel(Round round, const Word* x, Word* y,
                              int64_t words, bool back) {
  const int block = static_cast<int>(blockIdx.x);
  const int ranks = round.rounds.ranks();
  const RowSpan received = round.rounds.ReceivedBlock(
      round.rank, round.number, block / ranks, block % ranks);
  if (received.size() == 0) return;
  const int64_t grouped = RowsBefore(round, block);
  if (grouped + received.size() > round.rounds.rows_max()) return;
  const int64_t from = (back ? grouped : received.begin) * words;
  const int64_t to = (back ? received.begin : grouped) * words;
  const int64_t count = received.size() * words;
  const int64_t step = int64_t{blockDim.x} * gridDim.y;
  for (int64_t i = int64_t{blockIdx.y} * blockDim.x + threadIdx.x; i < count;
       i += step) {
    y[to + i] = x[from + i];
  }
}

// blockIdx.x: an expert, or the end of all.
__global__ void OwnOffsetsKernel(Round round, int32_t* own_offsets) {
  const int expert = static_cast<int>(blockIdx.x);
  const int64_t rows = RowsBefore(round, expert * round.rounds.ranks());
  if (threadIdx.x == 0) own_offsets[expert] = static_cast<int32_t>(rows);
}

template <typename Word>
void Move(CudaDevice& cuda, const RegroupArgs& args, bool back) {
  const int64_t words = args.x.columns() *
                        static_cast<int64_t>(DTypeBytes(args.x.dtype())) /
                        static_cast<int64_t>(sizeof(Word));
  const Round round = RoundOn(args.round);
  const int blocks = round.rounds.experts();  // experts of the rank, by ranks
  const int64_t mean = args.round.rows_max / blocks;
  const int64_t parts =
      std::clamp<int64_t>(mean / kRowsPerThreadBlock, 1, kPartsMax);
  Launch(cuda, RegroupKernel<Word>,
         {.grid =
              dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(parts)),
          .block = dim3(kThreads)},
         round, static_cast<const Word*>(args.x.raw()),
         static_cast<Word*>(args.y.raw()), words, back);
}

void MoveWords(Device& device, const RegroupArgs& args, bool back) {
  CudaDevice& cuda = CudaOf(device);
  const size_t bytes = args.x.columns() * DTypeBytes(args.x.dtype());
  const bool whole = bytes % sizeof(uint4) == 0 &&
                     Aligned<16>(static_cast<const char*>(args.x.raw()),
                                 static_cast<const char*>(args.y.raw()));
  if (whole) return Move<uint4>(cuda, args, back);
  if (args.x.dtype() == DType::kF32) return Move<uint32_t>(cuda, args, back);
  Move<uint16_t>(cuda, args, back);
}

}  // namespace

void Regroup(Device& device, const RegroupArgs& args) {
  MoveWords(device, args, /*back=*/false);
}

void Ungroup(Device& device, const RegroupArgs& args) {
  MoveWords(device, args, /*back=*/true);
}

void OwnOffsets(Device& device, const OwnOffsetsArgs& args) {
  Launch(CudaOf(device), OwnOffsetsKernel,
         {.grid = dim3(static_cast<unsigned>(args.own_offsets.elements())),
          .block = dim3(kThreads)},
         RoundOn(args.round), args.own_offsets.data<int32_t>());
}

}  // namespace troupe::cuda
