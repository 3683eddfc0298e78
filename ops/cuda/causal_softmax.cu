#include <cmath>

#include "ops/causal_softmax.h"
#include "ops/cuda/block.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"

namespace troupe::cuda {
namespace {

// Where a matrix of rows x keys stands in its sequence.
struct Place {
  int64_t queries, keys, first_position;

  __device__ int64_t KeysSeen(int64_t row) const {
    return first_position + row % queries + 1;
  }
};

// Of all threads of the block; the same in each. A barrier.
__device__ float BlockMax(float value) {
  __shared__ float maxima[kWarp];
  const unsigned lane = threadIdx.x % kWarp;
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, distance));
  }
  __syncthreads();
  if (lane == 0) maxima[threadIdx.x / kWarp] = value;
  __syncthreads();
  value = lane < blockDim.x / kWarp ? maxima[lane] : -INFINITY;
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, distance));
  }
  return value;
}

// A block has a row.
template <typename T>
__global__ void SoftmaxKernel(const T* x, T* y, float scale, Place place) {
  const int64_t row = blockIdx.x;
  const int64_t seen = place.KeysSeen(row);
  x += row * place.keys;
  y += row * place.keys;
  float largest = -INFINITY;
  for (int64_t j = threadIdx.x; j < seen; j += blockDim.x) {
    largest = fmaxf(largest, scale * FromElement(x[j]));
  }
  largest = BlockMax(largest);
  float sum = 0;
  for (int64_t j = threadIdx.x; j < seen; j += blockDim.x) {
    sum += __expf(scale * FromElement(x[j]) - largest);
  }
  const float factor = 1.0f / BlockSum(sum);
  for (int64_t j = threadIdx.x; j < place.keys; j += blockDim.x) {
    const float value =
        j < seen ? factor * __expf(scale * FromElement(x[j]) - largest) : 0.0f;
    y[j] = Rounded<T>(value);
  }
}

template <typename T>
__global__ void SoftmaxBackwardKernel(const T* y, const T* dy, T* dx,
                                      float scale, Place place) {
  const int64_t row = blockIdx.x;
  const int64_t seen = place.KeysSeen(row);
  y += row * place.keys;
  dy += row * place.keys;
  dx += row * place.keys;
  float sum = 0;
  for (int64_t j = threadIdx.x; j < seen; j += blockDim.x) {
    sum += FromElement(dy[j]) * FromElement(y[j]);
  }
  sum = BlockSum(sum);
  for (int64_t j = threadIdx.x; j < place.keys; j += blockDim.x) {
    const float value =
        j < seen ? scale * FromElement(y[j]) * (FromElement(dy[j]) - sum)
                 : 0.0f;
    dx[j] = Rounded<T>(value);
  }
}

Place PlaceOf(const Tensor& y, int64_t first_position) {
  return {.queries = y.dim(y.rank() - 2),
          .keys = y.columns(),
          .first_position = first_position};
}

LaunchShape ShapeOf(const Tensor& y) {
  return {.grid = dim3(static_cast<unsigned>(y.rows())),
          .block = dim3(ThreadsForRow(y.columns(), /*per_thread=*/4))};
}

}  // namespace

void CausalSoftmax(Device& device, const CausalSoftmaxArgs& args) {
  if (RefusesDocuments(device, args.documents.defined())) return;
  WithActivationType(args.y.dtype(), [&]<typename T>() {
    Launch(CudaOf(device), SoftmaxKernel<T>, ShapeOf(args.y),
           static_cast<const T*>(args.x.data<T>()), args.y.data<T>(),
           args.scale, PlaceOf(args.y, args.first_position));
  });
}

void CausalSoftmaxBackward(Device& device,
                           const CausalSoftmaxBackwardArgs& args) {
  if (RefusesDocuments(device, args.documents.defined())) return;
  WithActivationType(args.y.dtype(), [&]<typename T>() {
    Launch(CudaOf(device), SoftmaxBackwardKernel<T>, ShapeOf(args.y),
           static_cast<const T*>(args.y.data<T>()),
           static_cast<const T*>(args.dy.data<T>()), args.dx.data<T>(),
           args.scale, PlaceOf(args.y, args.first_position));
  });
}

}  // namespace troupe::cuda
