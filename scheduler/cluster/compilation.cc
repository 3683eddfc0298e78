#include "scheduler/cluster/compilation.h"

#include <algorithm>
#include <set>
#include <utility>

#include "scheduler/cluster/placement.h"

namespace troupe {
namespace {

Choice ChoiceOf(const JobSpec& spec, const std::vector<const Worker*>& placed,
                bool idle) {
  Choice choice;
  choice.spec = spec;
  choice.idle = idle;
  for (const Worker* worker : placed) {
    choice.ids.push_back(worker->id);
    choice.workers.push_back(worker->status.description());
  }
  return choice;
}

// So many are compared.
constexpr int kComparedMax = 4;

CompileOutcome CompileQuickest(const JobCompiler& compiler,
                               const Compilation& compilation,
                               const MayGoOn& may_go_on) {
  CompileOutcome best;
  int compared = 0;
  for (const Choice& choice : compilation.choices) {
    if (best.fits() && choice.ids.size() < best.workers.size()) break;
    absl::StatusOr<CompiledJob> compiled =
        compiler.Compile(choice.spec, choice.workers, may_go_on);
    if (!compiled.ok()) {
      best.refusal = compiled.status();
      if (absl::IsInvalidArgument(compiled.status())) continue;
      return {.refusal = compiled.status()};  // it took too long
    }
    const auto seconds = [](const CompiledJob& job) {
      return job.outline->prediction().step_seconds();
    };
    if (!best.fits() || seconds(*compiled) < seconds(best.compiled)) {
      best.compiled = *std::move(compiled);
      best.workers = choice.ids;
      best.idle = choice.idle;
    }
    if (++compared == kComparedMax) break;
  }
  if (best.fits()) best.refusal = absl::OkStatus();
  return best;
}

CompileOutcome ExplainFirst(const JobCompiler& compiler,
                            const Compilation& compilation,
                            const MayGoOn& may_go_on) {
  CompileOutcome outcome;
  absl::StatusOr<Explanation> explanation = compiler.Explain(
      compilation.spec, compilation.choices.front().workers, may_go_on);
  outcome.refusal = explanation.status();
  if (explanation.ok()) outcome.explanation = *std::move(explanation);
  return outcome;
}

}  // namespace

Compilation CompilationFor(const JobSpec& spec, int needed,
                           const WorkerTable& workers) {
  Compilation compilation;
  compilation.spec = spec;
  compilation.changes = workers.changes();
  std::set<std::vector<const Worker*>> seen;  // each sorted
  const auto add = [&](const std::vector<const Worker*>& placed, bool idle) {
    std::vector<const Worker*> sorted = placed;
    std::sort(sorted.begin(), sorted.end());
    if (!seen.insert(std::move(sorted)).second) return;
    compilation.choices.push_back(ChoiceOf(spec, placed, idle));
  };
  for (const bool idle : {true, false}) {
    const std::vector<const Worker*> candidates =
        idle ? workers.Idle() : workers.Alive();
    if (static_cast<int>(candidates.size()) < needed) continue;
    std::vector<std::vector<const Worker*>> kinds =
        OfOneKind(candidates, needed);
    // Neither is enough: the planner says so.
    if (kinds.empty()) kinds.push_back(candidates);
    for (const auto& alike : kinds) {
      add(PlaceRanks(alike, needed), idle);
      add(PlaceRanks(LargestOf(alike, needed), needed), idle);
    }
  }
  return compilation;
}

Compilation ElasticCompilation(const std::vector<JobSpec>& ways,
                               const JobCompiler& compiler,
                               const std::vector<const Worker*>& candidates,
                               int more_than) {
  Compilation compilation;
  compilation.elastic = true;
  for (const JobSpec& way : ways) {
    const int needed = compiler.RanksNeeded(way).value_or(0);
    if (needed <= more_than) continue;
    for (const auto& alike : OfOneKind(candidates, needed)) {
      compilation.choices.push_back(
          ChoiceOf(way, PlaceRanks(alike, needed), /*idle=*/true));
    }
  }
  return compilation;
}

CompileOutcome CompileFirstFit(const JobCompiler& compiler,
                               const Compilation& compilation,
                               const MayGoOn& may_go_on) {
  if (compilation.explain)
    return ExplainFirst(compiler, compilation, may_go_on);
  if (compilation.elastic) {
    return CompileQuickest(compiler, compilation, may_go_on);
  }
  CompileOutcome outcome;
  for (const Choice& choice : compilation.choices) {
    absl::StatusOr<CompiledJob> compiled =
        compiler.Compile(choice.spec, choice.workers, may_go_on);
    if (compiled.ok()) {
      outcome.compiled = *std::move(compiled);
      outcome.workers = choice.ids;
      outcome.idle = choice.idle;
      if (choice.idle == compilation.choices.front().idle) {
        outcome.refusal = absl::OkStatus();
      }
      return outcome;
    }
    const bool too_small = absl::IsInvalidArgument(compiled.status());
    if (!too_small || choice.idle == compilation.choices.front().idle) {
      outcome.refusal = compiled.status();
    }
    if (!too_small) return outcome;
  }
  return outcome;
}

}  // namespace troupe
