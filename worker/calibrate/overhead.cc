#include "worker/calibrate/overhead.h"

#include "proto/base/status.h"
#include "worker/calibrate/cold_bench.h"
#include "worker/engine/executor.h"

namespace troupe {
namespace {

constexpr int kInstructions = 400;

constexpr int kComputes = 0;
constexpr int kReduces = 1;

Lanes TwoLanes() {
  Lanes lanes;
  for (const Lane::Kind kind : {Lane::COMPUTE, Lane::TRANSFER}) {
    Lane& lane = *lanes.Add();
    lane.set_name(Lane::Kind_Name(kind));
    lane.set_kind(kind);
  }
  return lanes;
}

// Four instructions that compute, one that reduces: it waits for them, and the
// next four wait for it. Two handovers between lanes in five instructions.
Program EmptyProgram() {
  Program program;
  program.set_kind(Program::TRAIN);
  for (int i = 0; i < kInstructions; ++i) {
    Instruction& instruction = *program.add_instructions();
    const bool follows = i % 5 == 4;
    instruction.set_kind(follows ? Instruction::REDUCE_SCALARS
                                 : Instruction::FORWARD);
    instruction.set_lane(follows ? kReduces : kComputes);
    if (follows || (i > 0 && i % 5 == 0)) instruction.add_after(i - 1);
  }
  return program;
}

}  // namespace

absl::StatusOr<double> MeasureInstructionOverheadUs(const Clock& clock) {
  const Program program = EmptyProgram();
  const ProgramRunner runner = {
      .run = [](int index) { return absl::OkStatus(); }};
  Executor executor(clock, TwoLanes());
  absl::Status status;
  RankTimeline timeline;
  const double seconds = SecondsOf(clock, absl::Milliseconds(50), [&] {
    timeline.clear_spans();
    const absl::Status run = executor.Run(program, runner, &timeline);
    if (!run.ok()) status = run;
  });
  RETURN_IF_ERROR(status);
  return seconds / kInstructions * 1e6;
}

}  // namespace troupe
