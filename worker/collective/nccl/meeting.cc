#include "worker/collective/nccl/meeting.h"

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

Meeting::Meeting(std::unique_ptr<Communicator> host) : host_(std::move(host)) {}

absl::Status Meeting::All(const CommOptions& options) {
  return Bare({host_->group(), "barrier", options.name},
              host_->Barrier(options));
}

absl::Status Meeting::With(int peer, const CommOptions& options) {
  char word = 0;
  const CommBuffer buffer = CommBuffer::Of(absl::MakeSpan(&word, 1));
  // The lower one speaks first.
  const bool first = host_->rank() < peer;
  for (const bool speaks : {first, !first}) {
    RETURN_IF_ERROR(
        Bare({host_->group(), speaks ? "send" : "recv", options.name},
             speaks ? host_->Send(buffer, peer, options)
                    : host_->Recv(buffer, peer, options)));
  }
  return absl::OkStatus();
}

}  // namespace troupe
