#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/status.h"
#include "storage/dataset/hugging_face/characters.h"
#include "storage/dataset/hugging_face/merge_table.h"
#include "storage/dataset/hugging_face/model.h"

namespace troupe {
namespace {

struct BpeOptions {
  std::string unknown;  // a piece; empty: what is not known is left out
  bool fuse_unknown = false;
  std::string prefix;  // of characters that do not begin a word
  std::string suffix;  // of the character that ends it
  bool byte_fallback = false;
  bool ignore_merges = false;
};

// From single characters on, always merges the neighbours whose merge comes
// first in the list, the leftmost of equals (Sennrich et al., "Neural Machine
// Translation of Rare Words with Subword Units", 2016).
class BpeModel final : public TokenModel {
 public:
  BpeModel(BpeOptions options, Vocabulary vocabulary, MergeTable merges,
           bool byte_level);

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  absl::Status Tokenize(absl::string_view piece, ModelScratch& scratch,
                        std::vector<int32_t>& ids) const override;
  bool MayCut(const Seam& seam) const override;

 private:
  void LearnSeams();
  int32_t WholePiece(absl::string_view piece) const;
  void Split(absl::string_view piece, std::vector<int32_t>& symbols) const;
  void AddCharacters(absl::string_view piece,
                     std::vector<int32_t>& symbols) const;
  // What a character that is not in the vocabulary becomes.
  bool AddBytes(absl::string_view text, std::vector<int32_t>& symbols) const;
  void MergeShort(ModelScratch& scratch) const;
  void MergeLong(ModelScratch& scratch) const;

  const BpeOptions options_;
  const Vocabulary vocabulary_;
  const MergeTable merges_;
  const bool byte_level_;
  bool has_all_bytes_ = false;           // as characters
  std::array<int32_t, 256> characters_;  // by byte, of byte_level
  std::array<int32_t, 256> byte_ids_;    // of byte_fallback
  int32_t unknown_id_ = kNoToken;
  // Pairs of characters, of which the second is a space or its symbol, that
  // stand side by side in a piece.
  absl::flat_hash_set<uint64_t> joined_;
};

constexpr uint32_t kSpaceSymbolCode = 0x2581;

uint64_t PairOf(uint32_t before, uint32_t after) {
  return static_cast<uint64_t>(before) << 32 | after;
}

BpeModel::BpeModel(BpeOptions options, Vocabulary vocabulary, MergeTable merges,
                   bool byte_level)
    : options_(std::move(options)),
      vocabulary_(std::move(vocabulary)),
      merges_(std::move(merges)),
      byte_level_(byte_level) {
  has_all_bytes_ = true;
  for (int byte = 0; byte < 256; ++byte) {
    characters_[byte] = vocabulary_.IdOf(
        CharacterText(ByteCharacter(static_cast<uint8_t>(byte))));
    has_all_bytes_ &= characters_[byte] != kNoToken;
  }
  byte_ids_ = vocabulary_.BytePieces();
  if (!options_.unknown.empty()) {
    unknown_id_ = vocabulary_.IdOf(options_.unknown);
  }
  if (!byte_level_) LearnSeams();
}

void BpeModel::LearnSeams() {
  for (const std::string& text : vocabulary_.texts()) {
    uint32_t before = 0;
    for (size_t at = 0; at < text.size();) {
      const Character character = CharacterAt(text, at);
      if (at > 0 &&
          (character.code == kSpaceSymbolCode || character.code == ' ')) {
        joined_.insert(PairOf(before, character.code));
      }
      before = character.code;
      at += character.bytes;
    }
  }
}

// A merge over the place would make a piece that has both characters.
bool BpeModel::MayCut(const Seam& seam) const {
  const bool is_simple = !byte_level_ && !options_.ignore_merges &&
                         options_.prefix.empty() && options_.suffix.empty();
  return is_simple && (seam.after == kSpaceSymbolCode || seam.after == ' ') &&
         vocabulary_.IdOf(CharacterText(seam.before)) != kNoToken &&
         vocabulary_.IdOf(CharacterText(seam.after)) != kNoToken &&
         !joined_.contains(PairOf(seam.before, seam.after));
}

int32_t BpeModel::WholePiece(absl::string_view piece) const {
  if (!byte_level_) return vocabulary_.IdOf(piece);
  return vocabulary_.IdOf(BytesAsCharacters(piece));
}

bool BpeModel::AddBytes(absl::string_view text,
                        std::vector<int32_t>& symbols) const {
  if (!options_.byte_fallback) return false;
  for (const char byte : text) {
    if (byte_ids_[static_cast<uint8_t>(byte)] == kNoToken) return false;
  }
  for (const char byte : text) {
    symbols.push_back(byte_ids_[static_cast<uint8_t>(byte)]);
  }
  return true;
}

void BpeModel::AddCharacters(absl::string_view piece,
                             std::vector<int32_t>& symbols) const {
  // Of unknown characters that wait to be added: the library adds them with the
  // next known one.
  bool waits = false;
  std::string spelled;
  for (size_t at = 0; at < piece.size();) {
    const size_t bytes = CharacterAt(piece, at).bytes;
    absl::string_view text = piece.substr(at, bytes);
    const bool is_last = at + bytes == piece.size();
    if ((at > 0 && !options_.prefix.empty()) ||
        (is_last && !options_.suffix.empty())) {
      spelled = absl::StrCat(at > 0 ? options_.prefix : "", text,
                             is_last ? options_.suffix : "");
      text = spelled;
    }
    at += bytes;
    const int32_t id = vocabulary_.IdOf(text);
    if (id != kNoToken) {
      if (waits) symbols.push_back(unknown_id_);
      waits = false;
      symbols.push_back(id);
    } else if (!AddBytes(text, symbols) && unknown_id_ != kNoToken) {
      if (waits && !options_.fuse_unknown) symbols.push_back(unknown_id_);
      waits = true;
    }
  }
  if (waits) symbols.push_back(unknown_id_);
}

void BpeModel::Split(absl::string_view piece,
                     std::vector<int32_t>& symbols) const {
  if (!byte_level_) return AddCharacters(piece, symbols);
  if (!has_all_bytes_ || !options_.prefix.empty() || !options_.suffix.empty()) {
    return AddCharacters(BytesAsCharacters(piece), symbols);
  }
  for (const char byte : piece) {
    symbols.push_back(characters_[static_cast<uint8_t>(byte)]);
  }
}

// Looks for the first merge again and again: for words, of a few symbols, this
// is faster than a heap.
void BpeModel::MergeShort(ModelScratch& scratch) const {
  constexpr uint64_t kNone = ~uint64_t{0};
  std::vector<int32_t>& ids = scratch.ids;
  // By symbol: the rank of the merge with the next one, and its id.
  std::vector<uint64_t>& ranks = scratch.ranks;
  const auto rank_of = [&](size_t i) {
    if (i + 1 >= ids.size()) return kNone;
    const MergeTable::Entry* merge = merges_.Find(ids[i], ids[i + 1]);
    return merge == nullptr ? kNone
                            : static_cast<uint64_t>(merge->rank) << 32 |
                                  static_cast<uint32_t>(merge->id);
  };
  ranks.clear();
  for (size_t i = 0; i < ids.size(); ++i) ranks.push_back(rank_of(i));
  while (ids.size() > 1) {
    const auto first = std::min_element(
        ranks.begin(), ranks.end(),
        [](uint64_t a, uint64_t b) { return a >> 32 < b >> 32; });
    if (*first == kNone) return;
    const size_t at = first - ranks.begin();
    ids[at] = static_cast<int32_t>(*first & 0xFFFFFFFFu);
    ids.erase(ids.begin() + at + 1);
    ranks.erase(ranks.begin() + at + 1);
    ranks[at] = rank_of(at);
    if (at > 0) ranks[at - 1] = rank_of(at - 1);
  }
}

void BpeModel::MergeLong(ModelScratch& scratch) const {
  std::vector<ModelScratch::Symbol>& symbols = scratch.symbols;
  std::vector<ModelScratch::Merge>& heap = scratch.merges;
  const auto later = [](const ModelScratch::Merge& a,
                        const ModelScratch::Merge& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  };
  const int32_t count = static_cast<int32_t>(scratch.ids.size());
  symbols.clear();
  for (int32_t i = 0; i < count; ++i) {
    symbols.push_back({scratch.ids[i], i - 1, i + 1 == count ? -1 : i + 1,
                       /*gone=*/false});
  }
  heap.clear();
  const auto propose = [&](int32_t left, int32_t right) {
    if (left < 0 || right < 0) return false;
    const MergeTable::Entry* merge =
        merges_.Find(symbols[left].id, symbols[right].id);
    if (merge != nullptr) heap.push_back({merge->rank, left, merge->id});
    return merge != nullptr;
  };
  for (int32_t i = 1; i < count; ++i) propose(i - 1, i);
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    const ModelScratch::Merge merge = heap.front();
    std::pop_heap(heap.begin(), heap.end(), later);
    heap.pop_back();
    ModelScratch::Symbol& left = symbols[merge.position];
    if (left.gone || left.after < 0) continue;
    ModelScratch::Symbol& right = symbols[left.after];
    // One of them was merged with another meanwhile.
    const MergeTable::Entry* now = merges_.Find(left.id, right.id);
    if (now == nullptr || now->id != merge.id) continue;
    left.id = merge.id;
    left.after = right.after;
    right.gone = true;
    if (left.after >= 0) symbols[left.after].before = merge.position;
    if (propose(left.before, merge.position)) {
      std::push_heap(heap.begin(), heap.end(), later);
    }
    if (propose(merge.position, left.after)) {
      std::push_heap(heap.begin(), heap.end(), later);
    }
  }
  scratch.ids.clear();
  for (const ModelScratch::Symbol& symbol : symbols) {
    if (!symbol.gone) scratch.ids.push_back(symbol.id);
  }
}

absl::Status BpeModel::Tokenize(absl::string_view piece, ModelScratch& scratch,
                                std::vector<int32_t>& ids) const {
  constexpr size_t kShort = 32;
  constexpr size_t kPieceBytesMax = std::numeric_limits<int32_t>::max();
  if (piece.size() >= kPieceBytesMax) {
    return absl::ResourceExhaustedError(
        "2 GiB of text are one piece, which is too much");
  }
  if (options_.ignore_merges) {
    const int32_t whole = WholePiece(piece);
    if (whole != kNoToken) {
      ids.push_back(whole);
      return absl::OkStatus();
    }
  }
  scratch.ids.clear();
  Split(piece, scratch.ids);
  if (scratch.ids.size() <= kShort) {
    MergeShort(scratch);
  } else {
    MergeLong(scratch);
  }
  ids.insert(ids.end(), scratch.ids.begin(), scratch.ids.end());
  return absl::OkStatus();
}

absl::StatusOr<BpeOptions> ParseOptions(const JsonPlace& place) {
  RETURN_IF_ERROR(place.CheckKeys(
      {"type", "dropout", "unk_token", "continuing_subword_prefix",
       "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges",
       "vocab", "merges"}));
  ASSIGN_OR_RETURN(const JsonPlace dropout, place.Field("dropout"));
  if (!dropout.IsNull() && dropout.value() != 0) {
    return dropout.Error(
        "makes another text each time, which is not known; use null");
  }
  BpeOptions options;
  ASSIGN_OR_RETURN(options.unknown, place.TextOr("unk_token", ""));
  ASSIGN_OR_RETURN(options.prefix,
                   place.TextOr("continuing_subword_prefix", ""));
  ASSIGN_OR_RETURN(options.suffix, place.TextOr("end_of_word_suffix", ""));
  ASSIGN_OR_RETURN(options.fuse_unknown, place.FlagOr("fuse_unk", false));
  ASSIGN_OR_RETURN(options.byte_fallback, place.FlagOr("byte_fallback", false));
  ASSIGN_OR_RETURN(options.ignore_merges, place.FlagOr("ignore_merges", false));
  return options;
}

// ["a", "b"], or "a b" of older files.
absl::StatusOr<std::pair<std::string, std::string>> ParseMerge(
    const nlohmann::json& merge) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
      merge[1].is_string()) {
    return std::make_pair(merge[0].get<std::string>(),
                          merge[1].get<std::string>());
  }
  if (merge.is_string()) {
    const std::vector<std::string> parts =
        absl::StrSplit(merge.get_ref<const std::string&>(), ' ');
    if (parts.size() == 2) return std::make_pair(parts[0], parts[1]);
  }
  return absl::InvalidArgumentError("is no pair of pieces");
}

absl::StatusOr<MergeTable> ParseMerges(const JsonPlace& place,
                                       const Vocabulary& vocabulary,
                                       size_t prefix_bytes) {
  if (!place.value().is_array()) return place.Error("must be a list");
  MergeTable table(place.value().size());
  uint32_t rank = 0;
  for (size_t i = 0; i < place.value().size(); ++i) {
    const JsonPlace at(place.value()[i],
                       absl::StrCat(place.place(), "[", i, "]"));
    if (at.value().is_string() &&
        absl::StartsWith(at.value().get_ref<const std::string&>(),
                         "#version")) {
      continue;
    }
    const auto merge = ParseMerge(at.value());
    if (!merge.ok()) return at.Error(merge.status().message());
    const auto& [left, right] = *merge;
    if (right.size() < prefix_bytes) {
      return at.Error("its second piece is shorter than the prefix");
    }
    const int32_t ids[] = {
        vocabulary.IdOf(left), vocabulary.IdOf(right),
        vocabulary.IdOf(absl::StrCat(left, right.substr(prefix_bytes)))};
    if (std::count(std::begin(ids), std::end(ids), kNoToken) > 0) {
      return at.Error(
          "one of its pieces, or both as one, is not in the "
          "vocabulary");
    }
    table.Add(ids[0], ids[1], rank++, ids[2]);
  }
  return table;
}

}  // namespace

TokenModelOr MakeBpeModel(const JsonPlace& place, bool byte_level) {
  ASSIGN_OR_RETURN(BpeOptions options, ParseOptions(place));
  ASSIGN_OR_RETURN(const JsonPlace pieces, place.Field("vocab"));
  ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::Parse(pieces));
  if (!options.unknown.empty() &&
      vocabulary.IdOf(options.unknown) == kNoToken) {
    return place.Error("\"unk_token\" is not in the vocabulary");
  }
  ASSIGN_OR_RETURN(const JsonPlace list, place.Field("merges"));
  ASSIGN_OR_RETURN(MergeTable merges,
                   ParseMerges(list, vocabulary, options.prefix.size()));
  return std::make_unique<const BpeModel>(
      std::move(options), std::move(vocabulary), std::move(merges), byte_level);
}

}  // namespace troupe
