// Whose turn it is in the queue, which is served in the order of submission.
// The first job that the registered workers could carry, but not the idle ones,
// holds those behind it back, so that it is not starved; a job that needs more
// workers than are registered holds nobody back.
#ifndef TROUPE_SCHEDULER_CLUSTER_POLICY_QUEUE_TURN_H_
#define TROUPE_SCHEDULER_CLUSTER_POLICY_QUEUE_TURN_H_

namespace troupe {

enum class QueueTurn {
  kForTheNext,       // this scheduler ends: it waits for the next one
  kNeedsMore,        // more workers than are registered
  kIsBehind,         // another job is to start first
  kSharesDirectory,  // until the end of the job that saves there
  kNeedsIdle,        // the next to start, when workers are idle
  kNeedsStore,       // the next to start, when the store can be written
  kIsNext,           // to be planned, and started
};

struct QueuedJob {
  int ranks = 0;
  bool may_start_narrow = false;  // with the idle workers, which are fewer
  bool shares_directory = false;  // with a job that has begun
};
struct QueueState {
  bool draining = false;
  bool held_back = false;  // by a job before this one
  int alive = 0;           // workers
  int idle = 0;            // of them
  bool store_is_full = false;
};

QueueTurn TurnOf(const QueuedJob& job, const QueueState& state);

// No job behind one whose turn is this starts before it.
constexpr bool HoldsBack(QueueTurn turn) {
  return turn == QueueTurn::kNeedsIdle || turn == QueueTurn::kNeedsStore;
}

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_POLICY_QUEUE_TURN_H_
