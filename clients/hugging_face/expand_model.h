// `model: {hf: DIR}` in a job: all that a model's other fields say stands in
// DIR/config.json. The scheduler needs the sizes, and may run where DIR is not
// to be seen, so they are filled in where the job is submitted.
#ifndef TROUPE_CLIENTS_HUGGING_FACE_EXPAND_MODEL_H_
#define TROUPE_CLIENTS_HUGGING_FACE_EXPAND_MODEL_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace troupe {

// What the job does with the directory's weights.
enum class HuggingFaceWeightsUse {
  kTrained,  // they must be there and fit the config
  kIfThere,  // a plan: they may be absent; only their headers are read
  kUnused,   // the job begins with a checkpoint's, or the worker decides
};

// Nothing where the model has no `hf`. InvalidArgument, beginning with the
// field's path, for another field beside it, a directory that cannot be read,
// or weights that OpenHuggingFaceModel refuses.
absl::Status ExpandHuggingFaceModel(HuggingFaceWeightsUse use,
                                    ModelSpec& model);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_HUGGING_FACE_EXPAND_MODEL_H_
