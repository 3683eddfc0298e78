// When may an instruction start? This class is the only answer in Troupe: the
// simulator drives it with virtual time, a worker with real time.
//
// An instruction is ready when all before it in its lane have finished and all
// in its `after` have finished. Each is handed out exactly once.
//
//   ReadyQueue queue(program, plan.lanes());
//   std::vector<int> ready = queue.Start();
//   while (!queue.done()) { ... ready = queue.Finish(index); ... }
//
// Where lanes are queues of an asynchronous device, which keeps the order of
// what is put into them, an instruction may be issued before it has finished.
// For the lanes of the device that is as good as finished; lanes of the host
// wait for the end.
#ifndef TROUPE_PROTO_PLAN_READY_QUEUE_H_
#define TROUPE_PROTO_PLAN_READY_QUEUE_H_

#include <vector>

#include "proto/plan/lanes.h"
#include "proto/program.pb.h"

namespace troupe {

// Not thread-safe. O(1) amortised for each instruction and edge.
class ReadyQueue {
 public:
  // Borrows `program`, which must outlive the queue, of a plan with these
  // lanes. REQUIRES what check_program checks: `after` holds earlier
  // instructions only.
  ReadyQueue(const Program& program, const Lanes& lanes);

  // Begins a run of the program (again) and returns what may start at once, at
  // most one instruction a lane, in lane order.
  std::vector<int> Start();

  // Records that a handed-out instruction has finished; returns what may start
  // because of it. CHECKs that it was handed out and not yet finished.
  std::vector<int> Finish(int instruction);

  // Records that a handed-out instruction of a device lane has been issued, and
  // will finish later; returns what device lanes may issue because of it.
  // Finish then returns what the host's lanes may start. CHECKs as Finish does.
  std::vector<int> Issue(int instruction);

  bool done() const { return unfinished_ == 0; }

  // For messages: the next instruction of each lane that has one to finish, or
  // to issue, whether it runs, and what it still waits for.
  struct LaneHead {
    int lane;
    int instruction;
    bool running;
    std::vector<int> waits_for;
  };
  std::vector<LaneHead> Heads() const;

 private:
  struct State {
    int next_in_lane = -1;
    int waits = 0;  // unfinished in `after`
    bool at_head = false;
    bool running = false;
    bool issued = false;
    bool finished = false;
    std::vector<int> releases;  // instructions that name this one in `after`
  };

  void TakeIfReady(int instruction, std::vector<int>& ready);
  void AdvanceLane(const State& state, std::vector<int>& ready);
  int LaneOf(int instruction) const {
    return program_.instructions(instruction).lane();
  }
  // Whether its lane is one of the device.
  bool OnDevice(int instruction) const {
    return is_device_lane_[LaneOf(instruction)];
  }

  const Program& program_;
  std::vector<State> states_;
  std::vector<bool> is_device_lane_;  // by lane
  std::vector<int> lane_first_;       // by lane; -1: the lane is empty
  int unfinished_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_READY_QUEUE_H_
