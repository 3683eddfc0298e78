#include "worker/model/initialize.h"

#include "ops/random.h"
#include "ops/reduce.h"
#include "ops/tensor.h"
#include "proto/base/check.h"

namespace troupe {

void InitializeParameters(Device& device, const Unit& unit, uint64_t seed,
                          void* weights) {
  const Tensor flat(weights, DType::kF32, {unit.flat_elements()});
  device.Zero(flat.raw(), flat.bytes());
  for (const Parameter& parameter : unit.parameters()) {
    int64_t elements = 1;
    for (const int64_t dim : parameter.shape()) elements *= dim;
    const Tensor tensor =
        flat.Slice(0, parameter.offset(), parameter.offset() + elements);
    switch (parameter.init()) {
      case Parameter::NORMAL:
        FillNormal(
            device,
            {.x = tensor,
             .standard_deviation = static_cast<float>(parameter.init_std()),
             .stream = {
                 .seed = seed,
                 .purpose = RandomPurpose::kInitialWeights,
                 .site = static_cast<uint32_t>(parameter.random_site())}});
        break;
      case Parameter::ZEROS:
        break;  // they are
      case Parameter::ONES:
        Fill(device, {.x = tensor, .value = 1.0f});
        break;
      default:
        CHECK(false) << parameter.name() << " has no initialisation";
    }
  }
}

void RoundParameters(Device& device, const Unit& unit,
                     const RoundedParameters& buffers) {
  const int64_t n = unit.flat_elements();
  Copy(device, {.x = Tensor(buffers.weights, DType::kF32, {n}),
                .y = Tensor(buffers.parameters, DType::kBF16, {n})});
}

}  // namespace troupe
