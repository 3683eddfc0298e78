#include "scheduler/service/planning.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/plan/plan_limits.h"
#include "scheduler/cluster/client_share.h"
#include "scheduler/service/stopping.h"

namespace troupe {

Planning::Planning(ClusterHost& host, const JobCompiler& compiler)
    : host_(host), compiler_(compiler) {
  absl::MutexLock lock(&mutex_);
  for (int i = 0; i < kJobThreads; ++i) {
    threads_.emplace_back([this] { Loop(true); });
  }
  for (int i = 0; i < kQuestionThreads; ++i) {
    threads_.emplace_back([this] { Loop(false); });
  }
}

Planning::~Planning() { Stop(); }

absl::Status Planning::CheckShare(const Queue& queue,
                                  const Asker& asker) const {
  const char* const what = asker.submits ? "submissions" : "plans";
  if (queue.all >= kClientsMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kClientsMax, " ", what,
                     " are being planned already, as many as may be; try "
                     "again soon"));
  }
  if (asker.client.empty()) return absl::OkStatus();
  const auto found = queue.of_client.find(asker.client);
  const int mine = found == queue.of_client.end() ? 0 : found->second;
  if (mine < ClientShare(kClientsMax, queue.all - mine)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      mine, " ", what, " of ", asker.client, " are not answered yet, its ",
      "share: half of the places that other clients leave free, of ",
      kClientsMax, "; wait for answers before asking again"));
}

void Planning::Add(Queue& queue, Task task) {
  ++queue.all;
  ++queue.of_client[task.asker.client];
  queue.waiting.push_back(std::move(task));
}

void Planning::Compile(Compilation compilation, Asker asker, Done done) {
  absl::Status refused;
  {
    absl::MutexLock lock(&mutex_);
    Queue& queue = asker.submits ? submissions_ : plans_;
    refused = stopping_ ? SchedulerIsStopping() : CheckShare(queue, asker);
    if (refused.ok()) {
      const absl::Time deadline = host_.Now() + asker.patience;
      Add(queue, {std::make_shared<const Compilation>(std::move(compilation)),
                  JobId(), std::move(asker), deadline, std::move(done)});
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
    Add(jobs_, {.compilation = compile->compilation,
                .job = compile->job,
                .asker = {.client = compile->client}});
  }
}

void Planning::Stop() {
  std::vector<std::thread> threads;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

absl::optional<size_t> Planning::Next(const Queue& queue) const {
  if (stopping_) {  // all that wait are answered, at no cost
    return queue.waiting.empty() ? absl::nullopt
                                 : absl::make_optional<size_t>(0);
  }
  if (queue.begun >= queue.begun_max) return absl::nullopt;
  for (size_t i = 0; i < queue.waiting.size(); ++i) {
    const std::string& client = queue.waiting[i].asker.client;
    const auto begun = queue.begun_of_client.find(client);
    if (client.empty() || begun == queue.begun_of_client.end() ||
        begun->second < kOfClientAtOnce) {
      return i;
    }
  }
  return absl::nullopt;
}

Planning::Queue* Planning::Due(bool jobs) {
  if (jobs) return Next(jobs_).has_value() ? &jobs_ : nullptr;
  // Those that only ask and are back with room take no submission's place.
  const int asking = std::min(plans_.begun, kPlanThreads);
  if (!stopping_ && submissions_.begun + asking >= kQuestionThreads) {
    return nullptr;
  }
  for (Queue* queue : {&submissions_, &plans_}) {
    if (Next(*queue).has_value()) return queue;
  }
  return nullptr;
}

Planning::Task Planning::Begin(Queue& queue) {
  const auto next = queue.waiting.begin() + *Next(queue);
  Task task = std::move(*next);
  queue.waiting.erase(next);
  ++queue.begun;
  ++queue.begun_of_client[task.asker.client];
  return task;
}

void Planning::End(Queue& queue, const std::string& client) {
  --queue.all;
  --queue.begun;
  for (auto* count : {&queue.of_client, &queue.begun_of_client}) {
    const auto it = count->find(client);
    if (--it->second == 0) count->erase(it);
  }
}

bool Planning::StepAside(Queue& queue) {
  absl::MutexLock lock(&mutex_);
  const bool job = &queue == &jobs_;
  const int aside = job ? jobs_.aside : submissions_.aside + plans_.aside;
  if (stopping_ || aside >= kAsideMax) return false;
  --queue.begun;
  ++queue.aside;
  int& more = job ? more_job_threads_ : more_question_threads_;
  if (aside >= more) {
    ++more;
    threads_.emplace_back([this, job] { Loop(job); });
  }
  return true;
}

void Planning::StepBack(Queue& queue) {
  absl::MutexLock lock(&mutex_);
  ++queue.begun;
  --queue.aside;
}

void Planning::Loop(bool jobs) {
  while (true) {
    Task task;
    Queue* queue = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      const auto is_due = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || Due(jobs) != nullptr;
      };
      mutex_.Await(absl::Condition(&is_due));
      queue = Due(jobs);
      if (queue == nullptr) return;
      task = Begin(*queue);
    }
    Run(task, *queue);
    absl::MutexLock lock(&mutex_);
    End(*queue, task.asker.client);
  }
}

absl::Status Planning::MayGoOnWith(const Task& task, absl::Time begun) const {
  if (stopping()) return SchedulerIsStopping();
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

void Planning::Run(const Task& task, Queue& queue) {
  PlanBudget::Share share(budget_, task.compilation->spec.name(),
                          task.job != JobId());
  absl::Time begun = host_.Now();
  MayGoOn may_go_on = [&] { return MayGoOnWith(task, begun); };
  may_go_on.take_room = [&](int64_t instructions) {
    if (share.TakeNow(instructions)) return absl::OkStatus();
    const bool aside = StepAside(queue);
    const absl::Time before = host_.Now();
    const absl::Duration planned = before - begun;
    absl::Status taken = share.Take(
        instructions, [&] { return MayGoOnWith(task, host_.Now() - planned); });
    begun = host_.Now() - planned;
    if (aside) StepBack(queue);
    return taken;
  };
  CompileOutcome outcome;
  outcome.refusal = Ask(may_go_on);
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
