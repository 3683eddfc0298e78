// How many experts a layer has in a config.json: each family has a key of its
// own, and transformers 5 one name for all.
#ifndef TROUPE_CLIENTS_HUGGING_FACE_EXPERTS_CONFIG_H_
#define TROUPE_CLIENTS_HUGGING_FACE_EXPERTS_CONFIG_H_

#include "absl/status/statusor.h"
#include "clients/hugging_face/json_fields.h"

namespace troupe {

// Of `key` or num_local_experts; `value_default` where neither is there.
// InvalidArgument where they disagree.
absl::StatusOr<int> ReadExperts(const JsonFields& config, const char* key,
                                int value_default);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_HUGGING_FACE_EXPERTS_CONFIG_H_
