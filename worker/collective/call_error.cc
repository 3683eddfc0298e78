#include "worker/collective/call_error.h"

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

constexpr char kMissingRankPayload[] = "troupe/missing-rank";

}  // namespace

std::string CallWords(absl::string_view operation, absl::string_view name) {
  return name.empty() ? std::string(operation)
                      : absl::StrCat(operation, " of ", name);
}

absl::Status InCall(const absl::Status& status, absl::string_view group,
                    absl::string_view call_words) {
  const std::string context = absl::StrCat("group ", group, ": ", call_words);
  return absl::StartsWith(status.message(), context)
             ? status
             : Annotate(status, context);
}

absl::Status PeerError(const BlamedPeer& peer) {
  // Enough digits for people: 1.534s, 12ms.
  const absl::Duration waited = absl::Trunc(peer.waited, absl::Milliseconds(1));
  absl::Status status(
      peer.code, absl::StrCat("rank ", peer.rank, " ", peer.what, " (rank ",
                              peer.waiting_rank, " waited ",
                              absl::FormatDuration(waited), ")"));
  status.SetPayload(kMissingRankPayload, absl::Cord(absl::StrCat(peer.rank)));
  return status;
}

absl::optional<int> MissingRank(const absl::Status& status) {
  const absl::optional<absl::Cord> payload =
      status.GetPayload(kMissingRankPayload);
  int rank = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &rank)) {
    return absl::nullopt;
  }
  return rank;
}

}  // namespace troupe
