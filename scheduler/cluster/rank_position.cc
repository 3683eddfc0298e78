#include "scheduler/cluster/rank_position.h"

#include "absl/strings/str_cat.h"
namespace troupe {
namespace {

// Of the programs of one step.
int Order(Program::Kind program) {
  switch (program) {
    case Program::FILL:
      return 0;
    case Program::TRAIN:
    case Program::REPORT:
      return 1;
    case Program::VALIDATE:
      return 2;
    case Program::CHECKPOINT:
      return 3;
    case Program::KEEP:
      return 4;
    default:
      return 5;  // none: all are done
  }
}

const LaneProgress* LaneOf(const RankProgress& progress, int lane) {
  for (const LaneProgress& one : progress.lanes()) {
    if (one.lane() == lane) return &one;
  }
  return nullptr;
}

Instruction::Kind Counterpart(Instruction::Kind kind) {
  if (kind == Instruction::SEND) return Instruction::RECV;
  if (kind == Instruction::RECV) return Instruction::SEND;
  return kind;
}

// Whether `theirs` is the other rank's part of the point's instruction.
bool Meets(const MeetingPoint& point, const Instruction& theirs) {
  const Instruction& ours = point.instruction;
  return theirs.kind() == Counterpart(ours.kind()) &&
         theirs.unit() == ours.unit() &&
         theirs.micro_batch() == ours.micro_batch() &&
         theirs.ahead() == ours.ahead() && theirs.group() == ours.group() &&
         (!ours.has_peer() || theirs.peer() == point.pipeline_place);
}

}  // namespace

RankPosition PositionOf(const RankProgress& progress) {
  return {progress.step(), Order(progress.program())};
}

const LaneProgress* Blocking(const RankProgress& progress, const Lanes& lanes) {
  const LaneProgress* lane = nullptr;
  for (const LaneProgress& one : progress.lanes()) {
    const bool computes = KindOfLane(lanes, one.lane()) == Lane::COMPUTE;
    if (lane == nullptr && computes) lane = &one;
  }
  // As many turns as there are lanes: a worker might say that they wait in a
  // circle.
  for (int turn = 0; turn < progress.lanes_size(); ++turn) {
    if (lane == nullptr || lane->running() || !lane->has_waits_for()) break;
    lane = LaneOf(progress, lane->waits_for().lane());
  }
  if (lane != nullptr && lane->running()) return lane;
  for (const LaneProgress& any : progress.lanes()) {
    if (any.running()) return &any;
  }
  return nullptr;
}

bool HasComeTo(const MeetingPoint& point, const RankProgress& other) {
  const RankPosition position = PositionOf(other);
  if (position != point.position) return position > point.position;
  const LaneProgress* lane = LaneOf(other, point.instruction.lane());
  if (lane == nullptr) return true;  // it has done all that was there
  if (Meets(point, lane->current())) return lane->running();
  return lane->has_finished() && Meets(point, lane->finished());
}

std::string InstructionName(const Instruction& instruction) {
  std::string name = Instruction::Kind_Name(instruction.kind());
  if (instruction.has_unit()) absl::StrAppend(&name, " u", instruction.unit());
  if (instruction.unit_count() > 1) {
    absl::StrAppend(&name, "-",
                    instruction.unit() + instruction.unit_count() - 1);
  }
  if (instruction.has_micro_batch()) {
    absl::StrAppend(&name, " m", instruction.micro_batch());
  }
  return name;
}

}  // namespace troupe
