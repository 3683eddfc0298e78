// What instructions move between ranks.
#include <algorithm>
#include <numeric>

#include "proto/plan/at_rest.h"
#include "proto/plan/copies.h"
#include "proto/plan/edges.h"
#include "proto/plan/groups.h"
#include "proto/plan/ops/op_view.h"
#include "proto/plan/outer_change.h"
#include "proto/plan/part_state.h"
#include "proto/plan/precision.h"
#include "proto/plan/reduced_range.h"
#include "proto/plan/roles.h"
#include "proto/plan/served.h"
#include "proto/plan/sums.h"
#include "proto/plan/tensor_spec.h"
#include "scheduler/simulate/cost_model.h"

namespace troupe {

namespace {

const Op& OpOf(const Plan& plan, const Instruction& exchange) {
  return plan.tables(plan.units(exchange.unit()).table())
      .ops(exchange.exchange().op());
}

// Of all rows that a rank dispatches: it has room for no fewer that it
// receives.
int64_t DispatchedBytes(const Instruction& exchange) {
  int64_t bytes = 0;
  for (const Instruction::Operand& operand : exchange.operands()) {
    if (operand.part() == Instruction::SIZES) continue;
    bytes = bytes == 0 ? operand.bytes() : std::min(bytes, operand.bytes());
  }
  return bytes;
}

// Whether its blocks are slices of what is dealt.
bool IsSliced(const Instruction& instruction) {
  return instruction.kind() == Instruction::SCATTER_GRADS ||
         instruction.kind() == Instruction::GATHER_PARAMETERS;
}

}  // namespace

bool HasUnevenBlocks(const Plan& plan, const Instruction& instruction) {
  if (instruction.kind() == Instruction::EXCHANGE) {
    return OpOf(plan, instruction).has_round();
  }
  return IsSliced(instruction) &&
         !plan.groups(instruction.group()).weights().empty();
}

int64_t BusiestBytes(const Plan& plan, int rank,
                     const Instruction& instruction) {
  const int64_t bytes = CollectiveBytes(plan, rank, instruction);
  if (HasUnevenBlocks(plan, instruction) && IsSliced(instruction)) {
    const auto& weights = plan.groups(instruction.group()).weights();
    // As if all had slices as large as the largest, for which the others wait.
    const double largest = *std::max_element(weights.begin(), weights.end());
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    return static_cast<int64_t>(static_cast<double>(bytes) * weights.size() *
                                largest / sum);
  }
  if (instruction.kind() != Instruction::EXCHANGE) return bytes;
  const Op& op = OpOf(plan, instruction);
  if (!op.has_round()) return bytes;
  const OpView view(plan.tables(plan.units(instruction.unit()).table()), op);
  const TensorSpec& x = view.input("x");
  const TensorSpec& y = view.output("y");
  const TensorSpec& received = op.round().back() ? x : y;
  if (!received.has_expected_rows()) return bytes;  // gates: a few bytes
  const int64_t dispatched = RowsOf(op.round().back() ? y : x);
  return DispatchedBytes(instruction) / dispatched * received.expected_rows();
}

int64_t CollectiveBytes(const Plan& plan, int rank,
                        const Instruction& instruction) {
  if (instruction.kind() == Instruction::REDUCE_SCALARS) {
    constexpr int64_t kFlagsBytes = 2 * sizeof(double);
    return instruction.has_when() ? kFlagsBytes : SumsBytes(plan);
  }
  if (instruction.kind() == Instruction::OUTER_REDUCE) {
    return ChangeBytesReduced(LargestChange(
        plan, *FindPlacement(RoleOf(plan, rank), instruction.unit()), rank));
  }
  if (instruction.kind() == Instruction::EXCHANGE) {
    const Op& op = OpOf(plan, instruction);
    if (op.has_round()) {
      return op.round().number() > 0 ? 0 : DispatchedBytes(instruction);
    }
    int64_t bytes = 0;
    for (const Instruction::Operand& operand : instruction.operands()) {
      bytes = std::max(bytes, operand.bytes());
    }
    return bytes;
  }
  if (instruction.kind() == Instruction::MIRROR) {
    return StateCopyBytes(plan, RoleOf(plan, rank));
  }
  const int u = instruction.unit();
  const auto dealt = [&](DealtParts of) {
    int64_t elements = 0;
    const Placement& placement = *FindPlacement(RoleOf(plan, rank), u);
    for (const Stretch& stretch :
         StretchesWith(plan, placement, instruction.part(), of)) {
      elements += stretch.all.size();
    }
    return elements;
  };
  if (instruction.kind() == Instruction::GATHER_PARAMETERS) {
    return dealt(DealtParts::kAll) *
           BytesOfElement(ParametersType(plan.units(u)));
  }
  int64_t elements = 0;
  if (instruction.kind() == Instruction::SCATTER_GRADS) {
    elements = dealt(DealtParts::kTrained);
  } else if (instruction.kind() == Instruction::REDUCE_GRADS) {
    for (int i = 0; i < std::max(1, instruction.unit_count()); ++i) {
      const Placement& placement = *FindPlacement(RoleOf(plan, rank), u + i);
      elements += static_cast<int64_t>(
          static_cast<double>(
              ReducedRange(plan.units(u + i), instruction).size()) *
          ShareAtRest(plan, placement, instruction.part(), rank));
    }
  }
  return elements * BytesOfElement(GradientsType(plan.units(u)));
}

Collective CollectiveOf(const Instruction& instruction) {
  switch (instruction.kind()) {
    case Instruction::EXCHANGE:
      return instruction.exchange().collective();
    case Instruction::SCATTER_GRADS:
      return REDUCE_SCATTER;
    case Instruction::GATHER_PARAMETERS:
      return ALL_GATHER;
    case Instruction::MIRROR:
      return SHIFT;
    case Instruction::PUSH:
    case Instruction::PULL:
      return ALL_TO_ALL;
    default:
      return ALL_REDUCE;
  }
}

int64_t ServedBytesSent(const Plan& plan, int rank,
                        const Instruction& instruction) {
  const bool pushes = instruction.kind() == Instruction::PUSH;
  if (!pushes && instruction.kind() != Instruction::PULL) return 0;
  const Placement& placement =
      *FindPlacement(RoleOf(plan, rank), instruction.unit());
  if (pushes == Serves(placement)) return 0;
  const Unit& unit = plan.units(instruction.unit());
  if (pushes) {
    return TrainedElements(unit) * BytesOfElement(GradientsType(unit));
  }
  return ServedSlice(plan, placement, rank).size() *
         ReplicasServed(plan, placement) * BytesOfElement(ParametersType(unit));
}

int64_t TransferBytes(const Plan& plan, const Instruction& instruction) {
  const bool transfer = instruction.kind() == Instruction::SEND ||
                        instruction.kind() == Instruction::RECV;
  return transfer ? OutputBytes(plan, instruction.unit(), instruction.output())
                  : 0;
}

}  // namespace troupe
