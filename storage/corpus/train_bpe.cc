#include "storage/corpus/train_bpe.h"

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/corpus/text_parts.h"
#include "storage/dataset/hugging_face/bpe_trainer.h"

namespace troupe {

absl::StatusOr<std::string> TrainBpe(const TrainBpeOptions& options) {
  uint64_t total = 0;
  for (const CorpusFile& file : options.files) {
    RETURN_IF_ERROR(CheckCanBeReadTwice(file));
    total += file.size;
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<BpeTrainer> trainer,
                   BpeTrainer::Create({.vocab_size = options.vocab_size}));
  const auto add = [&trainer](absl::string_view text) {
    return trainer->Add(text);
  };
  TextParts parts(options.files, nullptr,
                  {.unpack = options.unpack,
                   .line_bytes_max = options.rules.line_bytes_max,
                   .skip_bad_lines = options.rules.skip_bad_lines},
                  {});
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<TextPart> part, parts.Next());
    if (!part.has_value()) return trainer->Train();
    if (part->file->format == TextFormat::kText) {
      RETURN_IF_ERROR(add(part->text));
    } else {
      RETURN_IF_ERROR(ForEachDocument(options.rules, *part, add).status());
    }
    if (options.progress) {
      RETURN_IF_ERROR(options.progress(parts.taken(), total));
    }
  }
}

}  // namespace troupe
