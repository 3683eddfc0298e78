#include <algorithm>
#include <limits>
#include <string>

#include "storage/dataset/sentencepiece/segmenter.h"
#include "storage/dataset/utf8.h"

namespace troupe {
namespace {

constexpr float kUnknownPenalty = 10.0f;

class UnigramSegmenter final : public Segmenter {
 public:
  explicit UnigramSegmenter(const SentencePieceModel& model) : model_(model) {
    float least = std::numeric_limits<float>::max();
    for (size_t id = 0; id < model.pieces.size(); ++id) {
      const SentencePiece& piece = model.pieces[id];
      if (piece.type == PieceType::kNormal) {
        least = std::min(least, piece.score);
        score_max_ = std::max(score_max_, piece.score);
      }
      if (piece.type == PieceType::kNormal ||
          piece.type == PieceType::kUserDefined) {
        trie_.Add(piece.text, static_cast<int32_t>(id));
      }
    }
    unknown_score_ = least - kUnknownPenalty;
  }

  std::vector<TextSegment> Cut(absl::string_view text) const override;

 private:
  // The best way to cut what ends at a place.
  struct Best {
    int32_t id = -1;
    int64_t begin = -1;  // of the last piece; -1: no way yet
    // Of all pieces since the last place over which none reaches: whatever
    // stands before it, the choice is the same, and a sum over a whole text
    // would lose the digits that decide it.
    double score = 0;
  };
  double Score(int32_t id, size_t bytes) const {
    const SentencePiece& piece = model_.pieces[id];
    // One that the user defined is always chosen.
    return piece.type == PieceType::kUserDefined
               ? bytes * score_max_ - 0.1
               : static_cast<double>(piece.score);
  }

  const SentencePieceModel& model_;
  PieceTrie trie_;
  float score_max_ = std::numeric_limits<float>::lowest();
  float unknown_score_ = 0;
};

std::vector<TextSegment> UnigramSegmenter::Cut(absl::string_view text) const {
  std::vector<Best> best(text.size() + 1);
  size_t reach = 0;  // of all pieces offered so far
  const auto offer = [&](size_t begin, size_t bytes, int32_t id, double score) {
    reach = std::max(reach, begin + bytes);
    Best& there = best[begin + bytes];
    const double candidate = score + best[begin].score;
    if (there.begin >= 0 && candidate <= there.score) return;
    there = {
        .id = id, .begin = static_cast<int64_t>(begin), .score = candidate};
  };
  for (size_t begin = 0; begin < text.size();) {
    if (begin == reach) best[begin].score = 0;
    const size_t character =
        std::max<size_t>(1, CharacterBytes(text.substr(begin)));
    bool has_character = false;
    trie_.ForEachPrefix(text.substr(begin), [&](int32_t id, size_t bytes) {
      offer(begin, bytes, id, Score(id, bytes));
      has_character |= bytes == character;
    });
    if (!has_character) {
      offer(begin, character, model_.unknown_id, unknown_score_);
    }
    begin += character;
  }
  std::vector<TextSegment> segments;
  for (size_t end = text.size(); end > 0; end = best[end].begin) {
    const size_t begin = best[end].begin;
    segments.push_back({text.substr(begin, end - begin), best[end].id});
  }
  std::reverse(segments.begin(), segments.end());
  return segments;
}

}  // namespace

std::unique_ptr<Segmenter> MakeUnigramSegmenter(
    const SentencePieceModel& model) {
  return std::make_unique<UnigramSegmenter>(model);
}

}  // namespace troupe
