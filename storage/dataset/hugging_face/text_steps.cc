#include <memory>
#include <string>
#include <utility>

#include "proto/base/status.h"
#include "storage/dataset/hugging_face/characters.h"
#include "storage/dataset/hugging_face/normalizer_steps.h"
#include "storage/dataset/hugging_face/pattern_field.h"

namespace troupe {
namespace {

class StripStep final : public NormalizerStep {
 public:
  StripStep(bool left, bool right) : left_(left), right_(right) {}

  absl::Status Apply(absl::string_view text, bool continues,
                     PatternScratch& scratch, std::string& out) const override {
    while (left_ && !continues && !text.empty()) {
      const Character first = CharacterAt(text, 0);
      if (!IsWhitespace(first.code)) break;
      text.remove_prefix(first.bytes);
    }
    while (right_ && !text.empty()) {
      const Character last = CharacterBefore(text, text.size());
      if (!IsWhitespace(last.code)) break;
      text.remove_suffix(last.bytes);
    }
    out.append(text.data(), text.size());
    return absl::OkStatus();
  }

  bool IsOfEnds() const override { return true; }
  // What a part ends with is not removed. Of its beginning `continues` takes
  // care.
  bool IsLocal(const Seam& seam, PatternScratch& scratch) const override {
    return !IsWhitespace(seam.before);
  }

 private:
  const bool left_;
  const bool right_;
};

class PrependStep final : public NormalizerStep {
 public:
  explicit PrependStep(std::string text) : prepended_(std::move(text)) {}

  absl::Status Apply(absl::string_view text, bool continues,
                     PatternScratch& scratch, std::string& out) const override {
    if (!text.empty() && !continues) out = prepended_;
    out.append(text.data(), text.size());
    return absl::OkStatus();
  }

  bool IsOfEnds() const override { return true; }

 private:
  const std::string prepended_;
};

class ReplaceStep final : public NormalizerStep {
 public:
  ReplaceStep(Pattern pattern, PatternSeams seams, std::string content)
      : pattern_(std::move(pattern)),
        seams_(std::move(seams)),
        content_(std::move(content)) {}

  absl::Status Apply(absl::string_view text, bool continues,
                     PatternScratch& scratch, std::string& out) const override {
    size_t done = 0;
    RETURN_IF_ERROR(
        pattern_.ForEachMatch(text, scratch, [&](size_t begin, size_t end) {
          out.append(text.data() + done, begin - done);
          out += content_;
          done = end;
        }));
    out.append(text.data() + done, text.size() - done);
    return absl::OkStatus();
  }

  bool IsLocal(const Seam& seam, PatternScratch& scratch) const override {
    return seams_.IsLocal(seam, scratch);
  }

 private:
  const Pattern pattern_;
  const PatternSeams seams_;
  const std::string content_;
};

}  // namespace

NormalizerStepOr MakeStrip(const JsonPlace& place) {
  RETURN_IF_ERROR(place.CheckKeys({"type", "strip_left", "strip_right"}));
  ASSIGN_OR_RETURN(const bool left, place.Flag("strip_left"));
  ASSIGN_OR_RETURN(const bool right, place.Flag("strip_right"));
  return std::make_shared<const StripStep>(left, right);
}

NormalizerStepOr MakePrepend(const JsonPlace& place) {
  RETURN_IF_ERROR(place.CheckKeys({"type", "prepend"}));
  ASSIGN_OR_RETURN(std::string text, place.Text("prepend"));
  return std::make_shared<const PrependStep>(std::move(text));
}

NormalizerStepOr MakeReplace(const JsonPlace& place) {
  RETURN_IF_ERROR(place.CheckKeys({"type", "pattern", "content"}));
  ASSIGN_OR_RETURN(Pattern pattern, PatternField(place));
  ASSIGN_OR_RETURN(PatternSeams seams, PatternSeams::Of(pattern));
  ASSIGN_OR_RETURN(std::string content, place.Text("content"));
  return std::make_shared<const ReplaceStep>(
      std::move(pattern), std::move(seams), std::move(content));
}

}  // namespace troupe
