#include "scheduler/planner/remedies.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/memory.h"
#include "proto/plan/mesh.h"
#include "proto/plan/roles.h"
#include "scheduler/planner/check_devices.h"
#include "scheduler/planner/choose_backends.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/simulate/gpu_scratch.h"
#include "scheduler/simulate/prediction.h"
#include "scheduler/tiers/offload.h"

namespace troupe {
namespace {

constexpr int kPlansMax = 32;
// Of those that lack memory by the guess, which errs: copies of one thing may
// make room for those of another.
constexpr int kUnlikelyMax = 8;
// A guess of what takes longer may be so much too large: copies hide behind the
// same work, and what is made again is not moved.
constexpr double kGuessErrs = 0.1;

struct Change {
  FieldChange named;
  std::function<void(JobSpec& job)> make;
};

// A field that says where something rests.
struct TierField {
  const char* name;
  const std::string& (MemorySpec::*get)() const;
  void (*set)(const std::string& tier, MemorySpec& memory);
};
constexpr TierField kTierFields[] = {
    {"optimizer", &MemorySpec::optimizer,
     [](const std::string& tier, MemorySpec& m) { m.set_optimizer(tier); }},
    {"parameters", &MemorySpec::parameters,
     [](const std::string& tier, MemorySpec& m) { m.set_parameters(tier); }},
    {"gradients", &MemorySpec::gradients,
     [](const std::string& tier, MemorySpec& m) { m.set_gradients(tier); }},
    {"activations", &MemorySpec::activations,
     [](const std::string& tier, MemorySpec& m) { m.set_activations(tier); }}};

// To keep less for backward.
void AddRecompute(const std::string& now, std::vector<Change>& changes) {
  for (const char* const mode : {"selective", "full"}) {
    if (now != "none" && (now != "selective" || now == mode)) continue;
    changes.push_back({{kRecomputeField, mode}, [mode](JobSpec& job) {
                         job.mutable_memory()->mutable_recompute()->set_mode(
                             mode);
                       }});
  }
}

// To deal what replicas, and ranks of a sequence, hold alike over them.
void AddZero(const ParallelismSpec& now, std::vector<Change>& changes) {
  if (now.data() * now.context() == 1) return;
  for (int zero = now.zero() + 1; zero <= 3; ++zero) {
    const auto make = [zero](JobSpec& job) {
      ParallelismSpec& parallelism = *job.mutable_parallelism();
      if (parallelism.zero() == 0) parallelism.clear_zero_size();
      parallelism.clear_reshard_after_forward();
      parallelism.set_zero(zero);
    };
    changes.push_back({{kZeroField, absl::StrCat(zero)}, make});
  }
}

// To let something rest elsewhere: further down, or up where a lower tier is
// full.
void AddTiers(const MemorySpec& now,
              const std::vector<WorkerDescription>& workers,
              std::vector<Change>& changes) {
  for (const auto& [tier, name] :
       {std::make_pair(DEVICE, "device"), std::make_pair(HOST, "host"),
        std::make_pair(NVME, "nvme")}) {
    if (!HaveTier(workers, tier)) continue;
    for (const TierField& field : kTierFields) {
      if ((now.*field.get)() == name) continue;
      changes.push_back({{absl::StrCat("memory.", field.name), name},
                         [set = field.set, name = name](JobSpec& job) {
                           set(name, *job.mutable_memory());
                         }});
    }
  }
}

std::vector<Change> ChangesOf(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const std::function<bool(const std::string& field)>& may_change) {
  std::vector<Change> changes;
  AddRecompute(job.memory().recompute().mode(), changes);
  AddZero(job.parallelism(), changes);
  AddTiers(job.memory(), workers, changes);
  changes.erase(std::remove_if(changes.begin(), changes.end(),
                               [&](const Change& change) {
                                 return !may_change(change.named.field);
                               }),
                changes.end());
  return changes;
}

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
using Bytes = std::vector<int64_t>;
constexpr Tier kTiers[] = {DEVICE, HOST, NVME};

Bytes NeedOf(const Plan& plan, const std::vector<WorkerDescription>& workers) {
  int64_t beside = 0;
  if (workers.at(0).has_gpu()) {
    for (const MemoryItem& item : GpuScratchItems(plan)) beside += item.bytes();
  }
  Bytes need;
  for (const Role& role : plan.roles()) {
    for (const Tier tier : kTiers) {
      need.push_back(BytesIn(role, tier) + (tier == DEVICE ? beside : 0));
    }
  }
  return need;
}

int64_t Budget(const WorkerDescription& worker, Tier tier) {
  if (worker.budgets().empty()) return std::numeric_limits<int64_t>::max();
  int64_t bytes = 0;
  for (const TierBudget& budget : worker.budgets()) {
    if (budget.tier() == tier) bytes += budget.bytes();
  }
  return bytes;
}

Bytes RoomOf(const Plan& plan, const std::vector<WorkerDescription>& workers) {
  Bytes room;
  for (const Role& role : plan.roles()) {
    for (const Tier tier : kTiers) {
      int64_t least = std::numeric_limits<int64_t>::max();
      for (const int rank : RanksOf(plan.mesh(), role)) {
        least = std::min(least, Budget(workers.at(rank), tier));
      }
      room.push_back(least);
    }
  }
  return room;
}

// What is missing, in all.
double Lack(const Bytes& need, const Bytes& room) {
  double lack = 0;
  for (size_t i = 0; i < need.size(); ++i) {
    lack += static_cast<double>(std::max<int64_t>(0, need[i] - room[i]));
  }
  return lack;
}

// Changes, a bit each.
using Set = uint32_t;

class Search {
 public:
  Search(const Plan& plan, const std::vector<WorkerDescription>& workers,
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
                               const std::vector<Change>& changes) {
    CHECK_LE(changes.size(), 32u);
    tried_.push_back({.need = NeedOf(plan, workers_)});
    if (plan.job().memory().has_chunk_megabytes()) {
      ASSIGN_OR_RETURN(const Plan without, build_(job_));
      tried_[0].need = NeedOf(without, workers_);
    }
    least_lack_ = Lack(tried_[0].need, room_);
    for (const Change& change : changes) {
      const size_t before = tried_.size();
      singles_.push_back(&change);
      RETURN_IF_ERROR(Try(Set{1} << (singles_.size() - 1)));
      if (tried_.size() == before) singles_.pop_back();
    }
    if (found_.fitting.empty() || options_.goes_on) {
      RETURN_IF_ERROR(TrySeveral(options_.changes_max));
    }
    std::stable_sort(
        found_.fitting.begin(), found_.fitting.end(),
        [](const Remedy& a, const Remedy& b) { return a.longer < b.longer; });
    return std::move(found_);
  }

 private:
  // What changes need and take longer: compiled, or guessed.
  struct Outcome {
    Set changes = 0;
    Bytes need;
    double longer = 0;
  };

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
    tried_.push_back({.changes = changes,
                      .need = NeedOf(*plan, workers_),
                      .longer = remedy.longer});
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
    if (!chunks_.always && compiled_ == kPlansMax) return absl::OkStatus();
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

  // As what was compiled and differs in the fewest changes, and what each of
  // those does by itself.
  Outcome GuessOf(Set changes) const {
    const Outcome* nearest = &tried_[0];
    for (const Outcome& tried : tried_) {
      if (std::popcount(tried.changes ^ changes) <=
          std::popcount(nearest->changes ^ changes)) {
        nearest = &tried;
      }
    }
    Outcome guess = *nearest;
    guess.changes = changes;
    for (size_t i = 0; i < singles_.size(); ++i) {
      const int sign = static_cast<int>(changes >> i & 1) -
                       static_cast<int>(nearest->changes >> i & 1);
      const Outcome& single = tried_[i + 1];
      guess.longer += sign * single.longer;
      for (size_t b = 0; b < guess.need.size(); ++b) {
        guess.need[b] += sign * (single.need[b] - tried_[0].need[b]);
      }
    }
    return guess;
  }

  // Of each field, or of each but ZeRO's, the change that alone leaves the
  // least lack.
  Set AllFields(bool with_zero) const {
    std::map<std::string, std::pair<double, Set>> best;
    for (size_t i = 0; i < singles_.size(); ++i) {
      if (!with_zero && singles_[i]->named.field == kZeroField) continue;
      const std::pair<double, Set> of = {Lack(tried_[i + 1].need, room_),
                                         Set{1} << i};
      const auto [at, is_new] = best.emplace(singles_[i]->named.field, of);
      if (!is_new) at->second = std::min(at->second, of);
    }
    Set all = 0;
    for (const auto& [field, of] : best) all |= of.second;
    return all;
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
        const bool has_room = std::popcount(sets[s]) < changes_max;
        if (!has_room || (sets[s] & same_field) != 0) continue;
        sets.push_back(sets[s] | Set{1} << i);
      }
    }
    sets.erase(std::remove_if(sets.begin(), sets.end(),
                              [](Set set) { return std::popcount(set) < 2; }),
               sets.end());
    return sets;
  }

  absl::Status TrySeveral(int changes_max) {
    std::vector<Set> sets = Sets(changes_max);
    for (int unlikely = 0; !sets.empty() && compiled_ < kPlansMax;) {
      // Guesses get better with all that is compiled.
      auto next = sets.end();
      std::tuple<double, double, int> least;  // lack, longer, changes
      for (auto set = sets.begin(); set != sets.end(); ++set) {
        const Outcome guess = GuessOf(*set);
        const std::tuple<double, double, int> of_set = {
            Lack(guess.need, room_), guess.longer, std::popcount(*set)};
        if (next != sets.end() && of_set >= least) continue;
        next = set;
        least = of_set;
      }
      if (std::get<0>(least) > 0) {
        if (!found_.fitting.empty() || unlikely == kUnlikelyMax) break;
        // What all of them do together is the first to be known; then without
        // ZeRO, as what is dealt and fetched lies there in slices and whole.
        const auto all =
            std::find(sets.begin(), sets.end(), AllFields(unlikely == 0));
        if (unlikely++ < 2 && all != sets.end()) next = all;
      } else if (std::get<1>(least) >= least_longer_ + kGuessErrs) {
        break;
      }
      RETURN_IF_ERROR(Try(*next));
      sets.erase(next);
    }
    return absl::OkStatus();
  }

  const JobSpec job_;  // without chunks
  const Chunks chunks_;
  const std::vector<WorkerDescription>& workers_;
  const BuildPlan& build_;
  const RemedyOptions& options_;
  const double seconds_;
  const Bytes room_;
  double least_lack_ = 0;
  // Of what fits, as it is without chunks.
  double least_longer_ = std::numeric_limits<double>::infinity();
  std::vector<const Change*> singles_;
  std::vector<Outcome> tried_;  // nothing changed, singles_, several
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
  return absl::StrFormat("%s (%+.0f %%)", text, 100 * longer);
}

absl::StatusOr<Remedies> FindRemedies(
    const Plan& plan, const std::vector<WorkerDescription>& workers,
    const BuildPlan& build, const RemedyOptions& options) {
  const std::vector<Change> changes =
      ChangesOf(plan.job(), workers, options.may_change);
  return Search(plan, workers, build, options).Run(plan, changes);
}

double PredictedStepSeconds(Plan plan,
                            const std::vector<WorkerDescription>& workers) {
  ChooseBackends(workers, plan.mesh(), *plan.mutable_groups());
  return Predict(plan, workers).step_seconds();
}

}  // namespace troupe
