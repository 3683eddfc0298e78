// Groups and ways by the sizes and steps that tests name.
#ifndef TROUPE_TESTS_PROTO_PLAN_MADE_WAYS_H_
#define TROUPE_TESTS_PROTO_PLAN_MADE_WAYS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/plan.pb.h"

namespace troupe {

struct LevelSize {
  int size;
  int stride;
};
inline Group GroupWith(const std::vector<LevelSize>& levels) {
  Group group;
  group.set_name("data");
  for (const auto& [size, stride] : levels) {
    Group::Level& level = *group.add_levels();
    level.set_size(size);
    level.set_stride(stride);
    level.set_name(absl::StrCat("every ", stride));
  }
  return group;
}

struct StepOn {
  Collective collective;
  int level;
};
inline Group::Way& AddWay(Collective collective,
                          const std::vector<StepOn>& steps, Group& group,
                          int64_t bytes_min = 0) {
  Group::Way& way = *group.add_ways();
  way.set_collective(collective);
  way.set_row("tried");
  way.set_bytes_min(bytes_min);
  for (const StepOn& step : steps) {
    Group::Step& added = *way.add_steps();
    added.set_collective(step.collective);
    added.set_level(step.level);
  }
  return way;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_PROTO_PLAN_MADE_WAYS_H_
