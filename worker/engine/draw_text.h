// The text that a generator draws, piece by piece.
#ifndef TROUPE_WORKER_ENGINE_DRAW_TEXT_H_
#define TROUPE_WORKER_ENGINE_DRAW_TEXT_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "storage/dataset/tokenizer.h"
#include "worker/model/generator.h"

namespace troupe {

struct TextPiece {
  // Of the tokens up to here, what of it is whole characters; the last piece
  // brings the rest. Empty where there is no tokenizer.
  std::string text;
  std::vector<int32_t> ids;  // the new token; none in the last piece
  bool loaded = false;  // the rank has its weights, and waits for the others
};
// Receives a piece for each new token as it is drawn, and one more where text
// is left; of several ranks only the first has text. Empty ones come between,
// while weights are loaded or a long text is read: they say that it goes on.
// An error ends the generation, and is returned.
using TextSink = std::function<absl::Status(const TextPiece& piece)>;

struct DrawOptions {
  const Tokenizer* tokenizer = nullptr;  // null: ids only
  int64_t tokens_max = 0;
  std::set<int32_t> end;  // the first of these is the last token
};

// Continues what the generator was started with. All ranks of a model draw the
// same tokens, so they end after the same one.
absl::Status DrawText(Generator& generator, const DrawOptions& options,
                      const TextSink& sink);

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_DRAW_TEXT_H_
