// Writes down what each instruction reads and writes: the table of
// docs/plan.md, as code. Buffers of zero bytes are left out. Order and memory
// follow from it.
#ifndef TROUPE_SCHEDULER_PASSES_DECLARE_BUFFERS_H_
#define TROUPE_SCHEDULER_PASSES_DECLARE_BUFFERS_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void DeclareBuffers(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_DECLARE_BUFFERS_H_
