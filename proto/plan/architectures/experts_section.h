// The feed-forward part of a block whose tokens each go to a few of many
// experts (Shazeer et al., arXiv 1701.06538; Mixtral, arXiv 2401.04088):
//
//   y = sum over the chosen experts e of gate[e] down[e](silu(gate_p[e](x)) *
//       up[e](x))
//
// as ops: a router's logits in f32, ROUTE, DISPATCH, the experts' products, and
// COMBINE. No token is dropped.
#ifndef TROUPE_PROTO_PLAN_ARCHITECTURES_EXPERTS_SECTION_H_
#define TROUPE_PROTO_PLAN_ARCHITECTURES_EXPERTS_SECTION_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/plan/unit_builder.h"

namespace troupe {

struct ExpertsSection {
  std::string router;  // of `<router>.weight`, [experts, hidden]
  // Of each expert's `<name>.weight`; `*` stands for its number.
  std::string gate;
  std::string up;
  std::string down;
  int64_t experts = 0;
  int64_t choices = 0;
  int64_t intermediate = 0;
  bool renormalise = false;
  double init_std = 0;
};

// Appends the section; y, of x's shape.
int AppendExperts(const ExpertsSection& section, int x, UnitBuilder& unit);

// InvalidArgument, which names the field: fewer than one expert, more than
// kExpertsMax, more choices than experts.
inline constexpr int kExpertsMax = 4096;
absl::Status CheckExperts(const ModelSpec& model);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_ARCHITECTURES_EXPERTS_SECTION_H_
