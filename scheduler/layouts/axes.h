// The mesh that a job asks for, from the rows of the table of layouts.
#ifndef TROUPE_SCHEDULER_LAYOUTS_AXES_H_
#define TROUPE_SCHEDULER_LAYOUTS_AXES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "scheduler/layouts/layouts.h"

namespace troupe {

// An axis on which ranks share units, of more than one place.
struct SharedAxis {
  const RowAxis* row = nullptr;
  int size = 1;
  SizeField field;

  std::string name() const { return std::string(row->name); }
};

// The axes of a row, outermost first.
std::vector<SharedAxis> AxesOfRow(const LayoutRow& row,
                                  const ParallelismSpec& parallelism);

// Of all rows that a job uses, in the mesh's order: neighbours on the last one
// share a host. Needs no resolved job.
std::vector<SharedAxis> SharedAxes(const ParallelismSpec& parallelism);

// Of the mesh. "pipeline" and "data" are there always, "islands" before them
// and the others behind them where they have more than one place. On "data" are
// replicas, and behind them servers of their own (proto/plan/served.h): ranks
// of parallelism.data that share something are on another axis.
std::vector<Axis> AxesOf(const ParallelismSpec& parallelism);

// Those of one stage and one replica, without those of fields of data, named as
// if all units did what `parallelism` itself says.
std::vector<Axis> FactorsOf(const ParallelismSpec& parallelism);

// A factor of a strategy, and the axes of the job's mesh that it is: one, or,
// of a row that may span several (RowAxis.may_span), neighbours, outermost
// first.
struct FactorSpan {
  std::string name;  // as the strategy calls it
  int size = 1;
  std::vector<Axis> axes;
};
// Of all factors of a strategy, over those of the job. nullopt: ranks are not
// divided so that they fit.
absl::optional<std::vector<FactorSpan>> SpansOf(
    const ParallelismSpec& strategy, const std::vector<Axis>& factors);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_AXES_H_
