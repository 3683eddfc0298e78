#include "storage/dataset/sentencepiece/normalizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "proto/base/status.h"
#include "storage/dataset/utf8.h"
#include "storage/engine/little_endian.h"

namespace troupe {
namespace {

// One unit of a Darts-clone double array: of a node, or of its leaf.
uint32_t Label(uint32_t unit) { return unit & (1u << 31 | 0xFF); }
uint32_t Offset(uint32_t unit) {
  return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}
bool HasLeaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t Value(uint32_t unit) { return unit & ~(1u << 31); }

absl::Status Damaged() {
  return absl::InvalidArgumentError(
      "the SentencePiece model's precompiled_charsmap is damaged");
}

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

// The table: the bytes of the double array, the array, the replacements.
absl::StatusOr<Normalizer> Normalizer::Create(const SentencePieceModel& model,
                                              const PieceTrie& user_defined) {
  Normalizer normalizer(model, user_defined);
  for (const SentencePiece& piece : model.pieces) {
    if (piece.type != PieceType::kUserDefined) continue;
    normalizer.longest_ = std::max(normalizer.longest_, piece.text.size());
  }
  absl::string_view table = model.precompiled_charsmap;
  if (table.empty()) return normalizer;
  if (table.size() < 4) return Damaged();
  const uint32_t bytes = LoadLittleEndian<uint32_t>(table.data());
  table.remove_prefix(4);
  if (bytes > table.size() || bytes % 4 != 0 || bytes == 0) return Damaged();
  for (uint32_t at = 0; at < bytes; at += 4) {
    normalizer.units_.push_back(LoadLittleEndian<uint32_t>(table.data() + at));
  }
  normalizer.replacements_ = table.substr(bytes);
  if (!absl::EndsWith(normalizer.replacements_, absl::string_view("\0", 1))) {
    return Damaged();
  }
  RETURN_IF_ERROR(normalizer.MeasureTable());
  return normalizer;
}

// Level by level, since ends of entries are shared.
absl::Status Normalizer::MeasureTable() {
  constexpr size_t kEntryBytesMax = 128;  // published tables: about 20
  std::vector<uint32_t> level = {Offset(units_[0])};
  for (size_t depth = 0; !level.empty(); ++depth) {
    if (depth > kEntryBytesMax) return Damaged();
    longest_ = std::max(longest_, depth);
    std::vector<uint32_t> next;
    for (const uint32_t node : level) {
      for (uint32_t byte = 1; byte < 256; ++byte) {
        const uint32_t child = node ^ byte;
        if (child >= units_.size() || Label(units_[child]) != byte) continue;
        next.push_back(child ^ Offset(units_[child]));
      }
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    level = std::move(next);
  }
  return absl::OkStatus();
}

// The longest entry of the table that `text` begins with; consumes nothing
// where there is none.
Normalizer::Prefix Normalizer::LookUp(absl::string_view text) const {
  Prefix longest;
  if (units_.empty()) return longest;
  uint32_t node = Offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    if (node >= units_.size() || Label(units_[node]) != byte) break;
    const bool has_leaf = HasLeaf(units_[node]);
    node ^= Offset(units_[node]);
    if (!has_leaf || node >= units_.size()) continue;
    const uint32_t at = Value(units_[node]);
    if (at >= replacements_.size()) continue;
    longest = {absl::string_view(replacements_.data() + at), i + 1};
  }
  return longest;
}

Normalizer::Prefix Normalizer::NormalizePrefix(absl::string_view text) const {
  const size_t kept = user_defined_->LongestPrefix(text);
  if (kept > 0) return {text.substr(0, kept), kept};
  const Prefix mapped = LookUp(text);
  if (mapped.consumed > 0) return mapped;
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
