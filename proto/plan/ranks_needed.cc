#include "proto/plan/ranks_needed.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/islands.h"
#include "proto/plan/plan_limits.h"
#include "proto/plan/sharing.h"
#include "proto/plan/strategies.h"

namespace troupe {

bool LeavesParallelismOpen(const JobSpec& job) {
  return job.parallelism().has_mode();
}

int RanksNeeded(const JobSpec& job) { return RanksNeeded(job.parallelism()); }

int RanksNeeded(const ParallelismSpec& given) {
  ParallelismSpec parallelism = given;
  AdoptFirstStrategy(parallelism);
  const int servers = std::clamp<int>(parallelism.servers(), 0, kRanksMax);
  std::vector<int> sizes = {
      IslandsOf(parallelism),
      parallelism.has_pipeline() ? parallelism.pipeline() : 1,
      (parallelism.has_data()
           ? std::clamp<int>(parallelism.data(), 1, kRanksMax)
           : 1) +
          servers};
  for (const RankField& field : FactorFields()) {
    sizes.push_back(RanksOf(parallelism, field.name));
  }
  int64_t ranks = 1;
  for (const int size : sizes) {
    ranks *= std::clamp<int64_t>(size, 1, kRanksMax);
    ranks = std::min<int64_t>(ranks, kRanksMax);
  }
  return static_cast<int>(ranks);
}

absl::Status CheckSizes(const ParallelismSpec& parallelism) {
  struct Size {
    std::string path;
    bool given = false;
    int64_t value = 1;
    int64_t max = 1;
  };
  std::vector<Size> sizes = {{"parallelism.data", parallelism.has_data(),
                              parallelism.data(), kDataMax}};
  for (const RankField& field : FactorFields()) {
    sizes.push_back({field.Path(), HasField(parallelism, field.name),
                     RanksOf(parallelism, field.name), field.max});
  }
  sizes.push_back({"parallelism.pipeline", parallelism.has_pipeline(),
                   parallelism.pipeline(), kPipelineMax});
  sizes.push_back({"parallelism.islands", parallelism.has_islands(),
                   parallelism.islands(), kIslandsMax});
  RETURN_IF_ERROR(CheckInteger("parallelism.servers", parallelism.servers(),
                               {.min = 0, .max = kDataMax}));
  const Size* largest = &sizes[0];
  int64_t ranks = 1;
  for (const Size& size : sizes) {
    if (!size.given) continue;
    RETURN_IF_ERROR(
        CheckInteger(size.path, size.value, {.min = 1, .max = size.max}));
    ranks *= size.value;
    if (size.value > largest->value) largest = &size;
  }
  const int64_t servers = parallelism.servers();
  const int64_t data = parallelism.has_data() ? parallelism.data() : 1;
  ranks = ranks / data * (data + servers);
  if (ranks <= kRanksMax) return absl::OkStatus();
  std::string product = absl::StrCat(largest->value);
  for (const Size& size : sizes) {
    if (&size == largest || size.value <= 1) continue;
    absl::StrAppend(&product, " x ", size.path, " ", size.value);
  }
  if (servers > 0) {
    absl::StrAppend(&product, " with parallelism.servers ", servers);
  }
  return FieldError(largest->path,
                    absl::StrCat(product, " = ", ranks, " ranks; at most ",
                                 kRanksMax, " are planned: use smaller sizes"));
}

}  // namespace troupe
