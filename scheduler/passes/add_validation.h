// Where the job validates: the VALIDATE program, which runs each validation
// micro-batch forward through the stages. As many micro-batches as the pipeline
// has ranks go through a rank's first stage, then through its second, and so
// on, so that all ranks have something to do.
#ifndef TROUPE_SCHEDULER_PASSES_ADD_VALIDATION_H_
#define TROUPE_SCHEDULER_PASSES_ADD_VALIDATION_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void AddValidation(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_ADD_VALIDATION_H_
