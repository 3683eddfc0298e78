// Last pass: what must be done before what. Two uses of a byte of a slot, one
// of them a write, keep their order in the program; whatever that does not say,
// may overlap. Copies of a slot are memory of their own. Edges that follow from
// others or from the order of a lane are left out.
#ifndef TROUPE_SCHEDULER_PASSES_DERIVE_AFTER_H_
#define TROUPE_SCHEDULER_PASSES_DERIVE_AFTER_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void DeriveAfter(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_DERIVE_AFTER_H_
