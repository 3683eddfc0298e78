// training.lora (LoRA, arXiv 2106.09685): which linear layers have an adapter,
// and what its weights are called. UnitBuilder::Linear appends adapters, the
// same for every architecture; they follow from the job alone.
#ifndef TROUPE_PROTO_PLAN_LORA_H_
#define TROUPE_PROTO_PLAN_LORA_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace troupe {

// In LoraSpec.modules: all linear layers that can have one (PEFT's name).
inline constexpr char kAllLinear[] = "all-linear";

// What follows the name of a layer in the names of its adapter's weights.
inline constexpr char kLoraDown[] = ".lora_A.weight";  // [rank, in]
inline constexpr char kLoraUp[] = ".lora_B.weight";    // [out, rank]

// Whether one of `modules` names a layer: as kAllLinear, by the whole name, by
// its last parts behind a dot ("q_proj", "self_attn.q_proj"), or by a pattern
// of the whole name (proto/base/glob.h).
bool LoraNames(const std::string& module, absl::string_view layer);
bool HasAdapter(const LoraSpec& lora, absl::string_view layer);

// What the product of both weights is multiplied by. REQUIRES a resolved one.
double LoraScale(const LoraSpec& lora);

// What the files of an adapter say of it.
struct LoraNumbers {
  int rank = 0;
  double alpha = 0;
  bool rank_stabilized = false;
};

// InvalidArgument "training.lora.rank: ..." with both, for a field that is set
// and says something else than the files of training.lora.adapter.
absl::Status CheckSameLora(const LoraSpec& lora, const LoraNumbers& of_files);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_LORA_H_
