#include "clients/gantt/placed_spans.h"

#include <algorithm>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "proto/plan/lanes.h"

namespace troupe {
namespace {

// Where the axis begins, in the ranks' wall clocks.
int64_t Origin(const Timeline& timeline) {
  int64_t origin = std::numeric_limits<int64_t>::max();
  for (const RankTimeline& rank : timeline.ranks()) {
    origin = std::min<int64_t>(origin, rank.start_unix_ns());
  }
  return origin;
}

// The same for all that may meet; empty where a span needs no other rank.
std::string MeetingName(int rank, const Span& span) {
  const std::string what = absl::StrCat(
      span.lane(), " u", span.has_unit() ? span.unit() : -1, "+",
      span.unit_count(), " m", span.has_micro_batch() ? span.micro_batch() : -1,
      " a", span.ahead());
  switch (span.kind()) {
    case Instruction::SEND:
      return absl::StrCat(rank, ">", span.peer(), " ", what);
    case Instruction::RECV:
      return absl::StrCat(span.peer(), ">", rank, " ", what);
    case Instruction::REDUCE_SCALARS:
      return absl::StrCat(span.kind(), " ", what);
    // Only ranks of one group meet; others do the same at that time.
    case Instruction::REDUCE_GRADS:
    case Instruction::SCATTER_GRADS:
    case Instruction::GATHER_PARAMETERS:
    case Instruction::PUSH:
    case Instruction::PULL:
    case Instruction::EXCHANGE:
    case Instruction::MIRROR:
    case Instruction::OUTER_REDUCE:
      return absl::StrCat(span.kind(), " g", span.group(), " x",
                          span.exchange(), " ", what);
    default:
      return "";
  }
}

void Meet(const std::vector<int>& members, int number,
          std::vector<PlacedSpan>& spans) {
  int64_t met_ns = std::numeric_limits<int64_t>::min();
  for (const int i : members) met_ns = std::max(met_ns, spans[i].start_ns);
  for (const int i : members) {
    spans[i].meeting = number;
    spans[i].met_ns = std::clamp(met_ns, spans[i].start_ns, spans[i].end_ns);
  }
}

}  // namespace

std::vector<PlacedSpan> PlaceSpans(const Timeline& timeline) {
  std::vector<PlacedSpan> spans;
  std::map<std::string, std::vector<int>> meetings;
  const int64_t origin = Origin(timeline);
  for (const RankTimeline& rank : timeline.ranks()) {
    const int64_t offset = rank.start_unix_ns() - origin;
    // A rank may run the like of an instruction several times.
    std::map<std::string, int> times;
    for (const Span& span : rank.spans()) {
      const int64_t start = offset + span.start_ns();
      const int64_t end = std::max(start, offset + span.end_ns());
      const std::string name = MeetingName(rank.rank(), span);
      if (!name.empty()) {
        meetings[absl::StrCat(name, " #", times[name]++)].push_back(
            static_cast<int>(spans.size()));
      }
      spans.push_back({.rank = rank.rank(),
                       .span = &span,
                       .computes = KindOfLane(timeline.lanes(), span.lane()) ==
                                   Lane::COMPUTE,
                       .start_ns = start,
                       .met_ns = start,
                       .end_ns = end});
    }
  }
  int number = 0;
  for (const auto& [name, members] : meetings) {
    if (members.size() > 1) Meet(members, number++, spans);
  }
  return spans;
}

std::string SpanWords(const Span& span) {
  std::string words = Instruction_Kind_Name(span.kind());
  if (span.has_unit()) {
    absl::StrAppend(&words, " unit", span.unit_count() > 1 ? "s " : " ",
                    span.unit());
    if (span.unit_count() > 1) {
      absl::StrAppend(&words, "-", span.unit() + span.unit_count() - 1);
    }
  }
  if (span.has_micro_batch()) {
    absl::StrAppend(&words, span.has_unit() ? "," : "", " micro-batch ",
                    span.micro_batch());
  }
  if (span.has_peer()) {
    absl::StrAppend(&words, span.kind() == Instruction::RECV ? " from" : " to",
                    " rank ", span.peer());
  }
  return words;
}

}  // namespace troupe
