#include "scheduler/search/space.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/islands.h"
#include "proto/plan/model.h"
#include "proto/plan/ranks_needed.h"
#include "proto/plan/sharing.h"
#include "proto/plan/strategies.h"
#include "scheduler/layouts/axes.h"
#include "scheduler/layouts/layouts.h"
#include "scheduler/layouts/zero.h"
#include "scheduler/planner/fit_memory.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/resolve_micro_batches.h"
#include "scheduler/planner/shares.h"
#include "scheduler/tiers/offload.h"
#include "scheduler/tiers/recompute.h"

namespace troupe {
namespace {

constexpr char kAuto[] = "auto";
constexpr int kMicroBatchMax = 256;

// Nothing of parallelism, for whatever is not of it to be checked.
JobSpec WithoutParallelism(const JobSpec& job) {
  JobSpec rest = job;
  rest.clear_parallelism();
  rest.clear_objective();
  rest.clear_elastic();
  if (!rest.training().has_micro_batch_size()) {
    rest.mutable_training()->set_micro_batch_size(1);
  }
  return rest;
}

absl::Status CheckObjective(const JobSpec& job) {
  if (!job.has_objective()) return absl::OkStatus();
  return CheckName("objective", job.objective(),
                   {"time", "tokens_per_dollar", "fewest_workers"});
}

absl::Status CheckFixedFields(const ParallelismSpec& parallelism) {
  RETURN_IF_ERROR(CheckName("parallelism", parallelism.mode(), {kAuto}));
  RETURN_IF_ERROR(CheckSizes(parallelism));
  if (!parallelism.strategies().empty()) {
    return FieldError("parallelism.strategies",
                      "the planner chooses how all units are shared, and none "
                      "by themselves; leave it out, or say all of parallelism "
                      "without mode: auto");
  }
  if (!parallelism.has_pipeline_schedule()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Pipeline schedule,
                   FindPipeline(parallelism.pipeline_schedule()));
  if (!schedule.asynchronous) return absl::OkStatus();
  return FieldError(
      "parallelism.pipeline_schedule",
      absl::StrCat(schedule.name,
                   " trains with late gradients, so that the number of stages "
                   "is part of what is trained; say all of parallelism without "
                   "mode: auto, or use a synchronous schedule"));
}

// Every field that is set, in both: whether they agree.
bool Agrees(const ParallelismSpec& fixed, const std::string& field,
            const ParallelismSpec& shares) {
  if (!HasField(fixed, field)) return true;
  return IsRankField(field)
             ? RanksOf(fixed, field) == RanksOf(shares, field)
             : !HasField(shares, field) ||
                   FieldText(fixed, field) == FieldText(shares, field);
}

// Whether a search tries numbers of ranks for it.
bool IsTried(const RankField& field) {
  if (field.of_data) return true;
  const std::vector<const LayoutRow*> rows = RowsOf(field.name);
  return std::any_of(rows.begin(), rows.end(), [](const LayoutRow* row) {
    return row->tries != nullptr;
  });
}

// Of fields that are tried no other way than the job says, if it does.
int RanksSetApart(const ParallelismSpec& fixed) {
  int ranks = 1;
  for (const RankField& field : FactorFields()) {
    if (!IsTried(field)) ranks *= RanksOf(fixed, field.name);
  }
  return ranks;
}

// What a share says, and the fields of rows that it could say.
bool AgreeOnShares(const ParallelismSpec& fixed,
                   const ParallelismSpec& shares) {
  if (fixed.has_data() && fixed.data() != shares.data()) return false;
  for (const RankField& field : RankFields()) {
    if (!IsTried(field)) continue;
    if (!Agrees(fixed, field.name, shares)) return false;
    const std::string method = field.MethodName();
    const bool has_method = HasField(fixed, method);
    if (has_method && RanksOf(shares, field.name) > 1 &&
        RowOf(shares, field.name).method != FieldText(fixed, method)) {
      return false;
    }
    if (has_method && RanksOf(shares, field.name) < 2) return false;
    for (const LayoutRow* const row : RowsOf(field.name)) {
      for (const std::string& own : row->fields) {
        if (!Agrees(fixed, own, shares)) return false;
      }
    }
  }
  return true;
}

// Each set of the words for units, but none of them and all.
std::vector<StrategySpec> SetsOfUnits() {
  const std::vector<std::string> words = UnitWords();
  std::vector<StrategySpec> sets;
  for (unsigned set = 1; set + 1 < 1U << words.size(); ++set) {
    StrategySpec& strategy = sets.emplace_back();
    for (size_t word = 0; word < words.size(); ++word) {
      if ((set >> word & 1) != 0) strategy.add_units(words[word]);
    }
  }
  return sets;
}

std::vector<int> DivisorsUpTo(int number, int most) {
  std::vector<int> divisors;
  for (int d = 1; d <= std::min(number, most); ++d) {
    if (number % d == 0) divisors.push_back(d);
  }
  return divisors;
}

}  // namespace

absl::Status CheckOpenJob(const JobSpec& job) {
  if (job.evaluate()) {
    return FieldError("parallelism",
                      "auto looks for the quickest training step, and with "
                      "evaluate: true there is none; give sizes, as in "
                      "parallelism.data");
  }
  RETURN_IF_ERROR(CheckObjective(job));
  if (job.parallelism().servers() > 0 || job.has_servers()) {
    return FieldError(job.has_servers() ? "servers" : "parallelism.servers",
                      "the planner tries no plans with parameter servers; "
                      "leave it out, or say all of parallelism without mode: "
                      "auto");
  }
  if (IslandsOf(job.parallelism()) > 1 || job.has_islands()) {
    return FieldError(job.has_islands() ? "islands" : "parallelism.islands",
                      "the planner tries no plans with islands; leave it out, "
                      "or say all of parallelism without mode: auto");
  }
  RETURN_IF_ERROR(CheckFixedFields(job.parallelism()));
  return ResolveJob(WithoutParallelism(job), PlanLength::kUnknown).status();
}

int RanksAtLeast(const JobSpec& job) { return RanksNeeded(job); }

JobSpec JobOf(const JobSpec& job, const Candidate& candidate) {
  JobSpec chosen = job;
  *chosen.mutable_parallelism() = candidate.parallelism;
  chosen.mutable_parallelism()->clear_mode();
  chosen.clear_objective();
  chosen.mutable_training()->set_micro_batch_size(candidate.micro_batch_size);
  // What else `memory: auto` leaves open rests on the device, as by default.
  MemorySpec& memory = *chosen.mutable_memory();
  if (LeavesOpen(memory)) {
    memory.clear_mode();
    if (!MayStayOnDevice(memory)) memory.clear_chunk_megabytes();
  }
  if (!candidate.recompute.empty()) {
    memory.mutable_recompute()->set_mode(candidate.recompute);
  }
  return chosen;
}

JobSpec WithChoice(const JobSpec& job, const JobSpec& chosen) {
  JobSpec with = job;
  with.clear_objective();
  *with.mutable_parallelism() = chosen.parallelism();
  with.mutable_training()->set_micro_batch_size(
      chosen.training().micro_batch_size());
  if (LeavesOpen(job.memory())) *with.mutable_memory() = chosen.memory();
  return with;
}

Space::Space(const JobSpec& job, const std::vector<Pipeline>& pipelines)
    : job_(job), pipelines_(pipelines) {
  ModelSpec model = job.model();
  if (ResolveModel(model).ok()) units_ = UnitCount(model);
}

std::vector<int> Space::RankCounts(int workers) const {
  std::set<int> counts;
  for (int ranks = 1; ranks <= std::min(workers, kFewRanks); ++ranks) {
    counts.insert(ranks);
  }
  for (int ranks = 1; ranks <= workers / 2; ranks *= 2)
    counts.insert(2 * ranks);
  for (const int ranks : DivisorsOf(workers)) counts.insert(ranks);
  const int least = RanksAtLeast(job_);
  std::vector<int> all;
  for (auto ranks = counts.rbegin(); ranks != counts.rend(); ++ranks) {
    if (*ranks % least == 0) all.push_back(*ranks);
  }
  return all;
}

std::vector<ParallelismSpec> Space::FixedSharesOf(int ranks, int ranks_in_all,
                                                  Reasons& left_out) const {
  const ParallelismSpec& fixed = job_.parallelism();
  const int global = job_.training().global_batch_size();
  std::vector<ParallelismSpec> all;
  const int apart = RanksSetApart(fixed);
  if (ranks % apart != 0) return all;
  for (const ParallelismSpec& shares : SharesOf(ranks / apart, job_.model())) {
    if (!AgreeOnShares(fixed, shares)) continue;
    if (workers_of_host_ > 0 && ranks_in_all > kFewRanks &&
        !IsWithinLimits(shares)) {
      ++left_out["more ranks share units than a host has, or than pay"];
      continue;
    }
    const bool even = fixed.micro_batches().empty() &&
                      !fixed.has_micro_batch_split() && !TriesUnevenSplits();
    if (even && global % shares.data() != 0) {
      ++left_out["replicas do not divide training.global_batch_size"];
      continue;
    }
    // What the job says of other fields stays.
    ParallelismSpec way = fixed;
    way.MergeFrom(shares);
    all.push_back(std::move(way));
  }
  return all;
}

std::vector<int> Space::MicroBatchesOf(int replica_batch, int ranks) const {
  const TrainingSpec& training = job_.training();
  if (training.has_micro_batch_size()) return {training.micro_batch_size()};
  std::vector<int> sizes = DivisorsUpTo(replica_batch, kMicroBatchMax);
  if (ranks > kFewRanks) {
    sizes.erase(std::remove_if(sizes.begin(), sizes.end(),
                               [](int size) {
                                 return !std::has_single_bit(
                                     static_cast<unsigned>(size));
                               }),
                sizes.end());
  }
  return sizes;
}

bool Space::TriesUnevenSplits() const {
  const ParallelismSpec& fixed = job_.parallelism();
  return uneven_ && fixed.micro_batches().empty() &&
         !fixed.has_micro_batch_split();
}

bool Space::IsWithinLimits(const ParallelismSpec& shares) const {
  int on_one_host = 1;
  int others = 1;
  for (const SharedAxis& axis : SharedAxes(shares)) {
    // Ranks of data share what replicas would: they are as many as these.
    const bool of_data =
        std::any_of(RankFields().begin(), RankFields().end(),
                    [&axis](const RankField& field) {
                      return field.of_data && field.name == axis.name();
                    });
    if (of_data) continue;
    (axis.row->on_one_host ? on_one_host : others) *= axis.size;
  }
  return on_one_host <= workers_of_host_ && others <= kSharedMax &&
         !ComplexityOf(shares).last;
}

std::vector<Candidate> Space::DivisionsOf(int ranks, Reasons& left_out) const {
  const ParallelismSpec& fixed = job_.parallelism();
  const std::string mode = RecomputeModesOf().front();
  std::vector<Candidate> divisions;
  for (const int pipeline : DivisorsOf(ranks)) {
    if (fixed.has_pipeline() && fixed.pipeline() != pipeline) continue;
    if (pipeline > units_) break;
    for (const ParallelismSpec& shares :
         FixedSharesOf(ranks / pipeline, ranks, left_out)) {
      const int replica_batch =
          std::max(1, job_.training().global_batch_size() / shares.data());
      for (const int size : MicroBatchesOf(replica_batch, ranks)) {
        Candidate& division = divisions.emplace_back();
        division.parallelism = shares;
        division.parallelism.set_pipeline(pipeline);
        division.micro_batch_size = size;
        division.recompute = mode;
      }
    }
  }
  std::vector<Candidate> with_parts;
  for (const Candidate& division : divisions) {
    if (ranks <= kFewRanks) AddWithParts(division, with_parts);
  }
  std::move(with_parts.begin(), with_parts.end(),
            std::back_inserter(divisions));
  return divisions;
}

// What is tried for some units goes beside what all others do.
void Space::AddWithParts(const Candidate& division,
                         std::vector<Candidate>& all) const {
  const ParallelismSpec& fixed = job_.parallelism();
  for (const RankField& field : FactorFields()) {
    if (HasField(fixed, field.name)) return;
  }
  for (ParallelismSpec& way :
       SharesWithParts(division.parallelism, SetsOfUnits())) {
    if (!DividesSamples(way, division.micro_batch_size)) continue;
    all.push_back(division);
    all.back().parallelism = std::move(way);
  }
}

void Space::AddSchedules(const Candidate& division,
                         std::vector<Candidate>& all) const {
  const ParallelismSpec& fixed = job_.parallelism();
  const int pipeline = division.parallelism.pipeline();
  if (pipeline == 1) {
    Candidate& candidate = all.emplace_back(division);
    candidate.parallelism.clear_pipeline_schedule();
    candidate.parallelism.clear_virtual_stages();
    return;
  }
  for (const Pipeline& row : pipelines_) {
    std::vector<int> stages = row.tried_stages;
    if (fixed.has_pipeline_schedule()) {
      if (fixed.pipeline_schedule() != row.name) continue;
      if (stages.empty()) stages = {row.default_virtual_stages};
    }
    for (const int count : stages) {
      if (fixed.has_virtual_stages() && fixed.virtual_stages() != count) {
        continue;
      }
      if (pipeline * count > units_) continue;
      Candidate& candidate = all.emplace_back(division);
      candidate.parallelism.set_pipeline_schedule(std::string(row.name));
      candidate.parallelism.set_virtual_stages(count);
    }
  }
}

std::vector<Candidate> Space::CandidatesOf(const Candidate& division) const {
  std::vector<Candidate> scheduled;
  AddSchedules(division, scheduled);
  const ParallelismSpec& fixed = job_.parallelism();
  std::vector<Candidate> all;
  for (const Candidate& candidate : scheduled) {
    for (int level = 0; level < ZeroLevels(); ++level) {
      if (fixed.has_zero() && fixed.zero() != level) continue;
      // Nothing is dealt over one rank.
      const bool deals = MayDeal(candidate.parallelism);
      if (level > 0 && !deals && !fixed.has_zero()) break;
      Candidate with_level = candidate;
      with_level.parallelism.set_zero(level);
      AddSplits(std::move(with_level), all);
    }
  }
  return all;
}

void Space::AddSplits(Candidate candidate, std::vector<Candidate>& all) const {
  if (!TriesUnevenSplits() || candidate.parallelism.data() == 1) {
    all.push_back(std::move(candidate));
    return;
  }
  const int64_t at_once =
      int64_t{1} * candidate.parallelism.data() * candidate.micro_batch_size;
  if (job_.training().global_batch_size() % at_once == 0) {
    all.push_back(candidate);
  }
  all.push_back(std::move(candidate));
  all.back().parallelism.set_micro_batch_split(kSplitBySpeed);
}

std::vector<std::string> Space::RecomputeModesOf() const {
  const MemorySpec& memory = job_.memory();
  const RecomputeSpec& said = memory.recompute();
  const bool given = said.has_mode() || !said.units().empty() ||
                     !said.selective_units().empty();
  if (!LeavesOpen(memory) || given) return {""};
  return TriedRecomputeModes();
}

}  // namespace troupe
