// Charts in the trace event format of Chrome and Perfetto (ui.perfetto.dev,
// chrome://tracing): a process for each chart and rank, a thread for each lane,
// an arrow from each SEND to its RECV.
#ifndef TROUPE_CLIENTS_GANTT_CHROME_TRACE_H_
#define TROUPE_CLIENTS_GANTT_CHROME_TRACE_H_

#include <string>
#include <vector>

#include "clients/gantt/chart.h"

namespace troupe {

// One JSON object; times in microseconds. Charts laid out with merge_units
// false have an event for each span.
std::string ChromeTrace(const std::vector<Chart>& charts);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_GANTT_CHROME_TRACE_H_
