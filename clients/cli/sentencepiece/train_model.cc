#include "clients/cli/sentencepiece/train_model.h"

#include <algorithm>
#include <unordered_map>

#include "sentencepiece_trainer.h"

namespace troupe {
namespace {

// The library drops longer lines.
constexpr size_t kSentenceBytesMax = 4000;

// The lines of a text; long ones in pieces that end with a word.
class Lines final : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(std::string_view text) : text_(text) { Next(); }

  bool done() const override { return done_; }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

  void Next() override {
    done_ = text_.empty();
    size_t bytes = std::min(text_.find('\n'), text_.size());
    if (bytes > kSentenceBytesMax) {
      const size_t word = text_.rfind(' ', kSentenceBytesMax);
      bytes = word == std::string_view::npos || word == 0 ? kSentenceBytesMax
                                                          : word;
    }
    line_ = std::string(text_.substr(0, bytes));
    text_.remove_prefix(bytes);
    if (!text_.empty() && text_[0] == '\n') text_.remove_prefix(1);
  }

 private:
  std::string_view text_;
  std::string line_;
  bool done_ = false;
};

}  // namespace

TrainedModel TrainModel(std::string_view text,
                        const TrainModelOptions& options) {
  sentencepiece::SetRandomGeneratorSeed(0);
  const std::unordered_map<std::string, std::string> arguments = {
      {"vocab_size", std::to_string(options.vocab_size)},
      {"model_type", options.model_type},
      {"byte_fallback", "true"},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"allow_whitespace_only_pieces", "true"},
      {"split_digits", "true"},
      {"character_coverage", "0.99995"},
      // Sums of floats depend on how many add them up.
      {"num_threads", "2"},
      {"minloglevel", "2"},
  };
  Lines lines(text);
  TrainedModel model;
  const sentencepiece::util::Status trained =
      sentencepiece::SentencePieceTrainer::Train(arguments, &lines,
                                                 &model.bytes);
  if (!trained.ok()) {
    model.error = std::string("SentencePiece: ") + trained.error_message() +
                  "; use a smaller --vocab-size or a longer text";
  }
  return model;
}

}  // namespace troupe
