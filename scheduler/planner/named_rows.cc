#include "scheduler/planner/named_rows.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/plan/fields.h"
#include "proto/plan/ways.h"
#include "scheduler/collectives/collectives.h"

namespace troupe {
namespace {

constexpr char kAutoRow[] = "auto";

constexpr Collective kWithRows[] = {ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER,
                                    BROADCAST, ALL_TO_ALL};

}  // namespace

bool HasRows(Collective collective) {
  return std::count(std::begin(kWithRows), std::end(kWithRows),
                    WayCollective(collective)) > 0;
}

std::string RowFieldOf(Collective collective) {
  return absl::StrCat(
      "communication.",
      absl::AsciiStrToLower(Collective_Name(WayCollective(collective))));
}

std::string RowNamedFor(const CommunicationSpec& communication,
                        Collective collective) {
  const Collective of = WayCollective(collective);
  std::string name;
  if (of == ALL_REDUCE) name = communication.all_reduce();
  if (of == REDUCE_SCATTER) name = communication.reduce_scatter();
  if (of == ALL_GATHER) name = communication.all_gather();
  if (of == BROADCAST) name = communication.broadcast();
  if (of == ALL_TO_ALL) name = communication.all_to_all();
  return name == kAutoRow ? "" : name;
}

absl::Status CheckCommunication(const CommunicationSpec& communication) {
  for (const Collective collective : kWithRows) {
    const std::string name = RowNamedFor(communication, collective);
    if (name.empty()) continue;
    const auto row = FindCollectiveRow(name);
    if (row.ok()) continue;
    return FieldError(RowFieldOf(collective), row.status().message());
  }
  return absl::OkStatus();
}

}  // namespace troupe
