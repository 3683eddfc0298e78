#include "scheduler/service/planning.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace troupe {
namespace {

absl::Status Stopping() {
  return absl::UnavailableError("the scheduler is stopping");
}

}  // namespace

Planning::Planning(ClusterHost& host, const JobCompiler& compiler)
    : host_(host),
      compiler_(compiler),
      job_thread_([this] { Loop(jobs_); }),
      question_thread_([this] { Loop(questions_); }) {}

Planning::~Planning() { Stop(); }

void Planning::Compile(Compilation compilation, Asker asker, Done done) {
  absl::Status refused;
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) {
      refused = Stopping();
    } else if (questions_.size() >= kClientsMax) {
      refused = absl::ResourceExhaustedError(absl::StrCat(
          kClientsMax, " jobs are being planned already; try again soon"));
    } else {
      questions_.push_back(
          {std::make_shared<const Compilation>(std::move(compilation)), JobId(),
           std::move(asker), std::move(done)});
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
    jobs_.push_back({compile->compilation, compile->job, Asker(), nullptr});
  }
}

void Planning::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (job_thread_.joinable()) job_thread_.join();
  if (question_thread_.joinable()) question_thread_.join();
}

void Planning::Loop(Queue& queue) {
  while (true) {
    Task task;
    {
      absl::MutexLock lock(&mutex_);
      const auto is_due = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return stopping_ || !queue.empty();
      };
      mutex_.Await(absl::Condition(&is_due));
      if (queue.empty()) return;
      task = std::move(queue.front());
      queue.pop_front();
    }
    Run(task);
  }
}

absl::Status Planning::MayGoOnWith(const Task& task, absl::Time begun) const {
  if (stopping()) return Stopping();
  const absl::Time now = absl::Now();
  if (now - begun > kPlanMax) {
    return absl::DeadlineExceededError(absl::StrCat(
        "planning took longer than ", absl::FormatDuration(kPlanMax),
        "; use fewer ", "micro-batches a step, ranks or stages"));
  }
  if (now > task.asker.deadline) {
    return absl::DeadlineExceededError(
        "the call's time was over before a plan "
        "was made");
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
  const MayGoOn may_go_on = [&, begun = absl::Now()] {
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
