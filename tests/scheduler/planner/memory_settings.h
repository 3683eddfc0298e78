// What may be chosen of a job's `memory`, and workers with so much room, for
// the tests of what fits.
#ifndef TROUPE_TESTS_SCHEDULER_PLANNER_MEMORY_SETTINGS_H_
#define TROUPE_TESTS_SCHEDULER_PLANNER_MEMORY_SETTINGS_H_

#include <cstdint>
#include <vector>

#include "proto/cluster.pb.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

struct Setting {
  const char* recompute = "none";
  const char* optimizer = "device";
  const char* parameters = "device";
  const char* gradients = "device";
  const char* activations = "device";

  int changes() const;
};

MemorySpec SpecOf(const Setting& setting);
std::vector<Setting> AllSettings();

// 12 blocks, four micro-batches, one rank.
JobSpec Job(const MemorySpec& memory);
JobSpec AutoJob();  // nothing of `memory` is given

inline constexpr int64_t kPlenty = int64_t{1} << 30;

struct Room {
  int64_t device = kPlenty;
  int64_t host = kPlenty;
  int64_t nvme = kPlenty;
};

bool FitsIn(const Room& need, const Room& room);
// Of the rank that needs most, by tier.
Room NeedOf(const Plan& plan);
Room NeedOf(const Setting& setting);

std::vector<WorkerDescription> Workers(const Room& room, int count = 1);

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_PLANNER_MEMORY_SETTINGS_H_
