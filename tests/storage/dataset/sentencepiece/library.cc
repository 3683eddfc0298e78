#include "tests/storage/dataset/sentencepiece/library.h"

#include <cstdlib>
#include <iostream>
#include <utility>

#include "sentencepiece_processor.h"
#include "sentencepiece_trainer.h"

namespace troupe {
namespace {

class LinesOf final : public sentencepiece::SentenceIterator {
 public:
  explicit LinesOf(std::vector<std::string> lines) : lines_(std::move(lines)) {}
  bool done() const override { return at_ == lines_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return lines_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string> lines_;
  size_t at_ = 0;
};

void Require(const sentencepiece::util::Status& status) {
  if (status.ok()) return;
  std::cerr << "SentencePiece: " << status.error_message() << std::endl;
  std::abort();
}

}  // namespace

std::vector<std::string> TrainingLines() {
  std::vector<std::string> lines;
  const char* subjects[] = {"The quick fox",
                            "A lazy dog",
                            "She",
                            "Everybody",
                            "Der M\xc3\xa4rchenk\xc3\xb6nig",
                            "\xe6\x9d\xb1\xe4\xba\xac\xe3\x81\xae\xe4\xba\xba"};
  const char* verbs[] = {"jumps over", "was reading", "has lost 37 of",
                         "couldn't find", "re-reads"};
  const char* objects[] = {"the lazy dogs.", "an unreadable book!",
                           "1,234 pages;  twice", "nothing whatsoever?"};
  for (const char* subject : subjects) {
    for (const char* verb : verbs) {
      for (const char* object : objects) {
        lines.push_back(std::string(subject) + " " + verb + " " + object);
      }
    }
  }
  return lines;
}

std::string SmallModel(TrainingArguments arguments) {
  const bool unigram = arguments["model_type"] == "unigram";
  // What is there already stays.
  arguments.insert({"vocab_size", "420"});
  arguments.insert({"num_threads", "1"});
  arguments.insert({"minloglevel", "2"});
  if (unigram) arguments.insert({"hard_vocab_limit", "false"});
  LinesOf lines(TrainingLines());
  std::string model;
  Require(
      sentencepiece::SentencePieceTrainer::Train(arguments, &lines, &model));
  return model;
}

TrainingArguments LikeLlama(const char* model_type) {
  return {{"model_type", model_type},
          {"byte_fallback", "true"},
          {"normalization_rule_name", "identity"},
          {"remove_extra_whitespaces", "false"}};
}

struct SentencePieceLibrary::Impl {
  sentencepiece::SentencePieceProcessor processor;
};

SentencePieceLibrary::SentencePieceLibrary(const std::string& model)
    : impl_(std::make_unique<Impl>()) {
  Require(impl_->processor.LoadFromSerializedProto(model));
}

SentencePieceLibrary::~SentencePieceLibrary() = default;

uint64_t SentencePieceLibrary::vocab_size() const {
  return impl_->processor.GetPieceSize();
}

int32_t SentencePieceLibrary::eos_id() const {
  return impl_->processor.eos_id();
}

std::vector<int32_t> SentencePieceLibrary::Encode(
    const std::string& text) const {
  std::vector<int> ids;
  Require(impl_->processor.Encode(text, &ids));
  return ids;
}

std::string SentencePieceLibrary::Decode(
    const std::vector<int32_t>& ids) const {
  std::string text;
  Require(impl_->processor.Decode(ids, &text));
  return text;
}

}  // namespace troupe
