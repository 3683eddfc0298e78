// `training.lora.adapter: DIR` in a job: what the adapter_config.json in it
// says is filled in where the job is submitted, as for model.hf
// (expand_model.h).
#ifndef TROUPE_CLIENTS_HUGGING_FACE_EXPAND_ADAPTER_H_
#define TROUPE_CLIENTS_HUGGING_FACE_EXPAND_ADAPTER_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace troupe {

// Nothing where the job has no such field. Rank, alpha, rank_stabilized,
// dropout and modules are the adapter's where the job leaves them out.
// InvalidArgument, beginning with the field's path, for a directory that cannot
// be read, and a number of the job that is another than the adapter's, but for
// dropout, which may change.
absl::Status ExpandAdapter(TrainingSpec& training);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_HUGGING_FACE_EXPAND_ADAPTER_H_
