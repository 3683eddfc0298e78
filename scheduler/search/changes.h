// What else a job or its workers could be, so that a search may say what would
// change its choice.
#ifndef TROUPE_SCHEDULER_SEARCH_CHANGES_H_
#define TROUPE_SCHEDULER_SEARCH_CHANGES_H_

#include <vector>

#include "absl/types/span.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"

namespace troupe {

struct Changeable {
  JobSpec job;
  std::vector<WorkerDescription> workers;
};

struct InputChange {
  const char* text;  // "10 % more device memory"
  // False: it does not apply, as of links where there are none, and nothing is
  // changed.
  bool (*make)(Changeable& what);
  // Units cost what they did (KnownCosts).
  bool keeps_costs;
};

// In the order in which they are told.
absl::Span<const InputChange> Changes();

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SEARCH_CHANGES_H_
