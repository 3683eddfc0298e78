#include "storage/dataset/hugging_face/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "proto/base/status.h"
#include "storage/dataset/hugging_face/pre_tokenizer_steps.h"

namespace troupe {
namespace {

constexpr size_t kPreTokenizerStepsMax = 256;
constexpr int kPreTokenizerDepthMax = 16;

struct PreTokenizerRow {
  absl::string_view type;
  PreTokenizerStepsOr (*make)(const JsonPlace& place);
};

constexpr PreTokenizerRow kPreTokenizers[] = {
    {"ByteLevel", &MakeByteLevelSplit},
    {"Split", &MakePatternSplit},
    {"Metaspace", &MakeMetaspace},
    {"Digits", &MakeDigits},
    {"Punctuation", &MakePunctuation},
    {"Whitespace", &MakeWhitespace},
    {"WhitespaceSplit", &MakeWhitespaceSplit},
    {"BertPreTokenizer", &MakeBertPreTokenizer},
    {"CharDelimiterSplit", &MakeDelimiterSplit},
};

}  // namespace

struct PreTokenizerParser {
  PreTokenizer pre_tokenizer;

  absl::Status Add(const JsonPlace& place, int depth) {
    auto& steps = pre_tokenizer.steps_;
    if (depth > kPreTokenizerDepthMax ||
        steps.size() >= kPreTokenizerStepsMax) {
      return place.Error("has too many pre-tokenizers");
    }
    ASSIGN_OR_RETURN(const std::string type, place.Type());
    if (type == "Sequence") return AddSequence(place, depth);
    for (const PreTokenizerRow& row : kPreTokenizers) {
      if (row.type != type) continue;
      if (pre_tokenizer.byte_level_) {
        return place.Error("nothing may follow ByteLevel");
      }
      ASSIGN_OR_RETURN(auto made, row.make(place));
      for (auto& step : made) {
        // Where a piece began in the text is not known behind a prefix.
        if (step->AddsPrefixToFirst() && AnyAddsPrefix()) {
          return place.Error(
              "\"prepend_scheme\": first is not known behind a pre-tokenizer "
              "that prepends, too");
        }
        steps.push_back(std::move(step));
      }
      pre_tokenizer.byte_level_ = type == "ByteLevel";
      return absl::OkStatus();
    }
    return place.UnknownType(type);
  }

  bool AnyAddsPrefix() const {
    return std::any_of(pre_tokenizer.steps_.begin(), pre_tokenizer.steps_.end(),
                       [](const auto& step) {
                         return step->AddsPrefix() || step->AddsPrefixToFirst();
                       });
  }

  absl::Status AddSequence(const JsonPlace& place, int depth) {
    RETURN_IF_ERROR(place.CheckKeys({"type", "pretokenizers"}));
    ASSIGN_OR_RETURN(const JsonPlace list, place.Field("pretokenizers"));
    ASSIGN_OR_RETURN(const std::vector<JsonPlace> parts, list.Elements());
    for (const JsonPlace& part : parts) RETURN_IF_ERROR(Add(part, depth + 1));
    return absl::OkStatus();
  }
};

absl::StatusOr<PreTokenizer> PreTokenizer::Parse(const JsonPlace& place) {
  PreTokenizerParser parser;
  if (!place.IsNull()) RETURN_IF_ERROR(parser.Add(place, 0));
  PreTokenizer& made = parser.pre_tokenizer;
  made.first_adds_prefix_ =
      !made.steps_.empty() && made.steps_[0]->AddsPrefix();
  return std::move(made);
}

absl::StatusOr<const SplitText*> PreTokenizer::Split(absl::string_view text,
                                                     TextPlace place,
                                                     PatternScratch& scratch,
                                                     SplitText& first,
                                                     SplitText& second) const {
  SplitText* in = &first;
  SplitText* out = &second;
  in->text = text;
  in->spans.assign(1, {0, text.size()});
  place.continues &= first_adds_prefix_;
  for (const auto& step : steps_) {
    out->spans.clear();
    RETURN_IF_ERROR(step->Apply(*in, place, scratch, *out));
    std::swap(in, out);
  }
  return in;
}

std::vector<size_t> PreTokenizer::PrefixSteps() const {
  std::vector<size_t> steps;
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i]->AddsPrefix()) steps.push_back(i);
  }
  return steps;
}

SeamKind PreTokenizer::At(Seam& seam, PatternScratch& scratch) const {
  const std::vector<size_t> prefixes = PrefixSteps();
  if (prefixes.size() > 1) return SeamKind::kUnknown;
  // Steps that may end the piece.
  const size_t count =
      prefixes.empty() || first_adds_prefix_ ? steps_.size() : prefixes[0];
  for (size_t i = 0; i < count; ++i) {
    const SeamKind kind = steps_[i]->At(seam, scratch);
    if (kind != SeamKind::kLocal) return kind;
  }
  return count == steps_.size() ? SeamKind::kLocal : SeamKind::kUnknown;
}

}  // namespace troupe
