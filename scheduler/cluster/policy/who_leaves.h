// Which workers of a job do not stay, now that its ranks have let go, and which
// others could take their places: those that were asked to end leave, and those
// whose machines failed where others would do better.
#ifndef TROUPE_SCHEDULER_CLUSTER_POLICY_WHO_LEAVES_H_
#define TROUPE_SCHEDULER_CLUSTER_POLICY_WHO_LEAVES_H_

#include <set>
#include <vector>

#include "scheduler/cluster/choose_recovery.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/run.h"
#include "scheduler/cluster/worker_preference.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

// All of them REQUIRE run.handed.

// Ranks that have ended and whose workers do not stay: they were asked to end,
// or their machines failed again and others can take the places. They keep what
// they have until it is saved, or is known not to be needed.
std::set<int> LeavingRanks(const Job& job, const WorkerTable& workers);
// Those of them that were asked to end: they take nothing new.
std::set<int> RanksAskedToLeave(const Job& job, const WorkerTable& workers);
// Whose workers, and what they keep, the job has no more where it also leaves
// this rank's: those that were asked to end are no help to it.
std::set<int> GoneWith(const Job& job, int rank, const WorkerTable& workers);
// Whether the rank ended for a cause of its machine, and another worker could
// take its place.
bool IsBetterElsewhere(const Job& job, int rank, const WorkerTable& workers);

// The places that are vacant, and those of these ranks.
std::vector<VacantPlace> PlacesWith(const Run& run, const std::set<int>& ranks);
// Workers on which the job's start failed and which take none of these places,
// since other workers in service can; empty where the others are not enough.
FailedStarts AvoidedInPlaces(const Job& job,
                             const std::vector<VacantPlace>& places,
                             const WorkerTable& workers);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_POLICY_WHO_LEAVES_H_
