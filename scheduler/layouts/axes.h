// The mesh that a job asks for, from the rows of the table of layouts.
#ifndef TROUPE_SCHEDULER_LAYOUTS_AXES_H_
#define TROUPE_SCHEDULER_LAYOUTS_AXES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
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

// Of the mesh. "pipeline" and "data" are there always, the others where they
// have more than one place. On "data" are replicas: ranks of parallelism.data
// that share something are on another axis.
std::vector<Axis> AxesOf(const ParallelismSpec& parallelism);

// Those of one stage and one replica, without those of fields of data, named as
// if all units did what `parallelism` itself says.
std::vector<Axis> FactorsOf(const ParallelismSpec& parallelism);

// What a strategy calls the factor that is this axis of the job's mesh; other
// axes are called alike in all.
std::string FactorName(const ParallelismSpec& job,
                       const ParallelismSpec& strategy,
                       const std::string& axis);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_AXES_H_
