// The feed-forward part of a block whose tokens each go to a few of many
// experts (Shazeer et al., arXiv 1701.06538; Mixtral, arXiv 2401.04088):
//
//   y = sum over the chosen experts e of gate[e] down[e](silu(gate_p[e](x)) *
//       up[e](x))
//
// or, where experts have no gates within, down[e](gelu(up[e](x))),
//
// as ops: a router's logits in f32, ROUTE, DISPATCH, the experts' products, and
// COMBINE. What model.experts asks for comes with them: losses of the router, a
// bias in the choice, room of experts.
#ifndef TROUPE_PROTO_PLAN_ARCHITECTURES_EXPERTS_SECTION_H_
#define TROUPE_PROTO_PLAN_ARCHITECTURES_EXPERTS_SECTION_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "proto/job.pb.h"
#include "proto/plan/unit_builder.h"

namespace troupe {

struct ExpertsSection {
  std::string router;  // of `<router>.weight`, [experts, hidden]
  // Of each expert's `<name>.weight`; `*` stands for its number.
  std::string gate;  // empty: there is none, and GELU behind `up`
  std::string up;
  std::string down;
  int64_t experts = 0;
  int64_t choices = 0;
  int64_t intermediate = 0;
  bool renormalise = false;
  bool sigmoid = false;  // scores; else softmax
  double scale = 1;      // of gates
  // Blocks of neighbouring experts, and how many of them, the best, are used.
  int groups = 1;
  int groups_used = 1;
  // The model itself has a bias in the choice, whatever keeps the load even.
  bool bias = false;
  double init_std = 0;
  double down_init_std = 0;  // of `down`; 0: as the others
  // An expert that every token goes through; empty: there is none.
  struct Shared {
    std::string gate;  // a projection to [intermediate], as those above
    std::string up;
    std::string down;
    // To one column, the sigmoid of which weighs the expert; empty: nothing
    // does.
    std::string weight;
    int64_t intermediate = 0;
  };
  absl::optional<Shared> shared;
};

// Appends the section, with the losses that `training` asks for; y, of x's
// shape. Sequences have `sequence_length` positions.
int AppendExperts(const ExpertsSection& section, const ExpertsSpec& training,
                  int64_t sequence_length, int x, UnitBuilder& unit);

// Choices of a sequence that one expert takes: the mean times the factor,
// rounded up, and at most all.
int64_t CapacityPlaces(const ExpertsSpec& training, int64_t choices,
                       int64_t experts, int64_t sequence_length);

// What model.experts is where it does not say.
void SetExpertsDefaults(ModelSpec& model);

// InvalidArgument, which names the field: fewer than one expert, more than
// kExpertsMax, more choices than experts.
inline constexpr int kExpertsMax = 4096;
absl::Status CheckExperts(const ModelSpec& model);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_ARCHITECTURES_EXPERTS_SECTION_H_
