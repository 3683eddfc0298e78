#include "worker/service/scheduler_store.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"

namespace troupe {

SchedulerStore::SchedulerStore(RankRef ref, SendToScheduler send)
    : ref_(std::move(ref)), send_(std::move(send)) {}

absl::Status SchedulerStore::Set(absl::string_view key,
                                 absl::string_view value) {
  {
    absl::MutexLock lock(&mutex_);
    if (!aborted_.ok()) return aborted_;
  }
  WorkerMessage message;
  StoreSet& set = *message.mutable_store_set();
  *set.mutable_ref() = ref_;
  set.set_key(std::string(key));
  set.set_value(std::string(value));
  return send_(std::move(message));
}

absl::StatusOr<std::string> SchedulerStore::Get(absl::string_view key,
                                                absl::Duration timeout) {
  {
    absl::MutexLock lock(&mutex_);
    if (!aborted_.ok()) return aborted_;
    const auto known = values_.find(key);
    if (known != values_.end()) return known->second;
  }
  WorkerMessage message;
  StoreGet& get = *message.mutable_store_get();
  *get.mutable_ref() = ref_;
  get.set_key(std::string(key));
  RETURN_IF_ERROR(send_(std::move(message)));
  absl::MutexLock lock(&mutex_);
  const auto answered = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !aborted_.ok() || values_.count(key) > 0;
  };
  const bool in_time = changed_.Await(mutex_, timeout, answered);
  if (!aborted_.ok()) return aborted_;
  if (in_time) return values_.find(key)->second;
  return absl::DeadlineExceededError(
      absl::StrCat("nobody set \"", key, "\" in the scheduler's store within ",
                   absl::FormatDuration(timeout)));
}

absl::StatusOr<std::string> SchedulerStore::SetFirst(absl::string_view key,
                                                     absl::string_view value,
                                                     absl::string_view behind) {
  {
    absl::MutexLock lock(&mutex_);
    if (!aborted_.ok()) return aborted_;
    const auto known = values_.find(key);
    if (known != values_.end()) return known->second;
  }
  WorkerMessage message;
  StoreSet& set = *message.mutable_store_set();
  *set.mutable_ref() = ref_;
  set.set_key(std::string(key));
  set.set_value(std::string(value));
  set.set_keep_first(true);
  set.set_behind(std::string(behind));
  RETURN_IF_ERROR(send_(std::move(message)));
  absl::MutexLock lock(&mutex_);
  const auto answered = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !aborted_.ok() || values_.count(key) > 0 || lost_.count(key) > 0;
  };
  changed_.Await(mutex_, absl::InfiniteDuration(), answered);
  if (!aborted_.ok()) return aborted_;
  if (lost_.count(key) > 0) return ForgotBehind(key, behind);
  return values_.find(key)->second;
}

absl::Status SchedulerStore::Erase(absl::string_view prefix) {
  {
    absl::MutexLock lock(&mutex_);
    if (!aborted_.ok()) return aborted_;
  }
  WorkerMessage message;
  StoreSet& set = *message.mutable_store_set();
  *set.mutable_ref() = ref_;
  set.set_key(std::string(prefix));
  set.set_erase(true);
  return send_(std::move(message));
}

void SchedulerStore::Forget(absl::string_view prefix) {
  absl::MutexLock lock(&mutex_);
  auto at = values_.lower_bound(prefix);
  while (at != values_.end() && absl::StartsWith(at->first, prefix)) {
    at = values_.erase(at);
  }
}

void SchedulerStore::OnValue(const StoreValue& value) {
  absl::MutexLock lock(&mutex_);
  if (value.lost()) {
    lost_.insert(value.key());
  } else {
    values_[value.key()] = value.value();
  }
  changed_.Say();
}

void SchedulerStore::Abort(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (aborted_.ok()) aborted_ = why;
  changed_.Say();
}

}  // namespace troupe
