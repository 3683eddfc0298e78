#include "ops/activation_type.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/load_step.h"

namespace troupe::cuda {
namespace {

template <typename T>
struct RawLoadStep {
  float* weights;
  float* load;
  T* parameters;  // or null
  double mean, bias_rate;
  bool zero_load;
  int64_t n;
};

template <typename T>
__global__ void LoadStepKernel(RawLoadStep<T> a) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= a.n) return;
  const float load = a.load[i];
  const double sign = load < a.mean ? 1 : load > a.mean ? -1 : 0;
  const float weight =
      a.bias_rate == 0 ? static_cast<float>(load / a.mean)
                       : static_cast<float>(a.weights[i] + a.bias_rate * sign);
  a.weights[i] = weight;
  if (a.parameters != nullptr) a.parameters[i] = Rounded<T>(weight);
  if (a.zero_load) a.load[i] = 0;
}

}  // namespace

void LoadStep(Device& device, const LoadStepArgs& args) {
  const int64_t n = args.weights.elements();
  WithTypes(args.parameters, args.load, [&]<typename T, typename>() {
    Launch(CudaOf(device), LoadStepKernel<T>, FlatShape(n, 1),
           {.weights = args.weights.data<float>(),
            .load = args.load.data<float>(),
            .parameters = DataFrom<T>(args.parameters, 0),
            .mean = args.mean,
            .bias_rate = args.bias_rate,
            .zero_load = args.zero_load,
            .n = n});
  });
}

}  // namespace troupe::cuda
