// The fields of a job that say how ranks share units: their defaults and what
// they may be, from the rows of the table of layouts.
#ifndef TROUPE_SCHEDULER_LAYOUTS_RESOLVE_ROWS_H_
#define TROUPE_SCHEDULER_LAYOUTS_RESOLVE_ROWS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "scheduler/layouts/layouts.h"

namespace troupe {

// Fills in what is not given. InvalidArgument, beginning with the path of a
// field: a method that does not exist, a method or a row's field where there is
// one rank, a field of another row, numbers of ranks that the row does not
// take. REQUIRES CheckSizes. Not of fields of data.
absl::Status ResolveRows(ParallelismSpec& parallelism);
// The same of these. REQUIRES parallelism.data.
absl::Status ResolveRowsOfData(ParallelismSpec& parallelism);

// Leaves nothing said of how the ranks of a field share units but how many they
// are.
void ClearMethod(const std::string& field, ParallelismSpec& parallelism);

// The fields of all rows of a field, each once.
std::vector<std::string> OwnFieldsOf(const std::string& field);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_RESOLVE_ROWS_H_
