#include "scheduler/passes/nominal_cost.h"

namespace troupe {

double NominalSeconds(const Work& work) {
  constexpr double kFlopsPerSecond = 1e12;
  constexpr double kFlopsPerByte = 30;
  constexpr double kFlopsPerElement = 100;
  constexpr double kOverheadSeconds = 1e-9;
  // Attention's masked half is not counted in its flops, and is not done.
  const double flops = work.matmul_flops() + 2 * work.attention_flops() +
                       kFlopsPerByte * work.memory_bytes() +
                       kFlopsPerElement * work.elementwise_ops();
  return kOverheadSeconds + flops / kFlopsPerSecond + work.wait_seconds();
}

double NominalSeconds(const Unit& unit) {
  return NominalSeconds(unit.forward()) +
         NominalSeconds(unit.backward_input()) +
         NominalSeconds(unit.backward_weight()) +
         (unit.has_recompute() ? NominalSeconds(unit.recompute()) : 0);
}

}  // namespace troupe
