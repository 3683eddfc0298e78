// Continues a text with the model of a checkpoint: what a worker does with a
// GenerateText message. The model and the tokenizer come from the checkpoint's
// manifest and the files that it carries; its weights take memory of the device
// tier while this runs. A model whose tokenizer is not known, or not one that
// Troupe reads, continues token ids.
#ifndef TROUPE_WORKER_ENGINE_TEXT_GENERATION_H_
#define TROUPE_WORKER_ENGINE_TEXT_GENERATION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ops/device.h"
#include "worker/model/generator.h"
#include "worker/rank/tier_arenas.h"

namespace troupe {

struct TextRequest {
  std::string checkpoint;  // its directory
  std::string prompt;
  std::vector<int32_t> prompt_ids;  // where there are any, in place of `prompt`
  int64_t max_new_tokens = 0;
  GenerateOptions sampling;
};

struct TextPiece {
  // Of the tokens up to here, what of it is whole characters; the last piece
  // brings the rest. Empty where there is no tokenizer.
  std::string text;
  std::vector<int32_t> ids;  // the new token; none in the last piece
};
// Receives a piece for each new token as it is drawn, and one more where text
// is left. Empty ones come between, while weights are loaded or a long text is
// read: they say that it goes on. An error ends the generation, and is
// returned.
using TextSink = std::function<absl::Status(const TextPiece& piece)>;

// NotFound, DataLoss: the checkpoint. ResourceExhausted: the model does not fit
// into the device tier. InvalidArgument: an empty prompt, or one that the
// model's vocabulary cannot hold. FailedPrecondition: a prompt in text where
// there is no tokenizer.
absl::Status ContinueText(const TextRequest& request, Device& device,
                          const TierArenas& arenas, const TextSink& sink);

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_TEXT_GENERATION_H_
