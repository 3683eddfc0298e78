// Refuses a plan that would hang, lose work or overflow memory, before any
// device is touched, and says why with the whole grid in the message.
//
// Checked: the units' ops make sense, and their buffers hold what they put
// there; instructions well formed and `after` earlier; every buffer read has
// been written, and its last write, in whichever tier, is what is read; a slot
// is not reused before its readers are done; on every
// rank each unit runs every micro-batch forward and backward exactly once;
// every parameter has an owner, replicas of a unit sum over the same group;
// members of a group enter the same collectives in the same order; no wait
// cycle across ranks, lane order included; no tier above its budget.
#ifndef TROUPE_PROTO_PLAN_CHECK_PROGRAM_H_
#define TROUPE_PROTO_PLAN_CHECK_PROGRAM_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// FailedPrecondition (a bug in a pass): any of the structural faults.
absl::Status CheckPrograms(const Plan& plan);

// InvalidArgument: rank r's tier needs more than `workers[r]` has; the message
// has every line item and what would make it fit. A worker that states no
// budget at all is not checked; one that states some has nothing in the other
// tiers. `beside_on_gpus` is what a rank on a GPU needs beside its slots; null:
// nothing.
using MemoryBeside =
    std::function<std::vector<MemoryItem>(const Role& role, int rank)>;
absl::Status CheckBudgets(const Plan& plan,
                          const std::vector<WorkerDescription>& workers,
                          const MemoryBeside& beside_on_gpus = nullptr);
// The same of each rank by itself.
std::vector<absl::Status> CheckBudgetsOfRanks(
    const Plan& plan, const std::vector<WorkerDescription>& workers,
    const MemoryBeside& beside_on_gpus = nullptr);

// One row a role, by its first rank, as in faults, one column an instruction of
// the lane, in text form.
std::string ProgramGrid(const Plan& plan, Program::Kind kind);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_PROGRAM_H_
