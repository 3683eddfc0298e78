// Steps of a job by the sizes of its token files: of one with
// `training.epochs`, and of one that evaluates. The scheduler plans for a
// number of steps and does not see the files, so the number is found where the
// job is submitted.
#ifndef TROUPE_CLIENTS_CLI_JOB_EPOCHS_H_
#define TROUPE_CLIENTS_CLI_JOB_EPOCHS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace troupe {

// Sets training.steps where training.epochs is given, and clears that. An epoch
// has as many samples as all training files have windows of
// training.sequence_length; the last step of the last one is a full batch.
// InvalidArgument, beginning with the field's path, where steps are given as
// well, where the batch or the sequence length is missing, and where a token
// file cannot be read.
absl::Status ExpandEpochs(JobSpec& job);

// Sets training.steps of a job that evaluates, unless it is given: as many as
// have each window of data.validation in one; the last may have fewer.
// InvalidArgument, beginning with the field's path, where the batch or the
// sequence length is missing, and where the file cannot be read.
absl::Status CountEvaluationSteps(JobSpec& job);

// Windows of training.sequence_length in data.validation; the same errors.
absl::StatusOr<int64_t> EvaluationWindows(const JobSpec& job);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_JOB_EPOCHS_H_
