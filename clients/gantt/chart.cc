#include "clients/gantt/chart.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace troupe {
namespace {

BarKind KindOf(Instruction::Kind kind) {
  switch (kind) {
    case Instruction::FORWARD:
      return BarKind::kForward;
    case Instruction::BACKWARD_INPUT:
      return BarKind::kBackwardInput;
    case Instruction::BACKWARD_WEIGHT:
      return BarKind::kBackwardWeight;
    case Instruction::REDUCE_GRADS:
    case Instruction::REDUCE_SCALARS:
      return BarKind::kCollective;
    case Instruction::GRAD_NORM:
    case Instruction::STEP:
      return BarKind::kStep;
    case Instruction::LOAD_BATCH:
      return BarKind::kData;
    default:
      return BarKind::kOther;
  }
}

std::string Words(const Span& span) {
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
  return words;
}

Bar BarOf(const Span& span, double offset) {
  Bar bar;
  bar.kind = KindOf(span.kind());
  bar.start = offset + span.start_ns() * 1e-9;
  bar.end = std::max(bar.start, offset + span.end_ns() * 1e-9);
  if (span.has_micro_batch()) bar.label = absl::StrCat(span.micro_batch());
  bar.title = absl::StrCat(
      Words(span),
      absl::StrFormat(": %.2f to %.2f ms", bar.start * 1e3, bar.end * 1e3));
  return bar;
}

std::string LaneName(Lane lane) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(Lane_Name(lane)),
                             {{"_", " "}});
}

// Where the axis begins, in the ranks' wall clocks.
int64_t Origin(const Timeline& timeline) {
  int64_t origin = std::numeric_limits<int64_t>::max();
  for (const RankTimeline& rank : timeline.ranks()) {
    origin = std::min<int64_t>(origin, rank.start_unix_ns());
  }
  return origin;
}

}  // namespace

BarStyle StyleOf(BarKind kind) {
  switch (kind) {
    case BarKind::kForward:
      return {"forward", "#2f6fb0", 'F'};
    case BarKind::kBackwardInput:
      return {"backward, input", "#d9822b", 'I'};
    case BarKind::kBackwardWeight:
      return {"backward, weight", "#f2c14e", 'W'};
    case BarKind::kCollective:
      return {"collective", "#8e5ea2", 'R'};
    case BarKind::kStep:
      return {"optimizer step", "#3c9d6b", 'O'};
    case BarKind::kData:
      return {"data", "#8a8f98", 'L'};
    case BarKind::kOther:
      break;
  }
  return {"other", "#c9ccd1", '?'};
}

Chart LayOut(const Timeline& timeline) {
  Chart chart;
  chart.title = absl::StrCat(timeline.predicted() ? "predicted" : "measured");
  if (timeline.step() > 0) {
    absl::StrAppend(&chart.title, ", step ", timeline.step());
  }
  const int64_t origin = Origin(timeline);
  for (const RankTimeline& rank : timeline.ranks()) {
    const double offset = (rank.start_unix_ns() - origin) * 1e-9;
    std::map<int, Row> lanes;
    for (const Span& span : rank.spans()) {
      lanes[span.lane()].bars.push_back(BarOf(span, offset));
    }
    bool is_first = true;
    for (auto& [lane, row] : lanes) {
      row.rank = rank.rank();
      row.lane = LaneName(static_cast<Lane>(lane));
      row.first_of_rank = std::exchange(is_first, false);
      std::stable_sort(
          row.bars.begin(), row.bars.end(),
          [](const Bar& a, const Bar& b) { return a.start < b.start; });
      for (const Bar& bar : row.bars) {
        chart.seconds = std::max(chart.seconds, bar.end);
      }
      chart.rows.push_back(std::move(row));
    }
  }
  std::stable_sort(chart.rows.begin(), chart.rows.end(),
                   [](const Row& a, const Row& b) { return a.rank < b.rank; });
  return chart;
}

}  // namespace troupe
