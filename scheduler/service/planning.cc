#include "scheduler/service/planning.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/plan/plan_max.h"

namespace troupe {
namespace {

absl::Status Stopping() {
  return absl::UnavailableError("the scheduler is stopping");
}

}  // namespace

Planning::Planning(ClusterHost& host, const JobCompiler& compiler)
    : host_(host), compiler_(compiler) {
  threads_.emplace_back([this] { Loop(true); });
  for (int i = 0; i < kQuestionThreads; ++i) {
    threads_.emplace_back([this] { Loop(false); });
  }
}

Planning::~Planning() { Stop(); }

void Planning::Compile(Compilation compilation, Asker asker, Done done) {
  absl::Status refused;
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) {
      refused = Stopping();
    } else if (clients_ >= kClientsMax) {
      refused = absl::ResourceExhaustedError(absl::StrCat(
          kClientsMax, " jobs are being planned already; try again soon"));
    } else {
      ++clients_;
      Queue& queue = asker.submits ? submissions_ : plans_;
      const absl::Time deadline = host_.Now() + asker.patience;
      queue.push_back(
          {std::make_shared<const Compilation>(std::move(compilation)), JobId(),
           std::move(asker), deadline, std::move(done)});
      return;
    }
  }
  done(refused);
}

void Planning::Carry(const Actions& actions) {
  absl::MutexLock lock(&mutex_);
  for (const Action& action : actions) {
    const auto* compile = std::get_if<CompileJob>(&action);
    if (compile == nullptr || stopping_) continue;
    jobs_.push_back({.compilation = compile->compilation, .job = compile->job});
  }
}

void Planning::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : std::exchange(threads_, {})) thread.join();
}

Planning::Queue* Planning::Due(bool jobs) {
  if (jobs) return jobs_.empty() ? nullptr : &jobs_;
  if (!submissions_.empty()) return &submissions_;
  const bool may_begin = stopping_ || plans_begun_ < kQuestionThreads - 1;
  return plans_.empty() || !may_begin ? nullptr : &plans_;
}

void Planning::Loop(bool jobs) {
  while (true) {
    Task task;
    bool is_plan = false;
    {
      absl::MutexLock lock(&mutex_);
      const auto is_due = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || Due(jobs) != nullptr;
      };
      mutex_.Await(absl::Condition(&is_due));
      Queue* const queue = Due(jobs);
      if (queue == nullptr) return;
      task = std::move(queue->front());
      queue->pop_front();
      is_plan = queue == &plans_;
      plans_begun_ += is_plan;
    }
    Run(task);
    absl::MutexLock lock(&mutex_);
    clients_ -= !jobs;
    plans_begun_ -= is_plan;
  }
}

absl::Status Planning::MayGoOnWith(const Task& task, absl::Time begun) const {
  if (stopping()) return Stopping();
  const absl::Time now = host_.Now();
  if (now - begun > kPlanMax) {
    return absl::DeadlineExceededError(absl::StrCat(
        "planning took longer than ", absl::FormatDuration(kPlanMax),
        "; use fewer micro-batches a step, ranks or stages"));
  }
  if (now > task.deadline) {
    return absl::DeadlineExceededError(
        "the call's time was over before a plan was made");
  }
  const bool given_up =
      task.job == JobId()
          ? task.asker.has_given_up && task.asker.has_given_up()
          : !host_.Read([&](const Cluster& cluster, absl::Time) {
              return cluster.Awaits(task.job, *task.compilation);
            });
  return given_up ? absl::CancelledError("nobody waits for the plan any more")
                  : absl::OkStatus();
}

void Planning::Run(const Task& task) {
  const MayGoOn may_go_on = [&, begun = host_.Now()] {
    return MayGoOnWith(task, begun);
  };
  CompileOutcome outcome;
  outcome.refusal = may_go_on();
  if (outcome.refusal.ok()) {
    outcome = CompileFirstFit(compiler_, *task.compilation, may_go_on);
  }
  if (task.done) {
    const bool ended = !outcome.fits() && !outcome.refusal.ok() &&
                       !absl::IsInvalidArgument(outcome.refusal);
    return ended ? task.done(outcome.refusal) : task.done(std::move(outcome));
  }
  // A job that waits still is there for the next scheduler.
  if (stopping()) return;
  host_.Apply([&](Cluster& cluster, absl::Time now, Actions& actions) {
    cluster.Compiled(task.job, *task.compilation, outcome, now, actions);
  });
}

}  // namespace troupe
