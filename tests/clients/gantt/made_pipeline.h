// Timelines of pipelines as their schedules' papers draw them, for tests of the
// charts: every pass takes its time, every transfer too, and each rank does
// what its order says as soon as it can.
#ifndef TROUPE_TESTS_CLIENTS_GANTT_MADE_PIPELINE_H_
#define TROUPE_TESTS_CLIENTS_GANTT_MADE_PIPELINE_H_

#include <cstdint>
#include <vector>

#include "proto/plan.pb.h"
#include "proto/timeline.pb.h"

namespace troupe {

struct MadePass {
  Instruction::Kind kind = Instruction::FORWARD;
  int stage = 0;
  int micro_batch = 0;
  int ahead = 0;
};
using MadeOrder = std::vector<std::vector<MadePass>>;  // by rank

MadeOrder OneForwardOneBackward(int ranks, int micro_batches);
// Weights' passes put off by a rank's number of micro-batches (ZB-H1).
MadeOrder ZeroBubble(int ranks, int micro_batches);
// Two stages a rank. REQUIRES micro_batches to be a multiple of ranks.
MadeOrder Interleaved(int ranks, int micro_batches);
// Never drains: ranks work ahead of the step.
MadeOrder Asynchronous(int ranks, int micro_batches);

struct MadeTimes {
  int units_per_stage = 3;
  int64_t pass_ns = 900'000;  // of any kind, over a stage
  int64_t transfer_ns = 60'000;
  int64_t jitter_ns = 0;     // measured ones differ
  bool alternating = false;  // backward does both parts of each unit in turn
};

// Rank r holds the stages that its order names; all end with a step and a sum
// of scalars.
Timeline MakePipeline(const MadeOrder& order, const MadeTimes& times);

std::vector<Stage> StagesOf(int stages, int units_per_stage);

}  // namespace troupe

#endif  // TROUPE_TESTS_CLIENTS_GANTT_MADE_PIPELINE_H_
