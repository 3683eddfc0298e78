// ZeRO (Rajbhandari et al., arXiv 1910.02054) and FSDP (arXiv 2304.11277): what
// data replicas would hold alike rests in even slices over them, each of which
// one of them changes; over the ranks of their sequences, too, where those are
// cut (arXiv 2309.14509, section 3.3), or those of a micro-batch (batch.cc);
// and what the ranks along x of 3D tensor parallelism would, over those
// (tensor_3d.cc). Between uses, that is: a product has its unit's parameters
// whole, and leaves gradients that are whole.
#ifndef TROUPE_SCHEDULER_LAYOUTS_ZERO_H_
#define TROUPE_SCHEDULER_LAYOUTS_ZERO_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"
#include "proto/unit.pb.h"
#include "scheduler/layouts/axes.h"
#include "scheduler/layouts/layouts.h"

namespace troupe {

// What of a unit is dealt over neighbouring replicas.
struct ZeroRow {
  bool states = false;      // master weights and moments
  bool gradients = false;   // each micro-batch's are summed into slices
  bool parameters = false;  // and are gathered
  bool gathered_for_each_use = false;  // and given back behind it; else kept
                                       // from the first use of a step to its
                                       // last
};
ZeroRow ZeroRowOf(const ParallelismSpec& parallelism);
// Levels that there are: parallelism.zero is 0 to one less.
int ZeroLevels();

// The row whose parameters rest in slices without any ZeRO; nullptr: none does.
const LayoutRow* SlicedRow(const ParallelismSpec& parallelism);

// Ranks over which ZeRO may deal a unit: replicas, and those of rows that hold
// it alike.
int DealtMost(const ParallelismSpec& parallelism);

// Of those ranks, in how many sets each has all of a part between them: 1, or
// more where they have pieces of it, as of experts. That number of times fewer
// have a slice of one.
int PiecesAmongDealt(const ParallelismSpec& parallelism,
                     const Unit::Part& part);

// The number of neighbours along an axis over which a unit is dealt; 1: not
// along it. The innermost axes of the mesh first, whole replicas last.
int ZeroSizeAlong(absl::string_view axis, const ParallelismSpec& parallelism);

// Of `neighbours` neighbours along a factor, how many are on each of its axes:
// all of the innermost first. Their product is less where no neighbours are.
std::vector<int> SizesAlong(const FactorSpan& factor, int neighbours);

// WithStrategy (proto/plan/strategies.h). What is dealt over all ranks that
// there are with the job's own sharing is so with the strategy's, too.
ParallelismSpec DealtWithStrategy(const ParallelismSpec& job,
                                  const StrategySpec& strategy);

// Whether there is a unit that several ranks hold alike, by any strategy.
bool MayDeal(const ParallelismSpec& parallelism);

// InvalidArgument "parallelism.zero_size: ...": not of neighbours that hold a
// unit alike: some of those on one axis, or all of those on some axes. REQUIRES
// 1 or more.
absl::Status CheckZeroSize(const ParallelismSpec& parallelism);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_ZERO_H_
