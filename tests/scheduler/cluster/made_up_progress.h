// What a rank might say of itself, in a line of a test:
//
//   Doing(12).Runs(Recv(7, 3, 4), 30).Waits(Forward(7, 3), Recv(7, 3, 4))
//
// is a rank in step 12 whose COMPUTE lane waits for a transfer from rank 4.
#ifndef TROUPE_TESTS_SCHEDULER_CLUSTER_MADE_UP_PROGRESS_H_
#define TROUPE_TESTS_SCHEDULER_CLUSTER_MADE_UP_PROGRESS_H_

#include "proto/worker.pb.h"
#include "scheduler/passes/lanes.h"

namespace troupe {

inline Instruction On(int lane, Instruction::Kind kind, int unit) {
  Instruction instruction;
  instruction.set_kind(kind);
  instruction.set_lane(lane);
  instruction.set_unit(unit);
  return instruction;
}
inline Instruction Forward(int unit, int micro_batch) {
  Instruction forward = On(LaneNamed("COMPUTE"), Instruction::FORWARD, unit);
  forward.set_micro_batch(micro_batch);
  return forward;
}
inline Instruction Load(int micro_batch) {
  Instruction load;
  load.set_kind(Instruction::LOAD_BATCH);
  load.set_lane(LaneNamed("DATA"));
  load.set_micro_batch(micro_batch);
  return load;
}
inline Instruction Send(int unit, int micro_batch, int to) {
  Instruction send = On(LaneNamed("ACTIVATIONS"), Instruction::SEND, unit);
  send.set_micro_batch(micro_batch);
  send.set_peer(to);
  send.set_group(0);
  return send;
}
inline Instruction Recv(int unit, int micro_batch, int from) {
  Instruction recv = Send(unit, micro_batch, from);
  recv.set_kind(Instruction::RECV);
  return recv;
}
inline Instruction Reduce(int unit, int group) {
  Instruction reduce =
      On(LaneNamed("COLLECTIVE"), Instruction::REDUCE_GRADS, unit);
  reduce.set_unit_count(2);
  reduce.set_group(group);
  return reduce;
}

class Doing {
 public:
  explicit Doing(int64_t step, Program::Kind program = Program::TRAIN) {
    progress_.set_step(step);
    progress_.set_program(program);
  }
  Doing& Since(double seconds) {
    progress_.set_step_seconds(seconds);
    return *this;
  }
  Doing& Runs(const Instruction& current, double seconds) {
    LaneProgress& lane = Add(current);
    lane.set_running(true);
    lane.set_seconds(seconds);
    return *this;
  }
  Doing& Waits(const Instruction& current, const Instruction& waits_for) {
    *Add(current).mutable_waits_for() = waits_for;
    return *this;
  }
  // Of the lane that was named last.
  Doing& After(const Instruction& finished) {
    *progress_.mutable_lanes()->rbegin()->mutable_finished() = finished;
    return *this;
  }
  operator RankProgress() const { return progress_; }  // NOLINT

 private:
  LaneProgress& Add(const Instruction& current) {
    LaneProgress& lane = *progress_.add_lanes();
    lane.set_lane(current.lane());
    *lane.mutable_current() = current;
    return lane;
  }

  RankProgress progress_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_CLUSTER_MADE_UP_PROGRESS_H_
