#include "worker/engine/draw_text.h"

#include <optional>

#include "proto/base/status.h"
#include "storage/dataset/text_stream.h"

namespace troupe {

absl::Status DrawText(Generator& generator, const DrawOptions& options,
                      const TextSink& sink) {
  const Tokenizer* tokenizer = options.tokenizer;
  std::optional<TextStream> stream;
  if (tokenizer != nullptr) stream.emplace(*tokenizer);
  bool ended = false;
  for (int64_t i = 0; i < options.tokens_max && !ended; ++i) {
    ASSIGN_OR_RETURN(const int32_t token, generator.Next());
    ended = options.end.count(token) > 0;
    TextPiece piece{.text = "", .ids = {token}};
    // A model's vocabulary may be larger than its tokenizer's, to be a
    // multiple of something; such a token stands for no text.
    if (stream.has_value() &&
        static_cast<uint64_t>(token) < tokenizer->vocab_size()) {
      ASSIGN_OR_RETURN(piece.text, stream->Add(token));
    }
    RETURN_IF_ERROR(sink(piece));
  }
  const std::string rest = stream.has_value() ? stream->Finish() : "";
  return rest.empty() ? absl::OkStatus() : sink({.text = rest, .ids = {}});
}

}  // namespace troupe
