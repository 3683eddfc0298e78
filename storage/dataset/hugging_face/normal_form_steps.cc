#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/stringpiece.h>

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/dataset/hugging_face/characters.h"
#include "storage/dataset/hugging_face/normalizer_steps.h"

namespace troupe {
namespace {

using icu::Normalizer2;

bool IsAscii(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char byte) { return (byte & 0x80) == 0; });
}

absl::Status NormalForm(const Normalizer2& form, absl::string_view text,
                        std::string& out) {
  if (text.size() > (size_t{1} << 30)) {
    return absl::ResourceExhaustedError(
        "a text of more than 1 GiB is not normalized at once");
  }
  UErrorCode error = U_ZERO_ERROR;
  icu::StringByteSink<std::string> sink(&out);
  form.normalizeUTF8(
      0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())), sink,
      nullptr, error);
  if (U_SUCCESS(error)) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("a text is not normalized: ", u_errorName(error)));
}

// No character at the seam is joined with its neighbours.
bool HasBoundaries(const Normalizer2& form, const Seam& seam) {
  return form.hasBoundaryBefore(static_cast<UChar32>(seam.before)) &&
         form.hasBoundaryBefore(static_cast<UChar32>(seam.after)) &&
         form.hasBoundaryBefore(static_cast<UChar32>(seam.next));
}

class NormalFormStep final : public NormalizerStep {
 public:
  explicit NormalFormStep(const Normalizer2& form) : form_(form) {}

  absl::Status Apply(absl::string_view text, bool continues,
                     PatternScratch& scratch, std::string& out) const override {
    return NormalForm(form_, text, out);
  }
  bool Keeps(absl::string_view text) const override { return IsAscii(text); }
  bool IsLocal(const Seam& seam, PatternScratch& scratch) const override {
    return HasBoundaries(form_, seam);
  }

 private:
  const Normalizer2& form_;  // ICU's own, for ever
};

using GetForm = const Normalizer2* (*)(UErrorCode&);

absl::StatusOr<const Normalizer2*> FormOf(GetForm get) {
  UErrorCode error = U_ZERO_ERROR;
  const Normalizer2* const form = get(error);
  if (U_SUCCESS(error) && form != nullptr) return form;
  return absl::InternalError(
      absl::StrCat("ICU has no normal forms: ", u_errorName(error)));
}

NormalizerStepOr Make(const JsonPlace& place, GetForm get) {
  RETURN_IF_ERROR(place.CheckKeys({"type"}));
  ASSIGN_OR_RETURN(const Normalizer2* const form, FormOf(get));
  return std::make_shared<const NormalFormStep>(*form);
}

struct BertOptions {
  bool clean_text = true;
  bool space_ideographs = true;
  bool strip_accents = true;
  bool lowercase = true;
};

class BertStep final : public NormalizerStep {
 public:
  BertStep(const BertOptions& options, const Normalizer2& decomposed)
      : options_(options), decomposed_(decomposed) {}

  absl::Status Apply(absl::string_view text, bool continues,
                     PatternScratch& scratch, std::string& out) const override {
    std::string cleaned;
    for (size_t at = 0; at < text.size();) {
      const Character character = CharacterAt(text, at);
      at += character.bytes;
      Clean(character.code, cleaned);
    }
    if (options_.strip_accents) {
      std::string decomposed;
      RETURN_IF_ERROR(NormalForm(decomposed_, cleaned, decomposed));
      cleaned = std::move(decomposed);
    }
    for (size_t at = 0; at < cleaned.size();) {
      const Character character = CharacterAt(cleaned, at);
      at += character.bytes;
      if (options_.strip_accents && IsNonspacingMark(character.code)) continue;
      if (options_.lowercase) {
        AppendLowercase(character.code, out);
      } else {
        AppendCharacter(character.code, out);
      }
    }
    return absl::OkStatus();
  }

  bool IsLocal(const Seam& seam, PatternScratch& scratch) const override {
    return HasBoundaries(decomposed_, seam);
  }

 private:
  void Clean(uint32_t code, std::string& out) const {
    const bool is_space = code == '\t' || code == '\n' || code == '\r';
    if (options_.clean_text) {
      if (code == 0 || code == 0xFFFD || (!is_space && IsControl(code))) return;
      if (is_space || IsWhitespace(code)) code = ' ';
    }
    const bool spaced = options_.space_ideographs && IsIdeograph(code);
    if (spaced) out.push_back(' ');
    AppendCharacter(code, out);
    if (spaced) out.push_back(' ');
  }

  const BertOptions options_;
  const Normalizer2& decomposed_;
};

}  // namespace

NormalizerStepOr MakeNfc(const JsonPlace& place) {
  return Make(place, &Normalizer2::getNFCInstance);
}
NormalizerStepOr MakeNfd(const JsonPlace& place) {
  return Make(place, &Normalizer2::getNFDInstance);
}
NormalizerStepOr MakeNfkc(const JsonPlace& place) {
  return Make(place, &Normalizer2::getNFKCInstance);
}
NormalizerStepOr MakeNfkd(const JsonPlace& place) {
  return Make(place, &Normalizer2::getNFKDInstance);
}

NormalizerStepOr MakeBertNormalizer(const JsonPlace& place) {
  RETURN_IF_ERROR(place.CheckKeys({"type", "clean_text", "handle_chinese_chars",
                                   "strip_accents", "lowercase"}));
  BertOptions options;
  ASSIGN_OR_RETURN(options.clean_text, place.Flag("clean_text"));
  ASSIGN_OR_RETURN(options.space_ideographs,
                   place.Flag("handle_chinese_chars"));
  ASSIGN_OR_RETURN(options.lowercase, place.Flag("lowercase"));
  ASSIGN_OR_RETURN(options.strip_accents,
                   place.FlagOr("strip_accents", options.lowercase));
  ASSIGN_OR_RETURN(const Normalizer2* const decomposed,
                   FormOf(&Normalizer2::getNFDInstance));
  return std::make_shared<const BertStep>(options, *decomposed);
}

}  // namespace troupe
