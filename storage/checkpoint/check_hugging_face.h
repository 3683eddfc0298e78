// Whether the weights of a Hugging Face directory are those of the model that
// its config.json describes. `troupe import`, `troupe submit` and every rank
// that begins with `model: {hf: DIR}` open them here, so what one of them
// refuses the others refuse.
#ifndef TROUPE_STORAGE_CHECKPOINT_CHECK_HUGGING_FACE_H_
#define TROUPE_STORAGE_CHECKPOINT_CHECK_HUGGING_FACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "storage/checkpoint/hugging_face_weights.h"

namespace troupe {

struct HuggingFaceParameter {
  std::string name;
  std::vector<int64_t> shape;  // of the whole parameter
  // Set where the files keep it within a tensor of another name.
  absl::optional<PartOfTensor> part;
  // Or where they keep each index of its first dim as a tensor of its own: the
  // name, with `*` for the index.
  std::string each;
  // Tensors that may be there, too, and are the same.
  std::vector<std::string> copies = {};
};

// What the directory must hold.
struct HuggingFaceContents {
  std::vector<HuggingFaceParameter> parameters;  // all of the model's
  std::vector<std::string> tied;  // token tables that are the projection, too
  // Tensors `model.layers.<n>.` with this n or a larger one may be there, too,
  // and are left out.
  absl::optional<int> layers_behind = absl::nullopt;
};

// Those of the directory, ascending.
std::vector<std::string> TensorsLeftOut(const HuggingFaceWeights& weights,
                                        const HuggingFaceContents& contents);

enum class HuggingFaceCheck {
  kHeaders,  // names and shapes; reads no weights
  // Also compares, element by element, a projection that is stored beside the
  // token table to which it is tied, and copies.
  kTables,
};

// Opens the weights so that each parameter is found under its name. The errors
// of HuggingFaceWeights::Open; NotFound or InvalidArgument, with the file and
// both facts, for a parameter that is missing or of another shape, a tensor
// that belongs to no parameter, a projection that differs from its table, and a
// copy that differs from its parameter.
absl::StatusOr<HuggingFaceWeights> OpenHuggingFaceWeights(
    const std::string& directory, const HuggingFaceContents& contents,
    HuggingFaceCheck check);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_CHECK_HUGGING_FACE_H_
