#include "proto/plan/lanes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace troupe {

std::string NameOfLane(const Lanes& lanes, int index) {
  const bool there = index >= 0 && index < lanes.size();
  return there ? lanes[index].name() : absl::StrCat("lane ", index);
}

int FindLane(const Lanes& lanes, absl::string_view name) {
  for (int i = 0; i < lanes.size(); ++i) {
    if (lanes[i].name() == name) return i;
  }
  return -1;
}

int UsualLane(const Lanes& lanes, Instruction::Kind kind) {
  for (int i = 0; i < lanes.size(); ++i) {
    const auto& runs = lanes[i].runs();
    if (std::count(runs.begin(), runs.end(), kind) > 0) return i;
  }
  return -1;
}

}  // namespace troupe
