#include "proto/plan/ready_queue.h"

#include "proto/base/check.h"

namespace troupe {

ReadyQueue::ReadyQueue(const Program& program, const Lanes& lanes)
    : program_(program),
      states_(program.instructions_size()),
      lane_first_(lanes.size(), -1) {
  for (const Lane& lane : lanes) is_device_lane_.push_back(IsDeviceLane(lane));
  std::vector<int> lane_last(lanes.size(), -1);
  for (int i = 0; i < program.instructions_size(); ++i) {
    const Instruction& instruction = program.instructions(i);
    const int lane = instruction.lane();
    CHECK(lane >= 0 && lane < lanes.size()) << "instruction " << i;
    if (lane_last[lane] < 0) {
      lane_first_[lane] = i;
    } else {
      states_[lane_last[lane]].next_in_lane = i;
    }
    lane_last[lane] = i;
    for (const int earlier : instruction.after()) {
      CHECK(earlier >= 0 && earlier < i) << "instruction " << i;
      states_[earlier].releases.push_back(i);
    }
  }
}

std::vector<int> ReadyQueue::Start() {
  for (int i = 0; i < static_cast<int>(states_.size()); ++i) {
    State& state = states_[i];
    state.waits = program_.instructions(i).after_size();
    state.at_head = state.running = state.issued = state.finished = false;
  }
  unfinished_ = static_cast<int>(states_.size());
  std::vector<int> ready;
  for (const int first : lane_first_) {
    if (first < 0) continue;
    states_[first].at_head = true;
    TakeIfReady(first, ready);
  }
  return ready;
}

std::vector<int> ReadyQueue::Finish(int instruction) {
  State& state = states_.at(instruction);
  CHECK(state.running && !state.finished) << "instruction " << instruction;
  state.running = false;
  state.finished = true;
  --unfinished_;
  std::vector<int> ready;
  if (!state.issued) AdvanceLane(state, ready);
  for (const int later : state.releases) {
    if (state.issued && OnDevice(later)) continue;
    --states_[later].waits;
    TakeIfReady(later, ready);
  }
  return ready;
}

std::vector<int> ReadyQueue::Issue(int instruction) {
  State& state = states_.at(instruction);
  CHECK(state.running && !state.issued && OnDevice(instruction))
      << "instruction " << instruction;
  state.issued = true;
  std::vector<int> ready;
  AdvanceLane(state, ready);
  for (const int later : state.releases) {
    if (!OnDevice(later)) continue;
    --states_[later].waits;
    TakeIfReady(later, ready);
  }
  return ready;
}

void ReadyQueue::AdvanceLane(const State& state, std::vector<int>& ready) {
  if (state.next_in_lane < 0) return;
  states_[state.next_in_lane].at_head = true;
  TakeIfReady(state.next_in_lane, ready);
}

void ReadyQueue::TakeIfReady(int instruction, std::vector<int>& ready) {
  State& state = states_[instruction];
  if (!state.at_head || state.waits > 0 || state.running) return;
  state.running = true;
  ready.push_back(instruction);
}

std::vector<ReadyQueue::LaneHead> ReadyQueue::Heads() const {
  std::vector<LaneHead> heads;
  for (int i = 0; i < static_cast<int>(states_.size()); ++i) {
    const State& state = states_[i];
    if (!state.at_head || state.issued || state.finished) continue;
    LaneHead head{
        .lane = LaneOf(i), .instruction = i, .running = state.running};
    for (const int earlier : program_.instructions(i).after()) {
      const State& before = states_[earlier];
      const bool enough = OnDevice(i) && before.issued;
      if (!before.finished && !enough) head.waits_for.push_back(earlier);
    }
    heads.push_back(head);
  }
  return heads;
}

}  // namespace troupe
