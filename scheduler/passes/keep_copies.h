// Where the job is to survive the loss of a worker: the KEEP program, in which
// each rank copies its state into its host's memory and, where nobody else
// holds the same, hands the copy to another rank (proto/plan/copies.h).
#ifndef TROUPE_SCHEDULER_PASSES_KEEP_COPIES_H_
#define TROUPE_SCHEDULER_PASSES_KEEP_COPIES_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void KeepCopies(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_KEEP_COPIES_H_
