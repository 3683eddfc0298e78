// A small step of two ranks, for the tests of the charts.
#ifndef TROUPE_TESTS_CLIENTS_GANTT_SAMPLE_TIMELINE_H_
#define TROUPE_TESTS_CLIENTS_GANTT_SAMPLE_TIMELINE_H_

#include "proto/timeline.pb.h"
#include "scheduler/passes/lanes.h"

namespace troupe {

struct SampleSpan {
  Instruction::Kind kind;
  int lane;
  int unit;         // -1: none
  int micro_batch;  // -1: none
  int start_ms;
  int end_ms;
};

inline void AddSpan(const SampleSpan& sample, RankTimeline& rank) {
  Span& span = *rank.add_spans();
  span.set_kind(sample.kind);
  span.set_lane(sample.lane);
  if (sample.unit >= 0) span.set_unit(sample.unit);
  if (sample.micro_batch >= 0) span.set_micro_batch(sample.micro_batch);
  span.set_start_ns(sample.start_ms * int64_t{1000000});
  span.set_end_ns(sample.end_ms * int64_t{1000000});
}

// Rank 1 starts 10 ms after rank 0 where it is measured.
inline Timeline SampleTimeline(bool predicted) {
  Timeline timeline;
  timeline.set_predicted(predicted);
  *timeline.mutable_lanes() = AllLanes();
  if (!predicted) timeline.set_step(20);
  for (int r = 1; r >= 0; --r) {
    RankTimeline& rank = *timeline.add_ranks();
    rank.set_rank(r);
    if (!predicted) rank.set_start_unix_ns(1000000000 + r * 10000000);
    for (const SampleSpan& span : {
             SampleSpan{Instruction::REDUCE_GRADS, LaneNamed("COLLECTIVE"), 1,
                        -1, 60, 80},
             SampleSpan{Instruction::LOAD_BATCH, LaneNamed("DATA"), -1, 0, 0,
                        6},
             SampleSpan{Instruction::FORWARD, LaneNamed("COMPUTE"), 0, 0, 6,
                        26},
             SampleSpan{Instruction::BACKWARD_INPUT, LaneNamed("COMPUTE"), 1, 0,
                        26, 46},
             SampleSpan{Instruction::BACKWARD_WEIGHT, LaneNamed("COMPUTE"), 1,
                        0, 46, 60},
             SampleSpan{Instruction::STEP, LaneNamed("COMPUTE"), 0, -1, 80, 90},
         }) {
      AddSpan(span, rank);
    }
  }
  return timeline;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_CLIENTS_GANTT_SAMPLE_TIMELINE_H_
