#include "scheduler/pipelines/chimera.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "scheduler/pipelines/refusals.h"

namespace troupe {
namespace {

// One forward or one backward pass of a rank, by the time at which it starts
// where both take 1.
struct Pass {
  bool forward = true;
  int stage = 0;
  int micro_batch = 0;
};
using PassesByTime = std::map<int, Pass>;

// Adds one direction of a unit: the micro-batch that is `nth` in its direction
// enters stage 0 two slots after the one before it, runs through all stages and
// returns at once.
struct Entry {
  bool up = false;
  int micro_batch = 0;
  int time = 0;
};
void AddMicroBatch(const Entry& entry, std::vector<PassesByTime>& ranks) {
  const int size = ranks.size();
  for (int stage = 0; stage < size; ++stage) {
    PassesByTime& rank = ranks[entry.up ? size - 1 - stage : stage];
    const auto add = [&](int time, bool forward) {
      CHECK(rank.try_emplace(time, Pass{forward, stage, entry.micro_batch})
                .second)
          << "two passes at once";
    };
    add(entry.time + stage, true);
    add(entry.time + 2 * size - 1 - stage, false);
  }
}

}  // namespace

absl::StatusOr<ComputeOrder> ChimeraOrder(const PipelineShape& shape) {
  RETURN_IF_ERROR(CheckVirtualStages("chimera", 1, shape));
  if (shape.ranks % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "parallelism.pipeline: chimera takes an even number of ranks, not ",
        shape.ranks, "; the nearest ",
        shape.ranks == 1 ? "is "
                         : absl::StrCat("are ", shape.ranks - 1, " and "),
        shape.ranks + 1));
  }
  std::vector<PassesByTime> ranks(shape.ranks);
  for (int first = 0; first < shape.micro_batches; first += shape.ranks) {
    const int unit = std::min(shape.ranks, shape.micro_batches - first);
    const int down = (unit + 1) / 2;
    for (int m = 0; m < unit; ++m) {
      const int nth = m < down ? m : m - down;
      AddMicroBatch({.up = m >= down,
                     .micro_batch = first + m,
                     .time = 2 * (first + nth)},
                    ranks);
    }
  }
  ComputeOrder order(shape.ranks);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    for (const auto& [time, pass] : ranks[rank]) {
      const auto add = [&, &pass = pass](ComputeStep::Kind kind) {
        order[rank].push_back({kind, pass.stage, pass.micro_batch});
      };
      if (pass.forward) {
        add(ComputeStep::kForward);
      } else {
        add(ComputeStep::kBackwardInput);
        add(ComputeStep::kBackwardWeight);
      }
    }
  }
  return order;
}

}  // namespace troupe
