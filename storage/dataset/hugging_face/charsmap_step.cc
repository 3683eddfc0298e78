#include <unicode/ubrk.h>
#include <unicode/uchar.h>
#include <unicode/utext.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/dataset/hugging_face/characters.h"
#include "storage/dataset/hugging_face/normalizer_steps.h"
#include "storage/dataset/sentencepiece/charsmap.h"

namespace troupe {
namespace {

// Calls found(grapheme) for each of a text's, in order.
template <typename Found>
absl::Status ForEachGrapheme(absl::string_view text, Found found) {
  UErrorCode error = U_ZERO_ERROR;
  const std::unique_ptr<UText, decltype(&utext_close)> characters(
      utext_openUTF8(nullptr, text.data(), static_cast<int64_t>(text.size()),
                     &error),
      &utext_close);
  const std::unique_ptr<UBreakIterator, decltype(&ubrk_close)> breaks(
      ubrk_open(UBRK_CHARACTER, "", nullptr, 0, &error), &ubrk_close);
  if (U_SUCCESS(error)) ubrk_setUText(breaks.get(), characters.get(), &error);
  if (U_FAILURE(error)) {
    return absl::InternalError(
        absl::StrCat("ICU finds no graphemes: ", u_errorName(error)));
  }
  int32_t begin = ubrk_first(breaks.get());
  for (int32_t end = ubrk_next(breaks.get()); end != UBRK_DONE;
       begin = std::exchange(end, ubrk_next(breaks.get()))) {
    found(text.substr(begin, end - begin));
  }
  return absl::OkStatus();
}

// As the library applies it, which is not as SentencePiece does: a short
// grapheme is looked up as one, others by their characters, and what is found
// is the shortest entry that it begins with, which then stands for all of it.
class CharsmapStep final : public NormalizerStep {
 public:
  static absl::StatusOr<std::shared_ptr<const CharsmapStep>> Create(
      std::string table) {
    auto step = std::make_shared<CharsmapStep>();
    step->table_ = std::move(table);
    ASSIGN_OR_RETURN(step->map_, Charsmap::Parse(step->table_));
    return step;
  }

  absl::Status Apply(absl::string_view text, bool continues,
                     PatternScratch& scratch, std::string& out) const override {
    constexpr size_t kTextBytesMax = size_t{1} << 30;  // of ICU
    constexpr size_t kGraphemeBytesMax = 5;
    if (text.size() > kTextBytesMax) {
      return absl::ResourceExhaustedError(
          "a text of more than 1 GiB is not normalized at once");
    }
    return ForEachGrapheme(text, [&](absl::string_view grapheme) {
      if (grapheme.size() <= kGraphemeBytesMax && Append(grapheme, out)) return;
      for (size_t at = 0; at < grapheme.size();) {
        const size_t bytes = CharacterAt(grapheme, at).bytes;
        const absl::string_view character = grapheme.substr(at, bytes);
        if (!Append(character, out)) {
          out.append(character.data(), character.size());
        }
        at += bytes;
      }
    });
  }

  // Between characters of the common class there is always a boundary.
  bool IsLocal(const Seam& seam, PatternScratch& scratch) const override {
    return IsPlain(seam.before) && IsPlain(seam.after) && IsPlain(seam.next);
  }

 private:
  static bool IsPlain(uint32_t code) {
    if (code == '\n') return true;  // joins '\r' alone, which is not plain
    return u_getIntPropertyValue(static_cast<UChar32>(code),
                                 UCHAR_GRAPHEME_CLUSTER_BREAK) == U_GCB_OTHER;
  }

  bool Append(absl::string_view part, std::string& out) const {
    const Charsmap::Entry entry = map_.Shortest(part);
    if (entry.consumed == 0) return false;
    out.append(entry.normalized.data(), entry.normalized.size());
    return true;
  }

  std::string table_;
  Charsmap map_;  // of it
};

}  // namespace

NormalizerStepOr MakePrecompiled(const JsonPlace& place) {
  RETURN_IF_ERROR(place.CheckKeys({"type", "precompiled_charsmap"}));
  ASSIGN_OR_RETURN(const std::string text, place.Text("precompiled_charsmap"));
  std::string table;
  if (!absl::Base64Unescape(text, &table)) {
    return place.Error("\"precompiled_charsmap\" is not base64");
  }
  absl::StatusOr<std::shared_ptr<const CharsmapStep>> step =
      CharsmapStep::Create(std::move(table));
  if (!step.ok()) return Annotate(step.status(), place.place());
  return NormalizerStepOr(*std::move(step));
}

}  // namespace troupe
