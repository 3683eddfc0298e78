// A stage consists of several units, and a pass over it of several spans. They
// are drawn as one bar, so that a pipeline's picture shows what its schedule
// is about: stages and micro-batches.
#ifndef TROUPE_CLIENTS_GANTT_MERGE_UNITS_H_
#define TROUPE_CLIENTS_GANTT_MERGE_UNITS_H_

#include <cstdint>
#include <vector>

#include "clients/gantt/placed_spans.h"
#include "proto/plan.pb.h"

namespace troupe {

struct MergeOptions {
  // Neighbours further apart than this are not of one bar.
  int64_t gap_ns_max = 0;
  // The plan's; bars end where stages do. Without them units that follow one
  // another are taken for a stage.
  std::vector<Stage> stages;
};

// Splits the spans of one lane, given by start as indices into `spans`, into
// bars: spans of a bar are neighbours of the same micro-batch, stage and kind.
// Where backward goes from unit to unit doing both its parts on each, one bar
// holds both. Steps on several units are one bar; all other spans stand alone.
std::vector<std::vector<int>> MergeUnits(const std::vector<PlacedSpan>& spans,
                                         const std::vector<int>& lane,
                                         const MergeOptions& options);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_GANTT_MERGE_UNITS_H_
