#include "scheduler/planner/write_ways.h"

#include <map>
#include <utility>

namespace troupe {
namespace {

// Whatever size they begin with.
bool GoAlike(Group::Way a, Group::Way b) {
  a.clear_bytes_min();
  b.clear_bytes_min();
  return a.SerializeAsString() == b.SerializeAsString();
}

void LeaveOutUnused(Group& group) {
  std::vector<Group::Level> levels(group.levels().begin(),
                                   group.levels().end());
  std::map<int, int> kept;  // by what they were
  group.clear_levels();
  for (Group::Way& way : *group.mutable_ways()) {
    for (Group::Step& step : *way.mutable_steps()) {
      const auto [found, is_new] =
          kept.try_emplace(step.level(), group.levels_size());
      if (is_new) *group.add_levels() = levels[step.level()];
      step.set_level(found->second);
    }
  }
  if (group.levels().empty()) group.clear_ways();
}

}  // namespace

void WriteWays(const std::vector<ChosenWay>& chosen, Group& group) {
  const ChosenWay* before = nullptr;
  for (const ChosenWay& one : chosen) {
    if (before != nullptr && before->way.collective() != one.way.collective()) {
      before = nullptr;
    }
    Group::Way way = one.way;
    int64_t bytes_min = 0;
    if (before != nullptr) {
      bytes_min = before->bytes + (one.bytes - before->bytes + 1) / 2;
    }
    way.set_bytes_min(bytes_min);
    const bool first = before == nullptr;
    // Of one size there may be two, of scalars or of narrow numbers: those that
    // are flat come first or last, and the last holds.
    before = &one;
    const Group::Way* const last =
        first || group.ways().empty() ||
                group.ways().rbegin()->collective() != way.collective()
            ? nullptr
            : &*group.ways().rbegin();
    if (last == nullptr ? way.steps().empty() : GoAlike(*last, way)) continue;
    if (last != nullptr && last->bytes_min() == bytes_min) {
      group.mutable_ways()->RemoveLast();
    }
    *group.add_ways() = std::move(way);
  }
  LeaveOutUnused(group);
}

}  // namespace troupe
