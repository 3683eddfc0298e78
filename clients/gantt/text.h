// Charts as text, for a terminal:
//
//   predicted: step 41.20 ms, bubble 27.3%
//   rank 0  compute      F0FFF1FF.......I0IIW0II1IW1O        27.3%
//           activations  ---T...-T...
//   critical path        FFFFTFFFTIIIWWWW...
//         on rank        000001111100000
//
// and below it the stretches of the critical path: which ranks, what and how
// long.
#ifndef TROUPE_CLIENTS_GANTT_TEXT_H_
#define TROUPE_CLIENTS_GANTT_TEXT_H_

#include <string>
#include <vector>

#include "clients/gantt/chart.h"

namespace troupe {

// One chart under the other, on one scale, `width` columns wide (at least 60).
// Each column shows the kind that fills most of it: '.' where nothing runs, '-'
// where the rank waits for others. Where there is room a bar begins with its
// letter and micro-batch. Of two charts the last line says how the first, the
// measured one, compares with the second.
std::string ChartText(const std::vector<Chart>& charts, int width);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_GANTT_TEXT_H_
