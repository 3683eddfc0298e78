// The sizes of a job in words.
#ifndef TROUPE_SCHEDULER_PLANNER_SIZES_TEXT_H_
#define TROUPE_SCHEDULER_PLANNER_SIZES_TEXT_H_

#include <string>

#include "proto/job.pb.h"

namespace troupe {

// "parallelism.data: 4", "parallelism.pipeline: 2 x parallelism.data 4".
std::string SizesText(const ParallelismSpec& parallelism);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_SIZES_TEXT_H_
