// The gradient of the token table must be added up in a fixed order, and a
// token may occur many times. So the rows are first sorted by token, in order
// within each (sort_rows.h); then each run of one token is added up by threads
// that own the table's row, in the order that a loop over the rows would take.
#include <limits>

#include "ops/cuda/block.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/report.h"
#include "ops/cuda/scratch.h"
#include "ops/cuda/sort_rows.h"
#include "ops/embedding.h"

namespace troupe::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int n = 4;  // columns of a thread in the tables of f32
constexpr int kRunColumns = kThreads * n;

template <typename T>
struct RawEmbedding {
  const int32_t* tokens;
  const T *wte, *wpe;  // wpe from the first position on, or null
  T* y;
  int64_t time, columns, first_token, table_rows, vocabulary;
  bool aligned;
  Fault* fault;
};

// One block a row.
template <typename T>
__global__ void EmbeddingKernel(RawEmbedding<T> a) {
  constexpr int k = kPack<T>;
  const int64_t row = blockIdx.x;
  int64_t token = a.tokens[row];
  if (token < 0 || token >= a.vocabulary) {
    if (threadIdx.x == 0) {
      Report(a.fault, {.kind = FaultKind::kToken,
                       .value = token,
                       .index = row,
                       .limit = a.vocabulary});
    }
    token = a.first_token;
  }
  const int64_t at = token - a.first_token;
  const bool here = at >= 0 && at < a.table_rows;
  const T* const from = a.wte + (here ? at * a.columns : 0);
  const T* const position =
      a.wpe == nullptr ? nullptr : a.wpe + row % a.time * a.columns;
  for (int64_t i = int64_t{threadIdx.x} * k; i < a.columns;
       i += int64_t{blockDim.x} * k) {
    const int64_t count = a.columns - i;
    float y[k] = {}, other[k] = {};
    if (here) Load(from + i, count, a.aligned, y);
    if (position != nullptr) {
      Load(position + i, count, a.aligned, other);
#pragma unroll
      for (int j = 0; j < k; ++j) y[j] += other[j];
    }
    Store(a.y + row * a.columns + i, count, a.aligned, y);
  }
}

// to += sums, rounded once.
template <typename G>
__device__ inline void AddOnce(G* to, int64_t count, bool aligned,
                               const float (&sums)[n]) {
  float values[n];
  Load(to, count, aligned, values);
#pragma unroll
  for (int j = 0; j < n; ++j) values[j] += sums[j];
  Store(to, count, aligned, values);
}

// G is the type of the table's gradient.
template <typename T, typename G>
struct RawRuns {
  const int32_t *sorted_tokens, *sorted_rows;
  const T* dy;
  G* dwte;
  int64_t rows, columns, first_token, table_rows, vocabulary;
  bool aligned;
  Fault* fault;
};

// One block for each place among the sorted rows and each kRunColumns columns;
// those that start a run add it up.
template <typename T, typename G>
__global__ void AddRunsKernel(RawRuns<T, G> a) {
  const int64_t place = blockIdx.x;
  const int64_t column =
      int64_t{blockIdx.y} * kRunColumns + int64_t{threadIdx.x} * n;
  const int64_t count = a.columns - column;
  const int32_t token = a.sorted_tokens[place];
  if (place > 0 && a.sorted_tokens[place - 1] == token) return;
  if (token < 0 || token >= a.vocabulary) {
    if (threadIdx.x == 0 && blockIdx.y == 0) {
      Report(a.fault, {.kind = FaultKind::kToken,
                       .value = token,
                       .index = a.sorted_rows[place],
                       .limit = a.vocabulary});
    }
    return;
  }
  const int64_t at = token - a.first_token;
  if (at < 0 || at >= a.table_rows) return;
  float sums[n] = {};
  for (int64_t begin = place;; begin += kWarp) {
    // A warp finds the run's next rows together, one a lane, so that reading
    // them waits for nothing.
    const int64_t mine = begin + threadIdx.x % kWarp;
    const bool same = mine < a.rows && a.sorted_tokens[mine] == token;
    const int32_t row = same ? a.sorted_rows[mine] : 0;
    const int found = __popc(__ballot_sync(kAllLanes, same));
#pragma unroll 4
    for (int i = 0; i < found; ++i) {
      const int64_t from = __shfl_sync(kAllLanes, row, i);
      float dy[n];
      Load(a.dy + from * a.columns + column, count, a.aligned, dy);
#pragma unroll
      for (int j = 0; j < n; ++j) sums[j] += dy[j];
    }
    if (found < kWarp) break;
  }
  AddOnce(a.dwte + at * a.columns + column, count, a.aligned, sums);
}

// One block for each position and each kRunColumns columns; samples in order.
template <typename T, typename G>
__global__ void AddPositionsKernel(const T* dy, int64_t batch, int64_t columns,
                                   G* dwpe, bool aligned) {
  const int64_t column =
      int64_t{blockIdx.y} * kRunColumns + int64_t{threadIdx.x} * n;
  const int64_t count = columns - column;
  if (count <= 0) return;
  const int64_t at = blockIdx.x * columns + column;
  float sums[n] = {};
  for (int64_t sample = 0; sample < batch; ++sample) {
    float values[n];
    Load(dy + sample * gridDim.x * columns + at, count, aligned, values);
#pragma unroll
    for (int j = 0; j < n; ++j) sums[j] += values[j];
  }
  AddOnce(dwpe + at, count, aligned, sums);
}

// How many tokens there are, of which a table has all or some.
template <typename Args>
int64_t VocabularyOf(const Args& args, const Tensor& table) {
  return args.vocabulary > 0 ? args.vocabulary : table.dim(0);
}

LaunchShape RunShape(int64_t places, int64_t columns) {
  return {.grid = dim3(
              static_cast<unsigned>(places),
              static_cast<unsigned>((columns + kRunColumns - 1) / kRunColumns)),
          .block = dim3(kThreads)};
}

template <typename T, typename G>
void AddTokens(CudaDevice& cuda, const EmbeddingBackwardArgs& args) {
  const int64_t rows = args.dy.rows(), columns = args.dy.columns();
  CHECK_LE(rows, std::numeric_limits<int32_t>::max());
  const int64_t vocabulary = VocabularyOf(args, args.dwte);
  const Scratch tokens(cuda, rows * sizeof(int32_t));
  const Scratch order(cuda, rows * sizeof(int32_t));
  SortRows(cuda, {.tokens = args.tokens.data<int32_t>(),
                  .rows = static_cast<int>(rows),
                  .vocabulary = static_cast<int32_t>(vocabulary),
                  .sorted_tokens = tokens.as<int32_t>(),
                  .sorted_rows = order.as<int32_t>()});
  const T* dy = args.dy.data<T>();
  G* dwte = args.dwte.data<G>();
  const RawRuns<T, G> raw = {
      .sorted_tokens = tokens.as<int32_t>(),
      .sorted_rows = order.as<int32_t>(),
      .dy = dy,
      .dwte = dwte,
      .rows = rows,
      .columns = columns,
      .first_token = args.first_token,
      .table_rows = args.dwte.dim(0),
      .vocabulary = vocabulary,
      .aligned = AlignedRows<n>(columns, dy) && Aligned<n>(dwte),
      .fault = FaultOf(cuda)};
  Launch(cuda, AddRunsKernel<T, G>, RunShape(rows, columns), raw);
}

}  // namespace

void Embedding(Device& device, const EmbeddingArgs& args) {
  CudaDevice& cuda = CudaOf(device);
  const int64_t columns = args.y.columns();
  WithActivationType(args.y.dtype(), [&]<typename T>() {
    const T* wte = args.wte.data<T>();
    const T* wpe = DataFrom<T>(args.wpe, args.first_position * columns);
    T* y = args.y.data<T>();
    const RawEmbedding<T> raw = {
        .tokens = args.tokens.data<int32_t>(),
        .wte = wte,
        .wpe = wpe,
        .y = y,
        .time = args.tokens.dim(1),
        .columns = columns,
        .first_token = args.first_token,
        .table_rows = args.wte.dim(0),
        .vocabulary = VocabularyOf(args, args.wte),
        .aligned = AlignedRows<kPack<T>>(columns, wte, wpe, y),
        .fault = FaultOf(cuda)};
    Launch(cuda, EmbeddingKernel<T>,
           {.grid = dim3(static_cast<unsigned>(args.y.rows())),
            .block = dim3(ThreadsForRow(columns, kPack<T>))},
           raw);
  });
}

void EmbeddingBackward(Device& device, const EmbeddingBackwardArgs& args) {
  CudaDevice& cuda = CudaOf(device);
  const int64_t columns = args.dy.columns();
  if (args.dwte.defined()) {
    WithTypes(args.dy, args.dwte,
              [&]<typename T, typename G>() { AddTokens<T, G>(cuda, args); });
  }
  if (!args.dwpe.defined()) return;
  WithTypes(args.dy, args.dwpe, [&]<typename T, typename G>() {
    const T* dy = args.dy.data<T>();
    G* dwpe = DataFrom<G>(args.dwpe, args.first_position * columns);
    Launch(cuda, AddPositionsKernel<T, G>,
           RunShape(args.tokens.dim(1), columns), dy, args.tokens.dim(0),
           columns, dwpe, AlignedRows<n>(columns, dy) && Aligned<n>(dwpe));
  });
}

}  // namespace troupe::cuda
