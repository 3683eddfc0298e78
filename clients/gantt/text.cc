#include "clients/gantt/text.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace troupe {
namespace {

std::string Cells(const Row& row, double seconds, int columns) {
  // Time that each kind takes of each column.
  std::vector<std::map<char, double>> taken(columns);
  for (const Bar& bar : row.bars) {
    const double first = bar.start / seconds * columns;
    const double last = bar.end / seconds * columns;
    for (int i = std::max(0, int(first)); i < columns && i < last; ++i) {
      const double share =
          std::min<double>(i + 1, last) - std::max<double>(i, first);
      taken[i][StyleOf(bar.kind).letter] += share;
    }
  }
  std::string cells;
  for (const auto& column : taken) {
    char letter = '.';
    double most = 0;
    for (const auto& [candidate, share] : column) {
      if (share > most) {
        most = share;
        letter = candidate;
      }
    }
    cells += letter;
  }
  return cells;
}

std::string Legend() {
  std::string legend;
  for (const BarKind kind : kBarKinds) {
    const BarStyle style = StyleOf(kind);
    if (kind == BarKind::kOther) continue;
    absl::StrAppend(&legend, legend.empty() ? "" : "  ",
                    std::string(1, style.letter), " ", style.name);
  }
  return legend;
}

}  // namespace

std::string ChartText(const std::vector<Chart>& charts, int width) {
  double seconds = 0;
  size_t rank_width = 0;
  size_t lane_width = 0;
  for (const Chart& chart : charts) {
    seconds = std::max(seconds, chart.seconds);
    for (const Row& row : chart.rows) {
      rank_width = std::max(rank_width, absl::StrCat("rank ", row.rank).size());
      lane_width = std::max(lane_width, row.lane.size());
    }
  }
  const int names = rank_width + lane_width + 4;
  const int columns = std::max(10, std::max(40, width) - names);
  std::string out;
  for (const Chart& chart : charts) {
    absl::StrAppend(&out, chart.title,
                    absl::StrFormat(": 0 to %.2f ms", chart.seconds * 1e3),
                    "\n");
    for (const Row& row : chart.rows) {
      const std::string rank =
          row.first_of_rank ? absl::StrCat("rank ", row.rank) : "";
      absl::StrAppend(&out,
                      absl::StrFormat("%-*s  %-*s  ", int(rank_width), rank,
                                      int(lane_width), row.lane),
                      seconds > 0 ? Cells(row, seconds, columns) : "", "\n");
    }
  }
  return absl::StrCat(out, Legend(), "\n");
}

}  // namespace troupe
