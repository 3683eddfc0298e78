#include "scheduler/passes/writes_into_others.h"

namespace troupe {

bool WritesIntoOthers(const UnitTable& table,
                      const Instruction::Exchange& exchange) {
  const Op& op = table.ops(exchange.op());
  if (!op.has_round()) return false;
  if (op.round().back()) return !exchange.backward() && op.inputs_size() > 2;
  if (!exchange.backward()) return false;
  for (int i = exchange.op() + 1; i < table.ops_size(); ++i) {
    const Op& behind = table.ops(i);
    if (behind.has_round() && behind.kind() == Op::EXCHANGE &&
        behind.inputs(0).tensor() == op.inputs(0).tensor()) {
      return true;
    }
  }
  return false;
}

}  // namespace troupe
