#include "scheduler/search/search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/memory.h"
#include "proto/plan/plan_limits.h"
#include "proto/plan/ranks_needed.h"
#include "proto/plan/worker_refusal.h"
#include "scheduler/planner/advise.h"
#include "scheduler/planner/fit_memory.h"
#include "scheduler/planner/planned_way.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/ways.h"
#include "scheduler/search/estimate.h"
#include "scheduler/search/space.h"

namespace troupe {
namespace {

// What planning takes beside a plan's instructions, in instructions.
constexpr int64_t kPlanOverhead = 2000;
// Of plans that are compared: short ones first, and longer ones where these do
// not fill the pipeline.
constexpr int64_t kShort = 12'000;
// Estimates err alike: once so many were simulated, others are taken to err as
// these, and by so much more.
constexpr int kTellError = 8;
constexpr double kErrorMargin = 0.05;
// Of candidates that do not fit, so many are asked what else rests elsewhere.
constexpr int kTierTriesMax = 3;
constexpr int kTimesMoreWorkers[] = {2, 3, 4, 8, 16};
constexpr size_t kMoreWorkersMax = 4096;

// Of so many workers steps are simulated with faster links, too.
constexpr size_t kFasterLinksMax = 64;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string ObjectiveOf(const JobSpec& job) {
  return job.has_objective() ? job.objective() : "time";
}

std::vector<WorkerDescription> FirstOf(
    const std::vector<WorkerDescription>& workers, int count) {
  return {workers.begin(), workers.begin() + count};
}

// Most that are on one host.
int LargestHost(const std::vector<WorkerDescription>& workers) {
  std::map<std::string, int> hosts;
  int most = 0;
  for (const WorkerDescription& worker : workers) {
    most = std::max(most, ++hosts[worker.host()]);
  }
  return most;
}

// What compares steps of so many ranks; least is best.
class Objective {
 public:
  Objective(const JobSpec& job, const std::vector<WorkerDescription>& workers)
      : name_(ObjectiveOf(job)) {
    price_.push_back(0);
    for (const WorkerDescription& worker : workers) {
      price_.push_back(price_.back() + worker.dollars_per_hour());
    }
  }
  const std::string& name() const { return name_; }
  bool has_prices() const { return price_.back() > 0; }
  bool fewest() const { return name_ == "fewest_workers"; }
  double ValueOf(double seconds, int ranks) const {
    if (fewest()) return ranks;
    return name_ == "time" ? seconds : seconds * price_[ranks];
  }
  double DollarsPerSecond(int ranks) const { return price_[ranks] / 3600; }

 private:
  const std::string name_;
  std::vector<double> price_;  // of the first workers, an hour
};

// The first words of a refusal, without its numbers' way out.
std::string ReasonOf(const absl::Status& refused) {
  const std::vector<std::string> parts =
      absl::StrSplit(refused.message(), "; ");
  return parts.front();
}

class Search {
 public:
  Search(const JobSpec& job, const std::vector<WorkerDescription>& workers,
         const SearchOptions& options)
      : job_(job),
        workers_(workers),
        options_(options),
        space_(job),
        estimator_(job, workers),
        objective_(job, workers) {
    space_.LimitTo(LargestHost(workers));
  }

  absl::StatusOr<ChosenWays> Run() {
    RETURN_IF_ERROR(EstimateAll());
    RETURN_IF_ERROR(SimulateBest());
    if (BestOf(simulated_) == nullptr) RETURN_IF_ERROR(TryTiers());
    if (BestOf(simulated_) == nullptr) return Refuse();
    return Choose();
  }

 private:
  struct Estimated {
    Candidate candidate;
    Estimate estimate;
    int ranks = 1;
    double value = 0;
    std::string key;
  };
  struct Simulated {
    JobSpec job;
    int ranks = 1;
    double estimated = 0;
    double value = 0;
    ExplainedWay way;
    std::string key;
  };

  void Say(const std::string& line) const {
    if (options_.progress) options_.progress(line);
  }

  static std::string KeyOf(const Candidate& candidate) {
    return absl::StrCat(candidate.parallelism.ShortDebugString(), "/",
                        candidate.micro_batch_size, "/", candidate.recompute);
  }

  // --- estimates -----------------------------------------------------------

  absl::Status EstimateAll() {
    double rank_seconds = kInfinity;  // the least that all ranks take together
    for (const int ranks :
         space_.RankCounts(static_cast<int>(workers_.size()))) {
      const bool may_win =
          objective_.fewest() || workers_.size() <= Space::kFewRanks ||
          objective_.ValueOf(rank_seconds / ranks, ranks) <= best_estimate_ ||
          rank_seconds == kInfinity;
      if (!may_win) break;
      Say(absl::StrCat(ranks, " ranks: ", candidates_, " divisions, ",
                       estimated_.size(), " estimated"));
      RETURN_IF_ERROR(EstimateRanks(ranks, rank_seconds));
    }
    std::sort(estimated_.begin(), estimated_.end(),
              [](const Estimated& a, const Estimated& b) {
                return std::tie(a.value, a.estimate.seconds, a.key) <
                       std::tie(b.value, b.estimate.seconds, b.key);
              });
    return absl::OkStatus();
  }

  struct Division {
    Candidate candidate;
    double value = 0;
    double seconds = 0;
  };

  absl::Status EstimateRanks(int ranks, double& rank_seconds) {
    std::vector<Division> divisions;
    for (Candidate& candidate : space_.DivisionsOf(ranks, reasons_)) {
      RETURN_IF_ERROR(Ask(options_.may_go_on));
      ++candidates_;
      const absl::StatusOr<Estimate> bound = estimator_.BoundOf(candidate);
      if (!bound.ok()) {
        Refused(bound.status());
        continue;
      }
      if (!bound->fits()) {
        TooLarge(candidate, *bound);
        continue;
      }
      rank_seconds = std::min(rank_seconds, bound->seconds * ranks);
      divisions.push_back({.candidate = std::move(candidate),
                           .value = objective_.ValueOf(bound->seconds, ranks),
                           .seconds = bound->seconds});
    }
    std::stable_sort(divisions.begin(), divisions.end(),
                     [](const Division& a, const Division& b) {
                       return std::tie(a.value, a.seconds) <
                              std::tie(b.value, b.seconds);
                     });
    for (const Division& division : divisions) {
      RETURN_IF_ERROR(Ask(options_.may_go_on));
      if (division.value > best_estimate_ * (1 + options_.error)) {
        ++reasons_["slower at best than others are estimated"];
        continue;
      }
      EstimateDivision(division.candidate, ranks);
    }
    return absl::OkStatus();
  }

  // With as little recomputation as fits.
  void EstimateDivision(const Candidate& division, int ranks) {
    for (Candidate& candidate : space_.CandidatesOf(division)) {
      for (const std::string& mode : space_.RecomputeModesOf()) {
        candidate.recompute = mode;
        const absl::StatusOr<Estimate> estimate = estimator_.Of(candidate);
        if (!estimate.ok()) {
          Refused(estimate.status());
          break;
        }
        if (!estimate->fits()) {
          TooLarge(candidate, *estimate);
          continue;
        }
        const double value = objective_.ValueOf(estimate->seconds, ranks);
        best_estimate_ = std::min(best_estimate_, value);
        estimated_.push_back({.candidate = candidate,
                              .estimate = *estimate,
                              .ranks = ranks,
                              .value = value,
                              .key = KeyOf(candidate)});
        break;
      }
    }
  }

  void Refused(const absl::Status& refused) {
    if (refusal_.ok()) refusal_ = refused;
    ++reasons_[ReasonOf(refused)];
  }

  void TooLarge(const Candidate& candidate, const Estimate& estimate) {
    ++too_large_;
    Estimated lacking = {.candidate = candidate,
                         .estimate = estimate,
                         .ranks = 1,
                         .key = KeyOf(candidate)};
    nearest_.push_back(std::move(lacking));
    std::sort(nearest_.begin(), nearest_.end(),
              [](const Estimated& a, const Estimated& b) {
                return std::tie(a.estimate.lacks, a.key) <
                       std::tie(b.estimate.lacks, b.key);
              });
    if (nearest_.size() > kTierTriesMax) nearest_.pop_back();
  }

  // --- simulation ----------------------------------------------------------

  static const Simulated* BestOf(const std::vector<Simulated>& simulated) {
    const Simulated* best = nullptr;
    for (const Simulated& one : simulated) {
      if (one.way.fits() && (best == nullptr || Before(one, *best))) {
        best = &one;
      }
    }
    return best;
  }

  static bool Before(const Simulated& a, const Simulated& b) {
    if (a.way.fits() != b.way.fits()) return a.way.fits();
    const double a_seconds = a.way.step_seconds();
    const double b_seconds = b.way.step_seconds();
    return std::tie(a.value, a_seconds, a.key) <
           std::tie(b.value, b_seconds, b.key);
  }

  // Of a simulated step over its estimate, the least that is expected.
  double LeastRatio() const {
    const double assumed = 1 / (1 + options_.error);
    if (simulated_.size() < kTellError || options_.error == kInfinity) {
      return assumed;
    }
    double least = kInfinity;
    for (const Simulated& one : simulated_) {
      least = std::min(least, one.way.step_seconds() / one.estimated);
    }
    return std::max(assumed, least * (1 - kErrorMargin));
  }

  absl::Status SimulateBest() {
    for (const Estimated& next : estimated_) {
      const Simulated* const best = BestOf(simulated_);
      if (best != nullptr) {
        const double at_best = next.estimate.seconds * LeastRatio();
        if (objective_.ValueOf(at_best, next.ranks) > best->value ||
            (objective_.fewest() && at_best > best->way.step_seconds())) {
          continue;
        }
        if (instructions_ >= options_.instructions_max) {
          ++not_simulated_;
          continue;
        }
      }
      RETURN_IF_ERROR(Simulate(JobOf(job_, next.candidate), next));
      Say(absl::StrCat(estimated_.size(), " estimated, ", simulated_.size(),
                       " simulated"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<PlannedWay> PlanOf(
      const JobSpec& job, const std::vector<WorkerDescription>& used) {
    PlanWayOptions options = {.instructions_max = kShort,
                              .may_go_on = options_.may_go_on};
    absl::StatusOr<PlannedWay> planned = PlanWay(job, used, options);
    if (planned.ok() || !absl::IsInvalidArgument(planned.status())) {
      return planned;
    }
    // Perhaps as it is too long: then as short as fills the pipeline once.
    options.instructions_max = kInstructionsMax / 2;
    options.fills_min = 1;
    options.gather_room = GatherRoom::kFewest;
    return PlanWay(job, used, options);
  }

  absl::Status Simulate(const JobSpec& job, const Estimated& estimated) {
    const std::vector<WorkerDescription> used =
        FirstOf(workers_, estimated.ranks);
    absl::StatusOr<PlannedWay> planned = PlanOf(job, used);
    if (!planned.ok()) {
      if (!absl::IsInvalidArgument(planned.status())) return planned.status();
      Refused(planned.status());
      return absl::OkStatus();
    }
    instructions_ += InstructionsOf(planned->plan) +
                     InstructionsOf(planned->fewer) + kPlanOverhead;
    Simulated one;
    one.job = job;
    one.ranks = estimated.ranks;
    one.estimated = estimated.estimate.seconds;
    one.key = estimated.key;
    JobSpec shown = planned->plan.job();
    shown.mutable_training()->set_global_batch_size(
        job.training().global_batch_size());
    DescribeWay(*planned, used, one.way);
    *one.way.mutable_fields() = FieldsOf(shown);
    one.way.set_estimated_seconds(one.estimated);
    one.value = objective_.ValueOf(one.way.step_seconds(), one.ranks);
    if (objective_.has_prices()) {
      one.way.set_tokens_per_dollar(one.way.tokens_per_second() /
                                    objective_.DollarsPerSecond(one.ranks));
    }
    if (workers_.size() <= kFasterLinksMax) {
      SetFasterLinks(*planned, used, one.way);
    }
    simulated_.push_back(std::move(one));
    return absl::OkStatus();
  }

  static int64_t InstructionsOf(const Plan& plan) {
    int64_t instructions = 0;
    for (const Role& role : plan.roles()) {
      for (const Program& program : role.programs()) {
        instructions += program.instructions_size();
      }
    }
    return instructions;
  }

  WayFields FieldsOf(const JobSpec& chosen) const {
    WayFields fields = FieldsOfWay(chosen, JobSpec());
    const ParallelismSpec& now = chosen.parallelism();
    ParallelismSpec& needed = *fields.mutable_parallelism();
    if (now.pipeline() > 1) {
      needed.set_pipeline(now.pipeline());
      needed.set_pipeline_schedule(now.pipeline_schedule());
      if (now.virtual_stages() > 1) {
        needed.set_virtual_stages(now.virtual_stages());
      }
    }
    const std::string& mode = chosen.memory().recompute().mode();
    if (LeavesOpen(job_.memory()) && mode != "none") fields.set_recompute(mode);
    return fields;
  }

  // Nothing fits on devices alone: what may rest below them, of those that lack
  // least.
  absl::Status TryTiers() {
    if (!LeavesOpen(job_.memory())) return absl::OkStatus();
    for (const Estimated& lacking : std::vector<Estimated>(nearest_)) {
      JobSpec job = JobOf(job_, lacking.candidate);
      *job.mutable_memory() = job_.memory();
      if (!job_.parallelism().has_zero()) {
        job.mutable_parallelism()->clear_zero();
      }
      Estimated of_tiers = lacking;
      of_tiers.ranks = RanksNeeded(job);
      RETURN_IF_ERROR(Simulate(job, of_tiers));
    }
    return absl::OkStatus();
  }

  // --- the answer ----------------------------------------------------------

  absl::StatusOr<ChosenWays> Choose() {
    std::sort(simulated_.begin(), simulated_.end(), Before);
    ChosenWays choice;
    Explanation& explanation = choice.explanation;
    for (const Simulated& one : simulated_) {
      *explanation.add_ways() = one.way;
      if (one.way.fits()) choice.jobs.push_back(one.job);
    }
    for (int i = 0; i < explanation.ways_size(); ++i) {
      ExplainedWay& way = *explanation.mutable_ways(i);
      way.set_advice(way.fits() ? AdviceOf(explanation, i) : LackText(way));
    }
    *explanation.mutable_search() = Summary();
    return choice;
  }

  SearchSummary Summary() const {
    SearchSummary summary;
    summary.set_objective(objective_.name());
    summary.set_workers(static_cast<int>(workers_.size()));
    summary.set_candidates(candidates_);
    summary.set_estimated(static_cast<int64_t>(estimated_.size()));
    summary.set_simulated(static_cast<int64_t>(simulated_.size()));
    summary.set_not_simulated(not_simulated_);
    summary.set_error_assumed(options_.error);
    double error = 0;
    for (const Simulated& one : simulated_) {
      const double ratio = one.way.step_seconds() / one.estimated;
      error = std::max({error, ratio - 1, 1 / ratio - 1});
    }
    summary.set_error_max(error);
    if (too_large_ > 0) {
      RuledOut& out = *summary.add_ruled_out();
      out.set_reason("too little memory");
      out.set_count(too_large_);
      const Estimated& nearest = nearest_.front();
      *out.mutable_nearest() = FieldsOf(ShownJob(nearest.candidate));
      out.set_lacks_bytes(nearest.estimate.lacks);
    }
    std::vector<std::pair<std::string, int64_t>> reasons(reasons_.begin(),
                                                         reasons_.end());
    std::stable_sort(
        reasons.begin(), reasons.end(),
        [](const auto& a, const auto& b) { return a.second > b.second; });
    for (const auto& [reason, count] : reasons) {
      RuledOut& out = *summary.add_ruled_out();
      out.set_reason(reason);
      out.set_count(count);
    }
    return summary;
  }

  // Resolved, as far as it can be.
  JobSpec ShownJob(const Candidate& candidate) const {
    const JobSpec job = JobOf(job_, candidate);
    const absl::StatusOr<JobSpec> resolved = ResolveJob(job);
    return resolved.ok() ? *resolved : job;
  }

  absl::Status Refuse() const {
    if (nearest_.empty() && simulated_.empty()) {
      return refusal_.ok()
                 ? FieldError("parallelism",
                              absl::StrCat("auto finds no way to divide the "
                                           "job over ",
                                           workers_.size(),
                                           " workers; use other workers, or "
                                           "leave more fields open"))
                 : Annotate(refusal_,
                            "parallelism: auto finds nothing that can be "
                            "planned");
    }
    std::string nearest;
    if (!nearest_.empty()) {
      const Estimated& one = nearest_.front();
      nearest = absl::StrCat(
          "; closest is {", TextOf(FieldsOf(ShownJob(one.candidate))),
          "}, whose fullest rank needs ", ReadableBytes(one.estimate.bytes),
          " or more, ", ReadableBytes(one.estimate.lacks),
          " more than there are");
    }
    std::string remedies;
    if (!LeavesOpen(job_.memory())) remedies = "memory: auto, ";
    const int more = WorkersThatFit();
    if (more > 0) {
      absl::StrAppend(&remedies, more, " workers like these, ");
    }
    return ForWorkers(FieldError(
        "parallelism",
        absl::StrCat("auto: none of ", candidates_,
                     " divisions fits the memory of ", workers_.size(),
                     " workers", nearest, "; use ", remedies,
                     "workers with more memory, or a smaller model")));
  }

  static std::string TextOf(const WayFields& fields) {
    return absl::StrCat(
        fields.parallelism().ShortDebugString(),
        fields.has_micro_batch_size()
            ? absl::StrCat(" micro_batch_size: ", fields.micro_batch_size())
            : "",
        fields.recompute().empty()
            ? ""
            : absl::StrCat(" recompute: ", fields.recompute()));
  }

  // So many times as many, by estimate; 0: not found.
  int WorkersThatFit() const {
    for (const int times : kTimesMoreWorkers) {
      if (times * workers_.size() > kMoreWorkersMax) break;
      std::vector<WorkerDescription> more;
      for (int copy = 0; copy < times; ++copy) {
        for (const WorkerDescription& worker : workers_) {
          more.push_back(worker);
          if (copy > 0 && !worker.host().empty()) {
            more.back().set_host(absl::StrCat(worker.host(), "/", copy));
          }
        }
      }
      Search search(job_, more, options_);
      double rank_seconds = kInfinity;
      if (!search.EstimateRanks(static_cast<int>(more.size()), rank_seconds)
               .ok()) {
        return 0;
      }
      if (!search.estimated_.empty()) return static_cast<int>(more.size());
    }
    return 0;
  }

  const JobSpec& job_;
  const std::vector<WorkerDescription>& workers_;
  const SearchOptions& options_;
  Space space_;
  Estimator estimator_;
  const Objective objective_;
  int64_t candidates_ = 0;
  int64_t too_large_ = 0;
  int64_t not_simulated_ = 0;
  int64_t instructions_ = 0;
  double best_estimate_ = kInfinity;
  absl::Status refusal_;  // the first
  Reasons reasons_;
  std::vector<Estimated> estimated_;
  std::vector<Estimated> nearest_;  // of those that do not fit
  std::vector<Simulated> simulated_;
};

}  // namespace

absl::StatusOr<ChosenWays> ChooseParallelism(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const SearchOptions& options) {
  RETURN_IF_ERROR(CheckOpenJob(job));
  const int least = RanksAtLeast(job);
  if (static_cast<int>(workers.size()) < least) {
    return ForWorkers(absl::FailedPreconditionError(absl::StrCat(
        "the sizes that parallelism says want ", least, " workers, there are ",
        workers.size(), "; start more workers or leave a size open")));
  }
  if (ObjectiveOf(job) == "tokens_per_dollar") {
    for (const WorkerDescription& worker : workers) {
      if (worker.dollars_per_hour() > 0) continue;
      return FieldError(
          "objective",
          absl::StrCat("tokens_per_dollar needs what workers cost, and nobody "
                       "says that of ",
                       worker.name(),
                       "; give dollars_per_hour of its device in a cluster "
                       "file, or use time"));
    }
  }
  return Search(job, workers, options).Run();
}

absl::StatusOr<ChosenWays> ChooseParallelism(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const MayGoOn& may_go_on, const SearchProgress& progress) {
  return ChooseParallelism(job, workers,
                           SearchOptions{.may_go_on = may_go_on,
                                         .progress = progress,
                                         .error = kEstimateError});
}

}  // namespace troupe
