// A radix sort, from the lowest digit to the highest, eight bits at a time: two
// passes for a vocabulary below 65,536. A pass counts the digits of each block
// of rows, adds the counts up in the order (digit, block), which says where
// each block's rows of each digit begin, and moves the rows there, in order.
#include "ops/cuda/block.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/scratch.h"
#include "ops/cuda/sort_rows.h"

namespace troupe::cuda {
namespace {

constexpr int kDigitBits = 8;
constexpr int kDigits = 1 << kDigitBits;
constexpr int kRows = kDigits;  // of a block: a thread for each row and digit
constexpr int kScanThreads = 1024;

struct SortPass {
  const int32_t* tokens;
  const int32_t* rows;  // null: 0, 1, 2, ...
  int32_t* to_tokens;
  int32_t* to_rows;
  int32_t* counts;  // [kDigits, blocks]
  int count;
  int32_t vocabulary;
  int shift;
};

__device__ inline int DigitOf(const SortPass& pass, int32_t token) {
  const bool inside = token >= 0 && token < pass.vocabulary;
  return (inside ? token : pass.vocabulary) >> pass.shift & (kDigits - 1);
}

__global__ void CountDigitsKernel(SortPass pass) {
  __shared__ int counts[kDigits];
  counts[threadIdx.x] = 0;
  __syncthreads();
  const int at = blockIdx.x * kRows + threadIdx.x;
  if (at < pass.count) atomicAdd(&counts[DigitOf(pass, pass.tokens[at])], 1);
  __syncthreads();
  pass.counts[threadIdx.x * gridDim.x + blockIdx.x] = counts[threadIdx.x];
}

// One block: each count becomes the sum of those before it. A thread owns a
// range of them.
__global__ void AddUpCountsKernel(int32_t* counts, int count) {
  __shared__ int32_t sums[kScanThreads];
  const int thread = threadIdx.x;
  const int each = (count + kScanThreads - 1) / kScanThreads;
  const int begin = thread * each < count ? thread * each : count;
  const int end = begin + each < count ? begin + each : count;
  int32_t sum = 0;
  for (int i = begin; i < end; ++i) sum += counts[i];
  sums[thread] = sum;
  for (int distance = 1; distance < kScanThreads; distance *= 2) {
    __syncthreads();
    const int32_t before = thread >= distance ? sums[thread - distance] : 0;
    __syncthreads();
    sums[thread] += before;
  }
  int32_t before = sums[thread] - sum;
  for (int i = begin; i < end; ++i) {
    const int32_t mine = counts[i];
    counts[i] = before;
    before += mine;
  }
}

__global__ void MoveRowsKernel(SortPass pass) {
  __shared__ int digits[kRows];
  const int at = blockIdx.x * kRows + threadIdx.x;
  const int32_t token = at < pass.count ? pass.tokens[at] : 0;
  const int digit = at < pass.count ? DigitOf(pass, token) : -1;
  digits[threadIdx.x] = digit;
  __syncthreads();
  if (at >= pass.count) return;
  int place = pass.counts[digit * gridDim.x + blockIdx.x];
  for (unsigned i = 0; i < threadIdx.x; ++i) place += digits[i] == digit;
  pass.to_tokens[place] = token;
  pass.to_rows[place] = pass.rows == nullptr ? at : pass.rows[at];
}

void Enqueue(CudaDevice& cuda, const SortPass& pass) {
  const int blocks = (pass.count + kRows - 1) / kRows;
  const LaunchShape shape = {.grid = dim3(static_cast<unsigned>(blocks)),
                             .block = dim3(kRows)};
  Launch(cuda, CountDigitsKernel, shape, pass);
  Launch(cuda, AddUpCountsKernel, {.block = dim3(kScanThreads)}, pass.counts,
         blocks * kDigits);
  Launch(cuda, MoveRowsKernel, shape, pass);
}

}  // namespace

void SortRows(CudaDevice& cuda, const SortRowsArgs& args) {
  int passes = 1;  // the vocabulary's size is a key too
  while (int64_t{args.vocabulary} >> passes * kDigitBits > 0) ++passes;
  const size_t bytes = args.rows * sizeof(int32_t);
  const size_t blocks = (args.rows + kRows - 1) / kRows;
  const Scratch counts(cuda, blocks * kDigits * sizeof(int32_t));
  const Scratch other_tokens(cuda, bytes), other_rows(cuda, bytes);
  SortPass pass = {.tokens = args.tokens,
                   .rows = nullptr,
                   .counts = counts.as<int32_t>(),
                   .count = args.rows,
                   .vocabulary = args.vocabulary};
  for (int i = 0; i < passes; ++i) {
    // They take turns, so that the last pass writes to the caller's.
    const bool last = (passes - i) % 2 == 1;
    pass.shift = i * kDigitBits;
    pass.to_tokens = last ? args.sorted_tokens : other_tokens.as<int32_t>();
    pass.to_rows = last ? args.sorted_rows : other_rows.as<int32_t>();
    Enqueue(cuda, pass);
    pass.tokens = pass.to_tokens;
    pass.rows = pass.to_rows;
  }
}

}  // namespace troupe::cuda
