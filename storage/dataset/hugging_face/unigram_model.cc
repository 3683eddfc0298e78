#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/dataset/hugging_face/characters.h"
#include "storage/dataset/hugging_face/model.h"
#include "storage/dataset/sentencepiece/piece_trie.h"

namespace troupe {
namespace {

constexpr size_t kNowhere = ~size_t{0};

// The segmentation with the highest sum of scores (Kudo, "Subword
// Regularization", 2018). A character that is no piece costs 10 more than the
// worst piece; a run of such characters is one unknown token, or bytes.
class UnigramModel final : public TokenModel {
 public:
  UnigramModel(Vocabulary vocabulary, std::vector<double> scores,
               int32_t unknown_id, bool byte_fallback, bool byte_level)
      : vocabulary_(std::move(vocabulary)),
        scores_(std::move(scores)),
        unknown_id_(unknown_id),
        byte_fallback_(byte_fallback),
        byte_level_(byte_level),
        byte_ids_(vocabulary_.BytePieces()) {
    double lowest = std::numeric_limits<double>::infinity();
    // Of pieces that come twice the last counts.
    for (size_t id = scores_.size(); id-- > 0;) {
      lowest = std::min(lowest, scores_[id]);
      const std::string& text = vocabulary_.texts()[id];
      if (!text.empty()) trie_.Add(text, static_cast<int32_t>(id));
    }
    unknown_score_ = lowest - 10;
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }

  absl::Status Tokenize(absl::string_view piece, ModelScratch& scratch,
                        std::vector<int32_t>& ids) const override {
    if (byte_level_) {
      scratch.text = BytesAsCharacters(piece);
      piece = scratch.text;
    }
    RETURN_IF_ERROR(FindBest(piece, scratch));
    Trace(piece.size(), scratch);
    for (auto span = scratch.spans.rbegin(); span != scratch.spans.rend();
         ++span) {
      AppendIds(piece.substr(span->begin, span->end - span->begin), ids);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status FindBest(absl::string_view piece, ModelScratch& scratch) const {
    std::vector<ModelScratch::Node>& nodes = scratch.nodes;
    nodes.assign(piece.size() + 1, {0, 0, kNowhere});
    for (size_t begin = 0; begin < piece.size();) {
      const double here = nodes[begin].score;
      const size_t character = CharacterAt(piece, begin).bytes;
      const auto propose = [&](size_t bytes, int32_t id, double score) {
        ModelScratch::Node& node = nodes[begin + bytes];
        const double sum = score + here;
        if (node.begin == kNowhere || sum > node.score) node = {sum, id, begin};
      };
      bool has_character = false;
      trie_.ForEachPrefix(piece.substr(begin), [&](int32_t id, size_t bytes) {
        propose(bytes, id, scores_[id]);
        has_character |= bytes == character;
      });
      if (!has_character) {
        if (unknown_id_ == kNoToken) {
          return absl::InvalidArgumentError(
              absl::StrCat("the tokenizer's model has no piece for ",
                           piece.substr(begin, character), " and no unk_id"));
        }
        propose(character, unknown_id_, unknown_score_);
      }
      begin += character;
    }
    return absl::OkStatus();
  }

  // From the end to the beginning; unknown ones that touch are one.
  void Trace(size_t end, ModelScratch& scratch) const {
    scratch.spans.clear();
    bool after_unknown = false;
    while (end > 0) {
      const ModelScratch::Node& node = scratch.nodes[end];
      const bool unknown = node.id == unknown_id_;
      if (unknown && after_unknown) {
        scratch.spans.back().begin = node.begin;
      } else {
        scratch.spans.push_back({node.begin, end});
      }
      after_unknown = unknown;
      end = node.begin;
    }
  }

  void AppendIds(absl::string_view text, std::vector<int32_t>& ids) const {
    const int32_t id = vocabulary_.IdOf(text);
    const bool has_bytes =
        byte_fallback_ && std::all_of(text.begin(), text.end(), [&](char byte) {
          return byte_ids_[static_cast<uint8_t>(byte)] != kNoToken;
        });
    if (id != kNoToken || !has_bytes) {
      ids.push_back(id != kNoToken ? id : unknown_id_);
      return;
    }
    for (const char byte : text) {
      ids.push_back(byte_ids_[static_cast<uint8_t>(byte)]);
    }
  }

  const Vocabulary vocabulary_;
  const std::vector<double> scores_;
  const int32_t unknown_id_;
  const bool byte_fallback_;
  const bool byte_level_;
  const std::array<int32_t, 256> byte_ids_;
  PieceTrie trie_;
  double unknown_score_ = 0;
};

}  // namespace

TokenModelOr MakeUnigramModel(const JsonPlace& place, bool byte_level) {
  RETURN_IF_ERROR(
      place.CheckKeys({"type", "unk_id", "vocab", "byte_fallback"}));
  ASSIGN_OR_RETURN(const JsonPlace list, place.Field("vocab"));
  if (!list.value().is_array() || list.value().empty()) {
    return list.Error("must be a list of pieces with their scores");
  }
  Vocabulary vocabulary;
  std::vector<double> scores;
  for (const nlohmann::json& entry : list.value()) {
    const JsonPlace at(entry,
                       absl::StrCat(list.place(), "[", scores.size(), "]"));
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() ||
        !entry[1].is_number()) {
      return at.Error("must be a piece and its score");
    }
    RETURN_IF_ERROR(vocabulary.Add(entry[0].get<std::string>(),
                                   static_cast<int64_t>(scores.size()), at));
    scores.push_back(entry[1].get<double>());
  }
  ASSIGN_OR_RETURN(const JsonPlace unknown, place.Field("unk_id"));
  int64_t unknown_id = kNoToken;
  if (!unknown.IsNull()) {
    ASSIGN_OR_RETURN(
        unknown_id,
        place.Integer("unk_id", 0, static_cast<int64_t>(scores.size()) - 1));
  }
  ASSIGN_OR_RETURN(const bool fallback, place.FlagOr("byte_fallback", false));
  return std::make_unique<const UnigramModel>(
      std::move(vocabulary), std::move(scores),
      static_cast<int32_t>(unknown_id), fallback, byte_level);
}

}  // namespace troupe
