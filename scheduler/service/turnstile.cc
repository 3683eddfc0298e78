#include "scheduler/service/turnstile.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "scheduler/service/stopping.h"

namespace troupe {
namespace {

absl::Status TooMany(const std::string& client) {
  return absl::ResourceExhaustedError(
      absl::StrCat("too many requests of ", client,
                   " wait to be served; wait for answers before asking again"));
}

}  // namespace

Turnstile::Turnstile(const RequestRateOptions& options)
    : rate_(options), thread_([this] { Loop(); }) {}

Turnstile::~Turnstile() {
  Stop();
  thread_.join();
}

void Turnstile::Enter(const std::string& client, Serve serve) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    const int64_t now_ns = clock_.MonotonicNanos();
    const auto wait = stopping_ ? absl::nullopt : rate_.Take(client, now_ns);
    if (stopping_) {
      status = SchedulerIsStopping();
    } else if (!wait.has_value()) {
      status = TooMany(client);
    } else if (*wait > absl::ZeroDuration()) {
      waiting_.emplace(now_ns + absl::ToInt64Nanoseconds(*wait),
                       std::move(serve));
      return;
    }
  }
  serve(status);
}

absl::Status Turnstile::EnterNow(const std::string& client) {
  absl::MutexLock lock(&mutex_);
  if (stopping_) return SchedulerIsStopping();
  const auto wait = rate_.Take(client, clock_.MonotonicNanos());
  if (wait.has_value() && *wait == absl::ZeroDuration()) {
    return absl::OkStatus();
  }
  return TooMany(client);
}

void Turnstile::Stop() {
  absl::MutexLock lock(&mutex_);
  stopping_ = true;
  stops_.Say();
}

void Turnstile::Loop() {
  while (true) {
    std::multimap<int64_t, Serve> due;
    bool stopping = false;
    {
      absl::MutexLock lock(&mutex_);
      const auto anything = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return stopping_ || !waiting_.empty();
      };
      mutex_.Await(absl::Condition(&anything));
      const int64_t now_ns = clock_.MonotonicNanos();
      if (!stopping_ && waiting_.begin()->first > now_ns) {
        // One of another client that is due before the first comes late by as
        // much: by the time between two turns at most.
        const auto stops = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
          return stopping_;
        };
        stops_.Await(
            mutex_, absl::Nanoseconds(waiting_.begin()->first - now_ns), stops);
      }
      stopping = stopping_;
      const auto end = stopping ? waiting_.end()
                                : waiting_.upper_bound(clock_.MonotonicNanos());
      while (waiting_.begin() != end) {
        due.insert(waiting_.extract(waiting_.begin()));
      }
    }
    for (const auto& [time, serve] : due) {
      serve(stopping ? SchedulerIsStopping() : absl::OkStatus());
    }
    if (stopping) return;
  }
}

}  // namespace troupe
