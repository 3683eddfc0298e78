#include "scheduler/cluster/run_start.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/plan/mesh.h"
#include "proto/plan/ways.h"
#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/wait_reason.h"

namespace troupe {
namespace {

// What changes the bits of a job that goes on, and is seen nowhere else.
std::string OtherWaysText(const Job& job) {
  if (job.plan_before == nullptr ||
      job.plan_before->mesh().SerializeAsString() !=
          job.plan->mesh().SerializeAsString() ||
      HaveSameWays(*job.plan_before, *job.plan)) {
    return "";
  }
  return "; sums cross these hosts in other steps than before, so that their "
         "bits differ from here";
}

}  // namespace

void RunStart::Start(Job& job, const CompiledJob& compiled,
                     const std::vector<const Worker*>& workers, absl::Time now,
                     Actions& actions) {
  const Plan& outline = *compiled.outline;
  CHECK(job.waits() != nullptr) << "job " << job.id;
  const bool tries_again = job.waits()->tries_again;
  job.plan = compiled.outline;
  jobs_.SetPredicted(job, std::make_shared<const Timeline>(compiled.predicted));
  BeginRun(job, PhaseEvent::kPlaced, outline, now);
  job.run->tries_again = tries_again;
  job.status.set_fingerprint(outline.fingerprint());
  job.status.set_predicted_step_seconds(outline.prediction().step_seconds());
  job.status.set_steps_total(outline.job().training().steps());
  job.run->steps.StartAfter(job.status.steps_done());
  Seat(job, workers, now);
  jobs_.SetState(job, STARTING,
                 absl::StrCat("on ", NameList(workers), OtherWaysText(job)),
                 now, actions);
  job.run->handed = MakeHandOut(job, compiled);
  effects_.Perform(job, "", actions);
}

void RunStart::BeginRun(Job& job, PhaseEvent event, const Plan& outline,
                        absl::Time now) {
  ++job.attempt;
  job.status.set_attempt(job.attempt);
  jobs_.BeginRun(
      job, std::make_unique<Run>(MeshSize(outline.mesh()), outline, limits_),
      event, phase::Storing{});
  job.run->attempt = job.attempt;
  job.run->started = now;
  job.run->progress = now;
  job.run->outside_step = now;
}

void RunStart::Seat(Job& job, const std::vector<const Worker*>& workers,
                    absl::Time now) {
  for (size_t rank = 0; rank < workers.size(); ++rank) {
    RankSeat& seat = job.run->ranks[rank];
    seat.worker = workers[rank]->id;
    seat.worker_name = workers[rank]->name();
    seat.machine = workers[rank]->status.description();
    seat.heard = now;
    job.run->reports[rank] = {.worker_name = seat.worker_name, .heard = now};
    job.status.add_workers(seat.worker_name);
    workers_.Seat(seat.worker, job.id, static_cast<int>(rank));
  }
}

std::shared_ptr<const troupe::HandOut> RunStart::MakeHandOut(
    const Job& job, const CompiledJob& compiled) const {
  auto common = std::make_shared<troupe::HandOut>();
  common->plan = compiled.plan;
  common->loads_data = compiled.loads_data;
  for (const RankSeat& seat : job.run->ranks) {
    common->machines.push_back(seat.machine);
  }
  Assignment& assignment = common->assignment;
  *assignment.mutable_worker_names() = job.status.workers();
  assignment.set_resume(ResumeOf(job));
  assignment.set_ran_before(job.status.started_unix_ms() != 0);
  assignment.set_collective_seconds_max(
      absl::ToDoubleSeconds(CollectiveMax(*job.plan, limits_)));
  return common;
}

void RunStart::HandOut(Job& job, absl::Time now, Actions& actions) {
  CHECK(AwaitsStore(job)) << "job " << job.id;
  const std::string begins = BeginsOf(job.run->phase);
  jobs_.Enter(job, PhaseEvent::kStored, phase::Starting{.begins = begins});
  job.run->started = now;
  if (job.status.state() == RECOVERING) {  // and waits for the store no more
    jobs_.SetWaitReason(job, begins, actions);
  }
  effects_.Perform(job, "", actions);
}

void RunStart::NotStored(Job& job, const std::string& why, absl::Time now,
                         Actions& actions) {
  CHECK(AwaitsStore(job)) << "job " << job.id;
  if (job.status.state() != RECOVERING) {
    return Withdraw(job, why, now, actions);
  }
  // Its ranks' time to start has not begun.
  job.run->started = job.run->in<phase::Storing>()->asked.again = now;
  jobs_.SetWaitReason(job, why, actions);
}

void RunStart::Withdraw(Job& job, const std::string& why, absl::Time now,
                        Actions& actions) {
  BackToQueue(job, PhaseEvent::kWithdrawn, why, now, actions);
}

void RunStart::BackToQueue(Job& job, PhaseEvent event, const std::string& why,
                           absl::Time now, Actions& actions) {
  phase::Waits waits;
  waits.since = now;
  jobs_.Enter(job, event, phase::Queued(std::move(waits)));
  effects_.Perform(job, absl::StrCat("the job begins anew; it ", why), actions);
  if (job.run != nullptr) jobs_.EndRun(job);
  job.status.set_intent(INTENT_RUN);
  if (job.plan != nullptr && job.status.steps_done() > 0) {
    job.plan_before = job.plan;
  }
  job.plan = nullptr;
  jobs_.SetPredicted(job, nullptr);
  job.status.clear_workers();
  job.status.clear_fingerprint();
  job.status.clear_predicted_step_seconds();
  job.status.set_steps_total(job.spec.training().steps());
  jobs_.SetState(job, QUEUED, why, now, actions);
}

}  // namespace troupe
