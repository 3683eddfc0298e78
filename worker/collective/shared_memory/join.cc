#include "worker/collective/shared_memory/join.h"

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "worker/collective/shared_memory/memory_domain.h"
#include "worker/collective/shared_memory/segment_map.h"

namespace troupe {
namespace {

constexpr char kOk[] = "ok";

int RanksOf(const CommunicatorSeat& seat) {
  return static_cast<int>(seat.group.ranks.size());
}

std::string Key(const CommunicatorSeat& seat, int rank) {
  return absl::StrCat(seat.group.name, "/shared_memory/", rank);
}

absl::StatusOr<std::string> Answer(const CommunicatorSeat& seat, int rank,
                                   absl::Time deadline) {
  absl::StatusOr<std::string> answer =
      seat.store->Get(Key(seat, rank), deadline - SteadyNow());
  if (answer.ok()) return answer;
  return Annotate(answer.status(), absl::StrCat("rank ", seat.group.ranks[rank],
                                                " did not come"));
}

absl::StatusOr<SharedSegment> Make(const CommunicatorSeat& seat) {
  ASSIGN_OR_RETURN(SharedSegment segment,
                   SharedSegment::Create(SegmentMap::Bytes(RanksOf(seat))));
  SegmentMap(segment.data(), RanksOf(seat)).Initialize();
  return segment;
}

// What rank 0 answers: a line with its domain, and one with the address; or an
// empty line, and why there is no segment.
std::string Announcement(const absl::StatusOr<SharedSegment>& segment) {
  if (!segment.ok()) return absl::StrCat("\n", segment.status().message());
  return absl::StrCat(MemoryDomain(), "\n", segment->address());
}

absl::StatusOr<SharedSegment> OpenAnnounced(const std::string& announcement,
                                            int ranks) {
  const std::pair<std::string, std::string> lines =
      absl::StrSplit(announcement, absl::MaxSplits('\n', 1));
  const auto& [domain, address] = lines;
  if (domain.empty()) return absl::UnavailableError(address);
  if (domain != MemoryDomain()) {
    return absl::UnavailableError(absl::StrCat(
        "its memory domain is \"", MemoryDomain(), "\", not \"", domain, "\""));
  }
  ASSIGN_OR_RETURN(SharedSegment segment, SharedSegment::Open(address));
  if (segment.bytes() != SegmentMap::Bytes(ranks)) {
    return absl::UnavailableError("it is of another version of Troupe");
  }
  return segment;
}

}  // namespace

absl::StatusOr<SharedSegment> JoinSegment(const CommunicatorSeat& seat) {
  const absl::Time deadline = SteadyNow() + seat.timeout;
  const int ranks = RanksOf(seat);
  absl::StatusOr<SharedSegment> segment = absl::UnknownError("");
  std::string answer;
  if (seat.rank == 0) {
    segment = Make(seat);
    answer = Announcement(segment);
  } else {
    ASSIGN_OR_RETURN(const std::string announced, Answer(seat, 0, deadline));
    segment = OpenAnnounced(announced, ranks);
    answer = segment.ok() ? kOk : std::string(segment.status().message());
  }
  if (segment.ok()) {
    SegmentMap(segment->data(), ranks).state(seat.rank).process = getpid();
  }
  RETURN_IF_ERROR(seat.store->Set(Key(seat, seat.rank), answer));
  for (int rank = 1; rank < ranks; ++rank) {
    if (rank != seat.rank) {
      ASSIGN_OR_RETURN(answer, Answer(seat, rank, deadline));
    }
    if (seat.rank == rank && segment.ok()) continue;
    if (answer == kOk) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "rank ", seat.group.ranks[rank], " cannot share memory with rank ",
        seat.group.ranks[0], ": ",
        seat.rank == rank ? segment.status().message() : answer));
  }
  segment->Close();
  return segment;
}

}  // namespace troupe
