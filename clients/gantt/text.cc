#include "clients/gantt/text.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace troupe {
namespace {

constexpr int kTextWidthMin = 60;
constexpr int kColumnsMin = 10;
constexpr int kStretchesMax = 48;  // that are listed

// A line of characters over time.
class Line {
 public:
  Line(double seconds, int columns)
      : columns_per_second_(seconds > 0 ? columns / seconds : 0),
        taken_(columns) {}

  void Add(char what, double start, double end) {
    const double first = start * columns_per_second_;
    const double last = end * columns_per_second_;
    for (int i = std::max(0, int(first)); i < taken_.size() && i < last; ++i) {
      taken_[i][what] +=
          std::min<double>(i + 1, last) - std::max<double>(i, first);
    }
  }

  // Over what is there, from the column where it begins; left out where it does
  // not fit.
  void Write(const std::string& text, double start, double end) {
    const int first = std::lround(start * columns_per_second_);
    const int last = std::lround(end * columns_per_second_);
    if (last - first < static_cast<int>(text.size())) return;
    written_[first] = text;
  }

  std::string Text() const {
    std::string line;
    for (const auto& column : taken_) {
      char most = '.';
      double share = 1e-6;  // less is an error of rounding
      for (const auto& [what, taken] : column) {
        if (taken > share) {
          share = taken;
          most = what;
        }
      }
      line += most;
    }
    for (const auto& [first, text] : written_) {
      line.replace(first, text.size(), text);
    }
    return line;
  }

 private:
  const double columns_per_second_;
  std::vector<std::map<char, double>> taken_;  // time of each, by column
  std::map<int, std::string> written_;         // by first column
};

std::string RowText(const Row& row, double seconds, int columns) {
  Line line(seconds, columns);
  for (const Bar& bar : row.bars) {
    if (bar.run > bar.start) line.Add('-', bar.start, bar.run);
    for (const Bar::Piece& piece : bar.pieces) {
      line.Add(NameOf(piece.kind).letter, std::max(piece.start, bar.run),
               piece.end);
    }
    if (bar.label.empty()) continue;
    const std::string text =
        absl::StrCat(std::string(1, NameOf(bar.kind).letter), bar.label);
    line.Write(text, bar.run, bar.end);
  }
  return line.Text();
}

struct PathLines {
  std::string kinds;
  std::string ranks;
};

PathLines PathText(const Chart& chart, double seconds, int columns) {
  Line kinds(seconds, columns);
  Line ranks(seconds, columns);
  for (const RankRows& rank : chart.ranks) {
    const char digit = static_cast<char>('0' + rank.rank % 10);
    for (const Row& row : rank.rows) {
      for (const Bar& bar : row.bars) {
        for (const Bar::Piece& piece : bar.pieces) {
          if (!piece.critical) continue;
          const double from = std::max(piece.start, bar.run);
          kinds.Add(NameOf(piece.kind).letter, from, piece.end);
          ranks.Add(digit, from, piece.end);
        }
      }
    }
  }
  return {kinds.Text(), ranks.Text()};
}

std::string LegendText(const std::vector<Chart>& charts) {
  std::string legend;
  bool waits = false;
  for (const BarKind kind : kBarKinds) {
    for (const Chart& chart : charts) {
      waits = waits || chart.waits;
      if (std::count(chart.kinds.begin(), chart.kinds.end(), kind) == 0) {
        continue;
      }
      absl::StrAppend(&legend, legend.empty() ? "" : "  ",
                      std::string(1, NameOf(kind).letter), " ",
                      NameOf(kind).name);
      break;
    }
  }
  return absl::StrCat(legend, waits ? "  - waiting for other ranks" : "", "\n");
}

std::string SharesText(const CriticalPath& path) {
  const double total = std::max<double>(path.total_ns(), 1);
  std::string text = absl::StrFormat("critical path: %.2f ms", total * 1e-6);
  const char* separator = ": ";
  const auto add = [&](const char* name, int64_t ns) {
    if (ns == 0) return;
    absl::StrAppendFormat(&text, "%s%s %.2f ms (%.1f%%)", separator, name,
                          ns * 1e-6, 100 * ns / total);
    separator = ", ";
  };
  add("compute", path.compute_ns);
  add("transfers", path.transfer_ns);
  add("collectives", path.collective_ns);
  add("tiers of memory", path.move_ns);
  add("other", path.other_ns);
  add("waiting", path.waiting_ns);
  return text + "\n";
}

std::string StretchesText(const Chart& chart) {
  std::string text = SharesText(chart.path);
  const int count = static_cast<int>(chart.stretches.size());
  for (int i = 0; i < count; ++i) {
    // The beginning and the end say most.
    if (count > kStretchesMax && i == kStretchesMax / 2) {
      const int left_out = count - kStretchesMax;
      absl::StrAppendFormat(&text, "  ... %d more stretches ...\n", left_out);
      i += left_out;
    }
    const PathStretch& stretch = chart.stretches[i];
    absl::StrAppendFormat(&text, "  %-13s %9.2f ms  %s", stretch.who,
                          stretch.seconds * 1e3, stretch.what);
    if (stretch.waited_seconds >= 5e-6) {
      absl::StrAppendFormat(&text, ", and %.2f ms of waiting",
                            stretch.waited_seconds * 1e3);
    }
    text += "\n";
  }
  return text;
}

// Columns of text: names, then time.
struct Columns {
  int rank_width = 0;
  int lane_width = 0;
  int count = 0;       // of time
  double seconds = 0;  // that they show
};

std::string OneChartText(const Chart& chart, const Columns& columns) {
  std::string out =
      absl::StrFormat("%s: step %.2f ms, bubble %.1f%%\n", chart.title,
                      chart.step_seconds * 1e3, chart.bubble * 100);
  const auto line = [&](const std::string& rank, const std::string& lane,
                        const std::string& cells) {
    absl::StrAppendFormat(&out, "%-*s  %-*s  %s", columns.rank_width, rank,
                          columns.lane_width, lane, cells);
  };
  for (const RankRows& rank : chart.ranks) {
    std::string name = absl::StrCat("rank ", rank.rank);
    for (const Row& row : rank.rows) {
      line(name, row.lane, RowText(row, columns.seconds, columns.count));
      if (row.is_compute)
        absl::StrAppendFormat(&out, " %5.1f%%", rank.bubble * 100);
      out += "\n";
      name.clear();
    }
  }
  if (chart.path.pieces.empty()) return out;
  const PathLines path = PathText(chart, columns.seconds, columns.count);
  line("path", "", path.kinds + "\n");
  line("", "on rank", path.ranks + "\n");
  return out + StretchesText(chart);
}

std::string ComparisonText(const Chart& first, const Chart& second) {
  if (!(second.step_seconds > 0)) return "";
  return absl::StrFormat(
      "%s over %s: step %.2f over %.2f ms = %.3f, bubble %.1f%% over %.1f%%\n",
      first.title, second.title, first.step_seconds * 1e3,
      second.step_seconds * 1e3, first.step_seconds / second.step_seconds,
      first.bubble * 100, second.bubble * 100);
}

}  // namespace

std::string ChartText(const std::vector<Chart>& charts, int width) {
  Columns columns = {.rank_width = 4, .lane_width = 7};
  for (const Chart& chart : charts) {
    columns.seconds = std::max(columns.seconds, chart.seconds);
    for (const RankRows& rank : chart.ranks) {
      columns.rank_width = std::max<int>(
          columns.rank_width, absl::StrCat("rank ", rank.rank).size());
      for (const Row& row : rank.rows) {
        columns.lane_width = std::max<int>(columns.lane_width, row.lane.size());
      }
    }
  }
  const int bubble_width = 7;
  columns.count = std::max(kColumnsMin,
                           std::max(kTextWidthMin, width) - columns.rank_width -
                               columns.lane_width - 4 - bubble_width);
  std::string out = LegendText(charts);
  for (const Chart& chart : charts) {
    absl::StrAppend(&out, "\n", OneChartText(chart, columns));
  }
  if (charts.size() == 2) {
    absl::StrAppend(&out, "\n", ComparisonText(charts[0], charts[1]));
  }
  return out;
}

}  // namespace troupe
