// What a job's run has others do: messages to the workers of its ranks, and
// what the store is asked. Each function appends actions (action.h) and changes
// nothing; when they are due, others decide (phase_effects.h, run_control.h).
//
// REQUIRES, of all that take a job and actions: it has a run. Where no worker
// has the rank, as far as this scheduler knows, nothing is said.
#ifndef TROUPE_SCHEDULER_CLUSTER_EFFECTS_H_
#define TROUPE_SCHEDULER_CLUSTER_EFFECTS_H_

#include <cstdint>
#include <string>

#include "proto/base/ids.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/job_table.h"

namespace troupe {

// The rank in the attempt that runs.
RankRef RefOf(const Job& job, int rank);

// To stop, after a checkpoint if the job saves; `peers_gone`: its collectives
// will not end by themselves.
void SendStop(const Job& job, int rank, const std::string& reason,
              bool peers_gone, Actions& actions);
// To end what it runs, and to say nothing more of it.
void SendForget(WorkerId worker, const RankRef& ref, const std::string& reason,
                Actions& actions);
// To forget the copies that it keeps of an attempt.
void SendGiveUpKept(WorkerId worker, const RankRef& ref,
                    const std::string& reason, Actions& actions);
// The same of all that the rank's worker keeps of this job, if anything.
void SendGiveUpKept(const Job& job, int rank, Actions& actions);
// To stay, though it was asked to end, while what it keeps may be needed.
void SendStay(const Job& job, int rank, Actions& actions);

// A value of the rendezvous that it waits for.
void SendValue(const Job& job, int rank, const std::string& key,
               const std::string& value, Actions& actions);
// There will be none: this store is another than that in which it began.
void SendLost(const Job& job, int rank, const std::string& key,
              Actions& actions);

// The checkpoint of this step is committed: once that is stored, and marked,
// where it cannot be.
void SendDone(const Job& job, int rank, int64_t step, Actions& actions);
// This write of the checkpoint is given up. At once: if the scheduler dies, the
// next one learns it from the ranks (checkpoint_gather.h).
struct GivenUpCheckpoint {
  int64_t step = 0;
  int64_t write = 0;  // worker.proto, CheckpointShard
  std::string why;
};
void SendGivenUp(const Job& job, int rank, const GivenUpCheckpoint& given_up,
                 Actions& actions);
// What it need not say again: once it is stored.
void SendStored(const Job& job, int rank, Stored stored, Actions& actions);
void SendEndStored(const Job& job, int rank, Actions& actions);

// The checkpoint from which an attempt begins; empty: none. REQUIRES a plan.
std::string ResumeOf(const Job& job);

// Whether the job's start is not known to be stored yet.
bool AwaitsStore(const Job& job);
// Whether its copies are a checkpoint, and that is not known to be stored.
bool AwaitsCopiesStored(const Job& job);
// Whether the store was asked this for the run, and nothing since.
bool IsOpen(const Job& job, const AwaitStored& asked);
// Asks for it to be stored that the attempt begins, or what else the run has
// asked last (StoreQuestion), with all that came before. REQUIRES a phase in
// which the store is asked.
void AwaitTheStore(const Job& job, Actions& actions);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_EFFECTS_H_
