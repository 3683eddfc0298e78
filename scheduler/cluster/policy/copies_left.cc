#include "scheduler/cluster/policy/copies_left.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "scheduler/cluster/choose_recovery.h"

namespace troupe {

absl::optional<Recovery> NewestCopies(const Run& run) {
  KeptByRank kept;
  for (const RankSeat& seat : run.ranks) kept.push_back(run.SoundCopies(seat));
  return ChooseRecovery(*run.handed->plan, kept);
}

absl::optional<Recovery> CopiesToSave(const Job& job) {
  absl::optional<Recovery> newest = NewestCopies(*job.run);
  // Where it began it can begin without any.
  const int64_t saved = std::max<int64_t>(0, NewestCheckpoint(job.status));
  if (newest.has_value() && newest->state().step() <= saved) newest.reset();
  if (CannotBeSaved(job)) newest.reset();
  return newest;
}

bool CannotBeSaved(const Job& job) {
  const phase::Between* const between = job.run->between();
  const int64_t step = between == nullptr ? -1 : between->unsavable_step;
  if (step <= NewestCheckpoint(job.status)) return false;
  const absl::optional<Recovery> newest = NewestCopies(*job.run);
  return newest.has_value() && newest->state().step() == step;
}

bool IsPaused(const Job& job, absl::Time now) {
  return now < job.moves_after && CopiesToSave(job).has_value();
}

bool LosesSteps(const Job& job, const std::set<int>& ranks) {
  KeptByRank stay;
  for (size_t r = 0; r < job.run->ranks.size(); ++r) {
    stay.push_back(ranks.count(static_cast<int>(r)) > 0
                       ? std::vector<KeptCopy>()
                       : job.run->SoundCopies(job.run->ranks[r]));
  }
  const absl::optional<Recovery> newest = NewestCopies(*job.run);
  if (!newest.has_value()) return false;
  const absl::optional<Recovery> without =
      ChooseRecovery(*job.run->handed->plan, stay);
  const int64_t left =
      std::max(NewestCheckpoint(job.status),
               without.has_value() ? without->state().step() : -1);
  return left < newest->state().step();
}

// What of the copies is not left is about to be in a checkpoint; and a worker
// that leaves keeps its own until it is stored that they are, or the store
// cannot.
bool AwaitsCommit(const Run& run, bool leave) {
  const auto& saving = *run.in<phase::SavingCopies>();
  if (saving.stage >= phase::SavingCopies::kStoring) {
    return leave && saving.stage != phase::SavingCopies::kRefused;
  }
  if (saving.stage < phase::SavingCopies::kCommitting) return false;
  const absl::optional<Recovery> newest = NewestCopies(run);
  return !newest.has_value() || newest->state().step() < saving.state.step();
}

}  // namespace troupe
