// How exchanges of groups that span hosts are carried out: of the rows of
// scheduler/collectives the one that the cost model predicts to be fastest, for
// each group, collective and size, or the one that the job names
// (docs/collectives.md).
//
// A choice is of all groups of a name: so sums of parameters that several of
// them have alike are taken in one order. Where these groups lie on hosts in
// different ways, or NCCL carries one, all of them are flat. Chosen once, a way
// stays for the job: for a worker that takes a lost one's place only what
// carries it is chosen anew (ChooseBackends).
#ifndef TROUPE_SCHEDULER_PLANNER_CHOOSE_WAYS_H_
#define TROUPE_SCHEDULER_PLANNER_CHOOSE_WAYS_H_

#include <vector>

#include "absl/status/status.h"
#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// Sets levels, ways and why_flat of the groups, and their carriers for these.
// Sums of scalars are flat, and so are sums of narrow numbers that no job names
// a row for: flat ones are rounded once. All-to-alls of blocks of unlike sizes,
// rows of experts, are flat. workers[r] fills rank r.
//
// Where `before` is given, an earlier plan of the job with the same mesh whose
// groups went over sockets, each exchange goes as it did there, if the row is
// still possible: rates that were measured anew do not change the bits of sums.
//
// InvalidArgument, beginning with communication.COLLECTIVE: a group that spans
// hosts cannot do as the job says, and why. REQUIRES ChooseBackends.
absl::Status ChooseWays(const std::vector<WorkerDescription>& workers,
                        Plan& plan, const Plan* before = nullptr);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_CHOOSE_WAYS_H_
