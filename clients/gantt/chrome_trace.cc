#include "clients/gantt/chrome_trace.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

Json NameEvent(const char* what, int process, int thread,
               const std::string& name) {
  return {{"ph", "M"},
          {"name", what},
          {"pid", process},
          {"tid", thread},
          {"args", {{"name", name}}}};
}

Json BarEvent(const Bar& bar, int process, int thread) {
  return {{"ph", "X"},
          {"name", bar.title.substr(0, bar.title.find(':'))},
          {"cat", StyleOf(bar.kind).name},
          {"pid", process},
          {"tid", thread},
          {"ts", bar.start * 1e6},
          {"dur", (bar.end - bar.start) * 1e6}};
}

}  // namespace

std::string ChromeTrace(const std::vector<Chart>& charts) {
  Json events = Json::array();
  int process = 0;
  for (const Chart& chart : charts) {
    int thread = 0;
    for (const Row& row : chart.rows) {
      if (row.first_of_rank) {
        ++process;
        thread = 0;
        events.push_back(
            NameEvent("process_name", process, 0,
                      absl::StrCat("rank ", row.rank, ", ", chart.title)));
      }
      ++thread;
      events.push_back(NameEvent("thread_name", process, thread, row.lane));
      for (const Bar& bar : row.bars) {
        events.push_back(BarEvent(bar, process, thread));
      }
    }
  }
  return Json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}
             .dump(1) +
         "\n";
}

}  // namespace troupe
