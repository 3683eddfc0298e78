#include "scheduler/cluster/compilation.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/mesh.h"
#include "proto/plan/ranks_needed.h"
#include "proto/plan/worker_refusal.h"
#include "scheduler/cluster/place_ranks.h"

namespace troupe {
namespace {

// Makes choices of workers whose descriptions are copied once.
class Choices {
 public:
  Choice Of(const JobSpec& spec, const std::vector<const Worker*>& placed,
            bool idle) {
    Choice choice;
    choice.spec = spec;
    choice.idle = idle;
    for (const Worker* worker : placed) {
      choice.ids.push_back(worker->id);
      auto& description = descriptions_[worker];
      if (description == nullptr) {
        description = std::make_shared<const WorkerDescription>(
            worker->status.description());
      }
      choice.workers.push_back(description);
    }
    return choice;
  }

 private:
  absl::flat_hash_map<const Worker*, std::shared_ptr<const WorkerDescription>>
      descriptions_;
};

using WorkersOfAKind = std::vector<std::shared_ptr<const WorkerDescription>>;

// Workers like these, as many as it takes.
std::vector<WorkerDescription> Imagined(const WorkersOfAKind& alike,
                                        int needed) {
  std::vector<WorkerDescription> workers;
  for (int rank = 0; rank < needed; ++rank) {
    WorkerDescription& worker =
        workers.emplace_back(*alike[rank % alike.size()]);
    worker.set_name(absl::StrCat("like ", worker.name(), ", ", rank));
    if (worker.has_gpu()) worker.mutable_gpu()->set_uuid(worker.name());
  }
  return workers;
}

// The workers that carry a job out with fewer ranks: those that PlaceRanks
// prefers, and those with the most memory where that is more.
class NarrowerPlaces {
 public:
  explicit NarrowerPlaces(const std::vector<const Worker*>& alike)
      : alike_(alike), by_host_(alike) {
    for (const Worker* worker : alike) bytes_.push_back(DeviceBytes(*worker));
    std::sort(bytes_.begin(), bytes_.end(), std::greater<>());
  }
  int count() const { return static_cast<int>(alike_.size()); }
  std::vector<const Worker*> All() const { return PlaceRanks(alike_, count()); }
  std::vector<const Worker*> Preferred(int needed,
                                       const RanksTogether& together) const {
    return by_host_.Place(needed, together);
  }
  // None: the preferred ones have as much.
  std::vector<const Worker*> Larger(const std::vector<const Worker*>& preferred,
                                    const RanksTogether& together) const {
    const size_t needed = preferred.size();
    const bool as_large = std::all_of(
        preferred.begin(), preferred.end(),
        [&](const Worker* w) { return DeviceBytes(*w) >= bytes_[needed - 1]; });
    if (as_large) return {};
    return PlaceRanks(LargestOf(alike_, static_cast<int>(needed)),
                      static_cast<int>(needed), together);
  }

 private:
  const std::vector<const Worker*> alike_;
  const WorkersByHost by_host_;
  std::vector<int64_t> bytes_;  // of each, descending
};

std::vector<WorkerDescription> DescriptionsOf(const Choice& choice) {
  std::vector<WorkerDescription> workers;
  for (const auto& worker : choice.workers) workers.push_back(*worker);
  return workers;
}

// How many are compared.
constexpr int kComparedMax = 4;

// Why planning was ended, with what was known by then: that other workers would
// do, if that was refused before.
absl::Status Ended(const absl::Status& why, const absl::Status& refusal) {
  if (!absl::IsDeadlineExceeded(why) || IsForWorkers(why) ||
      !IsForWorkers(refusal)) {
    return why;
  }
  absl::Status ended = absl::DeadlineExceededError(
      absl::StrCat(why.message(), "; before that: ", refusal.message()));
  ended.SetPayload(kWorkerRefusal, absl::Cord());
  return ended;
}

absl::StatusOr<CompiledJob> CompileChoice(const JobCompiler& compiler,
                                          const Choice& choice,
                                          const Plan* before,
                                          const MayGoOn& may_go_on) {
  const std::vector<WorkerDescription> workers = DescriptionsOf(choice);
  ASSIGN_OR_RETURN(CompiledJob compiled,
                   compiler.Compile(choice.spec, workers, may_go_on));
  if (before == nullptr) return compiled;
  return compiler.KeepWays(std::move(compiled), *before, workers);
}

struct Comparison {
  bool idle = false;  // of the choices that are idle, or not
  int most = 1;       // that fit
  const Plan* before = nullptr;
};
// Of these choices the quickest of the first few that fit.
CompileOutcome CompileQuickest(const JobCompiler& compiler,
                               const std::vector<Choice>& choices,
                               const Comparison& comparison,
                               const MayGoOn& may_go_on) {
  CompileOutcome best;
  size_t ranks = 0;  // of the best
  int compared = 0;
  for (const Choice& choice : choices) {
    if (choice.idle != comparison.idle) continue;
    if (best.fits() && choice.workers.size() < ranks) break;
    absl::StatusOr<CompiledJob> compiled =
        CompileChoice(compiler, choice, comparison.before, may_go_on);
    if (!compiled.ok()) {
      if (!absl::IsInvalidArgument(compiled.status())) {
        // It took too long; what is known by then is not forgotten.
        if (best.fits() && absl::IsDeadlineExceeded(compiled.status())) break;
        return {.refusal = Ended(compiled.status(), best.refusal)};
      }
      if (IsForWorkers(compiled.status()) || !IsForWorkers(best.refusal)) {
        best.refusal = compiled.status();
      }
      continue;
    }
    const auto seconds = [](const CompiledJob& job) {
      return job.outline->prediction().step_seconds();
    };
    if (!best.fits() || seconds(*compiled) < seconds(best.compiled)) {
      best.compiled = *std::move(compiled);
      best.workers = choice.ids;
      if (LeavesParallelismOpen(choice.spec)) {
        best.workers.resize(MeshSize(best.compiled.outline->mesh()));
      }
      ranks = choice.workers.size();
      best.idle = choice.idle;
    }
    // A search has compared already.
    if (LeavesParallelismOpen(choice.spec)) break;
    if (++compared == comparison.most) break;
  }
  if (best.fits()) best.refusal = absl::OkStatus();
  return best;
}

bool IsForItself(const absl::Status& refusal) {
  return absl::IsInvalidArgument(refusal) && !IsForWorkers(refusal);
}

// Of a job whose choices are refused so: whether more workers would do.
absl::Status RefusalOfMore(const JobCompiler& compiler,
                           const Compilation& compilation,
                           const absl::Status& refusal,
                           const MayGoOn& may_go_on) {
  if (compilation.more_like.empty() || !IsForItself(refusal)) return refusal;
  const int all = compiler.RanksNeeded(compilation.spec).value_or(0);
  std::vector<JobSpec> ways = compiler.Narrower(compilation.spec, all - 1);
  ways.insert(ways.begin(), compilation.spec);
  absl::Status of_all;
  for (const WorkersOfAKind& alike : compilation.more_like) {
    for (const JobSpec& way : ways) {
      const int needed = compiler.RanksNeeded(way).value_or(0);
      if (needed <= static_cast<int>(alike.size())) continue;
      const absl::Status refused =
          compiler.Compile(way, Imagined(alike, needed), may_go_on).status();
      if (!refused.ok() && !absl::IsInvalidArgument(refused)) {
        return Ended(refused, ForWorkers(refusal));
      }
      if (!IsForItself(refused)) return ForWorkers(refusal);
      if (of_all.ok()) of_all = refused;
    }
  }
  return of_all.ok() ? refusal : of_all;
}

CompileOutcome CompileBest(const JobCompiler& compiler,
                           const Compilation& compilation,
                           const MayGoOn& may_go_on) {
  absl::Status refusal;  // the first
  for (const bool idle : {true, false}) {
    for (const bool narrower : {false, true}) {
      const bool compares = narrower || compilation.elastic;
      CompileOutcome tried = CompileQuickest(
          compiler, narrower ? compilation.narrower : compilation.choices,
          {.idle = idle,
           .most = compares ? kComparedMax : 1,
           .before = compilation.before.get()},
          may_go_on);
      if (tried.fits()) {
        if (!idle) tried.refusal = refusal;
        return tried;
      }
      if (!tried.refusal.ok() && !absl::IsInvalidArgument(tried.refusal)) {
        return {.refusal = Ended(tried.refusal, refusal)};
      }
      // Where other workers would do for fewer ranks, the job may wait for
      // them.
      if (refusal.ok() ||
          (IsForWorkers(tried.refusal) && !IsForWorkers(refusal))) {
        refusal = tried.refusal;
      }
    }
  }
  return {.refusal = RefusalOfMore(compiler, compilation, refusal, may_go_on)};
}

CompileOutcome ExplainFirst(const JobCompiler& compiler,
                            const Compilation& compilation,
                            const MayGoOn& may_go_on) {
  CompileOutcome outcome;
  absl::StatusOr<Explanation> explanation = compiler.Explain(
      compilation.spec, DescriptionsOf(compilation.choices.front()), may_go_on);
  outcome.refusal = explanation.status();
  if (explanation.ok()) outcome.explanation = *std::move(explanation);
  return outcome;
}

}  // namespace

Compilation CompilationFor(const JobSpec& spec, int needed,
                           const WorkerTable& workers,
                           const FailedStarts& failed) {
  Compilation compilation;
  compilation.spec = spec;
  compilation.changes = workers.changes();
  const RanksTogether together = RanksTogetherOf(spec);
  Choices make;
  std::set<std::vector<const Worker*>> seen;  // each sorted
  const auto add = [&](const std::vector<const Worker*>& placed, bool idle) {
    std::vector<const Worker*> sorted = placed;
    std::sort(sorted.begin(), sorted.end());
    if (!seen.insert(std::move(sorted)).second) return;
    compilation.choices.push_back(make.Of(spec, placed, idle));
  };
  for (const bool idle : {true, false}) {
    const std::vector<const Worker*> candidates =
        Without(idle ? workers.Idle() : workers.InService(), failed);
    if (static_cast<int>(candidates.size()) < needed) continue;
    std::vector<std::vector<const Worker*>> kinds =
        OfOneKind(candidates, needed);
    // Neither is enough: the planner says so.
    if (kinds.empty()) kinds.push_back(candidates);
    for (const auto& alike : kinds) {
      const std::vector<const Worker*> trusted = LeastDoubted(alike, needed);
      add(PlaceRanks(trusted, needed, together), idle);
      add(PlaceRanks(LargestOf(trusted, needed), needed, together), idle);
      add(PlaceRanks(LargestOf(alike, needed), needed, together), idle);
    }
  }
  return compilation;
}

Compilation OpenCompilation(const JobSpec& spec, int least,
                            const WorkerTable& workers) {
  Compilation compilation;
  compilation.spec = spec;
  compilation.changes = workers.changes();
  Choices make;
  for (const bool idle : {true, false}) {
    const std::vector<const Worker*> candidates =
        idle ? workers.Idle() : workers.InService();
    for (const auto& alike : OfOneKind(candidates, least)) {
      compilation.choices.push_back(make.Of(
          spec, PlaceRanks(alike, static_cast<int>(alike.size())), idle));
    }
    if (workers.idle_count() == workers.in_service_count()) break;
  }
  return compilation;
}

Compilation ElasticCompilation(const std::vector<JobSpec>& ways,
                               const JobCompiler& compiler,
                               const std::vector<const Worker*>& candidates,
                               int more_than) {
  Compilation compilation;
  compilation.elastic = true;
  Choices make;
  std::vector<NarrowerPlaces> kinds;
  for (const auto& alike : OfOneKind(candidates, /*needed=*/1)) {
    kinds.emplace_back(alike);
  }
  std::vector<Choice> largest;
  for (const JobSpec& way : ways) {
    const int needed = compiler.RanksNeeded(way).value_or(0);
    if (LeavesParallelismOpen(way)) {
      // The plan says how many of them it takes.
      for (const NarrowerPlaces& kind : kinds) {
        if (kind.count() < needed || kind.count() <= more_than) continue;
        compilation.choices.push_back(make.Of(way, kind.All(), /*idle=*/true));
      }
      continue;
    }
    if (needed <= more_than) continue;
    const RanksTogether together = RanksTogetherOf(way);
    for (const NarrowerPlaces& kind : kinds) {
      if (kind.count() < needed) continue;
      const std::vector<const Worker*> placed =
          kind.Preferred(needed, together);
      compilation.choices.push_back(make.Of(way, placed, /*idle=*/true));
      const std::vector<const Worker*> larger = kind.Larger(placed, together);
      if (larger.empty()) continue;
      largest.push_back(make.Of(way, larger, /*idle=*/true));
    }
  }
  std::move(largest.begin(), largest.end(),
            std::back_inserter(compilation.choices));
  std::stable_sort(compilation.choices.begin(), compilation.choices.end(),
                   [](const Choice& a, const Choice& b) {
                     return a.ids.size() > b.ids.size();
                   });
  return compilation;
}

void AddNarrower(const JobCompiler& compiler, const WorkerTable& workers,
                 Compilation& compilation, const FailedStarts& failed) {
  const JobSpec& spec = compilation.spec;
  compilation.narrows = true;
  if (!spec.has_elastic() || !compiler.RanksNeeded(spec).ok()) return;
  for (const bool idle : {true, false}) {
    const std::vector<const Worker*> candidates =
        Without(idle ? workers.Idle() : workers.InService(), failed);
    // The same once more.
    if (!idle && workers.idle_count() == workers.in_service_count()) break;
    Compilation narrower =
        ElasticCompilation(compiler.Narrower(spec, MostOfOneKind(candidates)),
                           compiler, candidates, /*more_than=*/0);
    for (Choice& choice : narrower.choices) {
      choice.idle = idle;
      compilation.narrower.push_back(std::move(choice));
    }
  }
}

void ImagineMore(const JobSpec& spec,
                 const std::vector<const Worker*>& candidates,
                 Compilation& compilation) {
  compilation.spec = spec;
  Choices make;
  for (const auto& alike : OfOneKind(candidates, /*needed=*/1)) {
    compilation.more_like.push_back(
        make.Of(spec, alike, /*idle=*/true).workers);
  }
}

CompileOutcome CompileFirstFit(const JobCompiler& compiler,
                               const Compilation& compilation,
                               const MayGoOn& may_go_on) {
  CompileOutcome outcome = compilation.explain
                               ? ExplainFirst(compiler, compilation, may_go_on)
                               : CompileBest(compiler, compilation, may_go_on);
  outcome.changes = compilation.changes;
  return outcome;
}

}  // namespace troupe
