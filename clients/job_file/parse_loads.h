// How the experts of a job were loaded, as the status page's
// /api/v1/jobs/ID/experts tells (docs/experts.md, "Predictions").
#ifndef TROUPE_CLIENTS_JOB_FILE_PARSE_LOADS_H_
#define TROUPE_CLIENTS_JOB_FILE_PARSE_LOADS_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace troupe {

inline constexpr size_t kLoadBytesMax = size_t{16} << 20;

// Of each layer the mean over its points, by the steps that they stand for.
// InvalidArgument: what is wrong with the JSON, or nothing was measured.
absl::StatusOr<std::vector<MeasuredLoad>> ParseLoads(absl::string_view json);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_JOB_FILE_PARSE_LOADS_H_
