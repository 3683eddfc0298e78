#include <memory>
#include <utility>
#include <vector>

#include "proto/base/status.h"
#include "storage/dataset/hugging_face/characters.h"
#include "storage/dataset/hugging_face/pre_tokenizer_steps.h"

namespace troupe {
namespace {

using InClass = bool (*)(uint32_t code);

// Characters of a class are matches, each one.
class CharacterSplit final : public PreTokenizerStep {
 public:
  CharacterSplit(InClass in_class, SplitBehavior behavior)
      : in_class_(in_class), behavior_(behavior) {}

  absl::Status Apply(const SplitText& in, const TextPlace& place,
                     PatternScratch& scratch, SplitText& out) const override {
    out.text = in.text;
    Splitter splitter(behavior_, /*invert=*/false, out.spans);
    for (const TextSpan& span : in.spans) {
      splitter.Begin(span);
      for (size_t at = span.begin; at < span.end;) {
        const Character character = CharacterAt(in.text, at);
        const size_t end = at + character.bytes;
        if (in_class_(character.code)) splitter.Match(at, end);
        at = end;
      }
      splitter.End();
    }
    return absl::OkStatus();
  }

  SeamKind At(Seam& seam, PatternScratch& scratch) const override {
    const bool before = in_class_(seam.before);
    const bool after = in_class_(seam.after);
    if (!before && !after) return SeamKind::kLocal;
    if (behavior_ == SplitBehavior::kContiguous && before != after) {
      return SeamKind::kBoundary;
    }
    return behavior_ == SplitBehavior::kIsolated ||
                   behavior_ == SplitBehavior::kRemoved
               ? SeamKind::kBoundary
               : SeamKind::kUnknown;
  }

 private:
  const InClass in_class_;
  const SplitBehavior behavior_;
};

// \w+|[^\w\s]+ are the pieces, what lies between is left out.
class WordSplit final : public PreTokenizerStep {
 public:
  absl::Status Apply(const SplitText& in, const TextPlace& place,
                     PatternScratch& scratch, SplitText& out) const override {
    out.text = in.text;
    for (const TextSpan& span : in.spans) {
      size_t begin = span.begin;
      int kind = kSpace;
      for (size_t at = span.begin; at < span.end;) {
        const Character character = CharacterAt(in.text, at);
        const int next = KindOf(character.code);
        if (next != kind) {
          if (kind != kSpace) out.spans.push_back({begin, at});
          begin = at;
          kind = next;
        }
        at += character.bytes;
      }
      if (kind != kSpace) out.spans.push_back({begin, span.end});
    }
    return absl::OkStatus();
  }

  SeamKind At(Seam& seam, PatternScratch& scratch) const override {
    return KindOf(seam.before) != KindOf(seam.after) ? SeamKind::kBoundary
                                                     : SeamKind::kLocal;
  }

 private:
  enum { kSpace, kWord, kOther };
  static int KindOf(uint32_t code) {
    if (IsWhitespace(code)) return kSpace;
    return IsWord(code) ? kWord : kOther;
  }
};

class DelimiterSplit final : public PreTokenizerStep {
 public:
  explicit DelimiterSplit(uint32_t delimiter) : delimiter_(delimiter) {}

  absl::Status Apply(const SplitText& in, const TextPlace& place,
                     PatternScratch& scratch, SplitText& out) const override {
    out.text = in.text;
    const std::string text = CharacterText(delimiter_);
    Splitter splitter(SplitBehavior::kRemoved, /*invert=*/false, out.spans);
    for (const TextSpan& span : in.spans) {
      splitter.Begin(span);
      for (size_t at = in.text.find(text, span.begin);
           at != absl::string_view::npos && at < span.end;
           at = in.text.find(text, at + text.size())) {
        splitter.Match(at, at + text.size());
      }
      splitter.End();
    }
    return absl::OkStatus();
  }

  SeamKind At(Seam& seam, PatternScratch& scratch) const override {
    return seam.before == delimiter_ || seam.after == delimiter_
               ? SeamKind::kBoundary
               : SeamKind::kLocal;
  }

 private:
  const uint32_t delimiter_;
};

std::shared_ptr<const PreTokenizerStep> Characters(InClass in_class,
                                                   SplitBehavior behavior) {
  return std::make_shared<const CharacterSplit>(in_class, behavior);
}

}  // namespace

PreTokenizerStepsOr MakeDigits(const JsonPlace& place) {
  RETURN_IF_ERROR(place.CheckKeys({"type", "individual_digits"}));
  ASSIGN_OR_RETURN(const bool individual, place.Flag("individual_digits"));
  return {{Characters(&IsNumeric, individual ? SplitBehavior::kIsolated
                                             : SplitBehavior::kContiguous)}};
}

PreTokenizerStepsOr MakePunctuation(const JsonPlace& place) {
  RETURN_IF_ERROR(place.CheckKeys({"type", "behavior"}));
  ASSIGN_OR_RETURN(const JsonPlace field, place.Field("behavior"));
  SplitBehavior behavior = SplitBehavior::kIsolated;
  if (!field.IsNull()) {
    ASSIGN_OR_RETURN(behavior, SplitBehaviorField(place, "behavior"));
  }
  return {{Characters(&IsPunctuation, behavior)}};
}

PreTokenizerStepsOr MakeWhitespace(const JsonPlace& place) {
  RETURN_IF_ERROR(place.CheckKeys({"type"}));
  return {{std::make_shared<const WordSplit>()}};
}

PreTokenizerStepsOr MakeWhitespaceSplit(const JsonPlace& place) {
  RETURN_IF_ERROR(place.CheckKeys({"type"}));
  return {{Characters(&IsWhitespace, SplitBehavior::kRemoved)}};
}

PreTokenizerStepsOr MakeBertPreTokenizer(const JsonPlace& place) {
  RETURN_IF_ERROR(place.CheckKeys({"type"}));
  return {{Characters(&IsWhitespace, SplitBehavior::kRemoved),
           Characters(&IsPunctuation, SplitBehavior::kIsolated)}};
}

PreTokenizerStepsOr MakeDelimiterSplit(const JsonPlace& place) {
  RETURN_IF_ERROR(place.CheckKeys({"type", "delimiter"}));
  ASSIGN_OR_RETURN(const uint32_t delimiter, place.Character("delimiter"));
  return {{std::make_shared<const DelimiterSplit>(delimiter)}};
}

}  // namespace troupe
