// From where a job goes on whose ranks have let go of it: the newest step of
// which every rank's state is whole in the memory of some worker, and which
// rank hands it to which (proto/plan/copies.h). Pure arithmetic.
#ifndef TROUPE_SCHEDULER_CLUSTER_CHOOSE_RECOVERY_H_
#define TROUPE_SCHEDULER_CLUSTER_CHOOSE_RECOVERY_H_

#include <set>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "proto/plan.pb.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/worker_preference.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

// What the worker of each rank keeps; nothing where it is lost.
using KeptByRank = std::vector<std::vector<KeptCopy>>;

// Nothing: of no step all is left. `plan` has all roles. A rank that has its
// own copy of the step needs none; the others get theirs from a rank that holds
// the same, or from the one that mirrors it.
absl::optional<Recovery> ChooseRecovery(const Plan& plan,
                                        const KeptByRank& kept);

// Of idle workers one for each of the places, in their order: of the same kind
// of device, with memory for what the rank needs, on the host of the worker
// that was there if one is; else rather where the other copies of its state are
// not, also where workers have to change places for that. If there is a way to
// fill all of them, all are; null where there is none. Those where the job's
// start has failed, or of which there is doubt, come after all others.
struct VacantPlace {
  int rank = 0;
  WorkerDescription lost;  // the worker that was there
  // A host that has the other copy of this rank's state, or the state of which
  // this rank has the other copy.
  std::set<std::string> copies_on = {};
};
// hosts[r] is that of rank r; where it is vacant, that of the worker that was
// there. REQUIRES that `plan` keeps copies.
std::set<std::string> HostsOfCopies(const Plan& plan, int rank,
                                    const std::vector<std::string>& hosts);
std::vector<const Worker*> FillPlaces(const std::vector<VacantPlace>& places,
                                      const Prediction& prediction,
                                      std::vector<const Worker*> idle,
                                      const FailedStarts& failed = {});

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_CHOOSE_RECOVERY_H_
