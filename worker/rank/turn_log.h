// The list of events by which ranks agree whose each step is
// (proto/plan/turns.h), as one rank appends to it and reads it. It lies in the
// store of the attempt, a key for each event: of ranks that want the same place
// in the list the first to set its key has it, and the others read what it is.
//
//   TurnLog log(plan, rank, store);
//   ASSIGN_OR_RETURN(const TurnLog::Step step, log.Claim(7, asked));  //
//   replica if (step.own) ... RETURN_IF_ERROR(log.Deliver(sums));
//
//   ASSIGN_OR_RETURN(const TurnEvent event, log.Next(7, asked));      // server
//
// Calls wait until it is known what they ask for: for as long as a replica
// needs for its step. An abort of the store ends them. Errors: the store's, and
// StepTurns'. One thread at a time.
#ifndef TROUPE_WORKER_RANK_TURN_LOG_H_
#define TROUPE_WORKER_RANK_TURN_LOG_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/plan.pb.h"
#include "proto/plan/turns.h"
#include "worker/collective/key_value_store.h"

namespace troupe {

class TurnLog {
 public:
  // Borrows the plan, whose derived.takes_turns is set, and the store.
  TurnLog(const Plan& plan, int rank, KeyValueStore& store);

  // What this rank was asked for, and all are to do after the same step.
  struct Asked {
    bool stop = false;
    bool save = false;
  };

  // Of a replica, for each step in turn: takes the step, unless another has it.
  // And what all are to do after it.
  struct Step {
    bool own = false;
    Asked asked;
  };
  absl::StatusOr<Step> Claim(int64_t step, const Asked& asked);
  // Of the replica that has the step: its gradients are ready.
  absl::Status Deliver(std::string sums);

  // Of a server, in a step: the next claim or delivery. The step ends with a
  // delivery; then DeliveredIn(step) says whose it was, and AskedAfter what all
  // are to do.
  absl::StatusOr<TurnEvent> Next(int64_t step, const Asked& asked);
  const Turn& DeliveredIn(int64_t step) const {
    return turns_->DeliveredIn(step);
  }
  Asked AskedAfter(int64_t step) const;

 private:
  // The steps from this one on begin, if those before are over.
  absl::Status Open(int64_t step);
  absl::Status EraseBefore(int64_t first);
  std::string KeyOf(int64_t event) const;
  void Note(const Asked& asked);
  TurnEvent Request() const;
  // What comes next in the list: this event, or another rank's.
  absl::StatusOr<TurnEvent> Append(const TurnEvent& event);
  absl::StatusOr<TurnEvent> Read();
  absl::Status Apply(const TurnEvent& event);

  const Plan& plan_;
  const int rank_;
  const int place_;  // on the axis "data"
  KeyValueStore& store_;
  absl::optional<StepTurns> turns_;
  std::string behind_;              // the key before the next event's
  Asked pending_;                   // and not in the list yet
  absl::optional<int64_t> before_;  // the first of the steps before these
};

// Null where steps are of all replicas.
std::unique_ptr<TurnLog> TurnLogOf(const Plan& plan, int rank,
                                   KeyValueStore& store);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_TURN_LOG_H_
