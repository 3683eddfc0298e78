#include "scheduler/planner/sizes_text.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/plan/islands.h"
#include "proto/plan/sharing.h"

namespace troupe {

std::string SizesText(const ParallelismSpec& parallelism) {
  std::vector<std::pair<std::string, int>> sizes = {
      {"parallelism.islands", IslandsOf(parallelism)},
      {"parallelism.pipeline", parallelism.pipeline()},
      {"parallelism.data", parallelism.data()}};
  for (const RankField& field : FactorFields()) {
    sizes.emplace_back(field.Path(), RanksOf(parallelism, field.name));
  }
  std::string text;
  for (const auto& [path, ranks] : sizes) {
    if (ranks < 2) continue;
    const bool first = text.empty();
    absl::StrAppend(&text, first ? "" : " x ", path, first ? ": " : " ", ranks);
  }
  if (text.empty()) text = "parallelism.data: 1";
  if (parallelism.servers() == 0) return text;
  return absl::StrCat(text, " with parallelism.servers ",
                      parallelism.servers());
}

}  // namespace troupe
