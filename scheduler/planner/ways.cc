#include "scheduler/planner/ways.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "proto/base/check.h"
#include "proto/plan/islands.h"
#include "proto/plan/sharing.h"
#include "proto/plan/strategies.h"
#include "scheduler/layouts/axes.h"
#include "scheduler/layouts/layouts.h"
#include "scheduler/layouts/replicas.h"
#include "scheduler/layouts/resolve_rows.h"
#include "scheduler/layouts/zero.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/resolve_micro_batches.h"
#include "scheduler/planner/resolve_zero_weights.h"
#include "scheduler/planner/shares.h"

namespace troupe {
namespace {

// A parallelism that says nothing but how many replicas there are and how ranks
// share units, each of them or all.
using Shares = ParallelismSpec;

Shares SharingOf(const ParallelismSpec& parallelism) {
  Shares shares;
  shares.set_data(parallelism.data());
  CopySharing(parallelism, shares);
  for (const LayoutRow* const row : RowsInUse(shares)) {
    if (row->implied) ClearField(MethodNameOf(*row), shares);
  }
  *shares.mutable_strategies() = parallelism.strategies();
  return shares;
}

// Of fields of data, only which ranks there are.
bool HaveSameData(const ParallelismSpec& a, const ParallelismSpec& b) {
  for (const RankField& field : RankFields()) {
    if (!field.of_data) continue;
    if (RanksOf(a, field.name) != RanksOf(b, field.name)) return false;
    const LayoutRow& row = RowOf(a, field.name);
    if (row.along != nullptr && row.along(a) != row.along(b)) return false;
  }
  return a.data() == b.data() && RanksOfReplica(a) == RanksOfReplica(b);
}

bool AreAlike(const Shares& a, const Shares& b) {
  return HaveSameData(a, b) && SharingText(a) == SharingText(b) &&
         StrategiesText(a) == StrategiesText(b);
}

// What strategies are tried for: tables are large by their vocabulary, blocks
// by their activations; the first stage and the last have the tables.
std::vector<StrategySpec> PartsToTry(int pipeline) {
  std::vector<StrategySpec> parts(2);
  parts[0].add_units("blocks");
  parts[1].add_units("embedding");
  parts[1].add_units("head");
  if (pipeline < 2) return parts;
  for (const int stage : {0, pipeline - 1}) {
    parts.emplace_back().set_stage(stage);
  }
  return parts;
}

// And each with some units shared otherwise by the same ranks.
std::vector<Shares> WithStrategies(const std::vector<Shares>& without,
                                   const ParallelismSpec& job) {
  const std::vector<StrategySpec> parts =
      PartsToTry(job.pipeline() * job.virtual_stages());
  std::vector<Shares> all = without;
  for (const Shares& shares : without) {
    const std::vector<Shares> with = SharesWithParts(shares, parts);
    all.insert(all.end(), with.begin(), with.end());
  }
  return all;
}

std::vector<Shares> AllShares(int ranks, const JobSpec& resolved) {
  std::vector<Shares> all =
      WithStrategies(SharesOf(ranks, resolved.model()), resolved.parallelism());
  std::stable_sort(all.begin(), all.end(),
                   [](const Shares& a, const Shares& b) {
                     return ComplexityOf(a) < ComplexityOf(b);
                   });
  return all;
}

void SetZero(int zero, const ParallelismSpec& asked, JobSpec& way) {
  ParallelismSpec& parallelism = *way.mutable_parallelism();
  parallelism.set_zero(zero);
  parallelism.clear_zero_size();
  parallelism.clear_reshard_after_forward();
  const int weights = parallelism.zero_weights_size();
  if (zero == 0 || (weights > 0 && weights != ReplicasOf(parallelism))) {
    ClearZeroWeights(parallelism);
  }
  if (zero == 0) return;
  if (zero == 3 && asked.has_reshard_after_forward()) {
    parallelism.set_reshard_after_forward(asked.reshard_after_forward());
  }
  if (!asked.has_zero_size()) return;
  parallelism.set_zero_size(asked.zero_size());
  if (!ResolveJob(way).ok()) parallelism.clear_zero_size();
}

// Nothing is dealt over one rank, and what rests in slices anyway only together
// with all else.
int LevelFor(const Shares& shares, int zero) {
  if (DealtMost(shares) == 1) return 0;
  return zero > 0 && SlicedRow(shares) != nullptr ? 3 : zero;
}

JobSpec WithShares(const JobSpec& resolved, const Shares& shares) {
  JobSpec way = resolved;
  ParallelismSpec& parallelism = *way.mutable_parallelism();
  *parallelism.mutable_strategies() = shares.strategies();
  parallelism.set_data(shares.data());
  CopySharing(shares, parallelism);
  if (!HaveSameData(shares, resolved.parallelism())) ClearMicroBatches(way);
  way.mutable_memory()->clear_unsharded_bytes();
  FitMicroBatch(way);
  return way;
}

// Whether the row would fill in the same.
bool IsDefault(const LayoutRow& row, const std::string& field,
               const ParallelismSpec& parallelism) {
  ParallelismSpec filled = parallelism;
  ClearField(field, filled);
  return row.resolve != nullptr && row.resolve(filled).ok() &&
         FieldText(filled, field) == FieldText(parallelism, field);
}

// Whether the field of data may have `ranks` ranks: with its own fields as they
// are, or else without them.
bool FitField(const RankField& field, int ranks, ParallelismSpec& parallelism) {
  for (const bool clear : {false, true}) {
    ParallelismSpec fitted = parallelism;
    if (clear) ClearMethod(field.name, fitted);
    SetRanks(field.name, ranks, fitted);
    ParallelismSpec resolved = fitted;
    const LayoutRow& row = RowOf(fitted, field.name);
    const bool fits =
        ranks < 2 ? clear
                  : row.resolve == nullptr || row.resolve(resolved).ok();
    if (!fits) continue;
    parallelism = fitted;
    return true;
  }
  return false;
}

// Sets those of `needed` that a job must say for units to be shared so.
void SetSharing(const ParallelismSpec& now, ParallelismSpec& needed) {
  for (const LayoutRow* const row : RowsInUse(now)) {
    const std::string field(row->field);
    SetRanks(field, RanksOf(now, field), needed);
    if (!row->implied && !row->method.empty()) {
      SetField(MethodNameOf(*row), std::string(row->method), needed);
    }
    for (const std::string& own : row->fields) {
      const std::string text = FieldText(now, own);
      if (text.empty() || text == "false") continue;
      if (row->leaves_out_defaults && IsDefault(*row, own, now)) continue;
      SetField(own, text, needed);
    }
  }
}

}  // namespace

void FitFieldsOfData(JobSpec& way) {
  ParallelismSpec& parallelism = *way.mutable_parallelism();
  for (const RankField& field : RankFields()) {
    if (!field.of_data) continue;
    const std::vector<int> sizes = DivisorsOf(RanksOf(parallelism, field.name));
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
      if (FitField(field, *size, parallelism)) break;
    }
  }
}

void FitMicroBatch(JobSpec& way) {
  TrainingSpec& training = *way.mutable_training();
  const ParallelismSpec& parallelism = way.parallelism();
  if (!parallelism.micro_batches().empty()) return;  // numbers of these
  const auto global = static_cast<int>(SamplesOfIsland(way));
  const int replica_batch = global / parallelism.data();
  if (replica_batch == 0) return;
  int size = std::min(training.micro_batch_size(), replica_batch);
  if (parallelism.micro_batch_split() == kSplitBySpeed) {
    while (global % size != 0) --size;
  } else if (global % parallelism.data() == 0) {
    while (replica_batch % size != 0) --size;
  } else {
    return;
  }
  training.set_micro_batch_size(size);
}

void ClearMicroBatches(JobSpec& way) {
  way.mutable_parallelism()->clear_micro_batches();
  way.mutable_parallelism()->clear_micro_batch_split();
}

std::vector<JobSpec> WaysToShare(const JobSpec& job) {
  const absl::StatusOr<JobSpec> resolved = ResolveJob(job);
  CHECK_OK(resolved.status());
  const ParallelismSpec& now = resolved->parallelism();
  const Shares as_it_is = SharingOf(now);
  int ranks = now.data();
  for (const RankField& field : FactorFields()) {
    ranks *= RanksOf(now, field.name);
  }
  Shares only_data;
  only_data.set_data(ranks);
  std::vector<JobSpec> ways = {job};
  const auto add = [&](const Shares& shares, int zero) {
    JobSpec way = WithShares(*resolved, shares);
    SetZero(zero, job.parallelism(), way);
    ways.push_back(std::move(way));
  };
  for (int zero = 0; zero <= 3; ++zero) {
    if (zero == now.zero()) continue;
    if (LevelFor(as_it_is, zero) == zero) add(as_it_is, zero);
    if (ranks > 1 && !AreAlike(as_it_is, only_data)) add(only_data, zero);
  }
  for (const Shares& shares : AllShares(ranks, *resolved)) {
    if (AreAlike(shares, as_it_is)) continue;
    const JobSpec way = WithShares(*resolved, shares);
    if (!DividesSamples(shares, way.training().micro_batch_size())) continue;
    add(shares, LevelFor(shares, now.zero()));
  }
  return ways;
}

WayFields FieldsOfWay(const JobSpec& way, const JobSpec& job) {
  WayFields fields;
  const ParallelismSpec& now = way.parallelism();
  ParallelismSpec& needed = *fields.mutable_parallelism();
  if (now.data() > 1) needed.set_data(now.data());
  SetSharing(now, needed);
  for (const StrategySpec& strategy : now.strategies()) {
    ParallelismSpec of_strategy;
    SetSharing(WithStrategy(now, strategy), of_strategy);
    StrategySpec& said = *needed.add_strategies() = strategy;
    CopySharing(of_strategy, said);
  }
  if (now.zero() > 0) needed.set_zero(now.zero());
  if (now.zero() > 0 && now.has_zero_size() &&
      now.zero_size() < DealtMost(now)) {
    needed.set_zero_size(now.zero_size());
  }
  *needed.mutable_zero_weights() = now.zero_weights();
  const int micro_batch = way.training().micro_batch_size();
  if (micro_batch != job.training().micro_batch_size()) {
    fields.set_micro_batch_size(micro_batch);
  }
  return fields;
}

}  // namespace troupe
