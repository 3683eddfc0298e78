#include "proto/plan/axes.h"

namespace troupe {

std::vector<Axis> AxesOf(const ParallelismSpec& parallelism) {
  const auto size = [](bool given, int value) { return given ? value : 1; };
  std::vector<Axis> axes;
  const auto add = [&axes](const char* name, int size) {
    axes.emplace_back();
    axes.back().set_name(name);
    axes.back().set_size(size);
  };
  add("pipeline", size(parallelism.has_pipeline(), parallelism.pipeline()));
  add("data", size(parallelism.has_data(), parallelism.data()));
  if (parallelism.context() > 1) add("context", parallelism.context());
  if (parallelism.tensor() > 1) add("tensor", parallelism.tensor());
  return axes;
}

int SizeOfAxis(const ParallelismSpec& parallelism, absl::string_view name) {
  for (const Axis& axis : AxesOf(parallelism)) {
    if (axis.name() == name) return axis.size();
  }
  return 1;
}

}  // namespace troupe
