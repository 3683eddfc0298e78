#include "worker/collective/enqueued/meeting.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

// What was called on the communicator that people have not heard of.
struct Called {
  const CommGroup& group;
  const char* operation;
  const std::string& name;
};

// The status without the words that Communicator put before it.
absl::Status Bare(const Called& called, const absl::Status& status) {
  if (status.ok()) return status;
  absl::string_view message = status.message();
  absl::ConsumePrefix(
      &message,
      absl::StrCat("group ", called.group.name, ": ", called.operation,
                   called.name.empty() ? "" : " of ", called.name, ": "));
  absl::Status bare(status.code(), message);
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    bare.SetPayload(url, payload);
  });
  return bare;
}

}  // namespace

HostMeeting::HostMeeting(std::unique_ptr<Communicator> host)
    : host_(std::move(host)) {}

absl::Status HostMeeting::With(const Peers& peers, const CommOptions& options) {
  absl::MutexLock lock(&mutex_);
  if (peers.all()) {
    return Bare({host_->group(), "barrier", options.name},
                host_->Barrier(options));
  }
  // A word each way for each transfer.
  if (peers.to == kNobody || peers.from == kNobody) {
    const int peer = std::max(peers.to, peers.from);
    return Shift({.to = peer, .from = peer}, options);
  }
  RETURN_IF_ERROR(Shift(peers, options));
  return Shift({.to = peers.from, .from = peers.to}, options);
}

absl::Status HostMeeting::Shift(const Peers& peers,
                                const CommOptions& options) {
  char spoken = 0, heard = 0;
  return Bare(
      {host_->group(), "shift", options.name},
      host_->Shift({.send = CommBuffer::Of(absl::MakeSpan(&spoken, 1)),
                    .to = peers.to,
                    .receive = CommBuffer::Of(absl::MakeSpan(&heard, 1)),
                    .from = peers.from},
                   options));
}

}  // namespace troupe
