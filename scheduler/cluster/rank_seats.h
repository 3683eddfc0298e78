// Which worker has which rank of a run, and how far each has come: one seat for
// each rank. Only data and its arithmetic.
#ifndef TROUPE_SCHEDULER_CLUSTER_RANK_SEATS_H_
#define TROUPE_SCHEDULER_CLUSTER_RANK_SEATS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "proto/base/ids.h"
#include "proto/cluster.pb.h"
#include "proto/worker.pb.h"

namespace troupe {

struct RankSeat {
  // kHeld: it has ended, and its worker stays for the next attempt.
  enum State { kStarting, kRunning, kEnded, kLost, kHeld };
  WorkerId worker;
  std::string worker_name;
  WorkerDescription machine;  // the worker's
  State state = kStarting;
  int64_t first_step = 0;       // 0: it is not ready yet
  int64_t step = 0;             // last reported
  absl::Time heard;             // when it last made progress
  std::vector<KeptCopy> kept;   // by its worker, now that it has ended
  int32_t kept_by_attempt = 0;  // whose end the worker has said; 0: none
  bool succeeded = false;       // the rank has done all that it had to do
  bool checks_data = false;     // its Assignment says so
  bool wrong = false;           // it computed wrongly, and is not used again
  bool machine_fails = false;   // it ended for a cause that is its machine's
  std::string stopped_for;      // what it was told as it was stopped, if it was
  // It has ended after this step, which the next scheduler is to know, should
  // there be one (stored_run.h).
  absl::optional<int64_t> end_to_store;

  // The scheduler was started again, and waits for the worker that has it.
  bool awaited() const { return taken() && worker == WorkerId(); }

  // Has been running, and may have ended since.
  bool ready() const { return first_step > 0; }

  bool live() const { return state == kStarting || state == kRunning; }
  // Whether the worker is here for this rank.
  bool taken() const { return live() || state == kHeld; }
  // The worker is gone from it, with all that it kept.
  void Lose();
  // "worker-2 (rank 2)"
  std::string Name(int rank) const;
};

class RankSeats {
 public:
  explicit RankSeats(int ranks) : seats_(ranks) {}

  size_t size() const { return seats_.size(); }
  RankSeat& operator[](size_t rank) { return seats_[rank]; }
  const RankSeat& operator[](size_t rank) const { return seats_[rank]; }
  auto begin() { return seats_.begin(); }
  auto end() { return seats_.end(); }
  auto begin() const { return seats_.begin(); }
  auto end() const { return seats_.end(); }

  bool all_ready() const;
  // Whether a worker has not come back yet.
  bool awaits() const;
  bool all_let_go() const;
  // Those whose worker is here for the rank.
  int taken() const;
  // Whether the worker of this name has or had a rank.
  bool HasWorker(const std::string& name) const;
  // With which those that are ready begin; 0: none is.
  int64_t FirstStep() const;
  // A rank that is ready to begin with another step than this one; -1: none.
  int OfAnotherStart(int rank) const;
  // That all ranks have reported. Less than the job has done, where the run
  // goes on from before that.
  int64_t StepOfAll() const;
  // Whose last sign of progress is the oldest.
  int Laggard() const;

 private:
  std::vector<RankSeat> seats_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_RANK_SEATS_H_
