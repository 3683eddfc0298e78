// Choices are sorted by CUB's radix sort (sort_rows.h), which is stable; rows
// are summed by threads that own their columns, in the order of the choices.
#include "ops/cuda/block.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/report.h"
#include "ops/cuda/sort_rows.h"
#include "ops/permute.h"

namespace troupe::cuda {
namespace {

// A thread has a choice.
__global__ void PlacesKernel(const int32_t* choices, const int32_t* sorted,
                             int64_t count, int64_t experts, int32_t* sources,
                             int32_t* places, Fault* fault) {
  const int64_t at = FlatBegin(1);
  if (at >= count) return;
  const int32_t source = sorted[at];
  sources[at] = source;
  places[source] = static_cast<int32_t>(at);
  const int32_t expert = choices[source];
  if (expert < 0 || expert >= experts) {
    Report(fault, {.kind = FaultKind::kExpert,
                   .value = expert,
                   .index = source,
                   .limit = experts});
  }
}

// A thread has an expert, and finds the first of the keys that is not below it.
__global__ void OffsetsKernel(const uint32_t* keys, int64_t count,
                              int64_t experts, int32_t* offsets) {
  const int64_t expert = FlatBegin(1);
  if (expert > experts) return;
  int64_t low = 0, high = count;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (keys[middle] < expert) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  offsets[expert] = static_cast<int32_t>(low);
}

// A block has a row of y, of `words` words.
template <typename Word>
__global__ void GatherRowsKernel(const Word* x, const int32_t* sources,
                                 int choices, Word* y, int64_t words) {
  const int64_t row = blockIdx.x;
  const Word* const from = x + int64_t{sources[row] / choices} * words;
  for (int64_t i = threadIdx.x; i < words; i += blockDim.x) {
    y[row * words + i] = from[i];
  }
}

template <typename Word>
void Gather(CudaDevice& cuda, const GatherRowsArgs& args) {
  const int64_t words = args.y.columns() *
                        static_cast<int64_t>(DTypeBytes(args.y.dtype())) /
                        static_cast<int64_t>(sizeof(Word));
  Launch(cuda, GatherRowsKernel<Word>,
         {.grid = dim3(static_cast<unsigned>(args.y.rows())),
          .block = dim3(ThreadsForRow(words, /*per_thread=*/2))},
         static_cast<const Word*>(args.x.raw()), args.sources.data<int32_t>(),
         args.choices, static_cast<Word*>(args.y.raw()), words);
}

template <typename T>
struct RawSumRows {
  const T* x;
  const int32_t* places;
  const T* residual;  // or null
  T* y;
  int64_t columns, choices;
  bool aligned;
};

// A block has a row of y.
template <typename T>
__global__ void SumRowsKernel(RawSumRows<T> a) {
  constexpr int k = kPack<T>;
  const int64_t row = blockIdx.x;
  const int32_t* const places = a.places + row * a.choices;
  for (int64_t i = int64_t{threadIdx.x} * k; i < a.columns;
       i += int64_t{blockDim.x} * k) {
    const int64_t count = a.columns - i;
    float sum[k], next[k];
    Load(a.x + places[0] * a.columns + i, count, a.aligned, sum);
    for (int64_t j = 1; j < a.choices; ++j) {
      Load(a.x + places[j] * a.columns + i, count, a.aligned, next);
#pragma unroll
      for (int e = 0; e < k; ++e) sum[e] += next[e];
    }
    if (a.residual != nullptr) {
      Load(a.residual + row * a.columns + i, count, a.aligned, next);
#pragma unroll
      for (int e = 0; e < k; ++e) sum[e] += next[e];
    }
    Store(a.y + row * a.columns + i, count, a.aligned, sum);
  }
}

}  // namespace

void SortChoices(Device& device, const SortChoicesArgs& args) {
  CudaDevice& cuda = CudaOf(device);
  const int64_t count = args.choices.elements();
  const int64_t experts = args.offsets.elements() - 1;
  const int32_t* const choices = args.choices.data<int32_t>();
  if (count == 0) {
    return Launch(cuda, OffsetsKernel, FlatShape(experts + 1, 1), nullptr, 0,
                  experts, args.offsets.data<int32_t>());
  }
  const SortedRows sorted(cuda, choices, static_cast<int>(count),
                          static_cast<int32_t>(experts));
  Launch(cuda, PlacesKernel, FlatShape(count, 1), choices, sorted.rows(), count,
         experts, args.sources.data<int32_t>(), args.places.data<int32_t>(),
         FaultOf(cuda));
  Launch(cuda, OffsetsKernel, FlatShape(experts + 1, 1), sorted.keys(), count,
         experts, args.offsets.data<int32_t>());
}

void GatherRows(Device& device, const GatherRowsArgs& args) {
  CudaDevice& cuda = CudaOf(device);
  const size_t bytes = args.y.columns() * DTypeBytes(args.y.dtype());
  const bool whole = bytes % sizeof(uint4) == 0 &&
                     Aligned<16>(static_cast<const char*>(args.x.raw()),
                                 static_cast<const char*>(args.y.raw()));
  if (whole) return Gather<uint4>(cuda, args);
  if (args.y.dtype() == DType::kF32) return Gather<uint32_t>(cuda, args);
  Gather<uint16_t>(cuda, args);
}

void SumRows(Device& device, const SumRowsArgs& args) {
  WithActivationType(args.y.dtype(), [&]<typename T>() {
    const RawSumRows<T> raw = {.x = args.x.data<T>(),
                               .places = args.places.data<int32_t>(),
                               .residual = DataFrom<T>(args.residual, 0),
                               .y = args.y.data<T>(),
                               .columns = args.y.columns(),
                               .choices = args.places.columns()};
    RawSumRows<T> rows = raw;
    rows.aligned = AlignedRows<kPack<T>>(raw.columns, raw.x, raw.residual,
                                         static_cast<const T*>(raw.y));
    Launch(CudaOf(device), SumRowsKernel<T>,
           {.grid = dim3(static_cast<unsigned>(args.y.rows())),
            .block = dim3(ThreadsForRow(raw.columns, kPack<T>))},
           rows);
  });
}

}  // namespace troupe::cuda
