// The ways in which the ranks of each stage could share a job: as data
// parallelism, by each row of scheduler/layouts that says what to try, and
// products of these. All train the same model on the same batches:
// training.global_batch_size, the pipeline and its schedule stay.
#ifndef TROUPE_SCHEDULER_PLANNER_WAYS_H_
#define TROUPE_SCHEDULER_PLANNER_WAYS_H_

#include <vector>

#include "proto/explanation.pb.h"
#include "proto/job.pb.h"

namespace troupe {

// The job as it is, then it and plain data parallelism with the other levels of
// ZeRO, then all others: those with one field first, then with two, then three,
// and those with a row that is tried last behind all these. ZeRO deals over all
// ranks that hold a unit alike, unless the job's zero_size is possible. The
// micro-batch is the job's, or the largest below it that a replica's batch is a
// multiple of.
//
// Not all of them can be planned: heads, or a batch, may not divide. REQUIRES
// that ResolveJob takes the job, which need not be resolved.
std::vector<JobSpec> WaysToShare(const JobSpec& job);

// Lowers the ranks of fields of data, such as parallelism.expert, to divisors
// that divide parallelism.data, too.
void FitFieldsOfData(JobSpec& way);

// Lowers training.micro_batch_size to the largest of which a replica's batch is
// a multiple, where there is one. REQUIRES the fields, and parallelism.data.
void FitMicroBatch(JobSpec& way);

// As many micro-batches on each replica, as the job says nothing of it.
void ClearMicroBatches(JobSpec& way);

// What `way` has otherwise than a job without any of the fields, and than `job`
// where that is training's. `way` is resolved.
WayFields FieldsOfWay(const JobSpec& way, const JobSpec& job);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_WAYS_H_
