#include "worker/model/initialize.h"

#include "ops/random.h"
#include "ops/reduce.h"
#include "ops/tensor.h"
#include "proto/base/check.h"
#include "proto/plan/at_rest.h"

namespace troupe {
namespace {

// Elements of a parameter, from `first` of the whole tensor on.
void FillElements(Device& device, const Parameter& parameter, uint64_t seed,
                  const Tensor& elements, int64_t first) {
  switch (parameter.init()) {
    case Parameter::NORMAL:
      FillNormal(
          device,
          {.x = elements,
           .standard_deviation = static_cast<float>(parameter.init_std()),
           .stream = {.seed = seed,
                      .purpose = RandomPurpose::kInitialWeights,
                      .site = static_cast<uint32_t>(parameter.random_site())},
           .first_index = static_cast<uint64_t>(first)});
      break;
    case Parameter::ONES:
      Fill(device, {.x = elements, .value = 1.0f});
      break;
    default:
      CHECK(false) << parameter.name() << " has no initialisation";
  }
}

}  // namespace

void InitializeParameters(Device& device, const Unit& unit,
                          const InitialWeights& options, void* weights) {
  const Range holds = options.holds.value_or(Range{0, unit.flat_elements()});
  const Tensor flat(weights, DType::kF32, {holds.size()});
  device.Zero(flat.raw(), flat.bytes());
  for (const Parameter& parameter : unit.parameters()) {
    if (parameter.init() == Parameter::ZEROS) continue;  // they are
    for (const SliceRun& run : RunsOf(parameter, options.place)) {
      const int64_t begin = parameter.offset() + run.local;
      const Range here = Both({begin, begin + run.count}, holds);
      if (here.size() == 0) continue;
      FillElements(
          device, parameter, options.seed,
          flat.Slice(0, here.begin - holds.begin, here.end - holds.begin),
          run.whole + here.begin - begin);
    }
  }
}

void DrawElements(Device& device, const Parameter& parameter, uint64_t seed,
                  const Range& elements, float* weights) {
  const Tensor drawn(weights, DType::kF32, {elements.size()});
  if (parameter.init() == Parameter::ZEROS) {
    device.Zero(drawn.raw(), drawn.bytes());
    return;
  }
  FillElements(device, parameter, seed, drawn, elements.begin);
}

void RoundParameters(Device& device, int64_t elements,
                     const RoundedParameters& buffers) {
  Copy(device, {.x = Tensor(buffers.weights, DType::kF32, {elements}),
                .y = Tensor(buffers.parameters, buffers.type, {elements})});
}

}  // namespace troupe
