// What the papers say that each schedule costs, as arithmetic: the bubble, and
// the peak of activations. The schedules' headers derive from the same.
#ifndef TROUPE_TESTS_SCHEDULER_PIPELINES_CLOSED_FORMS_H_
#define TROUPE_TESTS_SCHEDULER_PIPELINES_CLOSED_FORMS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "scheduler/pipelines/compute_order.h"
#include "tests/scheduler/pipelines/evaluate.h"

namespace troupe {

struct ClosedForm {
  absl::string_view schedule;
  // For how long a rank idles in an optimizer step, where its passes take these
  // times on a stage. Nothing where no closed form is known; for passes that
  // all take the same time there always is one.
  std::optional<int> (*bubble)(const PipelineShape& shape,
                               const PassTimes& times);
  // Stages and micro-batches kept on a rank, at most.
  int (*peak)(const PipelineShape& shape, int rank);
  // The bubble counts between a rank's first start and its last end: ranks do
  // not wait for each other between steps.
  bool of_a_rank = false;
};

// CHECKs that there is one.
const ClosedForm& FindClosedForm(absl::string_view schedule);

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_PIPELINES_CLOSED_FORMS_H_
