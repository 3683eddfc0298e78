// Charts as one SVG picture that stands alone: a row for each rank and lane,
// bars coloured by kind with their micro-batch's number, a time axis, a legend.
// With two charts, predicted and measured, both have the same scale.
#ifndef TROUPE_CLIENTS_GANTT_SVG_H_
#define TROUPE_CLIENTS_GANTT_SVG_H_

#include <string>
#include <vector>

#include "clients/gantt/chart.h"

namespace troupe {

std::string ChartSvg(const std::vector<Chart>& charts);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_GANTT_SVG_H_
