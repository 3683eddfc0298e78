// Llama's three kinds of unit, made from the plan: the row "llama" of the table
// in build_units.cc. The memory of each is laid out in the order that
// proto/plan/model_llama.h describes; the factories refuse a plan that counts
// other bytes.
//
// Dropout is what `transformers` gives Llama: of attention probabilities, and
// nothing else. Rotary positions of training passes are those of the micro-
// batch's sequence length, those of Decode of max_position_embeddings, so that
// a cached key stays as it is while a text grows; the two differ only for
// scalings that look at the length (dynamic, longrope).
#ifndef TROUPE_WORKER_MODEL_LLAMA_UNIT_H_
#define TROUPE_WORKER_MODEL_LLAMA_UNIT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/model/model_unit.h"
#include "worker/model/unit_options.h"

namespace troupe {

absl::StatusOr<std::unique_ptr<ModelUnit>> NewLlamaUnit(
    const UnitOptions& options);

// What NewLlamaUnit makes of a BLOCK; in llama_block.cc.
absl::StatusOr<std::unique_ptr<ModelUnit>> NewLlamaBlock(
    const UnitOptions& options);

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_LLAMA_UNIT_H_
