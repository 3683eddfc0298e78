// Carries out what the table of phases says of the edge that a job has taken
// (phase.h): messages to the workers of its ranks (effects.h), which are free
// then or not, and questions to the store. Changes seats and workers; no phase.
#ifndef TROUPE_SCHEDULER_CLUSTER_PHASE_EFFECTS_H_
#define TROUPE_SCHEDULER_CLUSTER_PHASE_EFFECTS_H_

#include <string>

#include "proto/worker.pb.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

class PhaseEffects {
 public:
  // Borrows the workers.
  PhaseEffects(const Limits& limits, WorkerTable& workers)
      : limits_(limits), workers_(workers) {}

  // What is due of the edge that the job took: when the row with its new phase
  // is stored, for it may be asked whether it is. `why` is told to those that
  // are stopped or forget their ranks.
  void Perform(Job& job, const std::string& why, Actions& actions);

  // Those that are stopped hear another reason.
  void StopRanks(const Job& job, const std::string& why, bool peers_gone,
                 Actions& actions);
  // Another request to save copies. REQUIRES phase::SavingCopies.
  void SendSaveCopies(Job& job, int rank, SaveCopies request, Actions& actions);
  // The rank has ended, and its worker is not needed for the job any more, nor
  // is what it keeps.
  void Free(Job& job, int rank, Actions& actions);

 private:
  // Asks for it to be stored that the attempt begins, with what the one after
  // it needs where there may be one.
  void StoreStart(Job& job, Actions& actions);
  // An answer to what it was asked before is none to this.
  void AskTheStore(Job& job, Actions& actions);
  void HandOutRanks(Job& job, Actions& actions);
  void ForgetRanks(Job& job, const std::string& why, Actions& actions);
  // Those that are there.
  void FreeWorkers(Job& job, Actions& actions);
  void SaveCopiesOfAll(Job& job, Actions& actions);

  const Limits limits_;
  WorkerTable& workers_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_PHASE_EFFECTS_H_
