// Continues a text with the model of a checkpoint: what a worker does with a
// GenerateText message, alone or as a rank of several. The plan says what of
// the model it has; the tokenizer comes from the checkpoint's manifest and the
// files that it carries; its weights take memory of the device tier while this
// runs. A model whose tokenizer is not known, or not one that Troupe reads,
// continues token ids.
#ifndef TROUPE_WORKER_ENGINE_TEXT_GENERATION_H_
#define TROUPE_WORKER_ENGINE_TEXT_GENERATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/device.h"
#include "proto/job.pb.h"
#include "proto/text_plan.pb.h"
#include "worker/engine/draw_text.h"
#include "worker/engine/text_ranks.h"
#include "worker/model/generator.h"
#include "worker/rank/tier_arenas.h"

namespace troupe {

// By which job it was made, as it says, and what tells it from others that lie
// at the same path elsewhere (MadeText). NotFound, DataLoss.
struct CheckpointOrigin {
  JobSpec job;
  std::string made;
};
absl::StatusOr<CheckpointOrigin> OriginOf(const std::string& checkpoint);

struct TextRequest {
  std::string checkpoint;  // its directory
  std::string made;        // the checkpoint that is meant; empty: any
  TextPlan plan;
  int rank = 0;
  std::string prompt;
  std::vector<int32_t> prompt_ids;  // where there are any, in place of `prompt`
  int64_t max_new_tokens = 0;
  // Goes on past the model's end-of-text tokens (end_of_text.h), with the first
  // of which a text else ends. It is among the ids.
  bool ignore_eos = false;
  GenerateOptions sampling;
};

// NotFound, DataLoss: the checkpoint. ResourceExhausted: the model does not fit
// into the device tier. InvalidArgument: an empty prompt, or one that the
// model's vocabulary cannot hold, or a config.json whose eos_token_id is none.
// FailedPrecondition: a prompt in text where
// there is no tokenizer, or another checkpoint than the one that is meant. And
// those of the peers, which are null where the plan is for one rank.
absl::Status ContinueText(const TextRequest& request, Device& device,
                          const TierArenas& arenas, const TextSink& sink,
                          TextRanks* peers = nullptr);

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_TEXT_GENERATION_H_
