// Whether the files that a job names are on this machine, and fit the job's
// model and one another: what a rank would find out when it starts, before the
// job waits in a queue for its turn. Reads headers and manifests, no weights and
// no tokens, and writes nothing.
#ifndef TROUPE_WORKER_RANK_CHECK_JOB_FILES_H_
#define TROUPE_WORKER_RANK_CHECK_JOB_FILES_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace troupe {

// Looks at
//   * data.tokens, data.sources and data.validation: each is a token file, its
//     vocabulary is no larger than the model's, all have one tokenizer, and
//     there are enough tokens for a sequence;
//   * data.sample: the tokenizer of the token files makes tokens of its prompt,
//     and not too many;
//   * checkpoint.resume: there is a checkpoint, of this model, trained on these
//     tokens (unless data.changed), and not past training.steps. `auto` may
//     find none;
//   * metrics.directory and metrics.tensorboard: files can be made there;
//   * model.hf, where training begins with its weights: it has them, in the
//     shapes of the model;
//   * training.lora.adapter, where training begins with its weights: its config
//     and its tensors are those of the job's adapters.
//
// InvalidArgument, beginning with the field's path, says what is wrong and what
// to do. OK also where a disk does not answer well (an I/O error, too many open
// files): that is no verdict on the job. Of a job that is not resolved, only
// that token files exist and hold no larger vocabulary is looked at. REQUIRES
// paths that are allowed here (CheckJobPaths).
absl::Status CheckFilesOf(const JobSpec& job);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_CHECK_JOB_FILES_H_
