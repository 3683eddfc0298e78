#include <array>
#include <cmath>

#include "ops/activation_type.h"
#include "ops/adafactor.h"
#include "ops/cuda/block.h"
#include "ops/cuda/column_sums.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/device.h"

namespace troupe::cuda {
namespace {

constexpr int kThreads = 256;  // of a block alone

// T is the type of the copy of the weights, G of the gradients.
template <typename T, typename G>
struct RawAdafactor {
  float* weights;
  G* gradients;
  float *row_moment, *column_moment;  // of a matrix
  float* second_moment;               // of a vector
  T* parameters;                      // or null
  int64_t rows, columns;
  double beta2, epsilon1, epsilon2;
  float learning_rate, weight_decay, gradient_scale;
  bool scale_parameter, zero_gradients;
  AdafactorScratch scratch;

  __device__ float GradientAt(int64_t element) const {
    return Widened(gradients[element]) * gradient_scale;
  }
  __device__ float Kept(float moment, double mean_square) const {
    return static_cast<float>(beta2 * moment +
                              (1 - beta2) * (mean_square + epsilon1));
  }
  __device__ float DirectionAt(int64_t row, int64_t column) const {
    return GradientAt(row * columns + column) * scratch.row_factors[row] *
           scratch.column_factors[column];
  }
};

// A block for each row.
template <typename T, typename G>
__global__ void RowMomentKernel(RawAdafactor<T, G> a) {
  const int64_t row = blockIdx.x;
  double sum = 0;
  for (int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
    const double g = a.GradientAt(row * a.columns + c);
    sum += g * g;
  }
  sum = BlockSum(sum);
  if (threadIdx.x != 0) return;
  const double mean = sum / static_cast<double>(a.columns);
  a.row_moment[row] = a.Kept(a.row_moment[row], mean);
}

// One block.
template <typename T, typename G>
__global__ void RowFactorsKernel(RawAdafactor<T, G> a) {
  double sum = 0;
  for (int64_t row = threadIdx.x; row < a.rows; row += blockDim.x) {
    sum += a.row_moment[row];
  }
  const double mean = BlockSum(sum) / static_cast<double>(a.rows);
  for (int64_t row = threadIdx.x; row < a.rows; row += blockDim.x) {
    a.scratch.row_factors[row] =
        static_cast<float>(sqrt(mean / a.row_moment[row]));
  }
}

// column_factors has the sums of squares.
template <typename T, typename G>
__global__ void ColumnMomentKernel(RawAdafactor<T, G> a) {
  const int64_t c = FlatBegin(1);
  if (c >= a.columns) return;
  const double mean =
      double{a.scratch.column_factors[c]} / static_cast<double>(a.rows);
  const float moment = a.Kept(a.column_moment[c], mean);
  a.column_moment[c] = moment;
  a.scratch.column_factors[c] = static_cast<float>(1 / sqrt(double{moment}));
}

template <typename T, typename G>
__global__ void SecondMomentKernel(RawAdafactor<T, G> a) {
  const int64_t c = FlatBegin(1);
  if (c >= a.columns) return;
  const double g = a.GradientAt(c);
  const float moment = a.Kept(a.second_moment[c], g * g);
  a.second_moment[c] = moment;
  a.scratch.column_factors[c] = static_cast<float>(1 / sqrt(double{moment}));
  if (c == 0) a.scratch.row_factors[0] = 1;
}

// A block for each row.
template <typename T, typename G>
__global__ void RowSquaresKernel(RawAdafactor<T, G> a) {
  const int64_t row = blockIdx.x;
  double of_update = 0, of_weights = 0;
  for (int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
    const double u = a.DirectionAt(row, c);
    const double w = a.weights[row * a.columns + c];
    of_update += u * u;
    of_weights += w * w;
  }
  of_update = BlockSum(of_update);
  of_weights = BlockSum(of_weights);
  if (threadIdx.x != 0) return;
  a.scratch.row_squares[2 * row] = of_update;
  a.scratch.row_squares[2 * row + 1] = of_weights;
}

// A block for each of the two sums.
__global__ void AddSquaresKernel(AdafactorScratch scratch, int64_t rows) {
  double sum = 0;
  for (int64_t row = threadIdx.x; row < rows; row += blockDim.x) {
    sum += scratch.row_squares[2 * row + blockIdx.x];
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) scratch.squares[blockIdx.x] = sum;
}

// A block for each row.
template <typename T, typename G>
__global__ void AdafactorKernel(RawAdafactor<T, G> a) {
  const int64_t row = blockIdx.x;
  const double elements = static_cast<double>(a.rows * a.columns);
  double step = a.learning_rate;
  if (a.scale_parameter) {
    step *= fmax(a.epsilon2, sqrt(a.scratch.squares[1] / elements));
  }
  const auto kept = static_cast<float>(1 - step * a.weight_decay);
  // NaN stays NaN, which fmax would drop.
  const double rms = sqrt(a.scratch.squares[0] / elements);
  const auto size = static_cast<float>(rms <= 1 ? step : step / rms);
  for (int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
    const int64_t i = row * a.columns + c;
    const float weight = kept * a.weights[i] - size * a.DirectionAt(row, c);
    a.weights[i] = weight;
    if (a.parameters != nullptr) a.parameters[i] = Rounded<T>(weight);
    if (a.zero_gradients) a.gradients[i] = Rounded<G>(0);
  }
}

template <typename T, typename G>
struct SquareTerm {
  RawAdafactor<T, G> a;

  __device__ void operator()(int64_t row, int64_t column, int64_t,
                             float (&values)[1][1]) const {
    const float g = a.GradientAt(row * a.columns + column);
    values[0][0] = g * g;
  }
};

}  // namespace

void Adafactor(Device& device, const AdafactorArgs& args) {
  CudaDevice& cuda = CudaOf(device);
  const int64_t rows = args.weights.dim(0), columns = args.weights.dim(1);
  WithTypes(args.parameters, args.gradients, [&]<typename T, typename G>() {
    const RawAdafactor<T, G> raw = {
        .weights = args.weights.data<float>(),
        .gradients = args.gradients.data<G>(),
        .row_moment = DataFrom<float>(args.row_moment, 0),
        .column_moment = DataFrom<float>(args.column_moment, 0),
        .second_moment = DataFrom<float>(args.second_moment, 0),
        .parameters = DataFrom<T>(args.parameters, 0),
        .rows = rows,
        .columns = columns,
        .beta2 = args.beta2,
        .epsilon1 = args.epsilon1,
        .epsilon2 = args.epsilon2,
        .learning_rate = args.learning_rate,
        .weight_decay = args.weight_decay,
        .gradient_scale = args.gradient_scale,
        .scale_parameter = args.scale_parameter,
        .zero_gradients = args.zero_gradients,
        .scratch = AdafactorScratchIn(args)};
    const LaunchShape by_row = {
        .grid = dim3(static_cast<unsigned>(rows)),
        .block = dim3(static_cast<unsigned>(ThreadsForRow(columns, 4)))};
    if (raw.second_moment != nullptr) {
      Launch(cuda, SecondMomentKernel<T, G>, FlatShape(columns, 1), raw);
    } else {
      Launch(cuda, RowMomentKernel<T, G>, by_row, raw);
      Launch(cuda, RowFactorsKernel<T, G>, {.block = dim3(kThreads)}, raw);
      device.Zero(raw.scratch.column_factors, columns * sizeof(float));
      SumColumns<1, 1>(cuda, rows, columns, SquareTerm<T, G>{raw},
                       std::array<float*, 1>{raw.scratch.column_factors});
      Launch(cuda, ColumnMomentKernel<T, G>, FlatShape(columns, 1), raw);
    }
    Launch(cuda, RowSquaresKernel<T, G>, by_row, raw);
    Launch(cuda, AddSquaresKernel, {.grid = dim3(2), .block = dim3(kThreads)},
           raw.scratch, rows);
    Launch(cuda, AdafactorKernel<T, G>, by_row, raw);
  });
}

}  // namespace troupe::cuda
