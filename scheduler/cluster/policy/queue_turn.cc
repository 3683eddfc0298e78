#include "scheduler/cluster/policy/queue_turn.h"

namespace troupe {

QueueTurn TurnOf(const QueuedJob& job, const QueueState& state) {
  if (state.draining) return QueueTurn::kForTheNext;
  if (job.ranks > state.alive && !job.may_start_narrow) {
    return QueueTurn::kNeedsMore;
  }
  if (state.held_back) return QueueTurn::kIsBehind;
  if (job.shares_directory) return QueueTurn::kSharesDirectory;
  if (job.ranks > state.idle && !job.may_start_narrow) {
    return QueueTurn::kNeedsIdle;
  }
  return state.store_is_full ? QueueTurn::kNeedsStore : QueueTurn::kIsNext;
}

}  // namespace troupe
