// Gives each instruction its operands: the table of docs/plan.md, as code.
// Buffers of zero bytes are left out. Order and memory follow from it.
//
// Where TRAIN works ahead, a value that one program writes and a later one
// reads is carried, and each use says at which offset its copy lies. Where it
// uses older weights, so do the PARAMETERS.
#ifndef TROUPE_SCHEDULER_PASSES_DECLARE_BUFFERS_H_
#define TROUPE_SCHEDULER_PASSES_DECLARE_BUFFERS_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void DeclareBuffers(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_DECLARE_BUFFERS_H_
