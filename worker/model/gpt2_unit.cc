#include "worker/model/gpt2_unit.h"

#include "absl/strings/str_cat.h"

namespace troupe {

absl::StatusOr<std::unique_ptr<ModelUnit>> NewGpt2Unit(
    const UnitOptions& options) {
  switch (options.unit.kind()) {
    case Unit::EMBEDDING:
      return NewGpt2Embedding(options);
    case Unit::BLOCK:
      return NewGpt2Block(options);
    case Unit::HEAD:
      return NewGpt2Head(options);
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("GPT-2 has no unit of kind ", options.unit.kind(),
                       "; scheduler and worker must be of one build"));
  }
}

DropoutMask Gpt2Mask(const UnitOptions& options, uint32_t site,
                     const MicroBatchContext& context) {
  if (!context.training) return {};
  const int64_t sequence_elements =
      options.build.shape.sequence_length * options.model.hidden_size();
  return {.probability = static_cast<float>(options.build.dropout),
          .stream = {.seed = options.build.seed,
                     .purpose = RandomPurpose::kDropout,
                     .site = site,
                     .step = static_cast<uint32_t>(context.step)},
          .first_element =
              static_cast<uint64_t>(context.first_sample * sequence_elements)};
}

absl::Status CheckGpt2Bytes(const Unit& unit, const Gpt2Bytes& bytes) {
  const struct {
    const char* name;
    int64_t plan;
    int64_t layout;
  } rows[] = {
      {"activation", unit.activation_bytes(), bytes.activation},
      {"stash", unit.stash_bytes(), bytes.stash},
      {"weight stash", unit.weight_stash_bytes(), bytes.weight_stash},
      {"workspace", unit.workspace_bytes(), bytes.workspace},
  };
  for (const auto& row : rows) {
    if (row.plan == row.layout) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the plan gives a ", Unit::Kind_Name(unit.kind()), " unit ", row.plan,
        " bytes of ", row.name, ", but it needs ", row.layout,
        "; scheduler and worker must be of one build"));
  }
  return absl::OkStatus();
}

}  // namespace troupe
