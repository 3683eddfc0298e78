#include "scheduler/service/planning.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace troupe {

Planning::Planning(ClusterHost& host, const JobCompiler& compiler)
    : host_(host), compiler_(compiler), thread_([this] { Loop(); }) {}

Planning::~Planning() { Stop(); }

void Planning::Compile(Compilation compilation, Done done) {
  absl::Status refused;
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) {
      refused = absl::UnavailableError("the scheduler is stopping");
    } else if (clients_ >= kClientsMax) {
      refused = absl::ResourceExhaustedError(absl::StrCat(
          kClientsMax, " jobs are being planned already; try again soon"));
    } else {
      ++clients_;
      tasks_.push_back(
          {std::make_shared<const Compilation>(std::move(compilation)), JobId(),
           std::move(done)});
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
    tasks_.push_back({compile->compilation, compile->job, nullptr});
  }
}

void Planning::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void Planning::Loop() {
  while (true) {
    Task task;
    bool stopping = false;
    {
      absl::MutexLock lock(&mutex_);
      const auto is_due = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return stopping_ || !tasks_.empty();
      };
      mutex_.Await(absl::Condition(&is_due));
      if (tasks_.empty()) return;
      stopping = stopping_;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      if (task.done) --clients_;
    }
    if (!stopping) {
      Run(task);
    } else if (task.done) {
      task.done(absl::UnavailableError("the scheduler is stopping"));
    }
  }
}

void Planning::Run(const Task& task) {
  CompileOutcome outcome = CompileFirstFit(compiler_, *task.compilation);
  if (task.done) return task.done(std::move(outcome));
  host_.Apply([&](Cluster& cluster, absl::Time now, Actions& actions) {
    cluster.Compiled(task.job, *task.compilation, outcome, now, actions);
  });
}

}  // namespace troupe
