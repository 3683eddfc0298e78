#include "scheduler/planner/remedies.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/mesh.h"
#include "proto/plan/roles.h"
#include "scheduler/planner/choose_backends.h"
#include "scheduler/planner/choose_ways.h"
#include "scheduler/planner/combine_needs.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/simulate/prediction.h"
#include "scheduler/tiers/offload.h"

namespace troupe {
namespace {

constexpr int kRemedyPlansMax = 32;
// Of those that lack memory by the guess, which errs: copies of one thing may
// make room for those of another.
constexpr int kUnlikelyMax = 8;
// A guess of what takes longer may be so much too large: copies hide behind the
// same work, and what is made again is not moved.
constexpr double kGuessErrs = 0.1;

constexpr char kActivationsField[] = "memory.activations";

Chunks ChunksOf(const Plan& plan, const std::vector<WorkerDescription>& workers,
                Chunks chunks) {
  const MemorySpec& memory = plan.job().memory();
  if (memory.has_chunk_megabytes()) chunks = ChunksAsked(memory);
  const absl::optional<int64_t> least = LeastOfDevice(plan, workers);
  if (least.has_value()) {
    chunks.device_bytes =
        std::min(*least, chunks.device_bytes.value_or(*least));
  }
  return chunks;
}

JobSpec WithoutChunks(JobSpec job) {
  job.mutable_memory()->clear_chunk_megabytes();
  job.mutable_memory()->clear_device_bytes();
  return job;
}

// By role, and within that by tier.
using BytesOfRanks = std::vector<double>;

int64_t Budget(const WorkerDescription& worker, Tier tier) {
  if (worker.budgets().empty()) return std::numeric_limits<int64_t>::max();
  int64_t bytes = 0;
  for (const TierBudget& budget : worker.budgets()) {
    if (budget.tier() == tier) bytes += budget.bytes();
  }
  return bytes;
}

BytesOfRanks RoomOf(const Plan& plan,
                    const std::vector<WorkerDescription>& workers) {
  BytesOfRanks room;
  for (const Role& role : plan.roles()) {
    for (const Tier tier : kMemoryTiers) {
      int64_t least = std::numeric_limits<int64_t>::max();
      for (const int rank : RanksOf(plan.mesh(), role)) {
        least = std::min(least, Budget(workers.at(rank), tier));
      }
      room.push_back(static_cast<double>(least));
    }
  }
  return room;
}

// What is missing, in all.
double Lack(const BytesOfRanks& need, const BytesOfRanks& room) {
  double lack = 0;
  for (size_t i = 0; i < need.size(); ++i) {
    lack += std::max(0.0, need[i] - room[i]);
  }
  return lack;
}

// Changes, a bit each.
using Set = uint32_t;

int Changes(Set set) { return std::popcount(set); }

class RemedySearch {
 public:
  RemedySearch(const Plan& plan, const std::vector<WorkerDescription>& workers,
               const BuildPlan& build, const RemedyOptions& options)
      : job_(WithoutChunks(plan.job())),
        chunks_(ChunksOf(plan, workers, options.chunks)),
        workers_(workers),
        build_(build),
        options_(options),
        seconds_(PredictedStepSeconds(plan, workers)),
        room_(RoomOf(plan, workers)) {
    found_.closest.job = plan.job();
  }

  absl::StatusOr<Remedies> Run(const Plan& plan,
                               const std::vector<MemoryChange>& changes) {
    CHECK_LE(changes.size(), 32u);
    if (plan.job().memory().has_chunk_megabytes()) {
      ASSIGN_OR_RETURN(const Plan without, build_(job_));
      AddTried(0, without, 0);
    } else {
      AddTried(0, plan, 0);
    }
    least_lack_ = Lack(tried_[0].need, room_);
    for (const MemoryChange& change : changes) {
      const size_t before = tried_.size();
      singles_.push_back(&change);
      RETURN_IF_ERROR(Try(Set{1} << (singles_.size() - 1)));
      if (tried_.size() == before) singles_.pop_back();
    }
    if (found_.fitting.empty() || options_.goes_on) {
      if (found_.fitting.empty() && options_.changes_max > 1) {
        RETURN_IF_ERROR(TryWhatMeets());
      }
      RETURN_IF_ERROR(TrySeveral(options_.changes_max));
    }
    std::stable_sort(found_.fitting.begin(), found_.fitting.end(),
                     [](const Remedy& a, const Remedy& b) {
                       return std::make_tuple(a.HasPrice(), a.longer) <
                              std::make_tuple(b.HasPrice(), b.longer);
                     });
    return std::move(found_);
  }

 private:
  // What changes need and take longer: compiled, or guessed.
  struct Outcome {
    Set changes = 0;
    BytesOfRanks need;
    double longer = 0;
  };

  void AddTried(Set changes, const Plan& plan, double longer) {
    MemoryNeed need = NeedOf(plan, workers_);
    tried_.push_back(
        {.changes = changes, .need = SumOf(need), .longer = longer});
    if (Changes(changes) < 2) {
      needs_.push_back(std::move(need));
    } else if (const Set meeting = Meeting(changes); meeting == changes) {
      pairs_.emplace(changes, std::move(need));
    }
  }

  // Compiles it; nothing where there is no such plan.
  absl::Status Try(Set changes) {
    Remedy remedy = {.job = job_};
    for (size_t i = 0; i < singles_.size(); ++i) {
      if ((changes >> i & 1) == 0) continue;
      remedy.changes.push_back(singles_[i]->named);
      singles_[i]->make(remedy.job);
    }
    absl::StatusOr<JobSpec> resolved = ResolveJob(remedy.job);
    if (!resolved.ok()) return absl::OkStatus();  // not with this schedule
    remedy.job = *std::move(resolved);
    ++compiled_;
    const absl::StatusOr<Plan> plan = build_(remedy.job);
    if (absl::IsInvalidArgument(plan.status())) return absl::OkStatus();
    if (!plan.ok()) return plan.status();
    remedy.longer = PredictedStepSeconds(*plan, workers_) / seconds_ - 1;
    AddTried(changes, *plan, remedy.longer);
    if (CheckMemory(*plan, workers_).ok()) {
      least_longer_ = std::min(least_longer_, remedy.longer);
      RETURN_IF_ERROR(AddChunks(remedy));
      found_.fitting.push_back(std::move(remedy));
    } else if (const double lack = Lack(tried_.back().need, room_);
               lack < least_lack_) {
      least_lack_ = lack;
      found_.closest = std::move(remedy);
    }
    return absl::OkStatus();
  }

  // To what fits without.
  absl::Status AddChunks(Remedy& remedy) {
    if (chunks_.megabytes.empty()) return absl::OkStatus();
    if (!MayStayOnDevice(remedy.job.memory())) {
      if (chunks_.always) remedy.changes.push_back({kChunksField, ""});
      return absl::OkStatus();
    }
    if (!chunks_.always && compiled_ == kRemedyPlansMax)
      return absl::OkStatus();
    JobSpec job = remedy.job;
    job.mutable_memory()->set_chunk_megabytes(chunks_.megabytes);
    if (chunks_.device_bytes.has_value()) {
      job.mutable_memory()->set_device_bytes(*chunks_.device_bytes);
    }
    ++compiled_;
    ASSIGN_OR_RETURN(const Plan plan, build_(job));
    const double longer = PredictedStepSeconds(plan, workers_) / seconds_ - 1;
    const bool fits = CheckMemory(plan, workers_).ok();
    if (!fits || (!chunks_.always && longer >= remedy.longer)) {
      return absl::OkStatus();
    }
    remedy.job = std::move(job);
    remedy.longer = longer;
    if (!chunks_.always) {
      remedy.changes.push_back({kChunksField, chunks_.megabytes});
    }
    return absl::OkStatus();
  }

  // Of changes, those of what is made again and of where activations rest.
  Set Meeting(Set changes) const {
    Set meeting = 0;
    for (size_t i = 0; i < singles_.size(); ++i) {
      const std::string& field = singles_[i]->named.field;
      const bool meets = field == kRecomputeField || field == kActivationsField;
      if (meets) meeting |= changes & Set{1} << i;
    }
    return meeting;
  }

  // How much moves, and how large its copies are on the way, depends on what is
  // kept at all: of these no guess by each alone is near.
  absl::Status TryWhatMeets() {
    for (const Set pair : Sets(2)) {
      if (Meeting(pair) != pair || compiled_ == kRemedyPlansMax) continue;
      RETURN_IF_ERROR(Try(pair));
    }
    return absl::OkStatus();
  }

  // What changes do together by what each does by itself, or such a pair.
  const BytesOfRanks& CombinedNeed(Set changes) {
    const auto [found, is_new] = combined_.try_emplace(changes);
    if (!is_new) return found->second;
    std::vector<const MemoryNeed*> with;
    if (const auto pair = pairs_.find(Meeting(changes)); pair != pairs_.end()) {
      with.push_back(&pair->second);
      changes &= ~pair->first;
    }
    for (size_t i = 0; i < singles_.size(); ++i) {
      if ((changes >> i & 1) != 0) with.push_back(&needs_[i + 1]);
    }
    return found->second = SumOf(Combine(needs_[0], with));
  }

  // As what was compiled and differs in the fewest changes, and what those do.
  Outcome GuessOf(Set changes) {
    const Outcome* nearest = &tried_[0];
    for (const Outcome& tried : tried_) {
      if (Changes(tried.changes ^ changes) <=
          Changes(nearest->changes ^ changes)) {
        nearest = &tried;
      }
    }
    Outcome guess = *nearest;
    guess.changes = changes;
    for (size_t i = 0; i < singles_.size(); ++i) {
      const int sign = static_cast<int>(changes >> i & 1) -
                       static_cast<int>(nearest->changes >> i & 1);
      guess.longer += sign * tried_[i + 1].longer;
    }
    const BytesOfRanks& of_nearest = CombinedNeed(nearest->changes);
    const BytesOfRanks& of_changes = CombinedNeed(changes);
    for (size_t b = 0; b < guess.need.size(); ++b) {
      guess.need[b] += of_changes[b] - of_nearest[b];
    }
    return guess;
  }

  // Of two changes and more, each of another field.
  std::vector<Set> Sets(int changes_max) const {
    std::vector<Set> sets = {0};
    for (size_t i = 0; i < singles_.size(); ++i) {
      Set same_field = 0;
      for (size_t j = 0; j < i; ++j) {
        const bool same = singles_[j]->named.field == singles_[i]->named.field;
        if (same) same_field |= Set{1} << j;
      }
      for (size_t s = 0, end = sets.size(); s < end; ++s) {
        const bool has_room = Changes(sets[s]) < changes_max;
        if (!has_room || (sets[s] & same_field) != 0) continue;
        sets.push_back(sets[s] | Set{1} << i);
      }
    }
    sets.erase(std::remove_if(sets.begin(), sets.end(),
                              [this](Set set) {
                                return Changes(set) < 2 || pairs_.contains(set);
                              }),
               sets.end());
    return sets;
  }

  bool HasZero(Set set) const {
    for (size_t i = 0; i < singles_.size(); ++i) {
      const bool in_set = (set >> i & 1) != 0;
      if (in_set && singles_[i]->named.field == kZeroField) return true;
    }
    return false;
  }

  // Of sets, or of those with most changes, with ZeRO or without, the one that
  // lacks least by the guess, then the cheapest, then the smallest.
  enum class Among { kAll, kLargest, kLargestWithoutZero };
  struct Likely {
    std::vector<Set>::const_iterator set;
    double lack = 0;
    double longer = 0;
  };
  Likely FindLikely(const std::vector<Set>& sets, Among among) {
    int changes_min = 0;
    const auto may_be = [&](Set set) {
      return among != Among::kLargestWithoutZero || !HasZero(set);
    };
    if (among != Among::kAll) {
      for (const Set set : sets) {
        if (may_be(set)) changes_min = std::max(changes_min, Changes(set));
      }
    }
    Likely likely = {.set = sets.end()};
    for (auto set = sets.begin(); set != sets.end(); ++set) {
      if (Changes(*set) < changes_min || !may_be(*set)) continue;
      const Outcome guess = GuessOf(*set);
      const Likely other = {set, Lack(guess.need, room_), guess.longer};
      const bool is_better =
          likely.set == sets.end() ||
          std::make_tuple(other.lack, other.longer, Changes(*set)) <
              std::make_tuple(likely.lack, likely.longer, Changes(*likely.set));
      if (is_better) likely = other;
    }
    return likely;
  }

  absl::Status TrySeveral(int changes_max) {
    std::vector<Set> sets = Sets(changes_max);
    for (int unlikely = 0; !sets.empty() && compiled_ < kRemedyPlansMax;) {
      // Guesses get better with all that is compiled.
      Likely next = FindLikely(sets, Among::kAll);
      if (next.lack > 0) {
        if (!found_.fitting.empty() || unlikely == kUnlikelyMax) break;
        // What all of them do together is the first to be known; then without
        // ZeRO, as what is dealt and fetched lies there in slices and whole.
        const Among among = unlikely == 0   ? Among::kLargest
                            : unlikely == 1 ? Among::kLargestWithoutZero
                                            : Among::kAll;
        ++unlikely;
        const Likely all = FindLikely(sets, among);
        if (all.set != sets.end()) next = all;
      } else if (next.longer >= least_longer_ + kGuessErrs) {
        break;
      }
      RETURN_IF_ERROR(Try(*next.set));
      sets.erase(next.set);
    }
    return absl::OkStatus();
  }

  const JobSpec job_;  // without chunks
  const Chunks chunks_;
  const std::vector<WorkerDescription>& workers_;
  const BuildPlan& build_;
  const RemedyOptions& options_;
  const double seconds_;
  const BytesOfRanks room_;
  double least_lack_ = 0;
  // Of what fits, as it is without chunks.
  double least_longer_ = std::numeric_limits<double>::infinity();
  std::vector<const MemoryChange*> singles_;
  std::vector<Outcome> tried_;       // nothing changed, singles_, several
  std::vector<MemoryNeed> needs_;    // nothing changed, singles_
  std::map<Set, MemoryNeed> pairs_;  // of what meets
  std::unordered_map<Set, BytesOfRanks> combined_;
  Remedies found_;
  int compiled_ = 0;
};

}  // namespace

Chunks ChunksAsked(const MemorySpec& memory) {
  Chunks chunks = {.megabytes = memory.chunk_megabytes(), .always = true};
  if (memory.has_device_bytes()) chunks.device_bytes = memory.device_bytes();
  return chunks;
}

std::string Remedy::Text() const {
  const std::string text =
      absl::StrJoin(changes, " and ", [](std::string* out, const auto& change) {
        const bool none = change.value.empty();
        absl::StrAppend(out, none ? "no " : "", change.field, none ? "" : ": ",
                        change.value);
      });
  std::string price;
  for (const FieldChange& change : changes) {
    if (!change.price.empty()) absl::StrAppend(&price, ", and ", change.price);
  }
  return absl::StrFormat("%s (%+.0f %%%s)", text, 100 * longer, price);
}

bool Remedy::HasPrice() const {
  return std::any_of(
      changes.begin(), changes.end(),
      [](const FieldChange& change) { return !change.price.empty(); });
}

absl::StatusOr<Remedies> FindRemedies(
    const Plan& plan, const std::vector<WorkerDescription>& workers,
    const BuildPlan& build, const RemedyOptions& options) {
  std::vector<MemoryChange> changes = MemoryChangesOf(plan.job(), workers);
  changes.erase(std::remove_if(changes.begin(), changes.end(),
                               [&options](const MemoryChange& change) {
                                 return !options.may_change(change.named.field);
                               }),
                changes.end());
  return RemedySearch(plan, workers, build, options).Run(plan, changes);
}

double PredictedStepSeconds(Plan plan,
                            const std::vector<WorkerDescription>& workers) {
  ChooseBackends(workers, plan.mesh(), *plan.mutable_groups());
  const auto flat = plan.groups();
  // What the job names and these hosts cannot do is refused at the end.
  if (!ChooseWays(workers, plan).ok()) *plan.mutable_groups() = flat;
  const Prediction prediction = Predict(plan, workers);
  if (prediction.keep_every() == 0) return prediction.step_seconds();
  return prediction.step_seconds() +
         prediction.keep_seconds() /
             static_cast<double>(prediction.keep_every());
}

}  // namespace troupe
