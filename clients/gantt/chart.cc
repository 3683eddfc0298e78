#include "clients/gantt/chart.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "clients/gantt/merge_units.h"
#include "clients/gantt/placed_spans.h"
#include "proto/plan/lanes.h"

namespace troupe {
namespace {

// Spans of a bar may lie so much of the chart apart: less than can be seen.
constexpr double kGapShareMax = 1e-3;

using SpansByLane = std::map<int, std::vector<int>>;

std::string RowName(const Lanes& lanes, int lane) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(NameOfLane(lanes, lane)),
                             {{"_", " "}});
}

double Seconds(int64_t ns) { return ns * 1e-9; }

// "FORWARD units 3-5, micro-batch 1": the span's words, for several units.
std::string BarWords(const std::vector<PlacedSpan>& spans,
                     const std::vector<int>& bar) {
  Span whole = *spans[bar[0]].span;
  int least = whole.unit();
  int most = least + std::max(1, whole.unit_count()) - 1;
  std::string kinds = Instruction_Kind_Name(whole.kind());
  std::set<Instruction::Kind> seen = {whole.kind()};
  for (const int i : bar) {
    const Span& span = *spans[i].span;
    least = std::min(least, span.unit());
    most = std::max(most, span.unit() + std::max(1, span.unit_count()) - 1);
    if (seen.insert(span.kind()).second) {
      absl::StrAppend(&kinds, ", ", Instruction_Kind_Name(span.kind()));
    }
  }
  if (whole.has_unit()) {
    whole.set_unit(least);
    whole.set_unit_count(most - least + 1);
  }
  const std::string first = Instruction_Kind_Name(whole.kind());
  std::string words = kinds + SpanWords(whole).substr(first.size());
  if (whole.ahead() > 0) {
    absl::StrAppend(&words, ", for the step ", whole.ahead(), " later");
  }
  return words;
}

class Drafting {
 public:
  Drafting(const Timeline& timeline, const ChartOptions& options)
      : timeline_(timeline), options_(options), spans_(PlaceSpans(timeline)) {
    chart_.title = timeline.predicted() ? "predicted" : "measured";
    if (timeline.step() > 0) {
      absl::StrAppend(&chart_.title, ", step ", timeline.step());
    }
  }

  Chart Draft() && {
    int64_t end_ns = 0;
    for (const PlacedSpan& span : spans_) {
      end_ns = std::max(end_ns, span.end_ns);
    }
    chart_.seconds = Seconds(end_ns);
    chart_.path = FindCriticalPath(spans_);
    chart_.stretches = Stretches(spans_, chart_.path);
    for (const PathPiece& piece : chart_.path.pieces) {
      critical_.insert({piece.span, piece.last_to_come});
    }
    AddRows();
    AddBubbles();
    AddHops();
    for (const BarKind kind : kBarKinds) {
      if (kinds_.count(kind) > 0) chart_.kinds.push_back(kind);
    }
    return std::move(chart_);
  }

 private:
  void AddRows() {
    std::map<int, SpansByLane> lanes;  // by rank
    for (const RankTimeline& rank : timeline_.ranks()) lanes[rank.rank()];
    for (int i = 0; i < static_cast<int>(spans_.size()); ++i) {
      lanes[spans_[i].rank][spans_[i].span->lane()].push_back(i);
    }
    for (auto& [rank, rows] : lanes) {
      chart_.ranks.push_back({.rank = rank});
      SetChunks(rows);
      for (auto& [lane, spans] : rows) {
        std::stable_sort(spans.begin(), spans.end(), [this](int a, int b) {
          return spans_[a].start_ns < spans_[b].start_ns;
        });
        AddRow(lane, spans);
      }
    }
  }

  void AddRow(int lane, const std::vector<int>& spans) {
    Row row = {.lane = RowName(timeline_.lanes(), lane),
               .is_compute = spans_[spans.front()].computes};
    std::vector<std::vector<int>> bars;
    if (options_.merge_units) {
      bars = MergeUnits(spans_, spans,
                        {.gap_ns_max = static_cast<int64_t>(chart_.seconds *
                                                            1e9 * kGapShareMax),
                         .stages = options_.stages});
    } else {
      for (const int i : spans) bars.push_back({i});
    }
    std::vector<Row>& rows = chart_.ranks.back().rows;
    for (const std::vector<int>& bar : bars) {
      for (const int i : bar) {
        places_[i] = {.rank = static_cast<int>(chart_.ranks.size()) - 1,
                      .row = static_cast<int>(rows.size())};
      }
      row.bars.push_back(BarOf(bar));
    }
    rows.push_back(std::move(row));
  }

  Bar BarOf(const std::vector<int>& spans) {
    const PlacedSpan& first = spans_[spans[0]];
    Bar bar = {.kind = KindOf(first.span->kind()),
               .start = Seconds(first.start_ns),
               .run = Seconds(first.met_ns),
               .ahead = first.span->ahead(),
               .meeting = first.meeting};
    for (const int i : spans) {
      const PlacedSpan& span = spans_[i];
      bar.pieces.push_back({.kind = KindOf(span.span->kind()),
                            .start = Seconds(span.start_ns),
                            .end = Seconds(span.end_ns),
                            .critical = critical_.count(i) > 0});
      bar.end = std::max(bar.end, Seconds(span.end_ns));
      bar.critical = bar.critical || bar.pieces.back().critical;
      kinds_.insert(bar.pieces.back().kind);
    }
    if (IsPass(bar.kind)) bar.chunk = chunk_of_unit_[first.span->unit()];
    if (first.span->has_micro_batch()) {
      bar.label = absl::StrCat(first.span->micro_batch());
    }
    bar.title = absl::StrFormat("%s: %.2f to %.2f ms (%.2f ms",
                                BarWords(spans_, spans), bar.start * 1e3,
                                bar.end * 1e3, (bar.end - bar.start) * 1e3);
    if (bar.run > bar.start) {
      absl::StrAppendFormat(&bar.title, ", %.2f of them waiting",
                            (bar.run - bar.start) * 1e3);
      chart_.waits = true;
    }
    bar.title += ")";
    chart_.works_ahead = chart_.works_ahead || bar.ahead > 0;
    return bar;
  }

  // Numbers the stages that the rank holds, by what it runs forward.
  void SetChunks(const SpansByLane& lanes) {
    chunk_of_unit_.clear();
    for (const auto& [lane, spans] : lanes) {
      for (const int i : spans) {
        const Span& span = *spans_[i].span;
        if (IsPass(KindOf(span.kind()))) chunk_of_unit_[span.unit()] = 0;
      }
    }
    int chunk = 0;
    int before = -1;
    for (auto& [unit, number] : chunk_of_unit_) {
      if (before >= 0 && BeginsStage(unit, before)) ++chunk;
      number = chunk;
      before = unit;
    }
    chart_.chunks_max = std::max(chart_.chunks_max, chunk + 1);
  }

  // Whether `unit` is of another stage than `before`, the rank's unit before
  // it.
  bool BeginsStage(int unit, int before) const {
    if (options_.stages.empty()) return unit != before + 1;
    return std::any_of(options_.stages.begin(), options_.stages.end(),
                       [&](const Stage& stage) {
                         return before < stage.unit() && stage.unit() <= unit;
                       });
  }

  void AddBubbles() {
    std::map<int, int64_t> busy_ns;
    std::map<int, std::pair<int64_t, int64_t>> extents;
    for (const PlacedSpan& span : spans_) {
      auto [extent, is_first] =
          extents.emplace(span.rank, std::pair(span.start_ns, span.end_ns));
      auto& [start, end] = extent->second;
      start = std::min(start, span.start_ns);
      end = std::max(end, span.end_ns);
      if (span.computes) {
        busy_ns[span.rank] += span.end_ns - span.start_ns;
      }
    }
    int64_t step_ns = 0;
    for (const auto& [rank, extent] : extents) {
      step_ns = std::max(step_ns, extent.second - extent.first);
    }
    chart_.step_seconds = Seconds(step_ns);
    if (step_ns == 0) return;
    for (RankRows& rank : chart_.ranks) {
      rank.bubble = 1 - static_cast<double>(busy_ns[rank.rank]) / step_ns;
      chart_.bubble += rank.bubble / chart_.ranks.size();
    }
  }

  Hop::End PlaceOf(int span, int64_t at_ns) const {
    Hop::End place = places_.at(span);
    place.at = Seconds(at_ns);
    return place;
  }

  void AddHops() {
    for (const PathPiece& piece : chart_.path.pieces) {
      if (spans_[piece.span].rank == spans_[piece.last_to_come].rank) continue;
      chart_.hops.push_back({PlaceOf(piece.last_to_come, piece.start_ns),
                             PlaceOf(piece.span, piece.end_ns)});
    }
  }

  const Timeline& timeline_;
  const ChartOptions& options_;
  const std::vector<PlacedSpan> spans_;
  Chart chart_;
  std::set<int> critical_;            // spans
  std::map<int, Hop::End> places_;    // of spans
  std::map<int, int> chunk_of_unit_;  // of the rank in hand
  std::set<BarKind> kinds_;
};

}  // namespace

Chart LayOut(const Timeline& timeline, const ChartOptions& options) {
  return Drafting(timeline, options).Draft();
}

}  // namespace troupe
