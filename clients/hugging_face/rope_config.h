// The rotary embedding in a config.json. transformers 5 keeps it in one object,
//
//   "rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, ...}
//
// and before it was "rope_theta" beside "rope_scaling": {"type" or "rope_type":
// ...}. Both are read and both are written: each version reads one of them.
// Where two keys say one thing, the versions differ in which of them counts, so
// keys that disagree are refused.
#ifndef TROUPE_CLIENTS_HUGGING_FACE_ROPE_CONFIG_H_
#define TROUPE_CLIENTS_HUGGING_FACE_ROPE_CONFIG_H_

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "clients/hugging_face/json_fields.h"
#include "proto/job.pb.h"

namespace troupe {

// Before transformers 5 a family had names of its own for some keys.
struct RopeKeys {
  const char* theta = "rope_theta";
  const char* part = "partial_rotary_factor";
  // Of each head that turns, where no key says so; nothing: all, and anything
  // else is refused.
  absl::optional<double> part_default = absl::nullopt;
};

// Sets rope_theta and rope_scaling, and partial_rotary_factor where the family
// has it. InvalidArgument for a rotation of a part of each head in another, a
// field of a wrong type, or two keys that disagree, with both; whether type and
// fields fit each other the planner checks.
absl::Status ReadRope(const JsonFields& config, const RopeKeys& keys,
                      ModelSpec& model);

// Also max_position_embeddings of a `dynamic` scaling: the length from which it
// stretches has no other key. REQUIRES a resolved model.
void WriteRope(const ModelSpec& model, const RopeKeys& keys,
               nlohmann::json& config);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_HUGGING_FACE_ROPE_CONFIG_H_
