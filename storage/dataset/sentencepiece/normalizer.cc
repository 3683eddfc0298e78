#include "storage/dataset/sentencepiece/normalizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "proto/base/status.h"
#include "storage/dataset/utf8.h"

namespace troupe {
namespace {

// Of a text that is not empty.
absl::string_view FirstCharacter(absl::string_view text) {
  return text.substr(0, std::max<size_t>(1, CharacterBytes(text)));
}
absl::string_view LastCharacter(absl::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (text[begin] & 0xC0) == 0x80) --begin;
  return text.substr(begin);
}

}  // namespace

absl::StatusOr<Normalizer> Normalizer::Create(const SentencePieceModel& model,
                                              const PieceTrie& user_defined) {
  Normalizer normalizer(model, user_defined);
  for (const SentencePiece& piece : model.pieces) {
    if (piece.type != PieceType::kUserDefined) continue;
    normalizer.longest_ = std::max(normalizer.longest_, piece.text.size());
  }
  if (model.precompiled_charsmap.empty()) return normalizer;
  absl::StatusOr<Charsmap> map = Charsmap::Parse(model.precompiled_charsmap);
  if (!map.ok()) return Annotate(map.status(), "the SentencePiece model");
  normalizer.map_ = *std::move(map);
  normalizer.longest_ =
      std::max(normalizer.longest_, normalizer.map_.longest());
  return normalizer;
}

Normalizer::Prefix Normalizer::NormalizePrefix(absl::string_view text) const {
  const size_t kept = user_defined_->LongestPrefix(text);
  if (kept > 0) return {text.substr(0, kept), kept};
  const Charsmap::Entry mapped = map_.Longest(text);
  if (mapped.consumed > 0) return {mapped.normalized, mapped.consumed};
  const size_t bytes = CharacterBytes(text);
  if (bytes > 0) return {text.substr(0, bytes), bytes};
  if (model_->byte_fallback) return {text.substr(0, 1), 1};
  return {"\xEF\xBF\xBD", 1};
}

// Whether what begins before `at` may reach over it.
bool Normalizer::Joins(absl::string_view text, size_t at) const {
  size_t begin = at - std::min(at, longest_ - 1);
  for (; begin < at; ++begin) {
    if (begin + NormalizePrefix(text.substr(begin)).consumed > at) return true;
  }
  return false;
}

// Requires that nothing reaches over the ends.
std::string Normalizer::NormalizeRange(absl::string_view text, size_t begin,
                                       size_t end) const {
  std::string out;
  while (begin < end) {
    const Prefix prefix = NormalizePrefix(text.substr(begin));
    out.append(prefix.normalized.data(), prefix.normalized.size());
    begin += prefix.consumed;
  }
  return out;
}

absl::optional<Normalizer::Seam> Normalizer::SeamAt(absl::string_view text,
                                                    size_t at) const {
  // What vanishes when it is normalized is looked past so far.
  constexpr int kPlacesBefore = 8;
  if (at + longest_ > text.size() || Joins(text, at)) return absl::nullopt;
  std::string before;
  size_t begin = at;
  for (int i = 0; i < kPlacesBefore && begin > 0 && before.empty(); ++i) {
    do {
      --begin;
    } while (begin > 0 && Joins(text, begin));
    before = NormalizeRange(text, begin, at);
  }
  const std::string after(NormalizePrefix(text.substr(at)).normalized);
  if (before.empty() || after.empty()) return absl::nullopt;
  const absl::string_view space =
      model_->escape_whitespaces ? kSpaceSymbol : " ";
  const auto in_pieces = [&](absl::string_view character) {
    return std::string(character == " " ? space : character);
  };
  Seam seam = {in_pieces(LastCharacter(before)),
               in_pieces(FirstCharacter(after))};
  // Spaces at the end of a text are removed, those within are not.
  if (model_->remove_extra_whitespaces && seam.before == space) {
    return absl::nullopt;
  }
  return seam;
}

std::string Normalizer::Normalize(absl::string_view text, Part part) const {
  const bool squeeze = model_->remove_extra_whitespaces;
  const absl::string_view space =
      model_->escape_whitespaces ? kSpaceSymbol : " ";
  if (squeeze && part == Part::kBeginning) {
    while (!text.empty()) {
      const Prefix prefix = NormalizePrefix(text);
      if (prefix.normalized != " ") break;
      text.remove_prefix(prefix.consumed);
    }
  }
  std::string out;
  if (text.empty()) return out;
  out.reserve(text.size() + text.size() / 4);
  if (model_->add_dummy_prefix && part == Part::kBeginning) {
    out.append(space.data(), space.size());
  }
  bool after_space = squeeze && part == Part::kBeginning;
  while (!text.empty()) {
    const Prefix prefix = NormalizePrefix(text);
    absl::string_view piece = prefix.normalized;
    while (after_space && absl::ConsumePrefix(&piece, " ")) {
    }
    for (const char byte : piece) {
      if (byte == ' ') {
        out.append(space.data(), space.size());
      } else {
        out.push_back(byte);
      }
    }
    if (!piece.empty()) after_space = squeeze && absl::EndsWith(piece, " ");
    text.remove_prefix(prefix.consumed);
  }
  while (squeeze && absl::EndsWith(out, space)) {
    out.resize(out.size() - space.size());
  }
  return out;
}

}  // namespace troupe
