#include "clients/gantt/path_stretches.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "clients/gantt/bar_kind.h"

namespace troupe {
namespace {

std::string Who(const PlacedSpan& placed) {
  const Span& span = *placed.span;
  if (span.kind() == Instruction::SEND) {
    return absl::StrCat("rank ", placed.rank, " to ", span.peer());
  }
  if (span.kind() == Instruction::RECV) {
    return absl::StrCat("rank ", span.peer(), " to ", placed.rank);
  }
  return absl::StrCat("rank ", placed.rank);
}

// Stretches do not mix what a rank computes with what it waits for others in.
bool MeetsOthers(const PlacedSpan& placed) {
  const BarKind kind = KindOf(placed.span->kind());
  return kind == BarKind::kTransfer || kind == BarKind::kExchange ||
         kind == BarKind::kCollective;
}

struct Range {
  int least = -1;
  int most = -1;
  void Add(int number) {
    least = least < 0 ? number : std::min(least, number);
    most = std::max(most, number);
  }
  std::string Words(const char* noun) const {
    if (least < 0) return "";
    return least == most
               ? absl::StrCat(" of ", noun, " ", least)
               : absl::StrCat(" of ", noun, noun[0] == 'u' ? "s " : "es ",
                              least, "-", most);
  }
};

std::string What(const std::vector<const Span*>& stretch) {
  if (stretch.size() == 1) return SpanWords(*stretch[0]);
  std::vector<Instruction::Kind> kinds;
  Range micro_batches;
  Range units;
  for (const Span* span : stretch) {
    if (std::find(kinds.begin(), kinds.end(), span->kind()) == kinds.end()) {
      kinds.push_back(span->kind());
    }
    if (span->has_micro_batch()) micro_batches.Add(span->micro_batch());
    if (span->has_unit()) {
      units.Add(span->unit());
      units.Add(span->unit() + std::max(1, span->unit_count()) - 1);
    }
  }
  std::string words;
  for (const Instruction::Kind kind : kinds) {
    absl::StrAppend(&words, words.empty() ? "" : ", ",
                    Instruction_Kind_Name(kind));
  }
  return words + (micro_batches.least < 0 ? units.Words("unit")
                                          : micro_batches.Words("micro-batch"));
}

}  // namespace

std::vector<PathStretch> Stretches(const std::vector<PlacedSpan>& spans,
                                   const CriticalPath& path) {
  std::vector<PathStretch> stretches;
  std::vector<const Span*> stretch;
  int64_t now = path.start_ns;
  for (size_t i = 0; i < path.pieces.size(); ++i) {
    const PathPiece& piece = path.pieces[i];
    const PlacedSpan& placed = spans[piece.span];
    const bool goes_on =
        i > 0 && stretches.back().who == Who(placed) &&
        MeetsOthers(spans[path.pieces[i - 1].span]) == MeetsOthers(placed);
    if (!goes_on) {
      stretch.clear();
      stretches.push_back({.who = Who(placed)});
    }
    stretch.push_back(placed.span);
    PathStretch& last = stretches.back();
    last.what = What(stretch);
    last.seconds += (piece.end_ns - piece.start_ns) * 1e-9;
    last.waited_seconds += (piece.start_ns - now) * 1e-9;
    now = piece.end_ns;
  }
  return stretches;
}

}  // namespace troupe
