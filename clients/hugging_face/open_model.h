// A Hugging Face directory, opened and checked: its config and its weights fit
// each other. `troupe import` and jobs with `model: {hf: DIR}` both come in
// this way, so what one refuses the other does.
#ifndef TROUPE_CLIENTS_HUGGING_FACE_OPEN_MODEL_H_
#define TROUPE_CLIENTS_HUGGING_FACE_OPEN_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "proto/unit.pb.h"
#include "storage/checkpoint/check_hugging_face.h"
#include "storage/checkpoint/hugging_face_weights.h"
#include "storage/checkpoint/safetensors.h"

namespace troupe {

struct HuggingFaceModel {
  ModelSpec model;  // resolved
  std::vector<Unit> units;
  // Of all parameters, in F32; `weights` finds them under these names.
  std::vector<SafetensorsTensor> parameters;
  HuggingFaceWeights weights;
  // Tensors of layers behind the last one, for multi-token prediction.
  std::vector<std::string> left_out;
};

// Reads config and headers, with kTables also tied tables. NotFound where there
// are no weights; InvalidArgument or DataLoss, with the file, where config and
// weights do not fit each other: a tensor missing, of another shape, twice, or
// one too many.
absl::StatusOr<HuggingFaceModel> OpenHuggingFaceModel(
    const std::string& directory, HuggingFaceCheck check);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_HUGGING_FACE_OPEN_MODEL_H_
