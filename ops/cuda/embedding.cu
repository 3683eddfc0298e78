// The gradient of the token table must be added up in a fixed order, and a
// token may occur many times. So the rows are first sorted by token, in order
// within each (sort_rows.h); then each run of one token is added up by threads
// that own the table's row. Of a token that is frequent this would take long,
// so runs are cut wherever a multiple of kPieceRows of the sorted rows is
// reached: each piece is summed in the order of its rows, by a block of its
// own, and then the pieces in theirs. Where runs are cut follows from how often
// each token occurs, and from nothing else.
#include <limits>

#include "ops/cuda/block.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/report.h"
#include "ops/cuda/scratch.h"
#include "ops/cuda/sort_rows.h"
#include "ops/embedding.h"
#include "proto/base/gpu_limits.h"

namespace troupe::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int n = 4;  // columns of a thread in the tables of f32
constexpr int kRunColumns = kThreads * n;
constexpr int64_t kPieceRows = kGpuEmbeddingPieceRows;

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
  const int32_t* tokens;       // as they came
  const uint32_t* keys;        // sorted
  const int32_t* sorted_rows;  // whose each key is
  const T* dy;
  G* dwte;
  // Sums of pieces, a row for each kPieceRows places: of a run's first piece
  // where it meets the second, of the later ones where they begin.
  float *first_sums, *later_sums;
  int64_t rows, columns, first_token, table_rows, vocabulary;
  bool aligned;
  Fault* fault;

  // The row of the table that a key belongs to; -1: none.
  __device__ int64_t TableRow(uint32_t key) const {
    const int64_t at = int64_t{key} - first_token;
    return key < vocabulary && at >= 0 && at < table_rows ? at : -1;
  }
  // Whether a run that began before goes on at this place.
  __device__ bool GoesOn(int64_t place) const {
    return place > 0 && place < rows && keys[place - 1] == keys[place];
  }
};

// One block for each place among the sorted rows and each kRunColumns columns;
// those at which a piece begins add it up. A run of one piece is then done.
template <typename T, typename G>
__global__ void AddPiecesKernel(RawRuns<T, G> a) {
  const int64_t place = blockIdx.x;
  const bool later = a.GoesOn(place);
  if (later && place % kPieceRows != 0) return;
  const uint32_t key = a.keys[place];
  const int64_t at = a.TableRow(key);
  if (at < 0) {
    if (key >= a.vocabulary && threadIdx.x == 0 && blockIdx.y == 0) {
      const int32_t row = a.sorted_rows[place];
      Report(a.fault, {.kind = FaultKind::kToken,
                       .value = a.tokens[row],
                       .index = row,
                       .limit = a.vocabulary});
    }
    return;
  }
  const int64_t column =
      int64_t{blockIdx.y} * kRunColumns + int64_t{threadIdx.x} * n;
  const int64_t count = a.columns - column;
  const int64_t piece = place / kPieceRows;
  const int64_t next = (piece + 1) * kPieceRows;
  const int64_t end = next < a.rows ? next : a.rows;
  float sums[n] = {};
  for (int64_t begin = place;; begin += kWarp) {
    // A warp finds the piece's next rows together, one a lane, so that reading
    // them waits for nothing.
    const int64_t mine = begin + threadIdx.x % kWarp;
    const bool same = mine < end && a.keys[mine] == key;
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
  if (later) {
    Store(a.later_sums + piece * a.columns + column, count, a.aligned, sums);
  } else if (next < a.rows && a.keys[next] == key) {
    Store(a.first_sums + (piece + 1) * a.columns + column, count, a.aligned,
          sums);
  } else {
    AddOnce(a.dwte + at * a.columns + column, count, a.aligned, sums);
  }
}

// One block for each kPieceRows places and each kRunColumns columns; that where
// the second piece of a run begins adds up all of the run's, in order.
template <typename T, typename G>
__global__ void JoinPiecesKernel(RawRuns<T, G> a) {
  const int64_t second = blockIdx.x;
  const int64_t place = second * kPieceRows;
  if (!a.GoesOn(place)) return;
  const uint32_t key = a.keys[place];
  const int64_t before = place - kPieceRows;
  if (a.keys[before] == key && a.GoesOn(before)) return;  // a third, or later
  const int64_t at = a.TableRow(key);
  const int64_t column =
      int64_t{blockIdx.y} * kRunColumns + int64_t{threadIdx.x} * n;
  const int64_t count = a.columns - column;
  if (at < 0 || count <= 0) return;
  float sums[n];
  Load(a.first_sums + second * a.columns + column, count, a.aligned, sums);
  for (int64_t piece = second; piece < gridDim.x; ++piece) {
    if (a.keys[piece * kPieceRows] != key) break;
    float more[n];
    Load(a.later_sums + piece * a.columns + column, count, a.aligned, more);
#pragma unroll
    for (int j = 0; j < n; ++j) sums[j] += more[j];
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
  const int32_t* const tokens = args.tokens.data<int32_t>();
  const SortedRows sorted(cuda, tokens, static_cast<int>(rows),
                          static_cast<int32_t>(vocabulary));
  const int64_t pieces = (rows + kPieceRows - 1) / kPieceRows;
  const Scratch sums(cuda, 2 * pieces * columns * sizeof(float));
  const T* dy = args.dy.data<T>();
  G* dwte = args.dwte.data<G>();
  const RawRuns<T, G> raw = {
      .tokens = tokens,
      .keys = sorted.keys(),
      .sorted_rows = sorted.rows(),
      .dy = dy,
      .dwte = dwte,
      .first_sums = sums.as<float>(),
      .later_sums = sums.as<float>() + pieces * columns,
      .rows = rows,
      .columns = columns,
      .first_token = args.first_token,
      .table_rows = args.dwte.dim(0),
      .vocabulary = vocabulary,
      .aligned = AlignedRows<n>(columns, dy) && Aligned<n>(dwte),
      .fault = FaultOf(cuda)};
  Launch(cuda, AddPiecesKernel<T, G>, RunShape(rows, columns), raw);
  if (pieces < 2) return;
  Launch(cuda, JoinPiecesKernel<T, G>, RunShape(pieces, columns), raw);
}

}  // namespace

void Embedding(Device& device, const EmbeddingArgs& args) {
  if (RefusesDocuments(device, args.documents.defined())) return;
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
  if (RefusesDocuments(device, args.documents.defined())) return;
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
