// The programs of a role, by what they are for (docs/plan.md, "Programs").
#ifndef TROUPE_WORKER_ENGINE_RANK_PROGRAMS_H_
#define TROUPE_WORKER_ENGINE_RANK_PROGRAMS_H_

#include "proto/plan.pb.h"

namespace troupe {

// Borrowed from the plan.
struct RankPrograms {
  const Program* step = nullptr;      // TRAIN; VALIDATE of a job that evaluates
  const Program* validate = nullptr;  // null: the job asks for none beside
  const Program* checkpoint = nullptr;  // null: the job asks for none
  const Program* fill = nullptr;        // null: the pipeline drains
  const Program* report = nullptr;      // null where report_lag is 0
  const Program* keep = nullptr;        // null: nobody recovers from copies
  // A step sums the scalars of the step this number before its own.
  int report_lag = 0;
  // It finds out whether any rank was asked to stop or to save, not this one
  // alone.
  bool agrees_on_stop = false;
};

// CHECKs that there is all that a plan must have.
RankPrograms ProgramsOf(const Role& role, const Derived& derived);

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_RANK_PROGRAMS_H_
