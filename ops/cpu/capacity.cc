#include "ops/capacity.h"

#include <vector>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

// Of the sequence whose choices these are; how many it drops.
int64_t Place(const CapacityArgs& args, int64_t first) {
  const int64_t k = args.choices.columns();
  const int32_t* const choices = args.choices.data<int32_t>() + first * k;
  const float* const gates = args.gates.data<float>() + first * k;
  float* const kept = args.kept.data<float>() + first * k;
  std::vector<int64_t> taken(args.experts);
  int64_t dropped = 0;
  for (int64_t j = 0; j < k; ++j) {
    for (int64_t at = j; at < args.tokens * k; at += k) {
      const int32_t expert = choices[at];
      CHECK(expert >= 0 && expert < args.experts)
          << "choice " << expert << ", of " << args.experts << " experts";
      const bool fits = taken[expert]++ < args.places;
      kept[at] = fits ? gates[at] : 0.0f;
      dropped += !fits;
    }
  }
  return dropped;
}

}  // namespace

void Capacity(Device&, const CapacityArgs& args) {
  int64_t dropped = 0;
  for (int64_t row = 0; row < args.choices.rows(); row += args.tokens) {
    dropped += Place(args, row);
  }
  if (args.dropped.defined()) {
    *args.dropped.data<double>() += static_cast<double>(dropped);
  }
}

void CapacityBackward(Device&, const CapacityBackwardArgs& args) {
  const float* const kept = args.kept.data<float>();
  const float* const d_kept = args.d_kept.data<float>();
  float* const d_gates = args.d_gates.data<float>();
  for (int64_t i = 0; i < args.kept.elements(); ++i) {
    d_gates[i] = kept[i] == 0 ? 0.0f : d_kept[i];
  }
}

}  // namespace troupe::cpu
