#include "ops/load_step.h"

#include "ops/activation_type.h"
#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

float Updated(const LoadStepArgs& args, float weight, float load) {
  if (args.bias_rate == 0) return static_cast<float>(load / args.mean);
  const double sign = load < args.mean ? 1 : load > args.mean ? -1 : 0;
  return static_cast<float>(weight + args.bias_rate * sign);
}

}  // namespace

void LoadStep(Device&, const LoadStepArgs& args) {
  float* const weights = args.weights.data<float>();
  float* const load = args.load.data<float>();
  WithTypes(args.parameters, args.load, [&]<typename T, typename>() {
    T* const parameters = DataFrom<T>(args.parameters, 0);
    for (int64_t i = 0; i < args.weights.elements(); ++i) {
      weights[i] = Updated(args, weights[i], load[i]);
      if (parameters != nullptr) parameters[i] = ToElement<T>(weights[i]);
      if (args.zero_load) load[i] = 0;
    }
  });
}

}  // namespace troupe::cpu
