#include "scheduler/cluster/rendezvous.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"

namespace troupe {

absl::StatusOr<std::vector<int>> Rendezvous::Set(const std::string& key,
                                                 const std::string& value) {
  const int64_t size = key.size() + value.size();
  if (size > limits_.store_value_bytes_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat("rendezvous key ", key.substr(0, 80), " of ", size,
                     " bytes is larger than ", limits_.store_value_bytes_max));
  }
  const auto old = values_.find(key);
  const int64_t freed =
      old == values_.end() ? 0 : key.size() + old->second.size();
  if (old == values_.end() && values_.size() >= limits_.store_keys_max) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the rendezvous holds ", limits_.store_keys_max, " keys, its limit"));
  }
  if (bytes_ - freed + size > limits_.store_bytes_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the rendezvous holds ", bytes_, " bytes of ",
                     limits_.store_bytes_max, "; ", size, " more do not fit"));
  }
  bytes_ += size - freed;
  values_[key] = value;
  std::vector<int> waited;
  if (auto it = waiters_.find(key); it != waiters_.end()) {
    waited = std::move(it->second);
    waiting_ -= waited.size();
    waiters_.erase(it);
  }
  return waited;
}

absl::StatusOr<Rendezvous::First> Rendezvous::SetFirst(
    const std::string& key, const std::string& value,
    const std::string& behind) {
  // What is there was set behind the other key, which may be erased since.
  const auto found = values_.find(key);
  if (found != values_.end()) return First{.value = found->second};
  if (!values_.contains(behind)) {
    return absl::NotFoundError(absl::StrCat("no key ", behind));
  }
  ASSIGN_OR_RETURN(std::vector<int> waited, Set(key, value));
  return First{.value = value, .waited = std::move(waited)};
}

void Rendezvous::Erase(const std::string& prefix) {
  for (auto at = values_.begin(); at != values_.end();) {
    const auto here = at++;
    if (!absl::StartsWith(here->first, prefix)) continue;
    bytes_ -= static_cast<int64_t>(here->first.size() + here->second.size());
    values_.erase(here);
  }
}

absl::StatusOr<const std::string*> Rendezvous::Get(int rank,
                                                   const std::string& key) {
  if (const auto it = values_.find(key); it != values_.end()) {
    return &it->second;
  }
  if (waiting_ >= limits_.store_keys_max) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "in the rendezvous ", waiting_, " questions wait, its limit"));
  }
  ++waiting_;
  waiters_[key].push_back(rank);
  return nullptr;
}

}  // namespace troupe
