// Exchanges of rounds of experts that share the place in which they write.
#ifndef TROUPE_SCHEDULER_PASSES_WRITES_INTO_OTHERS_H_
#define TROUPE_SCHEDULER_PASSES_WRITES_INTO_OTHERS_H_

#include "proto/program.pb.h"
#include "proto/unit.pb.h"

namespace troupe {

// Whether it leaves what exchanges of other rounds have written there: results,
// or, in backward, gradients of rows that are dispatched. The last round is the
// first in backward.
bool WritesIntoOthers(const UnitTable& table,
                      const Instruction::Exchange& exchange);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_WRITES_INTO_OTHERS_H_
