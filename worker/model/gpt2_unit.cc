#include "worker/model/gpt2_unit.h"

#include "absl/strings/str_cat.h"
#include "worker/model/embedding_unit.h"
#include "worker/model/head_unit.h"

namespace troupe {

absl::StatusOr<std::unique_ptr<ModelUnit>> NewGpt2Unit(
    const UnitOptions& options) {
  switch (options.unit.kind()) {
    case Unit::EMBEDDING:
      return NewEmbeddingUnit(options,
                              {.tokens = "transformer.wte.weight",
                               .positions = "transformer.wpe.weight",
                               .dropout_site = kGpt2EmbeddingDropoutSite});
    case Unit::BLOCK:
      return NewGpt2Block(options);
    case Unit::HEAD:
      return NewHeadUnit(options,
                         {.kind = Normalization::Kind::kLayerNorm,
                          .prefix = "transformer.ln_f",
                          .width = options.model.hidden_size(),
                          .epsilon = options.model.layer_norm_epsilon()});
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("GPT-2 has no unit of kind ", options.unit.kind(),
                       "; scheduler and worker must be of one build"));
  }
}

}  // namespace troupe
