// Charts as text, for a terminal:
//
//   measured, step 20                                              0 .. 41.2 ms
//   rank 0  compute     FFFFFFFFFIIIIIWWWWWIIIIWWWW............OOOO
//           collective  ...................RRRRRRRRRRRRRRRRRRR.....
#ifndef TROUPE_CLIENTS_GANTT_TEXT_H_
#define TROUPE_CLIENTS_GANTT_TEXT_H_

#include <string>
#include <vector>

#include "clients/gantt/chart.h"

namespace troupe {

// One chart under the other, on one scale, `width` columns wide (at least 40).
// Each column shows the kind that fills most of it, '.' where nothing runs.
std::string ChartText(const std::vector<Chart>& charts, int width);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_GANTT_TEXT_H_
