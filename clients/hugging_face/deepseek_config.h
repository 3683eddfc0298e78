// DeepSeek-V3's config.json (HuggingFaceFamily::read and write).
#ifndef TROUPE_CLIENTS_HUGGING_FACE_DEEPSEEK_CONFIG_H_
#define TROUPE_CLIENTS_HUGGING_FACE_DEEPSEEK_CONFIG_H_

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "clients/hugging_face/json_fields.h"
#include "proto/job.pb.h"

namespace troupe {

// InvalidArgument with the key for scores, choices or layers that the
// architecture does not have. A q_lora_rank of null is 0 in the model.
absl::Status ReadDeepseekV3(const JsonFields& config, ModelSpec& model);

// Of a resolved model. Without layers for multi-token prediction.
void WriteDeepseekV3(const ModelSpec& model, nlohmann::json& config);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_HUGGING_FACE_DEEPSEEK_CONFIG_H_
