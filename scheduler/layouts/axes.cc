#include "scheduler/layouts/axes.h"

#include "proto/base/check.h"
#include "proto/plan/islands.h"
#include "proto/plan/mesh.h"
#include "proto/plan/sharing.h"
#include "scheduler/layouts/replicas.h"

namespace troupe {
namespace {

Axis AxisOf(const std::string& name, int size) {
  Axis axis;
  axis.set_name(name);
  axis.set_size(size);
  return axis;
}

std::vector<AxisExtent> SizesOf(const LayoutRow& row,
                                const ParallelismSpec& parallelism) {
  if (row.sizes != nullptr) return row.sizes(parallelism);
  const std::string field(row.field);
  const int ranks = RanksOf(parallelism, field);
  return {{.size = ranks,
           .field = {.name = "parallelism." + field, .value = ranks}}};
}

std::vector<SharedAxis> SharedAxesOf(const std::vector<RankField>& fields,
                                     const ParallelismSpec& parallelism) {
  std::vector<SharedAxis> axes;
  for (const RankField& field : fields) {
    if (RanksOf(parallelism, field.name) < 2) continue;
    for (SharedAxis& axis :
         AxesOfRow(RowOf(parallelism, field.name), parallelism)) {
      axes.push_back(std::move(axis));
    }
  }
  return axes;
}

}  // namespace

std::vector<SharedAxis> AxesOfRow(const LayoutRow& row,
                                  const ParallelismSpec& parallelism) {
  const std::vector<AxisExtent> sizes = SizesOf(row, parallelism);
  CHECK_EQ(sizes.size(), row.axes.size()) << row.field << " " << row.method;
  std::vector<SharedAxis> axes;
  for (size_t a = 0; a < sizes.size(); ++a) {
    if (sizes[a].size < 2) continue;
    axes.push_back({&row.axes[a], sizes[a].size, sizes[a].field});
  }
  return axes;
}

std::vector<SharedAxis> SharedAxes(const ParallelismSpec& parallelism) {
  return SharedAxesOf(RankFields(), parallelism);
}

std::vector<Axis> AxesOf(const ParallelismSpec& parallelism) {
  std::vector<Axis> axes;
  if (const int islands = IslandsOf(parallelism); islands > 1) {
    axes.push_back(AxisOf(kIslandAxis, islands));
  }
  axes.push_back(AxisOf(
      kPipelineAxis, parallelism.has_pipeline() ? parallelism.pipeline() : 1));
  axes.push_back(
      AxisOf(kReplicaAxis, ReplicasOf(parallelism) + parallelism.servers()));
  for (const SharedAxis& axis : SharedAxes(parallelism)) {
    axes.push_back(AxisOf(axis.name(), axis.size));
  }
  return axes;
}

std::vector<Axis> FactorsOf(const ParallelismSpec& parallelism) {
  std::vector<Axis> factors;
  for (const SharedAxis& axis : SharedAxesOf(FactorFields(), parallelism)) {
    factors.push_back(AxisOf(axis.name(), axis.size));
  }
  return factors;
}

absl::optional<std::vector<FactorSpan>> SpansOf(
    const ParallelismSpec& strategy, const std::vector<Axis>& factors) {
  std::vector<FactorSpan> spans;
  size_t next = 0;
  for (const SharedAxis& own : SharedAxesOf(FactorFields(), strategy)) {
    FactorSpan& span =
        spans.emplace_back(FactorSpan{.name = own.name(), .size = own.size});
    int size = 1;
    while (size < own.size && next < factors.size()) {
      size *= factors[next].size();
      span.axes.push_back(factors[next++]);
    }
    const bool fits = span.axes.size() == 1 || own.row->may_span;
    if (size != own.size || !fits) return absl::nullopt;
  }
  if (next != factors.size()) return absl::nullopt;
  return spans;
}

}  // namespace troupe
