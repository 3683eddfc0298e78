// A warp has a row of scores. Sums over rows are of f64, added in any order.
#include "ops/activation_type.h"
#include "ops/cuda/block.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/report.h"
#include "ops/router_loss.h"

namespace troupe::cuda {
namespace {

template <typename T>
struct RawRouterLoss {
  const float* scores;
  const T* load;  // or null
  double load_scale;
  int64_t first, tokens_of_sequence;
  const float* logsumexp;  // or null
  const int32_t* choices;
  double* balance;
  double* z;
  double* entropy;
  double* rows_counted;
  double* tokens;
  int64_t e, k;
  Fault* fault;
};

// Of the row's sequence.
template <typename T>
__device__ inline const T* LoadOf(const T* load, int64_t first, int64_t tokens,
                                  int64_t row, int64_t e) {
  return load + (tokens == 0 ? 0 : (first + row) / tokens) * e;
}

__device__ inline double RowSum(const float* s, int64_t e) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < e; i += kWarp) sum += s[i];
  return WarpSum(sum);
}

template <typename T>
__device__ inline double RowProduct(const T* load, const float* s, int64_t e) {
  double product = 0;
  for (int64_t i = threadIdx.x; i < e; i += kWarp) {
    product += double{Widened(load[i])} * s[i];
  }
  return WarpSum(product);
}

template <typename T>
__global__ void RouterLossKernel(RawRouterLoss<T> a) {
  const int64_t row = blockIdx.x;
  const float* const s = a.scores + row * a.e;
  const double sum = RowSum(s, a.e);
  double entropy = 0;
  for (int64_t i = threadIdx.x; i < a.e; i += kWarp) {
    const double p = s[i] / sum;
    if (s[i] > 0) entropy -= p * log(p);
  }
  entropy = WarpSum(entropy);
  for (int64_t j = threadIdx.x; j < a.k; j += kWarp) {
    const int32_t choice = a.choices[row * a.k + j];
    if (choice < 0 || choice >= a.e) {
      Report(a.fault, {.kind = FaultKind::kExpert,
                       .value = choice,
                       .index = row * a.k + j,
                       .limit = a.e});
    } else {
      atomicAdd(a.tokens + choice, 1.0);
    }
  }
  double balance = 0;
  if (a.load != nullptr) {
    const T* const load =
        LoadOf(a.load, a.first, a.tokens_of_sequence, row, a.e);
    balance = a.load_scale * RowProduct(load, s, a.e) / sum;
  }
  if (threadIdx.x != 0) return;
  atomicAdd(a.entropy, entropy);
  atomicAdd(a.rows_counted, 1.0);
  if (a.load != nullptr) atomicAdd(a.balance, balance);
  if (a.logsumexp != nullptr) {
    const double logsumexp = a.logsumexp[row];
    atomicAdd(a.z, logsumexp * logsumexp);
  }
}

template <typename T>
struct RawScoresBackward {
  const float* scores;
  const T* load;
  int64_t first, tokens_of_sequence;
  double scale;
  float* d_scores;
  int64_t e;
};

template <typename T>
__global__ void ScoresBackwardKernel(RawScoresBackward<T> a) {
  const int64_t row = blockIdx.x;
  const float* const s = a.scores + row * a.e;
  const T* const load = LoadOf(a.load, a.first, a.tokens_of_sequence, row, a.e);
  const double sum = RowSum(s, a.e);
  const double mean = RowProduct(load, s, a.e) / sum;
  for (int64_t i = threadIdx.x; i < a.e; i += kWarp) {
    a.d_scores[row * a.e + i] =
        static_cast<float>(a.scale * (Widened(load[i]) - mean) / sum);
  }
}

__global__ void LogsumexpBackwardKernel(const float* logsumexp, double scale,
                                        float* gradient, int64_t n) {
  const int64_t at = FlatBegin(1);
  if (at < n) gradient[at] = static_cast<float>(scale * logsumexp[at]);
}

LaunchShape WarpForEach(int64_t rows) {
  return {.grid = dim3(static_cast<unsigned>(rows)), .block = dim3(kWarp)};
}

DType TypeOf(const Tensor& load) {
  return load.defined() ? load.dtype() : DType::kF32;
}

}  // namespace

void RouterLoss(Device& device, const RouterLossArgs& args) {
  CudaDevice& cuda = CudaOf(device);
  WithActivationType(TypeOf(args.load), [&]<typename T>() {
    Launch(cuda, RouterLossKernel<T>, WarpForEach(args.scores.rows()),
           {.scores = args.scores.data<float>(),
            .load = DataFrom<T>(args.load, 0),
            .load_scale = args.load_scale,
            .first = args.rows.first,
            .tokens_of_sequence = args.rows.tokens,
            .logsumexp = DataFrom<float>(args.logsumexp, 0),
            .choices = args.choices.data<int32_t>(),
            .balance = DataFrom<double>(args.balance, 0),
            .z = DataFrom<double>(args.z, 0),
            .entropy = args.entropy.data<double>(),
            .rows_counted = args.rows_counted.data<double>(),
            .tokens = args.tokens.data<double>(),
            .e = args.scores.columns(),
            .k = args.choices.columns(),
            .fault = FaultOf(cuda)});
  });
}

void RouterLossBackward(Device& device, const RouterLossBackwardArgs& args) {
  CudaDevice& cuda = CudaOf(device);
  const int64_t n = args.scores.rows();
  if (args.d_scores.defined()) {
    WithActivationType(TypeOf(args.load), [&]<typename T>() {
      Launch(cuda, ScoresBackwardKernel<T>, WarpForEach(n),
             {.scores = args.scores.data<float>(),
              .load = args.load.data<T>(),
              .first = args.rows.first,
              .tokens_of_sequence = args.rows.tokens,
              .scale = args.balance_scale * args.load_scale,
              .d_scores = args.d_scores.data<float>(),
              .e = args.scores.columns()});
    });
  }
  if (args.d_logsumexp.defined()) {
    Launch(cuda, LogsumexpBackwardKernel, FlatShape(n, 1),
           args.logsumexp.data<float>(), 2 * args.z_scale,
           args.d_logsumexp.data<float>(), n);
  }
}

}  // namespace troupe::cuda
