#include "scheduler/service/file_check_calls.h"

#include <utility>

namespace troupe {
namespace {

absl::Status Stopping() {
  return absl::UnavailableError("the scheduler stops; submit the job again");
}

}  // namespace

FileCheckCalls::FileCheckCalls(ClusterHost& host)
    : host_(host), thread_([this] { Run(); }) {}

FileCheckCalls::~FileCheckCalls() {
  Stop();
  thread_.join();
}

void FileCheckCalls::Check(const JobSpec& job, Then then) {
  const absl::Status status =
      host_.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
        absl::MutexLock lock(&mutex_);
        if (stopped_) return Stopping();
        const int64_t number = cluster.CheckFiles(job, now, out);
        // The answer cannot come before the host's lock is released.
        if (number != 0) waiting_[number] = std::exchange(then, nullptr);
        return absl::OkStatus();
      });
  if (then != nullptr) then(status);
}

void FileCheckCalls::Carry(const Actions& actions) {
  for (const Action& action : actions) {
    const auto* looked = std::get_if<FilesLookedAt>(&action);
    if (looked == nullptr) continue;
    absl::MutexLock lock(&mutex_);
    const auto it = waiting_.find(looked->request);
    if (it == waiting_.end()) continue;
    answered_.push_back({std::move(it->second), looked->status});
    waiting_.erase(it);
  }
}

void FileCheckCalls::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
  for (auto& [number, then] : waiting_) {
    answered_.push_back({std::move(then), Stopping()});
  }
  waiting_.clear();
}

void FileCheckCalls::Run() {
  while (true) {
    Answered next;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &FileCheckCalls::HasWork));
      if (answered_.empty()) return;  // stopped, and all are answered
      next = std::move(answered_.front());
      answered_.pop_front();
    }
    next.then(next.status);
  }
}

}  // namespace troupe
