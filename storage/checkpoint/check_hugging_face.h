// Whether the weights of a Hugging Face directory are those of the model that
// its config.json describes: what `troupe import` and `model: {hf: DIR}` both
// ask before anything is made of them.
#ifndef TROUPE_STORAGE_CHECKPOINT_CHECK_HUGGING_FACE_H_
#define TROUPE_STORAGE_CHECKPOINT_CHECK_HUGGING_FACE_H_

#include <vector>

#include "absl/status/status.h"
#include "storage/checkpoint/hugging_face_weights.h"
#include "storage/checkpoint/safetensors.h"

namespace troupe {

// `parameters`: names and shapes of all of the model's, parts as their own
// (HuggingFaceWeights::AddPart). Reads headers only, but for a projection that
// stands beside the token table to which it is tied: both are compared.
//
// NotFound or InvalidArgument, with the file and both facts, for a parameter
// that is missing or of another shape, a tensor that no parameter is, and a
// projection that is another than its table.
absl::Status CheckHuggingFaceWeights(
    const HuggingFaceWeights& weights,
    const std::vector<SafetensorsTensor>& parameters);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_CHECK_HUGGING_FACE_H_
