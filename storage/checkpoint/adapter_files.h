// An adapter as PEFT keeps it (https://github.com/huggingface/peft,
// LoraConfig): a directory with adapter_config.json and
// adapter_model.safetensors, whose tensors are called
// "base_model.model.<layer>.lora_A.weight" and
// "....lora_B.weight".
#ifndef TROUPE_STORAGE_CHECKPOINT_ADAPTER_FILES_H_
#define TROUPE_STORAGE_CHECKPOINT_ADAPTER_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/checkpoint/check_hugging_face.h"
#include "storage/checkpoint/hugging_face_weights.h"

namespace troupe {

inline constexpr char kAdapterConfigFile[] = "adapter_config.json";
inline constexpr char kAdapterWeightsFile[] = "adapter_model.safetensors";
// What names in files have in front of those of the model.
inline constexpr char kAdapterPrefix[] = "base_model.model.";

// In brackets the keys of adapter_config.json.
struct AdapterConfig {
  int rank = 0;                  // [r]
  double alpha = 0;              // [lora_alpha]
  double dropout = 0;            // [lora_dropout]
  bool rank_stabilized = false;  // [use_rslora]
  // [target_modules] Names of layers, or their last parts. Empty where they are
  // a regular expression, or others leave some of them out: LayersOf has them.
  std::vector<std::string> modules;
};

// NotFound where there is none. InvalidArgument, with the file and the key, for
// text that is no such file, or an adapter that is more than A and B of one
// rank: use_dora, biases, patterns of ranks, modules that are saved whole.
absl::StatusOr<AdapterConfig> ReadAdapterConfig(const std::string& directory);

// The layers that the weights of the directory are of, in their order as text.
// Errors as OpenAdapterWeights.
absl::StatusOr<std::vector<std::string>> LayersOfAdapter(
    const std::string& directory);

// Opens the weights so that each parameter, "<layer>.lora_A.weight", is found
// under its name. NotFound or InvalidArgument, with the file and both facts,
// for a parameter that is missing or of another shape, and a tensor that
// belongs to no parameter. The errors of HuggingFaceWeights::OpenFile.
absl::StatusOr<HuggingFaceWeights> OpenAdapterWeights(
    const std::string& directory,
    const std::vector<HuggingFaceParameter>& parameters);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_ADAPTER_FILES_H_
