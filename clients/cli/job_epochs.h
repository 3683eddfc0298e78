// `training.epochs` in a job: steps, by the sizes of its token files. The
// scheduler plans for a number of steps and does not see the files, so the
// number is found where the job is submitted.
#ifndef TROUPE_CLIENTS_CLI_JOB_EPOCHS_H_
#define TROUPE_CLIENTS_CLI_JOB_EPOCHS_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace troupe {

// Sets training.steps where training.epochs is given, and clears that. An epoch
// has as many samples as all training files have windows of
// training.sequence_length; the last step of the last one is a full batch.
// InvalidArgument, beginning with the field's path, where steps are given as
// well, where the batch or the sequence length is missing, and where a token
// file cannot be read.
absl::Status ExpandEpochs(JobSpec& job);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_JOB_EPOCHS_H_
