// What a rank tells the scheduler of a step: its record and the sums, which are
// the same on all ranks. What a step has of each sequence (JobSpec.
// sequence_losses) goes out once, from rank 0: the scheduler keeps the reports
// of a step until it has those of all ranks. Of the others a checksum is enough
// for it to see a rank whose sums are others.
#ifndef TROUPE_WORKER_SERVICE_STEP_REPORT_H_
#define TROUPE_WORKER_SERVICE_STEP_REPORT_H_

#include "absl/types/span.h"
#include "proto/plan/sums.h"
#include "proto/status.pb.h"
#include "proto/worker.pb.h"

namespace troupe {

struct ReportedStep {
  const StepRecord& record;
  absl::Span<const double> values;  // of the plan's sums, element by element
  bool of_others = false;           // StepReport's
};

// `sums`: Plan.sums.
StepReport MakeStepReport(const RankRef& ref, const Sums& sums,
                          const ReportedStep& step);

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_STEP_REPORT_H_
