// Islands: ranks that train by themselves for many steps and then exchange by
// how much they have changed their weights (docs/islands.md; DiLoCo, arXiv
// 2311.08105). Each place on the mesh's axis "islands" is an island, and all of
// them have the same programs. Gradients are never summed along that axis.
//
// The units of the model go in fragments (Streaming DiLoCo, arXiv 2501.18512):
// unit u is of fragment u % fragments, so that each stage of a pipeline has
// something of each. Fragment p is exchanged after the steps that are
// p x every / fragments after a multiple of `every`. With `overlap` the
// exchange of what was learned up to then is hidden behind the next step, at
// whose end each island mixes the new weights with its own.
//
// A rank exchanges what it steps of a unit: what rests of its trained parts
// (at_rest.h), one behind the other. The states of the outer optimizer lie
// beside those of the optimizer (optimizer_states.h).
#ifndef TROUPE_PROTO_PLAN_ISLANDS_H_
#define TROUPE_PROTO_PLAN_ISLANDS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// Of ranks at the same place of each island, which exchange what they have
// learned. It is a group of its own, even where another has the same ranks.
inline constexpr char kIslandsGroup[] = "islands";

// 1 where the job has none.
int IslandsOf(const ParallelismSpec& parallelism);
inline bool HasIslands(const Plan& plan) {
  return IslandsOf(plan.job().parallelism()) > 1;
}
// The rank's place on the axis; 0 where there is none. And how many ranks an
// island has.
int IslandOf(const Mesh& mesh, int rank);
int RanksOfIsland(const Mesh& mesh);

// What one island trains on in a step, of what all do.
int64_t SamplesOfIsland(const JobSpec& job);
int64_t TokensOfIsland(const Plan& plan);

// REQUIRE a resolved job.
int FragmentOf(const IslandsSpec& islands, int unit);
// When a fragment is exchanged; with `overlap` that is the step behind which
// the exchange is hidden, and after the last step all are exchanged once more.
Instruction::When WhenExchanged(const IslandsSpec& islands, int fragment);
Instruction::When WhenEnded();
// When islands agree whether to stop: as the first fragment is exchanged, and
// in the last step.
Instruction::When WhenAgreed(const IslandsSpec& islands);
// Whether all ranks know after a step what any of them wants: to stop, or to
// save.
bool IslandsAgreeIn(const Plan& plan, int64_t step);

// Whether ranks of a job that recovers keep copies after a step that is not the
// last: in every prediction.keep_every steps. Islands do so in steps in which
// they agree. None is further than one such step behind another, so that a step
// is always among the two of which each rank has a copy.
bool KeepsCopiesAfter(const Plan& plan, int64_t step);

// How long a step is predicted to take where it takes longest: with an
// exchange.
double LongestStepSeconds(const Plan& plan);

// What an island but the first calls its own of a tensor in a checkpoint:
// "optimizer.islands.2.transformer.wte.weight", a state for all others. The
// first one's have no prefix: they are what a plan without islands looks for.
std::string TensorOfIsland(int island, absl::string_view tensor);
// Under which of these a rank saves a tensor of a part. Nothing: all islands
// have the same, and the first one saves it.
absl::optional<std::string> SavedName(const Plan& plan, int rank,
                                      const Unit::Part& part,
                                      absl::string_view tensor);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_ISLANDS_H_
