// The threads that execute the steps of an exchange over levels (levels.h): the
// calling thread those of one level, a thread of its own those of each other
// level, so that levels work at once.
//
//   RETURN_IF_ERROR(lanes.Run(OrderOf(way, pieces), execute, settle));
//
// Order. Each lane executes its steps in one order, which the plan alone
// decides, so that all members of a communicator do so alike: by piece + step,
// of equal ones the earlier step first. Two levels, an all-reduce (rs: reduce-
// scatter, ar: all-reduce, ag: all-gather):
//
//   lane 0   rs 0   rs 1   rs 2   ag 0   rs 3   ag 1   rs 4   ag 2   ...
//   lane 1          ar 0   ar 1          ar 2          ar 3          ...
//
// A step begins when the piece's step before it is done, and a piece when the
// one `at_once` before it has arrived. Both come earlier in the order of all
// steps that the lanes' orders are taken from. So whatever waits, waits for
// something earlier, here or at another member: nothing waits in a circle.
#ifndef TROUPE_WORKER_COLLECTIVE_LEVEL_LANES_H_
#define TROUPE_WORKER_COLLECTIVE_LEVEL_LANES_H_

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "proto/plan.pb.h"
#include "proto/plan/layout.h"

namespace troupe {

// The steps of some pieces, and where and when each is executed.
struct LaneOrder {
  std::vector<int> lane_of_step;
  int64_t pieces = 1;
  int64_t at_once = 1;   // pieces
  int64_t distance = 1;  // between the first steps of two pieces, in steps

  int lanes() const;
  // Of `elements` elements those of the piece; none has more than piece 0.
  Range RangeOf(int64_t piece, int64_t elements) const;
  // Calls visit(piece, step) for each of the lane, in its order, until it
  // returns false.
  template <typename Visit>
  void ForEach(int lane, const Visit& visit) const {
    const auto steps = static_cast<int64_t>(lane_of_step.size());
    for (int64_t time = 0; time < (pieces - 1) * distance + steps; ++time) {
      for (int64_t step = 0; step < steps && step <= time; ++step) {
        const int64_t piece = (time - step) / distance;
        if (lane_of_step[step] != lane || piece >= pieces) continue;
        if (piece * distance + step != time) continue;
        if (!visit(piece, static_cast<int>(step))) return;
      }
    }
  }
};
// Of a way that does not overlap: piece after piece, all on one lane.
LaneOrder OrderOf(const Group::Way& way, int64_t pieces);

class LevelLanes {
 public:
  using Execute = std::function<absl::Status(int64_t piece, int step)>;

  // Starts a thread for each lane but the caller's.
  explicit LevelLanes(int lanes);
  // Joins them.
  ~LevelLanes();
  LevelLanes(const LevelLanes&) = delete;
  LevelLanes& operator=(const LevelLanes&) = delete;

  // Says what the error of the call is, of that of a step, and ends the wait of
  // the steps in progress.
  using Settle = std::function<absl::Status(const absl::Status& failure)>;

  // Until all lanes have ended. At the first error the lane that has it calls
  // `settle`, once; steps that have not begun by then never do. REQUIRES
  // order.lanes() at most those that it has, and one call at a time.
  absl::Status Run(const LaneOrder& order, const Execute& execute,
                   const Settle& settle) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Work {
    const LaneOrder& order;
    const Execute& execute;
    const Settle& settle;
    std::vector<int64_t> done;  // by step: pieces
    int running = 0;            // lanes
    absl::Status status;
  };

  void Loop(int lane) ABSL_LOCKS_EXCLUDED(mutex_);
  void RunLane(int lane, Work& work) ABSL_LOCKS_EXCLUDED(mutex_);
  bool MayBegin(const Work& work, int64_t piece, int step)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Guards what Work says of progress, too.
  absl::Mutex mutex_;
  Work* work_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_LEVEL_LANES_H_
