// Where the job validates: the VALIDATE program, which runs each of the rank's
// validation micro-batches forward through its units.
#ifndef TROUPE_SCHEDULER_PASSES_ADD_VALIDATION_H_
#define TROUPE_SCHEDULER_PASSES_ADD_VALIDATION_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void AddValidation(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_ADD_VALIDATION_H_
