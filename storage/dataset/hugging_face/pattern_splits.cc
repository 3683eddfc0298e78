#include <memory>
#include <string>
#include <utility>

#include "proto/base/status.h"
#include "storage/dataset/hugging_face/characters.h"
#include "storage/dataset/hugging_face/pattern_field.h"
#include "storage/dataset/hugging_face/pre_tokenizer_steps.h"

namespace troupe {
namespace {

// Radford et al., "Language Models are Unsupervised Multitask Learners", 2019.
constexpr absl::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

class PatternSplit final : public PreTokenizerStep {
 public:
  PatternSplit(Pattern pattern, PatternSeams seams, SplitBehavior behavior,
               bool invert)
      : pattern_(std::move(pattern)),
        seams_(std::move(seams)),
        behavior_(behavior),
        invert_(invert) {}

  absl::Status Apply(const SplitText& in, const TextPlace& place,
                     PatternScratch& scratch, SplitText& out) const override {
    out.text = in.text;
    Splitter splitter(behavior_, invert_, out.spans);
    for (const TextSpan& span : in.spans) {
      splitter.Begin(span);
      RETURN_IF_ERROR(pattern_.ForEachMatch(
          in.text.substr(span.begin, span.end - span.begin), scratch,
          [&](size_t begin, size_t end) {
            splitter.Match(span.begin + begin, span.begin + end);
          }));
      splitter.End();
    }
    return absl::OkStatus();
  }

  SeamKind At(Seam& seam, PatternScratch& scratch) const override {
    if (behavior_ != SplitBehavior::kIsolated &&
        behavior_ != SplitBehavior::kRemoved) {
      return SeamKind::kUnknown;
    }
    if (seams_.IsBoundary(seam, scratch)) return SeamKind::kBoundary;
    return seams_.IsLocal(seam, scratch) ? SeamKind::kLocal
                                         : SeamKind::kUnknown;
  }

 private:
  const Pattern pattern_;
  const PatternSeams seams_;
  const SplitBehavior behavior_;
  const bool invert_;
};

// Copies pieces to a new text, some with something before them. Their own may
// lie in the output's storage, which is replaced at the end.
class PieceCopier {
 public:
  PieceCopier(const SplitText& in, SplitText& out) : in_(in), out_(out) {
    text_.reserve(in.text.size() + in.text.size() / 4 + 16);
  }
  ~PieceCopier() {
    out_.storage = std::move(text_);
    out_.text = out_.storage;
  }
  PieceCopier(const PieceCopier&) = delete;

  std::string& text() { return text_; }
  absl::string_view Piece(const TextSpan& span) const {
    return in_.text.substr(span.begin, span.end - span.begin);
  }

 private:
  const SplitText& in_;
  SplitText& out_;
  std::string text_;
};

// Of ByteLevel's add_prefix_space.
class SpacePrefix final : public PreTokenizerStep {
 public:
  absl::Status Apply(const SplitText& in, const TextPlace& place,
                     PatternScratch& scratch, SplitText& out) const override {
    PieceCopier copier(in, out);
    for (const TextSpan& span : in.spans) {
      const absl::string_view piece = copier.Piece(span);
      std::string& text = copier.text();
      const size_t begin = text.size();
      const bool continues = place.continues && span.begin == 0;
      if (!continues && piece[0] != ' ') text.push_back(' ');
      text.append(piece.data(), piece.size());
      out.spans.push_back({begin, text.size()});
    }
    return absl::OkStatus();
  }
  SeamKind At(Seam& seam, PatternScratch& scratch) const override {
    return SeamKind::kLocal;
  }
  bool AddsPrefix() const override { return true; }
};

enum class PrependScheme { kAlways, kFirst, kNever };

// Spaces become a character of the vocabulary, which begins pieces.
class MetaspaceSplit final : public PreTokenizerStep {
 public:
  MetaspaceSplit(uint32_t replacement, PrependScheme scheme, bool split)
      : replacement_(replacement),
        symbol_(CharacterText(replacement)),
        scheme_(scheme),
        split_(split) {}

  absl::Status Apply(const SplitText& in, const TextPlace& place,
                     PatternScratch& scratch, SplitText& out) const override {
    PieceCopier copier(in, out);
    std::string& text = copier.text();
    Splitter splitter(SplitBehavior::kMergedWithNext, /*invert=*/false,
                      out.spans);
    for (const TextSpan& span : in.spans) {
      const TextSpan copied = Copy(copier.Piece(span), span, place, text);
      if (!split_) {
        out.spans.push_back(copied);
        continue;
      }
      splitter.Begin(copied);
      for (size_t at = text.find(symbol_, copied.begin);
           at != std::string::npos;
           at = text.find(symbol_, at + symbol_.size())) {
        splitter.Match(at, at + symbol_.size());
      }
      splitter.End();
    }
    return absl::OkStatus();
  }

  SeamKind At(Seam& seam, PatternScratch& scratch) const override {
    for (uint32_t* code : {&seam.before, &seam.after, &seam.next}) {
      if (*code == ' ') *code = replacement_;
    }
    return split_ && seam.after == replacement_ ? SeamKind::kBoundary
                                                : SeamKind::kLocal;
  }
  bool AddsPrefix() const override { return scheme_ == PrependScheme::kAlways; }
  bool AddsPrefixToFirst() const override {
    return scheme_ == PrependScheme::kFirst;
  }

 private:
  TextSpan Copy(absl::string_view piece, const TextSpan& span,
                const TextPlace& place, std::string& out) const {
    const size_t begin = out.size();
    const bool is_first = span.begin == 0;
    const bool prepends =
        scheme_ == PrependScheme::kAlways
            ? !(place.continues && is_first)
            : scheme_ == PrependScheme::kFirst && place.at_start && is_first;
    if (prepends && piece[0] != ' ' &&
        piece.substr(0, symbol_.size()) != symbol_) {
      out += symbol_;
    }
    for (const char byte : piece) {
      if (byte == ' ') {
        out += symbol_;
      } else {
        out.push_back(byte);
      }
    }
    return {begin, out.size()};
  }

  const uint32_t replacement_;
  const std::string symbol_;
  const PrependScheme scheme_;
  const bool split_;
};

absl::StatusOr<PrependScheme> PrependSchemeOf(const JsonPlace& place) {
  ASSIGN_OR_RETURN(const std::string name,
                   place.TextOr("prepend_scheme", "always"));
  // The older form, which some files have beside the newer.
  ASSIGN_OR_RETURN(const bool adds, place.FlagOr("add_prefix_space", true));
  PrependScheme scheme = PrependScheme::kAlways;
  if (name == "first") {
    scheme = PrependScheme::kFirst;
  } else if (name == "never") {
    scheme = PrependScheme::kNever;
  } else if (name != "always") {
    return place.Error("\"prepend_scheme\" must be always, first or never");
  }
  if (adds || scheme == PrependScheme::kNever) return scheme;
  ASSIGN_OR_RETURN(const JsonPlace field, place.Field("prepend_scheme"));
  if (field.IsNull()) return PrependScheme::kNever;
  return place.Error("\"add_prefix_space\" contradicts \"prepend_scheme\"");
}

}  // namespace

PreTokenizerStepsOr MakeByteLevelSplit(const JsonPlace& place) {
  RETURN_IF_ERROR(place.CheckKeys(
      {"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  ASSIGN_OR_RETURN(const bool adds_space, place.Flag("add_prefix_space"));
  ASSIGN_OR_RETURN(const bool use_pattern, place.FlagOr("use_regex", true));
  std::vector<std::shared_ptr<const PreTokenizerStep>> steps;
  if (adds_space) steps.push_back(std::make_shared<const SpacePrefix>());
  if (use_pattern) {
    ASSIGN_OR_RETURN(Pattern pattern, Pattern::Compile(kGpt2Pattern));
    ASSIGN_OR_RETURN(PatternSeams seams, PatternSeams::Of(pattern));
    steps.push_back(std::make_shared<const PatternSplit>(
        std::move(pattern), std::move(seams), SplitBehavior::kIsolated, false));
  }
  return steps;
}

PreTokenizerStepsOr MakePatternSplit(const JsonPlace& place) {
  RETURN_IF_ERROR(place.CheckKeys({"type", "pattern", "behavior", "invert"}));
  ASSIGN_OR_RETURN(Pattern pattern, PatternField(place));
  ASSIGN_OR_RETURN(PatternSeams seams, PatternSeams::Of(pattern));
  ASSIGN_OR_RETURN(const SplitBehavior behavior,
                   SplitBehaviorField(place, "behavior"));
  ASSIGN_OR_RETURN(const bool invert, place.Flag("invert"));
  return {{std::make_shared<const PatternSplit>(
      std::move(pattern), std::move(seams), behavior, invert)}};
}

PreTokenizerStepsOr MakeMetaspace(const JsonPlace& place) {
  RETURN_IF_ERROR(
      place.CheckKeys({"type", "replacement", "str_rep", "add_prefix_space",
                       "prepend_scheme", "split"}));
  ASSIGN_OR_RETURN(const uint32_t replacement, place.Character("replacement"));
  ASSIGN_OR_RETURN(const PrependScheme scheme, PrependSchemeOf(place));
  ASSIGN_OR_RETURN(const bool split, place.FlagOr("split", true));
  return {{std::make_shared<const MetaspaceSplit>(replacement, scheme, split)}};
}

}  // namespace troupe
