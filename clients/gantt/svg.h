// Charts as one SVG picture that stands alone: for each rank a row of what it
// computes and thinner ones of its other lanes, bars coloured by kind with
// their micro-batch's number where there is room, each rank's bubble beside its
// row, the critical path outlined, a time axis, a legend. Titles, which a
// browser shows under the pointer, say everything. With two charts, predicted
// and measured, both have the same scale. docs/gantt.md tells how to read it.
#ifndef TROUPE_CLIENTS_GANTT_SVG_H_
#define TROUPE_CLIENTS_GANTT_SVG_H_

#include <string>
#include <vector>

#include "clients/gantt/chart.h"

namespace troupe {

std::string ChartSvg(const std::vector<Chart>& charts);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_GANTT_SVG_H_
