#include "worker/collective/key_value_store.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {

namespace {

absl::Status CannotAppend(absl::string_view key) {
  return absl::FailedPreconditionError(
      absl::StrCat("rendezvous key ", key,
                   " is one that several members may set; this store has only "
                   "keys that one member sets"));
}

}  // namespace

absl::Status ForgotBehind(absl::string_view key, absl::string_view behind) {
  return absl::DataLossError(absl::StrCat(
      "the store has forgotten \"", behind, "\", behind which comes \"", key,
      "\": it was started again, and in which order ranks came is lost"));
}

absl::StatusOr<std::string> KeyValueStore::SetFirst(absl::string_view key,
                                                    absl::string_view value,
                                                    absl::string_view behind) {
  return CannotAppend(key);
}

absl::Status KeyValueStore::Erase(absl::string_view prefix) {
  return CannotAppend(prefix);
}

absl::StatusOr<std::shared_ptr<void>> KeyValueStore::Share(
    absl::string_view key, absl::FunctionRef<std::shared_ptr<void>()> make) {
  return absl::FailedPreconditionError(
      absl::StrCat("rendezvous key ", key,
                   " is of an object that threads of one process share; the "
                   "members have a store for processes"));
}

InMemoryStore::InMemoryStore(int64_t bytes_max) : bytes_max_(bytes_max) {}

absl::Status InMemoryStore::Set(absl::string_view key,
                                absl::string_view value) {
  absl::MutexLock lock(&mutex_);
  if (!aborted_.ok()) return aborted_;
  if (const auto found = values_.find(key); found != values_.end()) {
    if (found->second == value) return absl::OkStatus();
    return absl::AlreadyExistsError(
        absl::StrCat("rendezvous key ", key, " is set to another value"));
  }
  return Add(key, value);
}

absl::Status InMemoryStore::Add(absl::string_view key,
                                absl::string_view value) {
  const int64_t more = static_cast<int64_t>(key.size() + value.size());
  if (bytes_ + more > bytes_max_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("rendezvous store: ", key, " needs ", more, " bytes, ",
                     bytes_max_ - bytes_, " of ", bytes_max_, " are left"));
  }
  bytes_ += more;
  values_.emplace(key, value);
  return absl::OkStatus();
}

absl::StatusOr<std::string> InMemoryStore::Get(absl::string_view key,
                                               absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto set = [this, key]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !aborted_.ok() || values_.find(key) != values_.end();
  };
  const bool in_time = mutex_.AwaitWithTimeout(absl::Condition(&set), timeout);
  if (!aborted_.ok()) return aborted_;
  if (!in_time) {
    return absl::DeadlineExceededError(
        absl::StrCat("rendezvous key ", key, " was not set within ",
                     absl::FormatDuration(timeout)));
  }
  return values_.find(key)->second;
}

absl::StatusOr<std::string> InMemoryStore::SetFirst(absl::string_view key,
                                                    absl::string_view value,
                                                    absl::string_view behind) {
  absl::MutexLock lock(&mutex_);
  if (!aborted_.ok()) return aborted_;
  const auto found = values_.find(key);
  if (found != values_.end()) return found->second;
  if (values_.find(behind) == values_.end()) return ForgotBehind(key, behind);
  RETURN_IF_ERROR(Add(key, value));
  return std::string(value);
}

absl::Status InMemoryStore::Erase(absl::string_view prefix) {
  absl::MutexLock lock(&mutex_);
  if (!aborted_.ok()) return aborted_;
  auto at = values_.lower_bound(prefix);
  while (at != values_.end() && absl::StartsWith(at->first, prefix)) {
    bytes_ -= static_cast<int64_t>(at->first.size() + at->second.size());
    at = values_.erase(at);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<void>> InMemoryStore::Share(
    absl::string_view key, absl::FunctionRef<std::shared_ptr<void>()> make) {
  absl::MutexLock lock(&mutex_);
  if (!aborted_.ok()) return aborted_;
  const auto found = shared_.find(key);
  if (found != shared_.end()) return found->second;
  return shared_.emplace(key, make()).first->second;
}

void InMemoryStore::Abort(const absl::Status& why) {
  CHECK(!why.ok()) << "an abort needs a reason";
  absl::MutexLock lock(&mutex_);
  if (aborted_.ok()) aborted_ = why;
}

}  // namespace troupe
