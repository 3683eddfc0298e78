// What each lane of a run does, for those that ask how far a rank has come: the
// executor notes when instructions start, are issued to a device and end, and
// the log says what is in progress and what waits for what.
//
// An instruction that is issued runs when the device comes to it. Nobody tells
// when that is, so it counts from the end of the last of those that it waited
// for: the one before it in its lane, those in its `after`, and the run before.
//
// Not thread-safe: the executor's lock guards it.
#ifndef TROUPE_WORKER_ENGINE_LANE_LOG_H_
#define TROUPE_WORKER_ENGINE_LANE_LOG_H_

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "proto/plan/ready_queue.h"
#include "proto/program.pb.h"
#include "proto/worker.pb.h"

namespace troupe {

class LaneLog {
 public:
  // Borrows both; `queue` is asked what lanes come to next.
  LaneLog(const Program& program, const ReadyQueue& queue);

  // The run before has ended, while instructions of this one are issued. Times
  // are of one monotonic clock.
  void Begin(int64_t now_ns) { begin_ns_ = now_ns; }
  // Each of an instruction, in this order.
  void Start(int instruction, int64_t now_ns);
  void Issue(int instruction, int64_t now_ns);  // on a device's lane only
  void Finish(int instruction, int64_t now_ns);

  // REQUIRES: it was started.
  int64_t StartOf(int instruction) const {
    return times_.at(instruction).start_ns;
  }

  // Of each lane that has something left to do, in their order.
  std::vector<LaneProgress> Progress(int64_t now_ns) const;

 private:
  struct Times {
    int64_t start_ns = 0;  // 0: not yet
    int64_t issue_ns = 0;
    int64_t end_ns = 0;
  };
  struct LaneState {
    std::deque<int> issued;  // and not finished
    int finished = -1;       // the last one
  };

  // What the device has of the lane.
  LaneProgress OnDevice(const LaneState& state, int64_t now_ns) const;
  LaneProgress OnHost(const ReadyQueue::LaneHead& head, int64_t now_ns) const;

  const Program& program_;
  const ReadyQueue& queue_;
  int64_t begin_ns_ = 0;      // 0: nothing was before it
  std::vector<Times> times_;  // by instruction
  std::map<int, LaneState> lanes_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_LANE_LOG_H_
