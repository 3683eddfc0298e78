#include "scheduler/cluster/job_queue.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/plan/worker_refusal.h"
#include "scheduler/cluster/place_ranks.h"
#include "scheduler/cluster/policy/goes_on.h"
#include "scheduler/cluster/wait_reason.h"

namespace troupe {
namespace {

// A plan that is chosen again is worth moving to if its step is shorter.
bool WantsShortestStep(const Job& job) {
  return job.open.has_value() &&
         (!job.open->has_objective() || job.open->objective() == "time");
}

// The number of the compilation that the job waits for; 0: of none.
int64_t CompilationOf(const Job& job) {
  if (const auto* planned = std::get_if<phase::Planned>(&job.phase)) {
    return planned->compilation;
  }
  const auto* widens =
      job.run == nullptr ? nullptr : PartOf<phase::Widens>(job.run->phase);
  return widens == nullptr ? 0 : widens->compilation;
}

}  // namespace

void JobQueue::FailDefective(absl::Time now, Actions& actions) {
  for (const JobId id : jobs_.TakeDefective()) {
    Job* const job = jobs_.Find(id);
    if (job == nullptr || job->ended()) continue;
    if (job->run != nullptr) {
      runs_.FailForDefect(*job, now, actions);
    } else {
      jobs_.Enter(*job, PhaseEvent::kFinished, phase::Ended{});
      jobs_.SetState(*job, FAILED, job->defect, now, actions);
    }
  }
}

bool JobQueue::Compiled(JobId id, const Compilation& compilation,
                        const CompileOutcome& outcome, absl::Time now,
                        Actions& actions) {
  Job* job = jobs_.Find(id);
  if (job == nullptr || CompilationOf(*job) != compilation.number) return false;
  const bool awaits = Awaits(id, compilation);
  auto* const widens =
      job->run == nullptr ? nullptr : PartOf<phase::Widens>(job->run->phase);
  if (widens != nullptr) {
    widens->compilation = 0;
  } else {
    jobs_.Enter(*job, PhaseEvent::kPlanAnswered, phase::Queued(*job->waits()));
  }
  if (!awaits) return false;
  // A refusal holds for the workers that it was asked for; for others the
  // question is asked again, unless it took too long.
  const bool current = compilation.changes == workers_.changes() ||
                       absl::IsDeadlineExceeded(outcome.refusal);
  if (widens != nullptr) {
    if (IsAskedInVain(*job, outcome.refusal)) {
      widens->not_wider_at = workers_.changes();
    }
    Widen(*job, compilation, outcome, now, actions);
    return true;
  }
  if (outcome.fits() && outcome.idle) {
    // If others have its workers by now it is planned once more, and holds them
    // back meanwhile: a stream of them would keep it waiting for ever.
    job->waits()->may_be_overtaken = false;
    Schedule(now, actions, {.job = id, .outcome = &outcome});
    return false;
  }
  if (current && outcome.fits()) {
    FindTooSmall(
        *job, compilation.changes,
        absl::StrCat("waits for busy workers, for the idle ones have too ",
                     "little memory: ", outcome.refusal.message()),
        actions);
  } else if (current) {
    Refuse(*job, compilation, outcome.refusal, now, actions);
  }
  Schedule(now, actions);
  return false;
}

void JobQueue::Refuse(Job& job, const Compilation& compilation,
                      const absl::Status& refusal, absl::Time now,
                      Actions& actions) {
  // What it was chosen before may do, and takes less time to plan.
  if (compilation.elastic && job.open.has_value() && job.waits()->chooses &&
      absl::IsDeadlineExceeded(refusal)) {
    job.waits()->chooses = false;
    return;
  }
  // What has run fits somewhere, though not on those that are left; unless the
  // refusal, perhaps of a newer build, is of the job itself.
  const bool has_run =
      job.status.started_unix_ms() != 0 && IsForWorkers(refusal);
  const bool asks_again = job.spec.has_elastic() && !compilation.elastic &&
                          !compilation.narrows &&
                          absl::IsInvalidArgument(refusal);
  // Of fewer ranks than it has, and of all of them as well.
  const bool of_all = absl::IsInvalidArgument(refusal) &&
                      !IsForWorkers(refusal) && !compilation.more_like.empty();
  if (of_all || (!compilation.elastic && !has_run && !asks_again)) {
    jobs_.Enter(job, PhaseEvent::kFinished, phase::Ended{});
    return jobs_.SetState(
        job, FAILED,
        absl::StrCat(refusal.message(), WhereStartsFailed(job.failed_on)), now,
        actions);
  }
  const int64_t seen =
      IsAskedInVain(job, refusal) ? workers_.changes() : compilation.changes;
  job.waits()->narrower_when_calm = asks_again;
  const bool all_asked = !compilation.elastic ||
                         workers_.idle_count() == workers_.in_service_count();
  if (all_asked && !asks_again) {
    // A worker on which its start failed may be the only one with room.
    if (!AvoidedBy(job).empty())
      return StartAlsoWhereItFailed(job, now, actions);
    job.waits()->fits_nobody_at = seen;
  }
  FindTooSmall(
      job, seen,
      absl::StrCat(compilation.elastic ? "waits for more workers: "
                                       : "waits for workers that it fits on: ",
                   refusal.message()),
      actions);
}

void JobQueue::StartAlsoWhereItFailed(Job& job, absl::Time now,
                                      Actions& actions) {
  jobs_.AddEvent(job,
                 absl::StrCat("fits on no other workers, and may start again "
                              "where it failed",
                              WhereStartsFailed(job.failed_on)),
                 now, actions);
  job.failed_on.clear();
}

// What took too long is not asked again for those that have come meanwhile,
// unless they are all that it needs, or others were known to do.
bool JobQueue::IsAskedInVain(const Job& job,
                             const absl::Status& refusal) const {
  const int held = job.run == nullptr ? 0 : job.run->ranks.size();
  return absl::IsDeadlineExceeded(refusal) && !IsForWorkers(refusal) &&
         held + workers_.idle_count() < job.ranks_needed;
}

bool JobQueue::Awaits(JobId id, const Compilation& asked) const {
  const Job* job = jobs_.Find(id);
  return job != nullptr && CompilationOf(*job) == asked.number &&
         (job->status.state() == QUEUED || MayWiden(*job));
}

void JobQueue::Schedule(absl::Time now, Actions& actions, const Offer& offer) {
  ++schedules_;
  FailDefective(now, actions);
  runs_.places().RecoverWaiting(now, actions);
  awaits_calm_ = false;
  overtaken_at_ = absl::InfiniteFuture();
  bool overtaken = false;         // some job is
  const Job* first = nullptr;     // the job that holds back those behind it
  WaitReasons reasons(workers_);  // nobody starts once one waits for idle ones
  const std::vector<JobId> queue(jobs_.queue().begin(), jobs_.queue().end());
  for (const JobId id : queue) {
    Job* const job = jobs_.Find(id);
    const QueueTurn turn = TurnFor(*job, first != nullptr, now);
    if (turn != QueueTurn::kIsNext) {
      if (HoldsBack(turn)) first = job;
      jobs_.SetWaitReason(*job, WhyItWaits(*job, turn, first, reasons),
                          actions);
    } else if (offer.job != id || !Start(*job, *offer.outcome, now, actions)) {
      AskToCompile(*job, now, actions);
      if (IsOvertaken(*job, now)) {
        overtaken = true;
      } else if (!WaitsForOthersToCome(*job)) {
        first = job;
      }
    }
  }
  queue_waits_ = first != nullptr || overtaken;
  scheduled_at_ = workers_.changes();  // with those that it gave to jobs
}

absl::optional<NextInQueue> JobQueue::Next() const {
  for (const JobId id : jobs_.queue()) {
    const Job& job = *jobs_.Find(id);
    const int least = job.spec.has_elastic()
                          ? std::max(1, job.spec.elastic().min_workers())
                          : job.ranks_needed;
    if (least > InServiceCountFor(job) || WaitsForOthersToCome(job) ||
        jobs_.SavesInPlaceOf(job) != nullptr) {
      continue;
    }
    return NextInQueue{
        .job = id,
        .ranks = least,
        .avoids = NamesOf(AvoidedBy(job)),
        .idle_too_small = job.waits()->too_small_at == workers_.changes()};
  }
  return absl::nullopt;
}

// Others that are in service may be busy for days, or kept by a job that waits.
bool JobQueue::TryNextWhereItsStartFailed(absl::Time now, Actions& actions) {
  const absl::optional<NextInQueue> next = Next();
  if (!next.has_value()) return false;
  Job& job = *jobs_.Find(next->job);
  const FailedStarts avoided = AvoidedBy(job);
  if (avoided.empty() || now < job.waits()->since + job.avoid_pause ||
      IdleCountFor(job) >= next->ranks ||
      MostOfOneKind(workers_.Idle()) < next->ranks) {
    return false;
  }
  runs_.places().AvoidNoMore(job, avoided, now, actions);
  job.waits()->tries_again = true;
  return true;
}

const JobQueue::OneKind& JobQueue::OfOneKindAtMost() const {
  if (one_kind_.changes != workers_.changes()) {
    one_kind_ = {.changes = workers_.changes(),
                 .alive = MostOfOneKind(workers_.InService()),
                 .idle = MostOfOneKind(workers_.Idle())};
  }
  return one_kind_;
}

bool JobQueue::IsOvertaken(const Job& job, absl::Time now) {
  const auto* const planned = std::get_if<phase::Planned>(&job.phase);
  if (planned == nullptr || !planned->may_be_overtaken) return false;
  const absl::Time at = planned->asked_at + limits_.planning_patience;
  if (now < at) overtaken_at_ = std::min(overtaken_at_, at);
  return now >= at;
}

bool JobQueue::WaitsForOthersToCome(const Job& job) const {
  const phase::Waits& waits = *job.waits();
  return waits.too_small_at == workers_.changes() &&
         (job.ranks_needed > InServiceCountFor(job) ||
          waits.fits_nobody_at == workers_.changes());
}

int JobQueue::IdleCountFor(const Job& job) const {
  return job.failed_on.empty() ? OfOneKindAtMost().idle
                               : MostOfOneKind(IdleFor(job));
}

int JobQueue::InServiceCountFor(const Job& job) const {
  return job.failed_on.empty()
             ? OfOneKindAtMost().alive
             : MostOfOneKind(Without(workers_.InService(), AvoidedBy(job)));
}

FailedStarts JobQueue::AvoidedBy(const Job& job) const {
  if (job.failed_on.empty()) return {};
  const int others =
      MostOfOneKind(Without(workers_.InService(), job.failed_on));
  return others >= job.least_ranks() ? job.failed_on : FailedStarts();
}

QueueTurn JobQueue::TurnFor(const Job& job, bool held_back, absl::Time now) {
  const int alive = InServiceCountFor(job);
  const bool shares_directory = jobs_.SavesInPlaceOf(job) != nullptr;
  const bool may_be_next =
      job.ranks_needed > alive || (!held_back && !shares_directory);
  return TurnOf({.ranks = job.ranks_needed,
                 .may_start_narrow =
                     !draining_ && may_be_next && MayStartNarrow(job, now),
                 .shares_directory = shares_directory},
                {.draining = draining_,
                 .held_back = held_back,
                 .alive = alive,
                 .idle = IdleCountFor(job),
                 .store_is_full = !store_.status().ok()});
}

std::string JobQueue::WhyItWaits(const Job& job, QueueTurn turn,
                                 const Job* first, WaitReasons& reasons) const {
  switch (turn) {
    case QueueTurn::kForTheNext:
      return "waits for the next scheduler, for this one was asked to end";
    case QueueTurn::kIsBehind:
      return absl::StrCat("waits behind job ", first->id.value());
    case QueueTurn::kSharesDirectory:
      return absl::StrCat("waits for the end of job ",
                          jobs_.SavesInPlaceOf(job)->id.value(),
                          ", whose checkpoint.directory is the same");
    case QueueTurn::kNeedsStore:
      return WaitsForStore(store_.status());
    default:
      break;  // it waits for workers
  }
  const FailedStarts avoided = AvoidedBy(job);
  const std::string reason = absl::StrCat(
      reasons.For(job.ranks_needed), WhereStartsFailed(job.failed_on),
      avoided.empty()
          ? ""
          : WhenItTriesThatAgain(job.waits()->since + job.avoid_pause),
      HowToStartThereAgain(avoided));
  const int least = std::max(1, job.spec.elastic().min_workers());
  if (!job.spec.has_elastic() || least == job.ranks_needed) return reason;
  return absl::StrCat(reason, "; ", least, " will do");
}

bool JobQueue::MayStartNarrow(const Job& job, absl::Time now) {
  const int idle = IdleCountFor(job);
  if (!job.spec.has_elastic() || idle >= job.ranks_needed ||
      idle < std::max(1, job.spec.elastic().min_workers())) {
    return false;
  }
  const bool starts = job.waits()->moved || IsCalm(now);
  awaits_calm_ |= !starts;
  return starts;
}

std::vector<JobSpec> JobQueue::ElasticWays(const Job& job, int workers) const {
  std::vector<JobSpec> ways = compiler_.Narrower(job.spec, workers);
  const bool chooses = job.waits() == nullptr || job.waits()->chooses;
  if (job.open.has_value() && chooses) ways.insert(ways.begin(), *job.open);
  return ways;
}

bool JobQueue::MayWiden(const Job& job) const {
  return job.status.state() == RUNNING && job.run != nullptr &&
         PartOf<phase::Widens>(job.run->phase) != nullptr &&
         job.spec.has_elastic() &&
         (static_cast<int>(job.run->ranks.size()) < job.ranks_needed ||
          WantsShortestStep(job)) &&
         MayMove(job);
}

void JobQueue::AskToWiden(absl::Time now, Actions& actions) {
  if (workers_.idle_count() == 0 || queue_waits_ || draining_) return;
  for (const auto& [id, job] : jobs_.all()) {
    if (!MayWiden(*job) || now < job->moves_after) continue;
    phase::Widens& widens = *PartOf<phase::Widens>(job->run->phase);
    if (widens.compilation != 0 || widens.not_wider_at == workers_.changes()) {
      continue;
    }
    std::vector<const Worker*> candidates = IdleFor(*job);
    for (const RankSeat& seat : job->run->ranks) {
      const Worker* const worker = workers_.Find(seat.worker);
      if (worker != nullptr && !worker->leaving) candidates.push_back(worker);
    }
    const int there = MostOfOneKind(candidates);
    std::vector<JobSpec> ways = ElasticWays(*job, there);
    if (there >= job->ranks_needed) ways.insert(ways.begin(), job->spec);
    widens.not_wider_at = workers_.changes();
    Compilation asked = ElasticCompilation(
        ways, compiler_, candidates, static_cast<int>(job->run->ranks.size()));
    if (asked.choices.empty()) continue;
    widens.compilation = SendToCompile(*job, std::move(asked), actions);
  }
}

void JobQueue::Widen(Job& job, const Compilation& compilation,
                     const CompileOutcome& outcome, absl::Time now,
                     Actions& actions) {
  if (!outcome.fits() || compilation.changes != workers_.changes()) return;
  // Short of all its ranks, only for what is quicker; and a plan that is chosen
  // again has no number of ranks that are all.
  constexpr double kWorthIt = 0.95;
  const bool all = !WantsShortestStep(job) &&
                   static_cast<int>(outcome.workers.size()) == job.ranks_needed;
  const bool may_be_quicker = !job.open.has_value() || WantsShortestStep(job);
  const bool is_quicker =
      may_be_quicker && outcome.compiled.outline->prediction().step_seconds() <=
                            kWorthIt * job.plan->prediction().step_seconds();
  if (!all && !is_quicker) return;
  runs_.moves().SaveAndMove(
      job,
      absl::StrCat("there are workers for ", outcome.workers.size(),
                   " ranks, and it has ", job.run->ranks.size()),
      now, actions);
}

bool JobQueue::Start(Job& job, const CompileOutcome& outcome, absl::Time now,
                     Actions& actions) {
  if (!outcome.fits()) return false;
  // One for fewer ranks, and others have come since, or may come soon.
  const int ranks = static_cast<int>(outcome.workers.size());
  if (ranks < job.ranks_needed && IdleCountFor(job) >= job.ranks_needed &&
      (outcome.changes != workers_.changes() ||
       (!job.waits()->moved && !IsCalm(now)))) {
    return false;
  }
  std::vector<const Worker*> workers;
  for (const WorkerId id : outcome.workers) {
    workers.push_back(workers_.Find(id));
    if (workers.back() == nullptr || !workers.back()->available()) return false;
  }
  runs_.start().Start(job, outcome.compiled, workers, now, actions);
  return true;
}

void JobQueue::FindTooSmall(Job& job, int64_t changes, const std::string& why,
                            Actions& actions) {
  job.waits()->too_small_at = changes;
  job.waits()->too_small_why = why;
  jobs_.SetWaitReason(job, why, actions);
}

void JobQueue::AskToCompile(Job& job, absl::Time now, Actions& actions) {
  if (CompilationOf(job) != 0) return;
  phase::Waits& waits = *job.waits();
  const bool narrows = waits.moved || IsCalm(now);
  if (waits.too_small_at == workers_.changes() &&
      !(waits.narrower_when_calm && narrows)) {
    awaits_calm_ |= waits.narrower_when_calm;
    // It may have waited for something else meanwhile.
    return jobs_.SetWaitReason(job, waits.too_small_why, actions);
  }
  waits.narrower_when_calm = false;
  const std::vector<const Worker*> candidates = IdleFor(job);
  const int idle = MostOfOneKind(candidates);
  Compilation asked;
  // A plan that is chosen again suits all that are there.
  const bool chooses = job.open.has_value() && waits.moved && waits.chooses;
  if (idle < job.ranks_needed || chooses) {
    std::vector<JobSpec> ways = ElasticWays(job, idle);
    if (idle >= job.ranks_needed) ways.push_back(job.spec);
    asked = ElasticCompilation(ways, compiler_, candidates, /*more_than=*/0);
    if (job.status.started_unix_ms() != 0 && idle < job.ranks_needed) {
      ImagineMore(job.spec, candidates, asked);
    }
  } else {
    const FailedStarts avoided = AvoidedBy(job);
    asked = CompilationFor(job.spec, job.ranks_needed, workers_, avoided);
    if (narrows) AddNarrower(compiler_, workers_, asked, avoided);
  }
  if (asked.choices.empty()) {
    return FindTooSmall(
        job, workers_.changes(),
        absl::StrCat("waits for more workers: the job cannot be cut for ",
                     idle),
        actions);
  }
  jobs_.SetWaitReason(job, "is being planned", actions);
  const int64_t number = SendToCompile(job, std::move(asked), actions);
  jobs_.Enter(job, PhaseEvent::kPlanAsked, phase::Planned(waits, number, now));
}

int64_t JobQueue::SendToCompile(const Job& job, Compilation asked,
                                Actions& actions) {
  const int64_t number = ++last_compilation_;
  asked.number = number;
  asked.changes = workers_.changes();
  asked.before = job.plan_before;
  actions.push_back(
      CompileJob{job.id, std::make_shared<const Compilation>(std::move(asked)),
                 job.status.submitted_by()});
  return number;
}

}  // namespace troupe
