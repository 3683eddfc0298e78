#include "clients/gantt/chrome_trace.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

// Where an event stands.
struct Track {
  int process = 0;
  int thread = 0;
};

Json EventAt(const char* phase, const std::string& name, const Track& track) {
  return {{"ph", phase},
          {"name", name},
          {"pid", track.process},
          {"tid", track.thread}};
}

Json NameEvent(const char* what, const std::string& name, const Track& track) {
  Json event = EventAt("M", what, track);
  event["args"] = {{"name", name}};
  return event;
}

// Viewers list processes by their number unless told otherwise.
Json OrderEvent(const char* what, int index, const Track& track) {
  Json event = EventAt("M", what, track);
  event["args"] = {{"sort_index", index}};
  return event;
}

Json BarEvent(const Bar& bar, const Track& track) {
  Json event = EventAt("X", bar.title.substr(0, bar.title.find(':')), track);
  event["cat"] = NameOf(bar.kind).name;
  event["ts"] = bar.start * 1e6;
  event["dur"] = (bar.end - bar.start) * 1e6;
  event["args"] = {{"waits_us", (bar.run - bar.start) * 1e6},
                   {"critical", bar.critical}};
  return event;
}

// An arrow begins and ends within bars, when the transfer does.
Json FlowEvent(const Bar& bar, int first_flow, const Track& track) {
  const bool sends = absl::StartsWith(bar.title, "SEND");
  Json event = EventAt(sends ? "s" : "f", "transfer", track);
  event["cat"] = "transfer";
  event["id"] = first_flow + bar.meeting;
  event["ts"] = (sends ? bar.run : bar.end) * 1e6;
  if (!sends) event["bp"] = "e";
  return event;
}

}  // namespace

std::string ChromeTrace(const std::vector<Chart>& charts) {
  Json events = Json::array();
  Track track;
  int first_flow = 0;  // of the chart: each numbers its meetings from 0
  for (const Chart& chart : charts) {
    int meetings = 0;
    for (const RankRows& rank : chart.ranks) {
      ++track.process;
      track.thread = 0;
      events.push_back(NameEvent(
          "process_name", absl::StrCat("rank ", rank.rank, ", ", chart.title),
          track));
      events.push_back(OrderEvent("process_sort_index", track.process, track));
      for (const Row& row : rank.rows) {
        ++track.thread;
        events.push_back(NameEvent("thread_name", row.lane, track));
        events.push_back(OrderEvent("thread_sort_index", track.thread, track));
        for (const Bar& bar : row.bars) {
          events.push_back(BarEvent(bar, track));
          meetings = std::max(meetings, bar.meeting + 1);
          if (bar.kind == BarKind::kTransfer && bar.meeting >= 0) {
            events.push_back(FlowEvent(bar, first_flow, track));
          }
        }
      }
    }
    first_flow += meetings;
  }
  return Json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}
             .dump(1) +
         "\n";
}

}  // namespace troupe
