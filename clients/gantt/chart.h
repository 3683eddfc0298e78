// A Timeline laid out for drawing, before any format is chosen: one row for
// each rank and lane, one bar for each pass over a stage, transfer, collective
// or step, times in seconds on an axis that all ranks share, and what the
// picture is looked at for: each rank's bubble and the critical path. The text,
// SVG and Chrome trace writers read this and nothing else.
#ifndef TROUPE_CLIENTS_GANTT_CHART_H_
#define TROUPE_CLIENTS_GANTT_CHART_H_

#include <string>
#include <vector>

#include "clients/gantt/bar_kind.h"
#include "clients/gantt/critical_path.h"
#include "clients/gantt/path_stretches.h"
#include "proto/plan.pb.h"
#include "proto/timeline.pb.h"

namespace troupe {

struct Bar {
  // One span of the bar: a unit's.
  struct Piece {
    BarKind kind = BarKind::kOther;
    double start = 0;  // seconds
    double end = 0;
    bool critical = false;  // on the critical path
  };

  BarKind kind = BarKind::kOther;  // of its first piece
  double start = 0;
  double run = 0;  // until here it waits for other ranks
  double end = 0;
  std::string label;      // short: the micro-batch's number, or empty
  std::string title;      // "FORWARD units 3-5, micro-batch 1: 2.10 to 4.00 ms"
  int ahead = 0;          // > 0: work for this number of steps later
  int chunk = 0;          // number of the stage among those that the rank holds
  int meeting = -1;       // bars with the same number ran together
  bool critical = false;  // one of its pieces is
  std::vector<Piece> pieces;  // by start
};

struct Row {
  std::string lane;  // "compute"
  bool is_compute = false;
  std::vector<Bar> bars;  // by start
};

struct RankRows {
  int rank = 0;
  double bubble = 0;      // share of the step in which it does not compute
  std::vector<Row> rows;  // lanes that nothing uses left out
};

// Where the critical path changes from one rank to another.
struct Hop {
  // The place of a row: chart.ranks[rank].rows[row].
  struct End {
    int rank = 0;
    int row = 0;
    double at = 0;  // seconds
  };
  End from;
  End to;
};

struct Chart {
  std::string title;        // "measured, step 20"
  double seconds = 0;       // length of the axis
  double step_seconds = 0;  // of the rank that takes longest for its program
  double bubble = 0;        // of all ranks together
  std::vector<RankRows> ranks;  // ascending
  std::vector<Hop> hops;
  CriticalPath path;
  std::vector<PathStretch> stretches;  // of the path
  // What is in the picture, for its legend.
  std::vector<BarKind> kinds;
  int chunks_max = 0;  // stages of the rank that holds most
  bool waits = false;
  bool works_ahead = false;
};

struct ChartOptions {
  std::vector<Stage> stages;  // the plan's; without them, guessed from units
  bool merge_units = true;    // else a bar for each span
};

// A rank's step is from its first start to its last end; the chart's the
// longest of them, which is the time from step to step also where ranks are in
// different steps at once. Bubbles are shares of the chart's step.
Chart LayOut(const Timeline& timeline, const ChartOptions& options = {});

}  // namespace troupe

#endif  // TROUPE_CLIENTS_GANTT_CHART_H_
