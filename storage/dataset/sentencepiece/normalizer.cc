#include "storage/dataset/sentencepiece/normalizer.h"

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
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

}  // namespace

// The table: the bytes of the double array, the array, the replacements.
absl::StatusOr<Normalizer> Normalizer::Create(const SentencePieceModel& model,
                                              const PieceTrie& user_defined) {
  Normalizer normalizer(model, user_defined);
  absl::string_view table = model.precompiled_charsmap;
  if (table.empty()) return normalizer;
  const absl::Status damaged = absl::InvalidArgumentError(
      "the SentencePiece model's precompiled_charsmap is damaged");
  if (table.size() < 4) return damaged;
  const uint32_t bytes = LoadLittleEndian<uint32_t>(table.data());
  table.remove_prefix(4);
  if (bytes > table.size() || bytes % 4 != 0 || bytes == 0) return damaged;
  for (uint32_t at = 0; at < bytes; at += 4) {
    normalizer.units_.push_back(LoadLittleEndian<uint32_t>(table.data() + at));
  }
  normalizer.replacements_ = table.substr(bytes);
  if (!absl::EndsWith(normalizer.replacements_, absl::string_view("\0", 1))) {
    return damaged;
  }
  return normalizer;
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
