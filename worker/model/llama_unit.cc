#include "worker/model/llama_unit.h"

#include "absl/strings/str_cat.h"
#include "worker/model/embedding_unit.h"
#include "worker/model/head_unit.h"

namespace troupe {

absl::StatusOr<std::unique_ptr<ModelUnit>> NewLlamaUnit(
    const UnitOptions& options) {
  switch (options.unit.kind()) {
    case Unit::EMBEDDING:
      return NewEmbeddingUnit(options, {.tokens = "model.embed_tokens.weight"});
    case Unit::BLOCK:
      return NewLlamaBlock(options);
    case Unit::HEAD:
      return NewHeadUnit(options, {.kind = Normalization::Kind::kRmsNorm,
                                   .prefix = "model.norm",
                                   .width = options.model.hidden_size(),
                                   .epsilon = options.model.rms_norm_eps()});
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("Llama has no unit of kind ", options.unit.kind(),
                       "; scheduler and worker must be of one build"));
  }
}

}  // namespace troupe
