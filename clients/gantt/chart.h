// A Timeline laid out for drawing, before any format is chosen: one row for
// each rank and lane, one bar for each span, times in seconds on an axis that
// all ranks share. The text, SVG and Chrome trace writers read this and nothing
// else.
#ifndef TROUPE_CLIENTS_GANTT_CHART_H_
#define TROUPE_CLIENTS_GANTT_CHART_H_

#include <string>
#include <vector>

#include "proto/timeline.pb.h"

namespace troupe {

// Bars of one kind share a colour and a letter.
enum class BarKind {
  kForward,
  kBackwardInput,
  kBackwardWeight,
  kCollective,
  kStep,
  kData,
  kOther,
};
inline constexpr BarKind kBarKinds[] = {
    BarKind::kForward,    BarKind::kBackwardInput, BarKind::kBackwardWeight,
    BarKind::kCollective, BarKind::kStep,          BarKind::kData,
    BarKind::kOther,
};

struct BarStyle {
  const char* name;    // "backward (input)"
  const char* colour;  // "#c2410c"
  char letter;         // in text charts
};
BarStyle StyleOf(BarKind kind);

struct Bar {
  BarKind kind = BarKind::kOther;
  double start = 0;  // seconds
  double end = 0;
  std::string label;  // short: the micro-batch's number, or empty
  std::string title;  // "FORWARD unit 3, micro-batch 1: 2.1 to 4.0 ms"
};

struct Row {
  int rank = 0;
  std::string lane;  // "compute"
  bool first_of_rank = false;
  std::vector<Bar> bars;  // by start
};

struct Chart {
  std::string title;   // "measured, step 20"
  double seconds = 0;  // length of the axis
  std::vector<Row>
      rows;  // by rank, then lane; lanes that nothing uses left out
};

// Measured ranks are placed by their wall clocks, the earliest start at 0.
Chart LayOut(const Timeline& timeline);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_GANTT_CHART_H_
