// Continues a text with the model of a checkpoint: what a worker does with a
// GenerateText message. The model and the tokenizer come from the checkpoint's
// manifest; its weights take memory of the device tier while this runs.
#ifndef TROUPE_WORKER_ENGINE_TEXT_GENERATION_H_
#define TROUPE_WORKER_ENGINE_TEXT_GENERATION_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ops/device.h"
#include "worker/model/generator.h"
#include "worker/rank/tier_arenas.h"

namespace troupe {

struct TextRequest {
  std::string checkpoint;  // its directory
  std::string prompt;
  int64_t max_new_tokens = 0;
  GenerateOptions sampling;
};

// Receives the text of each new token as it is drawn; an error ends the
// generation and is returned.
using TextSink = std::function<absl::Status(absl::string_view piece)>;

// NotFound, DataLoss: the checkpoint. ResourceExhausted: the model does not fit
// into the device tier. InvalidArgument: an empty prompt, or one that the
// model's vocabulary cannot hold.
absl::Status ContinueText(const TextRequest& request, Device& device,
                          const TierArenas& arenas, const TextSink& sink);

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_TEXT_GENERATION_H_
