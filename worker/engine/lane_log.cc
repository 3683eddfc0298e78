#include "worker/engine/lane_log.h"

#include <algorithm>
#include <utility>

#include "proto/base/check.h"

namespace troupe {
namespace {

Instruction WithoutEdges(Instruction instruction) {
  instruction.clear_operands();
  instruction.clear_after();
  return instruction;
}

}  // namespace

LaneLog::LaneLog(const Program& program, const ReadyQueue& queue)
    : program_(program), queue_(queue), times_(program.instructions_size()) {}

void LaneLog::Start(int instruction, int64_t now_ns) {
  times_.at(instruction).start_ns = now_ns;
}

void LaneLog::Issue(int instruction, int64_t now_ns) {
  times_.at(instruction).issue_ns = now_ns;
  lanes_[program_.instructions(instruction).lane()].issued.push_back(
      instruction);
}

void LaneLog::Finish(int instruction, int64_t now_ns) {
  times_.at(instruction).end_ns = now_ns;
  LaneState& lane = lanes_[program_.instructions(instruction).lane()];
  lane.finished = instruction;
  if (lane.issued.empty()) return;
  CHECK_EQ(lane.issued.front(), instruction) << "a device's queue is in order";
  lane.issued.pop_front();
}

LaneProgress LaneLog::OnDevice(const LaneState& state, int64_t now_ns) const {
  const int front = state.issued.front();
  const Instruction& instruction = program_.instructions(front);
  LaneProgress progress;
  *progress.mutable_current() = WithoutEdges(instruction);
  progress.set_running(true);
  int64_t since_ns = std::max(times_[front].issue_ns, begin_ns_);
  if (state.finished >= 0) {
    since_ns = std::max(since_ns, times_[state.finished].end_ns);
  }
  for (const int earlier : instruction.after()) {
    since_ns = std::max(since_ns, times_[earlier].end_ns);
    if (times_[earlier].end_ns != 0 || !progress.running()) continue;
    progress.set_running(false);
    *progress.mutable_waits_for() =
        WithoutEdges(program_.instructions(earlier));
  }
  if (progress.running()) progress.set_seconds((now_ns - since_ns) * 1e-9);
  return progress;
}

LaneProgress LaneLog::OnHost(const ReadyQueue::LaneHead& head,
                             int64_t now_ns) const {
  LaneProgress progress;
  *progress.mutable_current() =
      WithoutEdges(program_.instructions(head.instruction));
  progress.set_running(head.running);
  if (!head.waits_for.empty()) {
    *progress.mutable_waits_for() =
        WithoutEdges(program_.instructions(head.waits_for.front()));
  }
  const int64_t start_ns = times_[head.instruction].start_ns;
  if (head.running && start_ns != 0) {
    progress.set_seconds((now_ns - start_ns) * 1e-9);
  }
  return progress;
}

std::vector<LaneProgress> LaneLog::Progress(int64_t now_ns) const {
  std::map<int, LaneProgress> by_lane;
  for (const ReadyQueue::LaneHead& head : queue_.Heads()) {
    by_lane[head.lane] = OnHost(head, now_ns);
  }
  for (const auto& [lane, state] : lanes_) {
    if (!state.issued.empty()) by_lane[lane] = OnDevice(state, now_ns);
  }
  std::vector<LaneProgress> all;
  for (auto& [lane, progress] : by_lane) {
    progress.set_lane(lane);
    const auto state = lanes_.find(lane);
    if (state != lanes_.end() && state->second.finished >= 0) {
      *progress.mutable_finished() =
          WithoutEdges(program_.instructions(state->second.finished));
    }
    all.push_back(std::move(progress));
  }
  return all;
}

}  // namespace troupe
