#include "proto/plan/islands.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/plan/last_step.h"
#include "proto/plan/mesh.h"
#include "proto/plan/optimizer_states.h"
#include "proto/plan/when.h"

namespace troupe {

int IslandsOf(const ParallelismSpec& parallelism) {
  return parallelism.has_islands() ? parallelism.islands() : 1;
}

int IslandOf(const Mesh& mesh, int rank) {
  return CoordinateOn(mesh, kIslandAxis, rank);
}

int RanksOfIsland(const Mesh& mesh) {
  return MeshSize(mesh) / AxisSize(mesh, kIslandAxis);
}

int64_t SamplesOfIsland(const JobSpec& job) {
  return job.training().global_batch_size() / IslandsOf(job.parallelism());
}

int64_t TokensOfIsland(const Plan& plan) {
  return plan.derived().tokens_per_step() / IslandsOf(plan.job().parallelism());
}

int FragmentOf(const IslandsSpec& islands, int unit) {
  return unit % std::max(1, islands.fragments());
}

Instruction::When WhenExchanged(const IslandsSpec& islands, int fragment) {
  const int64_t begun =
      fragment * islands.every() / std::max(1, islands.fragments());
  Instruction::When when;
  when.set_every(islands.every());
  when.set_offset((begun + islands.overlap()) % islands.every());
  when.set_last(islands.overlap() == 0);
  return when;
}

Instruction::When WhenEnded() {
  Instruction::When when;
  when.set_last(true);
  return when;
}

Instruction::When WhenAgreed(const IslandsSpec& islands) {
  Instruction::When when = WhenExchanged(islands, /*fragment=*/0);
  when.set_last(true);
  return when;
}

bool IslandsAgreeIn(const Plan& plan, int64_t step) {
  if (!HasIslands(plan)) return true;
  Instruction agree;
  *agree.mutable_when() = WhenAgreed(plan.job().islands());
  return RunsIn(agree, step, LastStep(plan.job().training()));
}

bool KeepsCopiesAfter(const Plan& plan, int64_t step) {
  const int64_t every = std::max<int64_t>(1, plan.prediction().keep_every());
  if (!HasIslands(plan)) return step % every == 0;
  const int64_t round = plan.job().islands().every();
  return IslandsAgreeIn(plan, step) &&
         step / round % std::max<int64_t>(1, every / round) == 0;
}

double LongestStepSeconds(const Plan& plan) {
  const Prediction& prediction = plan.prediction();
  const IslandsPrediction& islands = prediction.islands();
  const int exchanges = std::max(1, plan.job().islands().fragments());
  return std::max(
      prediction.step_seconds(),
      islands.quiet_step_seconds() + islands.waited_seconds() / exchanges);
}

std::string TensorOfIsland(int island, absl::string_view tensor) {
  if (island == 0) return std::string(tensor);
  return absl::StrCat(kStateTensors, "islands.", island, ".", tensor);
}

absl::optional<std::string> SavedName(const Plan& plan, int rank,
                                      const Unit::Part& part,
                                      absl::string_view tensor) {
  const int island = IslandOf(plan.mesh(), rank);
  const bool alike = part.frozen() || IsOuterStateTensor(tensor);
  if (island > 0 && alike) return absl::nullopt;
  return TensorOfIsland(island, tensor);
}

}  // namespace troupe
