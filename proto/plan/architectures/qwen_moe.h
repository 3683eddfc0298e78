// What Qwen's mixtures of experts share: which layers have experts, their
// tensors' names, and fields with their checks.
#ifndef TROUPE_PROTO_PLAN_ARCHITECTURES_QWEN_MOE_H_
#define TROUPE_PROTO_PLAN_ARCHITECTURES_QWEN_MOE_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "proto/job.pb.h"
#include "proto/plan/architectures/experts_section.h"

namespace troupe {

// Nothing for a layer with an ordinary MLP.
absl::optional<ExpertsSection> QwenExpertsOf(const ModelSpec& model,
                                             int64_t layer);

// The family's fields, those of these mixtures, then a member's own.
std::vector<std::string> QwenMoeFields(
    std::initializer_list<const char*> own = {});

// InvalidArgument as Architecture::check, of the fields of both.
absl::Status CheckQwenMoe(const ModelSpec& model);

struct QwenMoeDefaults {
  int experts = 0;
  int choices = 0;
  int intermediate = 0;  // of an expert
};
// Fills the defaults of all of them, and checks.
absl::Status ResolveQwenMoe(const QwenMoeDefaults& defaults, ModelSpec& model);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_ARCHITECTURES_QWEN_MOE_H_
