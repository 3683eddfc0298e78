// The model types of Hugging Face that are architectures of ours, under the
// same names: how the network's fields stand in a config.json. One row each in
// families.cc. What would make it another network is refused with the key.
#ifndef TROUPE_CLIENTS_HUGGING_FACE_FAMILIES_H_
#define TROUPE_CLIENTS_HUGGING_FACE_FAMILIES_H_

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/status/status.h"
#include "clients/hugging_face/json_fields.h"
#include "proto/job.pb.h"

namespace troupe {

// What all have, under the names that a family gives them.
struct SizeKeys {
  const char* layers;
  const char* hidden;
  const char* heads;
  const char* positions;
  const char* intermediate;
};

struct HuggingFaceFamily {
  const char* model_type;    // ModelSpec.architecture
  const char* architecture;  // transformers' class
  const SizeKeys& keys;
  bool tied;  // where tie_word_embeddings is absent
  // What is the family's besides sizes. InvalidArgument with the key for
  // another network.
  absl::Status (*read)(const JsonFields& config, ModelSpec& model);
  // Of a resolved model.
  void (*write)(const ModelSpec& model, nlohmann::json& config);
};
const std::vector<HuggingFaceFamily>& HuggingFaceFamilies();

}  // namespace troupe

#endif  // TROUPE_CLIENTS_HUGGING_FACE_FAMILIES_H_
